"""`judge-metrics`: metrics of a table of verdicts, as rows for programs and as tables for reading."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_runs import plural

from pluralbench.data.verdict_tables import GROUP
from pluralbench.metrics.certainty import against_none, all_verdict_metrics
from pluralbench.metrics.decided import THRESHOLD
from pluralbench.metrics.third_person import compare_with_people
from pluralbench.reports.tables import Column, Report, Row, Table, Value
from pluralbench.results.numbers import number, percent, points

NAMED = 5  # groups in a note
Rows = Sequence[Mapping[str, Any]]


def verdict_rows(
    verdicts: pl.DataFrame, *, threshold: float = THRESHOLD, labels: pl.DataFrame | None = None
) -> list[dict[str, Any]]:
    """Compute the metrics of each task, setting, set of persona variables and judge.

    Args:
        verdicts: As `check_verdicts` returns them.
        threshold: Certainty from which a verdict counts as certain.
        labels: Human labels, as `check_labels` returns them. Default: no comparison with people.

    Returns:
        A row for each group: the four names, the metrics of `verdict_metrics`, and `against_none` and `human`, if any.
    """
    rows = all_verdict_metrics(verdicts, threshold=threshold)
    persona = against_none(verdicts)
    people = [] if labels is None else compare_with_people(verdicts, labels, threshold=threshold)
    for name, parts in (("against_none", persona), ("human", people)):
        own = {_names(part): {key: value for key, value in part.items() if key not in GROUP} for part in parts}
        for row in rows:
            row[name] = own.get(_names(row))
    return rows


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in GROUP)


def report_verdicts(rows: Rows) -> Report:
    """Report the rows of `verdict_rows` as tables in percent, with notes; JSON and CSV have the rows."""
    at = f"{rows[0]['threshold']:g}"
    tables = {
        "Verdicts (%)": (("n", "invalid", "accuracy", "of valid", "coverage", "share of A"), _verdicts),
        f"Certainty: high is at least {at} (%)": ((f"≥ {at}", f"< {at}", f"> {at}", "ECE", "AURC"), _certainty),
        "With and without a persona (%)": (("n", "with", "without", "difference"), _persona),
        "Judges and human annotators on the same items (%)": (
            ("open", "items", "accuracy", "majority", "difference", f"≥ {at}", f"majority ≥ {at}"),
            _people,
        ),
    }
    shown = []
    for title, (heads, values_of) in tables.items():
        columns = [Column(head, points if head == "difference" else percent) for head in heads]
        own = [
            Row(row["judge"], values, group=f"{row['task']}, {row['setting']}, {row['persona_variables']}")
            for row in rows
            if (values := values_of(row))
        ]
        shown += [Table(title, "judge", columns, own, "task, setting, variables")] if own else []
    return Report(shown, notes_of(rows), pl.DataFrame(rows, infer_schema_length=None), list(map(dict, rows)))


def _verdicts(row: Mapping[str, Any]) -> list[Value]:
    shares = ("accuracy", "parsed_accuracy", "coverage", "share_of_a")
    return [row["n"], row["invalid"], *(_share(row, name) for name in shares)]


def _certainty(row: Mapping[str, Any]) -> list[Value]:
    if not row["by_certainty"]:
        return []
    high, low, above = _counted(row, "high"), _counted(row, "low"), _counted(row["above"], "high")
    return [high, low, above, _share(row, "calibration_error"), _share(row, "risk_coverage_area")]


def _persona(row: Mapping[str, Any]) -> list[Value]:
    comparison, shares = row["against_none"], ("accuracy", "accuracy_without", "difference")
    return [comparison["n"], *(_share(comparison, name) for name in shares)] if comparison else []


def _people(row: Mapping[str, Any]) -> list[Value]:
    if not (comparison := row["human"]):
        return []
    if not comparison["items"]:
        return [comparison["no_majority"], 0, *[None] * 5]
    verdicts, majority = comparison["verdicts"], comparison["majority"]
    shares = [_share(verdicts, "accuracy"), _share(majority, "accuracy"), _share(comparison, "difference")]
    counts = [_counted(verdicts, "high"), _counted(majority, "high")]
    return [comparison["no_majority"], comparison["items"], *shares, *counts]


def _share(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(row[name], *(row[f"{name}_interval"] or (None, None)))


def _counted(row: Mapping[str, Any], which: str) -> str | None:
    cell, share = row[which], number(_share(row, f"{which}_accuracy"))
    return f"{cell['correct']:,}/{cell['total']:,} {share}" if cell["total"] else None


def notes_of(rows: Rows) -> list[str]:
    """Write the notes on the tables, a sentence or two each."""
    by = dict.fromkeys(row["clustered_by"] for row in rows)
    columns = " and ".join(f"`{name}`" for name in by if name != "row")
    clusters = columns or "rows, since there is no column `user`"
    at = f"{rows[0]['threshold']:g}"
    texts = [f"Invalid answers count as wrong. Brackets: {CONFIDENCE:.0%} intervals over {clusters}."]
    if any(row["by_certainty"] for row in rows):
        texts += [
            f"≥ {at}, < {at} and > {at}: correct of the valid answers with such a certainty.",
            f"Coverage: share of all rows with a certainty ≥ {at}.",
            "ECE: expected calibration error in ten deciles of certainty. AURC: area under the risk-coverage curve.",
        ]
    by_note: dict[str, list[str]] = {}
    for row in rows:
        for note, count in _remarks(row):
            by_note.setdefault(note, []).append(", ".join(_names(row)) + (f" ({count:,})" if count else ""))
    for note, groups in by_note.items():
        more = f"; and {len(groups) - NAMED:,} more" if len(groups) > NAMED else ""
        texts.append(f"{note}: {'; '.join(groups[:NAMED])}{more}.")
    return texts


def _remarks(row: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Notes on a single row, each with the number of verdicts that it is about."""
    if row["unusable_certainty"]:
        yield "Certainties that are not a number from 1 to 100", row["unusable_certainty"]
    if row["by_certainty"] and row["without_certainty"]:
        yield "Valid answers without a certainty", row["without_certainty"]
    comparison = row["against_none"]
    if comparison and comparison["setting_without"] != row["setting"]:
        yield f"Compared to verdicts without a persona in the setting {comparison['setting_without']}", None
    if comparison and not comparison["same_items"]:
        yield "Different items without a persona, so the two are resampled independently", comparison["n_without"]
    if comparison and comparison["left_out"]:
        yield "Excluded rows, which exist only with or only without a persona", comparison["left_out"]
    if row["human"]:
        yield _people_note(row["human"]), None


def _people_note(comparison: Mapping[str, Any]) -> str:
    agreement = comparison["agreement"]
    single, between = comparison["single_labels"], agreement["between_annotators"]
    parts = [f"Single labels are correct in {single['correct']:,} of {single['n']:,}"]
    if between:
        draws = f"sd {100 * between['sd']:.1f} over draws of {plural(between['size'], 'item')}"
        parts.append(f"two annotators agree in {between['mean']:.1%} ({draws})")
    excluded = {
        "open (excluded, no majority)": comparison["no_majority"],
        "labeled items without a verdict": comparison["not_judged"],
        "items with a different correct answer": comparison["other_truth"],
    }
    return ", ".join(parts + [f"{count:,} {reason}" for reason, count in excluded.items() if count])
