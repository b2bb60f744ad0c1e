"""What raters found: means, agreement, and whether the pairs differ by the rubric alone (paper, section 3.2)."""

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
POOR = 2  # the most that the relevance of an answer to another question should get


class Rater(FrozenModel):
    """How far a rater is, in answers.

    checks_seen: on how many check items they saw that the answer is to another question (Wilson's interval).
    """

    annotator: str
    given: int
    answered: int
    checks_seen: ProportionRecord


class Mean(FrozenModel):
    """A mean rating with its 95 % interval over questions. ratings, pairs: how many it is of."""

    config: str
    side: str
    dimension: str
    ratings: int
    pairs: int
    mean: float | None
    low: float | None
    high: float | None


class Test(FrozenModel):
    """A test on the differences, chosen less rejected, of pairs; each is the mean over the raters of both answers.

    kind: "equivalence" (two one-sided tests, within the margin) or "difference". low, high: the interval of 1 - 2 alpha
    for equivalence, of 1 - alpha for a difference. shown: whether the test shows it at the study's level; None where
    there is nothing to test by, as where all differences are the same.
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
    """The paper's claim: `general_quality`, equivalent in all three dimensions, and `rubric`, chosen rated higher.

    As all tests have to succeed, each is at the study's level (an intersection-union test). None where a test could not
    be made and none of the others failed.
    """

    config: str
    general_quality: bool | None
    rubric: bool | None
    holds: bool | None


class Agreement(FrozenModel):
    """How far raters agree on a dimension: the share of equal ratings (95 % interval over pairs), and alpha."""

    dimension: str
    compared: int
    share: float | None
    low: float | None
    high: float | None
    alpha_ordinal: float | None
    alpha_interval: float | None


class Spread(FrozenModel):
    """Standard deviations of differences, to plan a study by: of true ones `between` pairs, of raters `within` one.

    None where no pair has two raters of both answers.
    """

    dimension: str
    between: float | None
    within: float | None


class Problem(FrozenModel):
    """Something that was not as given out; see `pluralbench_studies.read_answers`."""

    kind: str
    item: str
    annotator: str
    detail: str


class RatingResults(FrozenModel):
    """All that a rating study found, and the settings that it was made under."""

    format: str = "ratings-1"
    settings: RatingRecipe
    raters: list[Rater]
    means: list[Mean]
    tests: list[Test]
    claims: list[Claim]
    agreement: list[Agreement]
    spread: list[Spread]
    problems: list[Problem]


def results_of(study: Study[RatingRecipe], found: Answers) -> RatingResults:
    """The results of a study from what came back (`pluralbench_studies.read_returned`)."""
    rated = found.answers.filter(pl.col("question").is_in(DIMENSIONS)).join(study.key, on="item", maintain_order="left")
    rated = rated.with_columns(
        pl.col("answer").cast(pl.Int64).alias("rating"), pair=pl.concat_str("config", "id", separator="/")
    )
    real = rated.filter(pl.col("side") != CHECK)
    differences = differences_of(real)
    configs = list(dict.fromkeys(study.key["config"]))
    groups = [*configs, ALL] if len(configs) > 1 else configs
    tests = [_test(group, dimension, differences, study.settings) for group, dimension in product(groups, DIMENSIONS)]
    return RatingResults(
        settings=study.settings,
        raters=_raters(study, found, rated.filter(side=CHECK)),
        means=[_mean(real, *place) for place in product(groups, SIDES, DIMENSIONS)],
        tests=tests,
        claims=[_claim(group, [test for test in tests if test.config == group]) for group in groups],
        agreement=[_agreement(real, dimension, study.settings.seed) for dimension in DIMENSIONS],
        spread=[_spread(differences.filter(question=dimension)) for dimension in DIMENSIONS],
        problems=[Problem(**row) for row in found.problems.iter_rows(named=True) if row["kind"] != "missing"],
    )


def differences_of(rated: pl.DataFrame) -> pl.DataFrame:
    """Chosen less rejected, by each rater who rated both: `config`, `pair`, `question` (the dimension), `annotator`,
    `difference`."""
    names = ["config", "pair", "question", "annotator"]
    sides = [rated.filter(side=side).select(*names, pl.col("rating").alias(side)) for side in SIDES]
    both = sides[0].join(sides[1], on=names, maintain_order="left")
    return both.select(*names, difference=pl.col("chosen") - pl.col("rejected"))


def _of(frame: pl.DataFrame, group: str) -> pl.DataFrame:
    return frame if group == ALL else frame.filter(config=group)


def _mean(rated: pl.DataFrame, group: str, side: str, dimension: str) -> Mean:
    ours = _of(rated, group).filter(side=side, question=dimension)
    pairs = ours["pair"].unique(maintain_order=True)
    place = {pair: number for number, pair in enumerate(pairs)}
    cluster = np.array([place[pair] for pair in ours["pair"]], dtype=np.int64)
    tilted = perturb(
        sums_of(np.zeros_like(cluster), cluster, ours["rating"].cast(pl.Float64).to_numpy(), shape=(len(pairs), 1))
    )
    within = (float(LOWEST), float(HIGHEST))
    found = tilted.estimate(tilted.sources[0].pooled([0]), [[0]], ours.height, len(pairs), within)
    return Mean(
        config=group,
        side=side,
        dimension=dimension,
        ratings=ours.height,
        pairs=len(pairs),
        mean=found.value,
        low=found.low,
        high=found.high,
    )


def _test(group: str, dimension: str, differences: pl.DataFrame, settings: RatingRecipe) -> Test:
    ours = _of(differences, group).filter(question=dimension)
    each = ours.group_by("pair", maintain_order=True).agg(pl.col("difference").mean())["difference"].to_list()
    equivalence = dimension in GENERAL
    found = (
        equivalence_test(each, settings.margin, settings.alpha)
        if equivalence
        else difference_test(each, settings.alpha)
    )
    shown = None if found.p_value is None else found.p_value < settings.alpha
    return Test(
        config=group,
        dimension=dimension,
        kind="equivalence" if equivalence else "difference",
        pairs=found.n,
        difference=found.mean,
        sd=found.sd,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        shown=shown,
    )


def _claim(group: str, tests: Sequence[Test]) -> Claim:
    general = _all([test.shown for test in tests if test.dimension in GENERAL])
    [rubric] = [test for test in tests if test.dimension == RUBRIC]
    higher = None if rubric.shown is None else rubric.shown and (rubric.difference or 0.0) > 0
    return Claim(config=group, general_quality=general, rubric=higher, holds=_all([general, higher]))


def _all(parts: Sequence[bool | None]) -> bool | None:
    """Whether all hold: False where one does not, None where one is not known."""
    if any(part is False for part in parts):
        return False
    return None if None in parts else True


def _agreement(rated: pl.DataFrame, dimension: str, seed: int) -> Agreement:
    ours = rated.filter(question=dimension).select("item", "pair", "annotator", answer="rating")
    found = agreement(ours, range(LOWEST, HIGHEST + 1), cluster="pair", seed=seed)
    pairs, alpha = found["pairs"], found["alpha"]
    return Agreement(
        dimension=dimension,
        **{name: pairs[name] for name in ("compared", "share", "low", "high")},
        alpha_ordinal=alpha["ordinal"],
        alpha_interval=alpha["interval"],
    )


def _spread(differences: pl.DataFrame) -> Spread:
    """One-way analysis of variance of the raters' differences, pairs being the groups."""
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


def _raters(study: Study[RatingRecipe], found: Answers, checks: pl.DataFrame) -> list[Rater]:
    seen = checks.filter(question="relevance").group_by("annotator").agg((pl.col("rating") <= POOR).sum(), pl.len())
    counts = {name: (hits, of) for name, hits, of in seen.iter_rows()}
    return [
        Rater(**row, checks_seen=ProportionRecord(**share_of(*counts.get(row["annotator"], (0, 0)))))
        for row in annotator_progress(study.assigned, found.answers).iter_rows(named=True)
    ]
