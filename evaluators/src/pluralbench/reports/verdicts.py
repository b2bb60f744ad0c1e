"""`judge-metrics`: what the verdicts in a table amount to, as rows for programs and as tables for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.data.verdict_tables import GROUP
from pluralbench.metrics.certainty import THRESHOLD, against_none, all_verdict_metrics
from pluralbench.metrics.third_person import compare_with_people
from pluralbench.reports.numbers import number, percent, points
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.reports.writing import Report

NAMED = 5  # groups in a note
Rows = Sequence[Mapping[str, Any]]


def verdict_rows(
    verdicts: pl.DataFrame, *, threshold: float = THRESHOLD, seed: int = 0, labels: pl.DataFrame | None = None
) -> list[dict[str, Any]]:
    """All that is known of each task, setting, set of persona variables and judge, as `--json` prints it.

    verdicts, labels: as `check_verdicts` and `check_labels` make them. Each row has the four names, what
    `verdict_metrics` says, `against_none` (see there) and `human` (see `compare_with_people`), None where there is
    nothing to compare.
    """
    rows = all_verdict_metrics(verdicts, threshold=threshold)
    persona = against_none(verdicts)
    people = [] if labels is None else compare_with_people(verdicts, labels, threshold=threshold, seed=seed)
    for name, parts in (("against_none", persona), ("human", people)):
        own = {_names(part): {key: value for key, value in part.items() if key not in GROUP} for part in parts}
        for row in rows:
            row[name] = own.get(_names(row))
    return rows


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in GROUP)


def report_verdicts(rows: Rows) -> Report:
    """The tables of these rows, shares in per cent, and what a reader has to know; for programs the rows."""
    at = f"{rows[0]['threshold']:g}"
    certain = [row for row in rows if row["by_certainty"]]
    told = [row for row in rows if row["against_none"]]
    people = [row for row in rows if row["human"]]
    tables = [
        _table(
            "Verdicts (%)",
            ["n", "invalid", "accuracy", "of valid", "coverage", "share of A"],
            [(row, _verdicts(row)) for row in rows],
        ),
        _table(
            f"Certainty: high is at least {at} (%)",
            [f"≥ {at}", f"< {at}", f"> {at}", "ECE", "AURC"],
            [(row, _certainty(row)) for row in certain],
        ),
        _table(
            "With a persona and without (%)",
            ["n", "with", "without", "difference"],
            [(row, _persona(row["against_none"])) for row in told],
        ),
        _table(
            "Judges and people on the same items (%)",
            ["open", "items", "accuracy", "majority", "difference", f"≥ {at}", f"majority ≥ {at}"],
            [(row, _people(row["human"])) for row in people],
        ),
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Report([table for table in tables if table.rows], notes_of(rows), frame, list(map(dict, rows)))


def _table(title: str, heads: Sequence[str], rows: Sequence[tuple[Mapping[str, Any], Sequence[Value]]]) -> Table:
    columns = [Column(head, points if head == "difference" else percent) for head in heads]
    made = [
        Row(row["judge"], values, group=f"{row['task']}, {row['setting']}, {row['persona_variables']}")
        for row, values in rows
    ]
    return Table(title, "judge", columns, made, "task, setting, variables")


def _verdicts(row: Mapping[str, Any]) -> list[Value]:
    shares = ("accuracy", "parsed_accuracy", "coverage", "share_of_a")
    return [row["n"], row["invalid"], *(_share(row, name) for name in shares)]


def _certainty(row: Mapping[str, Any]) -> list[Value]:
    high, low, above = _counted(row, "high"), _counted(row, "low"), _counted(row["above"], "high")
    return [high, low, above, _share(row, "calibration_error"), _share(row, "risk_coverage_area")]


def _persona(found: Mapping[str, Any]) -> list[Value]:
    return [found["n"], *(_share(found, name) for name in ("accuracy", "accuracy_without", "difference"))]


def _people(found: Mapping[str, Any]) -> list[Value]:
    if not found["items"]:
        return [found["no_majority"], 0, None, None, None, None, None]
    verdicts, majority = found["verdicts"], found["majority"]
    shares = [_share(verdicts, "accuracy"), _share(majority, "accuracy"), _share(found, "difference")]
    return [found["no_majority"], found["items"], *shares, _counted(verdicts, "high"), _counted(majority, "high")]


def _share(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(row[name], *(row[f"{name}_interval"] or (None, None)))


def _counted(row: Mapping[str, Any], which: str) -> str | None:
    cell = row[which]
    share = number(_share(row, f"{which}_accuracy"))
    return f"{cell['correct']:,}/{cell['total']:,} {share}" if cell["total"] else None


def notes_of(rows: Rows) -> list[str]:
    """What a reader of the tables has to know, a sentence each."""
    by = dict.fromkeys(row["clustered_by"] for row in rows)
    whole = " and ".join(f"`{name}`" for name in by if name != "row")
    clustered = whole or "rows, each by itself, since there is no column `user`"
    at = f"{rows[0]['threshold']:g}"
    said = [f"Accuracy counts an invalid answer as wrong. Brackets: {CONFIDENCE:.0%} intervals over {clustered}."]
    if any(row["by_certainty"] for row in rows):
        said += [
            f"≥ {at} and < {at} are right answers of valid ones with a certainty; > {at} is the other reading of the "
            "threshold. Coverage: rows that are high, of all.",
            "ECE: expected calibration error in ten deciles of certainty. AURC: area under the risk-coverage curve, "
            "equally sure answers in the order of chance. Less is better for both.",
        ]
    by_note: dict[str, list[str]] = {}
    for row in rows:
        for note, count in _remarks(row):
            by_note.setdefault(note, []).append(", ".join(_names(row)) + (f" ({count:,})" if count else ""))
    for note, groups in by_note.items():
        more = f"; and {len(groups) - NAMED:,} more" if len(groups) > NAMED else ""
        said.append(f"{note}: {'; '.join(groups[:NAMED])}{more}.")
    return said


def _remarks(row: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """What is to be said of some rows only, and of how many verdicts each."""
    if row["unusable_certainty"]:
        yield "Certainties that are no number from 1 to 100", row["unusable_certainty"]
    if row["by_certainty"] and row["without_certainty"]:
        yield "Valid answers without a certainty", row["without_certainty"]
    found = row["against_none"]
    if found and found["setting_without"] != row["setting"]:
        yield f"Compared to verdicts without a persona in the setting {found['setting_without']}", None
    if found and not found["same_items"]:
        yield "Not the same items without a persona, so resampled apart", found["n_without"]
    if found and found["left_out"]:
        yield "Rows that are only with or only without a persona, and so left out of the comparison", found["left_out"]
    if row["human"]:
        yield _people_note(row["human"]), None


def _people_note(found: Mapping[str, Any]) -> str:
    single, between = found["single_labels"], found["agreement"]["between_annotators"]
    parts = [f"Single labels are right in {single['correct']:,} of {single['n']:,}"]
    if between:
        parts.append(
            f"two annotators agree in {between['mean']:.1%} (sd {100 * between['sd']:.1f}, "
            f"{found['agreement']['draws']:,} draws of {between['size']} items)"
        )
    further = {
        "open, left out for want of a majority": found["no_majority"],
        "labeled items without a verdict": found["not_judged"],
        "items with another truth": found["other_truth"],
    }
    return ", ".join(parts + [f"{count:,} {what}" for what, count in further.items() if count])
