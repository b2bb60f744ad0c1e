"""`judge-metrics`: what the verdicts in a table amount to, as rows for programs and as tables for people."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE
from rich import box
from rich.table import Table as Grid

from pluralbench.data.verdict_tables import GROUP
from pluralbench.metrics.certainty import THRESHOLD, against_none, all_verdict_metrics
from pluralbench.metrics.third_person import compare_with_people

DASH = "–"
NAMED = 5  # groups in a note
Rows = Sequence[Mapping[str, Any]]

BOUNDS = re.compile(r" \[([-+\d.]+), ([-+\d.]+)\]")
LEAST_WIDTH = 20  # of the column of names, in characters


class Sheet(NamedTuple):
    """A table of texts: what it is of, and a row for each group of verdicts, which its first four columns name."""

    title: str
    frame: pl.DataFrame


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


def sheets_of(rows: Rows) -> list[Sheet]:
    """The tables of a report, shares in per cent."""
    at = f"{rows[0]['threshold']:g}"
    sheets = [
        Sheet("Verdicts (%)", _frame(rows, _verdict_cells)),
        Sheet(
            f"Certainty: high is at least {at} (%)", _frame([row for row in rows if row["by_certainty"]], _certainty)
        ),
        Sheet("With a persona and without (%)", _frame([row for row in rows if row["against_none"]], _persona)),
        Sheet("Judges and people on the same items (%)", _frame([row for row in rows if row["human"]], _people)),
    ]
    return [sheet for sheet in sheets if sheet.frame.height]


def _frame(rows: Rows, cells: Any) -> pl.DataFrame:
    return pl.DataFrame([{name: row[name] for name in GROUP} | cells(row) for row in rows], infer_schema_length=None)


def _verdict_cells(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "n": f"{row['n']:,}",
        "invalid": f"{row['invalid']:,}",
        "accuracy": _share(row, "accuracy"),
        "of valid": _share(row, "parsed_accuracy"),
        "coverage": _share(row, "coverage"),
        "share of A": _share(row, "share_of_a"),
    }


def _certainty(row: Mapping[str, Any]) -> dict[str, str]:
    at = f"{row['threshold']:g}"
    return {
        f"≥ {at}": _counted(row, "high"),
        f"< {at}": _counted(row, "low"),
        f"> {at}": _counted(row["above"], "high"),
        "ECE": _share(row, "calibration_error"),
        "AURC": _share(row, "risk_coverage_area"),
    }


def _persona(row: Mapping[str, Any]) -> dict[str, str]:
    found = row["against_none"]
    return {
        "n": f"{found['n']:,}",
        "with": _share(found, "accuracy"),
        "without": _share(found, "accuracy_without"),
        "difference": _share(found, "difference", "+.1f"),
    }


def _people(row: Mapping[str, Any]) -> dict[str, str]:
    found, at = row["human"], f"{row['threshold']:g}"
    counts = {"open": f"{found['no_majority']:,}", "items": f"{found['items']:,}"}
    if not found["items"]:
        names = ("accuracy", "majority", "difference", f"≥ {at}", f"majority ≥ {at}")
        return counts | dict.fromkeys(names, DASH)
    return counts | {
        "accuracy": _share(found["verdicts"], "accuracy"),
        "majority": _share(found["majority"], "accuracy"),
        "difference": _share(found, "difference", "+.1f"),
        f"≥ {at}": _counted(found["verdicts"], "high"),
        f"majority ≥ {at}": _counted(found["majority"], "high"),
    }


def _share(row: Mapping[str, Any], name: str, form: str = ".1f") -> str:
    value, interval = row[name], row[f"{name}_interval"]
    if value is None:
        return DASH
    bounds = "" if interval is None else f" [{100 * interval[0]:{form}}, {100 * interval[1]:{form}}]"
    return f"{100 * value:{form}}{bounds}"


def _counted(row: Mapping[str, Any], which: str) -> str:
    cell = row[which]
    return f"{cell['correct']:,}/{cell['total']:,} {_share(row, f'{which}_accuracy')}" if cell["total"] else DASH


def grid_of(sheet: Sheet) -> Grid:
    """The table for a terminal: a heading for each task, setting and variables, and intervals below their values."""
    grid = Grid(title=sheet.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    cells = [name for name in sheet.frame.columns if name not in GROUP]
    grid.add_column("judge", overflow="fold", min_width=LEAST_WIDTH)
    for name in cells:
        grid.add_column(name, no_wrap=True)
    before = None
    for row in sheet.frame.iter_rows(named=True):
        names = row["task"], f"{row['setting']}, {row['persona_variables']}"
        if names != before:
            grid.add_row(f"{names[0]}\n{names[1]}", style="italic")
            before = names
        grid.add_row(f"  {row['judge']}", *(BOUNDS.sub(_below, row[name]) for name in cells))
    return grid


def _below(bounds: re.Match[str]) -> str:
    """An interval on a line of its own, in whole numbers, which leaves room for the names."""
    return f"\n[{float(bounds[1]):.0f}, {float(bounds[2]):.0f}]"


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
        "labelled items without a verdict": found["not_judged"],
        "items with another truth": found["other_truth"],
    }
    return ", ".join(parts + [f"{count:,} {what}" for what, count in further.items() if count])
