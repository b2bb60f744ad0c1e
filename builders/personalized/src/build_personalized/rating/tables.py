"""Results of a rating study as tables: the paper's table 1, the tests, the raters, and what a plan takes."""

import polars as pl
from pluralbench_release import counted, markdown_table, share_text, text_table

from build_personalized.rating.form import DIMENSIONS, TITLES
from build_personalized.rating.planning import PAPER_LEAST, PAPER_MOST, Assumed
from build_personalized.rating.results import Claim, Mean, RatingResults, Test
from build_personalized.rating.study import SIDES

RATINGS = "Mean ratings from 1 to 5 (and half their 95 % interval, over pairs)"
TESTS = "Chosen less rejected"
AGREEMENT = "Agreement between raters"
RATERS = "Raters"
PLAN = "Pairs that the claim takes, by raters a pair"


def shown_tables(found: RatingResults) -> dict[str, pl.DataFrame]:
    """What a terminal shows of `result_tables`: of the tests those over all pairs."""
    tables = result_tables(found)
    subsets = tables[TESTS]["subset"]
    return tables | {TESTS: tables[TESTS].filter(subsets == subsets[-1])}


def result_tables(found: RatingResults) -> dict[str, pl.DataFrame]:
    """The results as small tables of texts with a title each."""
    tables = {RATINGS: ratings_table(found), TESTS: _tests(found), AGREEMENT: _agreement(found), RATERS: _raters(found)}
    if found.problems:
        rows = [(one.kind, one.annotator, one.item, one.detail) for one in found.problems]
        tables["Not as given out"] = text_table(["what", "rater", "item", "detail"], rows)
    return tables


def ratings_table(found: RatingResults) -> pl.DataFrame:
    """The paper's table 1: below each side a row for each config, and a column for each dimension."""
    place = {(one.side, one.config, one.dimension): one for one in found.means}
    groups = dict.fromkeys(one.config for one in found.means)
    rows: list[tuple[object, ...]] = []
    for side in SIDES:
        rows.append((f"{side.capitalize()}:", *[""] * (1 + len(DIMENSIONS))))
        for group in groups:
            ours = [place[side, group, dimension] for dimension in DIMENSIONS]
            rows.append((_spoken(group), max(one.pairs for one in ours), *map(_mean, ours)))
    return text_table(["subset", "pairs", *DIMENSIONS], rows)


def verdict(found: RatingResults, claim: Claim) -> str:
    """What the tests say of one subset, in a sentence."""
    told = {True: "is shown", False: "is not shown", None: "cannot be tested"}
    what, settings = _spoken(claim.config), found.settings
    return (
        f"{what[0].upper()}{what[1:]}: equal general quality (within {settings.margin:g}) "
        f"{told[claim.general_quality]}, a higher rubric of the chosen answers {told[claim.rubric]}. Together: "
        f"that they differ by the rubric alone {told[claim.holds]} (each test at {settings.alpha:g})."
    )


def report(found: RatingResults) -> str:
    """The results as Markdown."""
    settings = found.settings
    said = [
        "# Human ratings",
        f"{counted(len(settings.annotators), 'rater')}, {settings.each} a pair, who did not know which answer was "
        f"chosen. Means and tests are over pairs, each of which weighs the same in the tests; they hold for these "
        f"raters. That general quality is equal, within {settings.margin:g} of a point, is tested by two one-sided "
        f"t-tests a dimension, that the rubric differs by a paired t-test; the margin was set when the sheets were "
        "made.",
        *(verdict(found, claim) for claim in found.claims),
    ]
    said += [f"## {title}\n\n{markdown_table(table)}" for title, table in result_tables(found).items()]
    return "\n\n".join(said) + "\n"


def plan_table(planned: pl.DataFrame) -> pl.DataFrame:
    """A plan (`planning.plan`) as texts."""
    names = ["raters", "equivalence test", "difference test", "pairs", "ratings", "power"]
    rows = [
        (
            *("none" if value is None else f"{value:,}" for value in row[:-1]),
            "" if row[-1] is None else f"{row[-1]:.2f}",
        )
        for row in planned.iter_rows()
    ]
    return text_table(names, rows)


def plan_notes(assumed: Assumed) -> list[str]:
    """What a plan takes for true, in sentences."""
    said = [
        f"Assumed: chosen less rejected is {assumed.difference:g} in general quality and {assumed.rubric:g} in the "
        f"rubric; it differs between pairs with a standard deviation of {assumed.sd_pairs:.2f}, and between raters of "
        f"a pair with one of {assumed.sd_raters:.2f}. Equal means within {assumed.margin:g}. All four tests succeed, "
        f"each at {assumed.alpha:g}, with a probability of at least {assumed.power:g}.",
        "A pilot tells the standard deviations: rate --import shows them, and rate --plan --pilot FOLDER takes them.",
    ]
    if assumed.margin <= PAPER_MOST:
        said.append(
            f"In the paper's table 1 general quality differs by {PAPER_LEAST:g} to {PAPER_MOST:g}; where pairs are "
            f"like that, a margin of {assumed.margin:g} shows equivalence in some dimensions at most."
        )
    if assumed.difference >= assumed.margin:
        said.append("No number of pairs shows equivalence where the difference is not within the margin.")
    return said


def _mean(one: Mean) -> str:
    if one.mean is None:
        return "none"
    return f"{one.mean:.2f}" + ("" if one.low is None or one.high is None else f" ±{(one.high - one.low) / 2:.2f}")


def _tests(found: RatingResults) -> pl.DataFrame:
    rows = [
        (
            _spoken(test.config),
            test.dimension,
            "" if test.difference is None else f"{test.difference:+.2f}{_interval(test)}",
            _test_of(test, found.settings.margin),
            _p(test.p_value),
            {True: "yes", False: "no", None: "no test"}[test.shown],
        )
        for test in found.tests
    ]
    return text_table(["subset", "dimension", "difference", "test", "p", "shown"], rows)


def _test_of(test: Test, margin: float) -> str:
    return f"within ±{margin:g}" if test.kind == "equivalence" else "not 0"


def _interval(test: Test) -> str:
    return "" if test.low is None or test.high is None else f" [{test.low:+.2f}, {test.high:+.2f}]"


def _agreement(found: RatingResults) -> pl.DataFrame:
    spread = {
        one.dimension: "none" if one.within is None else f"{one.between:.2f} / {one.within:.2f}" for one in found.spread
    }
    rows = [
        (
            TITLES[one.dimension],
            one.compared,
            share_text(one.model_dump(), of=False),
            "none" if one.alpha_ordinal is None else f"{one.alpha_ordinal:.2f}",
            spread.get(one.dimension, "none"),
        )
        for one in found.agreement
    ]
    names = ["dimension", "compared", "equal ratings", "alpha (ordinal)", "sd of pairs / raters"]
    return text_table(names, rows)


def _raters(found: RatingResults) -> pl.DataFrame:
    rows = [
        (
            one.annotator,
            f"{one.answered:,} of {one.given:,}" + ("" if one.answered else ": nothing yet"),
            f"{one.checks_seen.count} of {one.checks_seen.of}",
        )
        for one in found.raters
    ]
    return text_table(["rater", "rated", "checks seen through"], rows)


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _spoken(config: str) -> str:
    """A config's name as words, so that a narrow table may break it."""
    return config.replace("_", " ")
