"""Tables and texts of a rating study: the paper's table 1, tests, raters, and the plan."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_release import markdown_table, share_text, text_table
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs import plural

from build_personalized.rating.planning import PAPER_MAX, PAPER_MIN
from build_personalized.rating.recipe import PlanAssumptions
from build_personalized.rating.study import DIMENSIONS, SIDES, TITLES

RATINGS = "Mean ratings from 1 to 5 (and half their 95 % interval, over pairs)"
TESTS = "Chosen minus rejected"
AGREEMENT = "Agreement between raters"
RATERS = "Raters"
PLAN = "Pairs that the claim needs, by raters per pair"

Figures = dict[str, Any]
"""Result of `results.compute_results`, or one of its entries."""


def result_tables(results: Figures, *, tests_of: str | None = None) -> dict[str, pl.DataFrame]:
    """Return the results as small tables of texts, by title. `tests_of`: the config to test. Default: all."""
    return {
        RATINGS: ratings_table(results),
        TESTS: _tests(results, [test for test in results["tests"] if tests_of in {None, test["config"]}]),
        AGREEMENT: _agreement(results),
        RATERS: _raters(results),
    }


def ratings_table(results: Figures) -> pl.DataFrame:
    """Return the paper's table 1: for each side a row per config, and a column per dimension."""
    means = {(mean["side"], mean["config"], mean["dimension"]): mean for mean in results["means"]}
    groups = dict.fromkeys(mean["config"] for mean in results["means"])
    rows: list[tuple[object, ...]] = []
    for side in SIDES:
        rows.append((f"{side.capitalize()}:", *[""] * (1 + len(DIMENSIONS))))
        for group in groups:
            by_dimension = [means[side, group, dimension] for dimension in DIMENSIONS]
            rows.append((_as_words(group), max(mean["pairs"] for mean in by_dimension), *map(_mean_text, by_dimension)))
    return text_table(["subset", "pairs", *DIMENSIONS], rows)


def claim_texts(results: Figures) -> list[str]:
    """Describe the tests of each config in a sentence."""
    outcome = {True: "is shown", False: "is not shown", None: "cannot be tested"}
    settings, texts = results["settings"], []
    for claim in results["claims"]:
        subset = _as_words(claim["config"])
        equal, higher, holds = (outcome[claim[name]] for name in ("general_quality", "rubric", "holds"))
        texts.append(
            f"{subset[0].upper()}{subset[1:]}: equal general quality (within {settings['margin']:g}) {equal}; a higher "
            f"rubric rating of the chosen answers {higher}. Together: that they differ only in the rubric {holds} "
            f"(each test at {settings['alpha']:g})."
        )
    return texts


def report(results: Figures, problems: Sequence[str]) -> str:
    """Return the results, and problems in words, as Markdown."""
    settings = results["settings"]
    sections = [
        "# Human ratings",
        f"{plural(len(settings['annotators']), 'rater')}, {settings['annotators_per_item']} per pair, did not know "
        "which answer was the chosen one. Means and tests are over pairs, which have equal weight in the tests; they "
        f"hold for these raters. Equal general quality, within {settings['margin']:g} points, is tested by two "
        "one-sided t-tests per dimension, the difference in the rubric by a paired t-test. The margin was fixed before "
        "the sheets were written.",
        *map(escape_markdown, claim_texts(results)),
    ]
    sections += [f"## {title}\n\n{markdown_table(table)}" for title, table in result_tables(results).items()]
    if problems:
        sections.append("\n".join(["## Problems\n", *(f"- {escape_markdown(problem)}" for problem in problems)]))
    return "\n\n".join(sections) + "\n"


def plan_table(plan: pl.DataFrame) -> pl.DataFrame:
    """Return a plan (`planning.plan`) as a table of texts."""
    names = ["raters", "equivalence test", "difference test", "pairs", "ratings", "power"]
    rows = [
        (*("none" if count is None else count for count in counts), "" if power is None else f"{power:.2f}")
        for *counts, power in plan.iter_rows()
    ]
    return text_table(names, rows)


def plan_notes(assumptions: PlanAssumptions) -> list[str]:
    """Describe the assumptions of a plan in sentences."""
    notes = [
        f"Assumptions: chosen minus rejected is {assumptions.difference:g} in general quality and "
        f"{assumptions.rubric:g} in the rubric. Its standard deviation is {assumptions.sd_pairs:.2f} between pairs and "
        f"{assumptions.sd_raters:.2f} between raters of a pair. The equivalence margin is {assumptions.margin:g}. All "
        f"four tests, each at {assumptions.alpha:g}, succeed with a probability of at least {assumptions.power:g}."
    ]
    if assumptions.margin <= PAPER_MAX:
        notes.append(
            f"In the paper's table 1 general quality differs by {PAPER_MIN:g} to {PAPER_MAX:g}; with such pairs a "
            f"margin of {assumptions.margin:g} shows equivalence in some dimensions at most."
        )
    if assumptions.difference >= assumptions.margin:
        notes.append("No number of pairs shows equivalence, because the difference is not within the margin.")
    return notes


def _mean_text(mean: Figures) -> str:
    if mean["mean"] is None:
        return "none"
    return f"{mean['mean']:.2f}" + ("" if mean["low"] is None else f" ±{(mean['high'] - mean['low']) / 2:.2f}")


def _tests(results: Figures, tests: Sequence[Figures]) -> pl.DataFrame:
    kinds = {"equivalence": f"within ±{results['settings']['margin']:g}", "difference": "not 0"}
    shown = {True: "yes", False: "no", None: "no test"}
    alpha = results["settings"]["alpha"]
    levels = {"equivalence": 1 - 2 * alpha, "difference": 1 - alpha}  # the interval that decides the test
    rows = [
        (
            _as_words(test["config"]),
            test["dimension"],
            _difference_text(test),
            f"{100 * levels[test['kind']]:g} %",
            kinds[test["kind"]],
            _p_text(test["p_value"]),
            shown[test["shown"]],
        )
        for test in tests
    ]
    return text_table(["subset", "dimension", "difference", "interval", "test", "p", "shown"], rows)


def _difference_text(test: Figures) -> str:
    if test["difference"] is None:
        return ""
    return f"{test['difference']:+.2f}" + ("" if test["low"] is None else f" [{test['low']:+.2f}, {test['high']:+.2f}]")


def _agreement(results: Figures) -> pl.DataFrame:
    rows = [
        (
            TITLES[agreement["dimension"]],
            agreement["compared"],
            share_text(agreement, of=False),
            _number(agreement["alpha_ordinal"]),
            "none" if spread["within"] is None else f"{spread['between']:.2f} / {spread['within']:.2f}",
        )
        for agreement, spread in zip(results["agreement"], results["spread"], strict=True)
    ]
    return text_table(["dimension", "compared", "equal ratings", "alpha (ordinal)", "sd of pairs / raters"], rows)


def _raters(results: Figures) -> pl.DataFrame:
    rows = [
        (
            rater["annotator"],
            f"{rater['answered']:,} of {rater['given']:,}" + ("" if rater["answered"] else ": nothing yet"),
            "{count} of {of}".format_map(rater["checks_seen"]),
        )
        for rater in results["raters"]
    ]
    return text_table(["rater", "rated", "checks passed"], rows)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def _p_text(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _as_words(config: str) -> str:
    """Replace underscores by spaces, where narrow tables can break the name."""
    return config.replace("_", " ")
