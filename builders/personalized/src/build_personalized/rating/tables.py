"""Tables and texts of a rating study: the paper's table 1, tests, raters, and the plan."""

import polars as pl
from pluralbench_release import markdown_table, share_text, text_table
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs import plural

from build_personalized.rating.form import DIMENSIONS, TITLES
from build_personalized.rating.planning import PAPER_MAX, PAPER_MIN, PlanAssumptions
from build_personalized.rating.results import Claim, Mean, RatingResults, Test
from build_personalized.rating.study import SIDES

RATINGS = "Mean ratings from 1 to 5 (and half their 95 % interval, over pairs)"
TESTS = "Chosen minus rejected"
AGREEMENT = "Agreement between raters"
RATERS = "Raters"
PLAN = "Pairs that the claim needs, by raters per pair"


def terminal_tables(results: RatingResults) -> dict[str, pl.DataFrame]:
    """Return `result_tables` with the tests over all pairs only, for the terminal."""
    tables = result_tables(results)
    subsets = tables[TESTS]["subset"]
    return tables | {TESTS: tables[TESTS].filter(subsets == subsets[-1])}


def result_tables(results: RatingResults) -> dict[str, pl.DataFrame]:
    """Return the results as small tables of texts, by title."""
    tables = {
        RATINGS: ratings_table(results),
        TESTS: _tests(results),
        AGREEMENT: _agreement(results),
        RATERS: _raters(results),
    }
    if results.problems:
        rows = [(problem.kind, problem.annotator, problem.item, problem.detail) for problem in results.problems]
        tables["Problems"] = text_table(["kind", "rater", "item", "detail"], rows)
    return tables


def ratings_table(results: RatingResults) -> pl.DataFrame:
    """Return the paper's table 1: for each side a row per config, and a column per dimension."""
    means = {(mean.side, mean.config, mean.dimension): mean for mean in results.means}
    groups = dict.fromkeys(mean.config for mean in results.means)
    rows: list[tuple[object, ...]] = []
    for side in SIDES:
        rows.append((f"{side.capitalize()}:", *[""] * (1 + len(DIMENSIONS))))
        for group in groups:
            by_dimension = [means[side, group, dimension] for dimension in DIMENSIONS]
            rows.append((_as_words(group), max(mean.pairs for mean in by_dimension), *map(_mean_text, by_dimension)))
    return text_table(["subset", "pairs", *DIMENSIONS], rows)


def claim_text(results: RatingResults, claim: Claim) -> str:
    """Describe the tests of one subset in a sentence."""
    outcome = {True: "is shown", False: "is not shown", None: "cannot be tested"}
    subset, settings = _as_words(claim.config), results.settings
    return (
        f"{subset[0].upper()}{subset[1:]}: equal general quality (within {settings.margin:g}) "
        f"{outcome[claim.general_quality]}; a higher rubric rating of the chosen answers {outcome[claim.rubric]}. "
        f"Together: that they differ only in the rubric {outcome[claim.holds]} (each test at {settings.alpha:g})."
    )


def report(results: RatingResults) -> str:
    """Return the results as Markdown."""
    settings = results.settings
    sections = [
        "# Human ratings",
        f"{plural(len(settings.annotators), 'rater')}, {settings.annotators_per_item} per pair, did not know which "
        "answer was the chosen one. Means and tests are over pairs, which have equal weight in the tests; they hold "
        f"for these raters. Equal general quality, within {settings.margin:g} points, is tested by two one-sided "
        "t-tests per dimension, the difference in the rubric by a paired t-test. The margin was fixed before the "
        "sheets were written.",
        *(escape_markdown(claim_text(results, claim)) for claim in results.claims),
    ]
    sections += [f"## {title}\n\n{markdown_table(table)}" for title, table in result_tables(results).items()]
    return "\n\n".join(sections) + "\n"


def plan_table(plan: pl.DataFrame) -> pl.DataFrame:
    """Return a plan (`planning.plan`) as a table of texts."""
    names = ["raters", "equivalence test", "difference test", "pairs", "ratings", "power"]
    rows = [
        (
            *("none" if value is None else f"{value:,}" for value in row[:-1]),
            "" if row[-1] is None else f"{row[-1]:.2f}",
        )
        for row in plan.iter_rows()
    ]
    return text_table(names, rows)


def plan_notes(assumptions: PlanAssumptions) -> list[str]:
    """Describe the assumptions of a plan in sentences."""
    notes = [
        f"Assumptions: chosen minus rejected is {assumptions.difference:g} in general quality and "
        f"{assumptions.rubric:g} in the rubric. Its standard deviation is {assumptions.sd_pairs:.2f} between pairs and "
        f"{assumptions.sd_raters:.2f} between raters of a pair. The equivalence margin is {assumptions.margin:g}. All "
        f"four tests, each at {assumptions.alpha:g}, succeed with a probability of at least {assumptions.power:g}.",
    ]
    if assumptions.margin <= PAPER_MAX:
        notes.append(
            f"In the paper's table 1 general quality differs by {PAPER_MIN:g} to {PAPER_MAX:g}; with such pairs a "
            f"margin of {assumptions.margin:g} shows equivalence in some dimensions at most."
        )
    if assumptions.difference >= assumptions.margin:
        notes.append("No number of pairs shows equivalence, because the difference is not within the margin.")
    return notes


def _mean_text(mean: Mean) -> str:
    if mean.mean is None:
        return "none"
    return f"{mean.mean:.2f}" + ("" if mean.low is None or mean.high is None else f" ±{(mean.high - mean.low) / 2:.2f}")


def _tests(results: RatingResults) -> pl.DataFrame:
    rows = [
        (
            _as_words(test.config),
            test.dimension,
            "" if test.difference is None else f"{test.difference:+.2f}{_interval(test)}",
            _test_text(test, results.settings.margin),
            _p_text(test.p_value),
            {True: "yes", False: "no", None: "no test"}[test.shown],
        )
        for test in results.tests
    ]
    return text_table(["subset", "dimension", "difference", "test", "p", "shown"], rows)


def _test_text(test: Test, margin: float) -> str:
    return f"within ±{margin:g}" if test.kind == "equivalence" else "not 0"


def _interval(test: Test) -> str:
    return "" if test.low is None or test.high is None else f" [{test.low:+.2f}, {test.high:+.2f}]"


def _agreement(results: RatingResults) -> pl.DataFrame:
    spreads = {
        spread.dimension: "none" if spread.within is None else f"{spread.between:.2f} / {spread.within:.2f}"
        for spread in results.spread
    }
    rows = [
        (
            TITLES[agreement.dimension],
            agreement.compared,
            share_text(agreement.model_dump(), of=False),
            "none" if agreement.alpha_ordinal is None else f"{agreement.alpha_ordinal:.2f}",
            spreads.get(agreement.dimension, "none"),
        )
        for agreement in results.agreement
    ]
    names = ["dimension", "compared", "equal ratings", "alpha (ordinal)", "sd of pairs / raters"]
    return text_table(names, rows)


def _raters(results: RatingResults) -> pl.DataFrame:
    rows = [
        (
            rater.annotator,
            f"{rater.answered:,} of {rater.given:,}" + ("" if rater.answered else ": nothing yet"),
            f"{rater.checks_seen.count} of {rater.checks_seen.of}",
        )
        for rater in results.raters
    ]
    return text_table(["rater", "rated", "checks passed"], rows)


def _p_text(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _as_words(config: str) -> str:
    """Replace underscores by spaces, where narrow tables can break the name."""
    return config.replace("_", " ")
