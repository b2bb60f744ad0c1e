"""Results of a rating study: means, agreement, and tests of the paper's claim (section 3.2)."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import sums_of
from pluralbench_measures.equivalence import difference_test, equivalence_test
from pluralbench_measures.intervals import linearize
from pluralbench_studies import Answers, Study, agreement, annotator_progress, annotator_shares

from build_personalized.rating.recipe import RatingRecipe
from build_personalized.rating.study import CHECK, DIMENSIONS, GENERAL, HIGHEST, LOWEST, RUBRIC, SIDES

ALL = "all pairs"
MAX_CHECK_RATING = 2  # highest relevance rating that passes an attention check

Figures = dict[str, Any]


def compute_results(study: Study[RatingRecipe], returned: Answers) -> Figures:
    """Compute a study's results from the returned answers (`pluralbench_studies.read_returned`).

    Returns:
        Plain JSON values, lists of objects. `config` is a config or `ALL`, `dimension` one of `DIMENSIONS`.

        - `raters`: `annotator`, the answers `given` and `answered`, and `checks_seen`, the share of attention checks
          that the rater rated as not relevant (Wilson's interval).
        - `means`: by `config`, `side` and `dimension`, the numbers of `ratings` and `pairs`, and the `mean` with its
          95 % interval over pairs (`low`, `high`).
        - `tests`: by `config` and `dimension`, of chosen minus rejected: the `kind`, `equivalence` (two one-sided tests
          within the margin) or `difference`; the number of `pairs`, the mean `difference` and its `sd`; `low` and
          `high`, the interval of 1 - 2 alpha (equivalence) or 1 - alpha (difference); the `p_value`, and whether the
          test succeeds (`shown`; None: no test is possible, as with equal differences).
        - `claims`: by `config`, whether the answers are equivalent in `general_quality`, whether chosen ones are rated
          higher in the `rubric`, and whether the claim `holds`. All tests have to succeed, so each uses the study's
          level (an intersection-union test). None: a test was not possible, and no other failed.
        - `agreement`: by `dimension`, the `compared` ratings, the `share` of equal ones with its 95 % interval over
          pairs, and Krippendorff's alpha (`alpha_ordinal`, `alpha_interval`).
        - `spread`: by `dimension`, the standard deviations of true differences `between` pairs, and of differences
          between raters of a pair (`within`). None: no pair has two raters of both answers.
        - `problems`: see `pluralbench_studies.read_answers`.
    """
    rated = returned.answers.filter(pl.col("question").is_in(DIMENSIONS)).join(
        study.key, on="item", maintain_order="left"
    )
    rated = rated.with_columns(
        pl.col("answer").cast(pl.Int64).alias("rating"), pair=pl.concat_str("config", "id", separator="/")
    )
    real = rated.filter(pl.col("side") != CHECK)
    differences = rater_differences(real)
    configs = list(dict.fromkeys(study.key["config"]))
    groups = [*configs, ALL] if len(configs) > 1 else configs
    tests = [_test(group, dimension, differences, study.settings) for group, dimension in product(groups, DIMENSIONS)]
    return {
        "settings": study.settings.model_dump(mode="json"),
        "raters": _raters(study, returned, rated.filter(side=CHECK)),
        "means": [_mean(real, *place) for place in product(groups, SIDES, DIMENSIONS)],
        "tests": tests,
        "claims": [_claim(group, [test for test in tests if test["config"] == group]) for group in groups],
        "agreement": [_agreement(real, dimension) for dimension in DIMENSIONS],
        "spread": [_spread(dimension, differences.filter(question=dimension)) for dimension in DIMENSIONS],
        "problems": returned.problems.to_dicts(),
    }


def rater_differences(rated: pl.DataFrame) -> pl.DataFrame:
    """Compute chosen minus rejected, by `config`, `pair`, `question` (the dimension) and `annotator`.

    Only raters who rated both answers count.
    """
    names = ["config", "pair", "question", "annotator"]
    sides = [rated.filter(side=side).select(*names, pl.col("rating").alias(side)) for side in SIDES]
    both = sides[0].join(sides[1], on=names, maintain_order="left")
    return both.select(*names, difference=pl.col("chosen") - pl.col("rejected"))


def _of_group(frame: pl.DataFrame, group: str) -> pl.DataFrame:
    return frame if group == ALL else frame.filter(config=group)


def _mean(rated: pl.DataFrame, group: str, side: str, dimension: str) -> Figures:
    ratings = _of_group(rated, group).filter(side=side, question=dimension)
    pairs = ratings["pair"].unique(maintain_order=True)
    numbers = {pair: number for number, pair in enumerate(pairs)}
    cluster = np.array([numbers[pair] for pair in ratings["pair"]], dtype=np.int64)
    influence = linearize(
        sums_of(np.zeros_like(cluster), cluster, ratings["rating"].cast(pl.Float64).to_numpy(), shape=(len(pairs), 1))
    )
    bounds = (float(LOWEST), float(HIGHEST))
    mean = influence.estimate(influence.sources[0].pooled([0]), [[0]], ratings.height, len(pairs), bounds)
    place = {"config": group, "side": side, "dimension": dimension, "ratings": ratings.height, "pairs": len(pairs)}
    return place | {"mean": mean.value, "low": mean.low, "high": mean.high}


def _test(group: str, dimension: str, differences: pl.DataFrame, settings: RatingRecipe) -> Figures:
    by_pair = _of_group(differences, group).filter(question=dimension).group_by("pair", maintain_order=True)
    values = by_pair.agg(pl.col("difference").mean())["difference"].to_list()
    equivalence = dimension in GENERAL
    result = (
        equivalence_test(values, settings.margin, settings.alpha)
        if equivalence
        else difference_test(values, settings.alpha)
    )
    return {
        "config": group,
        "dimension": dimension,
        "kind": "equivalence" if equivalence else "difference",
        "pairs": result.n,
        "difference": result.mean,
        "sd": result.sd,
        "low": result.low,
        "high": result.high,
        "p_value": result.p_value,
        "shown": None if result.p_value is None else result.p_value < settings.alpha,
    }


def _claim(group: str, tests: Sequence[Figures]) -> Figures:
    general = _all_hold([test["shown"] for test in tests if test["dimension"] in GENERAL])
    [rubric] = [test for test in tests if test["dimension"] == RUBRIC]
    higher = None if rubric["shown"] is None else rubric["shown"] and (rubric["difference"] or 0.0) > 0
    return {"config": group, "general_quality": general, "rubric": higher, "holds": _all_hold([general, higher])}


def _all_hold(parts: Sequence[bool | None]) -> bool | None:
    """Return False if a part is False, else None if a part is None."""
    if any(part is False for part in parts):
        return False
    return None if None in parts else True


def _agreement(rated: pl.DataFrame, dimension: str) -> Figures:
    ratings = rated.filter(question=dimension).select("item", "pair", "annotator", answer="rating")
    figures = agreement(ratings, range(LOWEST, HIGHEST + 1), cluster="pair")
    shares = {name: figures["pairs"][name] for name in ("compared", "share", "low", "high")}
    alphas = {f"alpha_{level}": figures["alpha"][level] for level in ("ordinal", "interval")}
    return {"dimension": dimension} | shares | alphas


def _spread(dimension: str, differences: pl.DataFrame) -> Figures:
    """One-way analysis of variance of the raters' differences, with pairs as groups."""
    by_pair = differences.group_by("pair", maintain_order=True).agg(
        pl.len().alias("raters"),
        pl.col("difference").mean().alias("mean"),
        pl.col("difference").var(ddof=0).alias("var"),
    )
    free = differences.height - by_pair.height
    if by_pair.height < 2 or free < 1:
        return {"dimension": dimension, "between": None, "within": None}
    within = float((by_pair["var"] * by_pair["raters"]).sum()) / free
    raters = by_pair.height / float((1 / by_pair["raters"]).sum())
    between = max(float(by_pair["mean"].to_numpy().var(ddof=1)) - within / raters, 0.0)
    return {"dimension": dimension, "between": between**0.5, "within": within**0.5}


def _raters(study: Study[RatingRecipe], returned: Answers, checks: pl.DataFrame) -> list[Figures]:
    progress = annotator_progress(study.assigned, returned.answers)
    seen = checks.filter(question="relevance")
    shares = annotator_shares(seen, pl.col("rating") <= MAX_CHECK_RATING, progress["annotator"])
    return [row | {"checks_seen": shares[row["annotator"]]} for row in progress.to_dicts()]
