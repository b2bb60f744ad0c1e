"""Results of a rating study: means, agreement, and tests of the paper's claim (section 3.2)."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_measures.bootstrap import sums_of
from pluralbench_measures.equivalence import difference_test, equivalence_test
from pluralbench_measures.intervals import perturb
from pluralbench_runs import FrozenModel
from pluralbench_studies import Answers, ProportionRecord, Study, agreement, annotator_progress

from build_personalized.rating.form import DIMENSIONS, GENERAL, HIGHEST, LOWEST, RUBRIC
from build_personalized.rating.study import CHECK, SIDES, RatingRecipe

ALL = "all pairs"
MAX_CHECK_RATING = 2  # highest relevance rating that passes an attention check


class Rater(FrozenModel):
    """Progress of a rater.

    Attributes:
        given: Number of assigned answers.
        answered: Number of rated answers.
        checks_seen: Passed attention checks: answers to another question that the rater rated as not relevant
            (Wilson's interval).
    """

    annotator: str
    given: int
    answered: int
    checks_seen: ProportionRecord


class Mean(FrozenModel):
    """Mean rating with its 95 % interval over pairs.

    Attributes:
        config: Config, or `ALL`.
        side: `chosen` or `rejected`.
        dimension: One of `DIMENSIONS`.
        ratings: Number of ratings.
        pairs: Number of rated pairs.
        mean: The mean. None: no ratings.
        low: Lower bound of the interval.
        high: Upper bound of the interval.
    """

    config: str
    side: str
    dimension: str
    ratings: int
    pairs: int
    mean: float | None
    low: float | None
    high: float | None


class Test(FrozenModel):
    """Test of the differences between chosen and rejected; a pair's difference is the mean over its raters.

    Attributes:
        config: Config, or `ALL`.
        dimension: One of `DIMENSIONS`.
        kind: `equivalence` (two one-sided tests within the margin) or `difference`.
        pairs: Number of pairs.
        difference: Mean of chosen minus rejected.
        sd: Standard deviation of the pairs' differences.
        low: Lower bound of the interval of 1 - 2 alpha (equivalence) or 1 - alpha (difference).
        high: Upper bound of that interval.
        p_value: The p-value.
        shown: Whether the test succeeds at the study's level. None: no test is possible, as with equal differences.
    """

    config: str
    dimension: str
    kind: str
    pairs: int
    difference: float | None
    sd: float | None
    low: float | None
    high: float | None
    p_value: float | None
    shown: bool | None


class Claim(FrozenModel):
    """The paper's claim, for one config or `ALL`.

    All tests have to succeed, so each uses the study's level (an intersection-union test). None: a test was not
    possible, and no other failed.

    Attributes:
        config: Config, or `ALL`.
        general_quality: Whether the answers are equivalent in all three dimensions of general quality.
        rubric: Whether chosen answers are rated higher in the rubric.
        holds: Whether both hold.
    """

    config: str
    general_quality: bool | None
    rubric: bool | None
    holds: bool | None


class Agreement(FrozenModel):
    """Agreement of raters on a dimension.

    Attributes:
        dimension: One of `DIMENSIONS`.
        compared: Number of compared ratings.
        share: Share of equal ratings.
        low: Lower bound of the share's 95 % interval over pairs.
        high: Upper bound of that interval.
        alpha_ordinal: Krippendorff's alpha, ordinal.
        alpha_interval: Krippendorff's alpha, interval.
    """

    dimension: str
    compared: int
    share: float | None
    low: float | None
    high: float | None
    alpha_ordinal: float | None
    alpha_interval: float | None


class Spread(FrozenModel):
    """Standard deviations of differences, for planning a study. None: no pair has two raters of both answers.

    Attributes:
        dimension: One of `DIMENSIONS`.
        between: Standard deviation of the true differences between pairs.
        within: Standard deviation of the differences between raters of a pair.
    """

    dimension: str
    between: float | None
    within: float | None


class Problem(FrozenModel):
    """Row that does not match the assignment; see `pluralbench_studies.read_answers`."""

    kind: str
    item: str
    annotator: str
    detail: str


class RatingResults(FrozenModel):
    """Settings and results of a rating study, as `results.json` has them."""

    format: str = "ratings-1"
    settings: RatingRecipe
    raters: list[Rater]
    means: list[Mean]
    tests: list[Test]
    claims: list[Claim]
    agreement: list[Agreement]
    spread: list[Spread]
    problems: list[Problem]


def compute_results(study: Study[RatingRecipe], returned: Answers) -> RatingResults:
    """Compute a study's results from the returned answers (`pluralbench_studies.read_returned`)."""
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
    return RatingResults(
        settings=study.settings,
        raters=_raters(study, returned, rated.filter(side=CHECK)),
        means=[_mean(real, *place) for place in product(groups, SIDES, DIMENSIONS)],
        tests=tests,
        claims=[_claim(group, [test for test in tests if test.config == group]) for group in groups],
        agreement=[_agreement(real, dimension) for dimension in DIMENSIONS],
        spread=[_spread(differences.filter(question=dimension)) for dimension in DIMENSIONS],
        problems=[Problem(**row) for row in returned.problems.iter_rows(named=True) if row["kind"] != "missing"],
    )


def rater_differences(rated: pl.DataFrame) -> pl.DataFrame:
    """Compute chosen minus rejected for each rater who rated both answers.

    Returns:
        Columns `config`, `pair`, `question` (the dimension), `annotator` and `difference`.
    """
    names = ["config", "pair", "question", "annotator"]
    sides = [rated.filter(side=side).select(*names, pl.col("rating").alias(side)) for side in SIDES]
    both = sides[0].join(sides[1], on=names, maintain_order="left")
    return both.select(*names, difference=pl.col("chosen") - pl.col("rejected"))


def _of_group(frame: pl.DataFrame, group: str) -> pl.DataFrame:
    return frame if group == ALL else frame.filter(config=group)


def _mean(rated: pl.DataFrame, group: str, side: str, dimension: str) -> Mean:
    ratings = _of_group(rated, group).filter(side=side, question=dimension)
    pairs = ratings["pair"].unique(maintain_order=True)
    numbers = {pair: number for number, pair in enumerate(pairs)}
    cluster = np.array([numbers[pair] for pair in ratings["pair"]], dtype=np.int64)
    influence = perturb(
        sums_of(np.zeros_like(cluster), cluster, ratings["rating"].cast(pl.Float64).to_numpy(), shape=(len(pairs), 1))
    )
    bounds = (float(LOWEST), float(HIGHEST))
    mean = influence.estimate(influence.sources[0].pooled([0]), [[0]], ratings.height, len(pairs), bounds)
    return Mean(
        config=group,
        side=side,
        dimension=dimension,
        ratings=ratings.height,
        pairs=len(pairs),
        mean=mean.value,
        low=mean.low,
        high=mean.high,
    )


def _test(group: str, dimension: str, differences: pl.DataFrame, settings: RatingRecipe) -> Test:
    group_differences = _of_group(differences, group).filter(question=dimension)
    by_pair = group_differences.group_by("pair", maintain_order=True).agg(pl.col("difference").mean())
    values = by_pair["difference"].to_list()
    equivalence = dimension in GENERAL
    result = (
        equivalence_test(values, settings.margin, settings.alpha)
        if equivalence
        else difference_test(values, settings.alpha)
    )
    shown = None if result.p_value is None else result.p_value < settings.alpha
    return Test(
        config=group,
        dimension=dimension,
        kind="equivalence" if equivalence else "difference",
        pairs=result.n,
        difference=result.mean,
        sd=result.sd,
        low=result.low,
        high=result.high,
        p_value=result.p_value,
        shown=shown,
    )


def _claim(group: str, tests: Sequence[Test]) -> Claim:
    general = _all_hold([test.shown for test in tests if test.dimension in GENERAL])
    [rubric] = [test for test in tests if test.dimension == RUBRIC]
    higher = None if rubric.shown is None else rubric.shown and (rubric.difference or 0.0) > 0
    return Claim(config=group, general_quality=general, rubric=higher, holds=_all_hold([general, higher]))


def _all_hold(parts: Sequence[bool | None]) -> bool | None:
    """Return False if a part is False, else None if a part is None."""
    if any(part is False for part in parts):
        return False
    return None if None in parts else True


def _agreement(rated: pl.DataFrame, dimension: str) -> Agreement:
    ratings = rated.filter(question=dimension).select("item", "pair", "annotator", answer="rating")
    figures = agreement(ratings, range(LOWEST, HIGHEST + 1), cluster="pair")
    pairs, alpha = figures["pairs"], figures["alpha"]
    return Agreement(
        dimension=dimension,
        **{name: pairs[name] for name in ("compared", "share", "low", "high")},
        alpha_ordinal=alpha["ordinal"],
        alpha_interval=alpha["interval"],
    )


def _spread(differences: pl.DataFrame) -> Spread:
    """One-way analysis of variance of the raters' differences, with pairs as groups."""
    dimension = differences["question"][0] if differences.height else ""
    by_pair = differences.group_by("pair").agg(
        pl.len().alias("raters"),
        pl.col("difference").mean().alias("mean"),
        pl.col("difference").var(ddof=0).alias("var"),
    )
    free = differences.height - by_pair.height
    if by_pair.height < 2 or free < 1:
        return Spread(dimension=dimension, between=None, within=None)
    within = float((by_pair["var"] * by_pair["raters"]).sum()) / free
    raters = by_pair.height / float((1 / by_pair["raters"]).sum())
    means = by_pair["mean"].to_numpy()
    between = max(float(means.var(ddof=1)) - within / raters, 0.0)
    return Spread(dimension=dimension, between=between**0.5, within=within**0.5)


def _raters(study: Study[RatingRecipe], returned: Answers, checks: pl.DataFrame) -> list[Rater]:
    passed = (
        checks.filter(question="relevance")
        .group_by("annotator")
        .agg((pl.col("rating") <= MAX_CHECK_RATING).sum(), pl.len())
    )
    counts = {name: (hits, of) for name, hits, of in passed.iter_rows()}
    return [
        Rater(**row, checks_seen=ProportionRecord(**share_of(*counts.get(row["annotator"], (0, 0)))))
        for row in annotator_progress(study.assigned, returned.answers).iter_rows(named=True)
    ]
