"""Reports of contaminated items, and of runs without them."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.overlap import KINDS, NEAR, SHINGLE
from pluralbench.data.training_texts import PARTS, Part
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.contamination import ITEM, ComparedBenchmark, Contamination
from pluralbench.evaluation.without import ItemList, WithoutItems, emptied_subsets, without_items
from pluralbench.metrics.frame import NUMBERS, number_fields
from pluralbench.reports.sheets import sheets_of
from pluralbench.reports.tables import Column, Report, Row, Table
from pluralbench.results.numbers import points
from pluralbench.results.runs import Run

GROUPS: dict[Part | None, str] = {"prompt": "Prompts", "response": "Responses", None: "Prompts or responses"}
EXAMPLES = 2  # examples of each benchmark
EXAMPLE = 80  # characters of an example
COUNTS = pl.Schema(
    {"dataset": pl.String(), "benchmark": pl.String(), "part": pl.String(), "items": pl.Int64()}
    | {name: pl.Int64() for name in (*KINDS, "any")}
    | {"share": pl.Float64()}
)
"""Columns of the report for programs; `part` is null for prompts and responses together."""


def report_contamination(result: Contamination, *, examples: int = EXAMPLES) -> Report:
    """Report the contaminated items by benchmark, part and kind, with some examples of each benchmark."""
    responses = any(one.with_responses for one in result.benchmarks)
    compared = [part for part in PARTS if result.texts.get(part) and (responses or part == "prompt")]
    groups: list[Part | None] = [*compared, None] if len(compared) > 1 else [*compared] or ["prompt"]
    counts = [_counts(result, one, part) for part in groups for one in result.benchmarks]
    columns = [Column(text) for text in ("items", "equal", "near", f"{result.ngram}-gram", "any", "any, %")]
    shown = ("items", *KINDS, "any", "share")
    rows = [Row(one["benchmark"], [one[name] for name in shown], group=GROUPS[one["part"]]) for one in counts]
    title = f"Items of benchmarks that are in {result.dataset} ({plural(result.rows, 'row')})"
    table = Table(title, "benchmark", columns, rows, groups="compared")
    texts = [_example_text(row) for one in result.benchmarks for row in _examples(result, one, examples)]
    json_rows = [_json_row(result, one, examples) for one in result.benchmarks]
    json_rows += [{"benchmark": name, "skipped": reason} for name, reason in result.skipped.items()]
    return Report([table], [*_notes(result), *texts], pl.DataFrame(counts, COUNTS), json_rows)


def _counts(result: Contamination, benchmark: ComparedBenchmark, part: Part | None) -> dict[str, Any]:
    items = benchmark.with_responses if part == "response" else benchmark.items
    contaminated = result.count(benchmark.name, part)
    return {
        "dataset": result.dataset,
        "benchmark": benchmark.name,
        "part": part,
        "items": items,
        **{kind: result.count(benchmark.name, part, kind) for kind in KINDS},
        "any": contaminated,
        "share": contaminated / items if items else None,
    }


def _json_row(result: Contamination, benchmark: ComparedBenchmark, examples: int) -> dict[str, Any]:
    shown = (*KINDS, "any", "share")
    parts = {part: _counts(result, benchmark, part) for part in GROUPS}
    return {
        **benchmark._asdict(),
        "benchmark": benchmark.name,
        "dataset": result.dataset,
        "rows": result.rows,
        "rows_without_text": result.rows_without_text,
        "columns": list(result.columns),
        "ngram_words": result.ngram,
        "seed": result.seed,
        **{f"{part}s": {name: parts[part][name] for name in shown} for part in PARTS},
        **{name: parts[None][name] for name in shown},
        "examples": _examples(result, benchmark, examples),
    }


def _examples(result: Contamination, benchmark: ComparedBenchmark, examples: int) -> list[dict[str, Any]]:
    own = result.items.filter(pl.col("benchmark") == benchmark.name)
    turn = pl.int_range(pl.len()).over("part", "kind")
    ordered = own.with_columns(turn=turn).sort("turn", maintain_order=True)
    return ordered.unique(ITEM, keep="first", maintain_order=True).head(examples).drop("turn").to_dicts()


def _example_text(row: dict[str, Any]) -> str:
    response = f" {row['response']}" if row["response"] else ""
    excerpt = row["excerpt"][:EXAMPLE] + ("…" if len(row["excerpt"]) > EXAMPLE else "")
    return (
        f"{row['benchmark']} {row['config']}/{row['id']}, {row['part']}{response}: {row['kind']} "
        f"({row['overlap']:.2f}) in row {row['row']:,} of {row['table']}, {row['column']}: “{excerpt}”"
    )


def _notes(result: Contamination) -> list[str]:
    prompts, responses = (plural(result.texts[part], part) for part in PARTS)
    notes = [
        f"Equal: the same words. Near: not equal, and a Jaccard similarity of their {SHINGLE}-grams of at least {NEAR} "
        f"(MinHash, seed {result.seed}, verified). {result.ngram}-gram: {result.ngram} words in sequence are shared. "
        "An item can be of several kinds.",
        f"Columns: {', '.join(result.columns)}, with {prompts} and {responses}, turn by turn.",
    ]
    notes += [
        f"{one.name}: {one.short_responses:,} responses of fewer than {result.ngram} words were not compared."
        for one in result.benchmarks
        if one.short_responses
    ]
    if result.rows_without_text:
        notes.append(f"{result.rows_without_text:,} rows have no text in these columns.")
    return [*notes, *(f"Not compared: {name}. {reason}" for name, reason in result.skipped.items())]


def add_numbers_without(report: Report, runs: Sequence[Run], listed: ItemList) -> Report:
    """Add the overall numbers without the listed items to the default report of runs.

    Each row for programs has `without`: the number with its bounds, and how many items were `removed`.

    Raises:
        EvaluationError: The report has no rows to extend.
    """
    if report.rows is None:
        raise EvaluationError("`without=...` extends the default report; leave out `detail=True`.")
    others = {run.path: without_items(run, listed.items) for run in runs}
    rows = []
    for sheet in sheets_of(runs):
        for row, run in zip(sheet.rows, sheet.runs, strict=False):
            with_all, other = run.headline, others[run.path]
            left = other.run.headline
            difference = None if with_all.value is None or left.value is None else left.value - with_all.value
            rows.append(Row(row.name, [with_all, left, difference, other.removed], group=sheet.title))
    columns = [Column("all items"), Column("without"), Column("difference", points), Column("removed")]
    table = Table(f"Overall number without the items of {listed.path}", "model", columns, rows, groups="benchmark")
    fields = {
        str(path): number_fields(other.run.headline) | {"removed": other.removed} for path, other in others.items()
    }
    absent = dict.fromkeys((*NUMBERS, "removed"))
    numbers = [fields.get(str(row["run"])) for row in report.rows]
    flat = [{f"without.{name}": value for name, value in (own or absent).items()} for own in numbers]
    return report._replace(
        tables=[*report.tables, table],
        notes=[*report.notes, *_notes_without([(run, others[run.path]) for run in runs], listed)],
        frame=report.frame.hstack(pl.DataFrame(flat, infer_schema_length=None)),
        rows=[row | {"without": own} for row, own in zip(report.rows, numbers, strict=True)],
    )


def emptied_note(name: str, emptied: str) -> str:
    """Say which subsets of a benchmark have no item left, from `emptied_subsets`."""
    return f"{name} without the items has no item left of {emptied}; its numbers are of the other subsets."


def _notes_without(pairs: Sequence[tuple[Run, WithoutItems]], listed: ItemList) -> list[str]:
    notes = {}
    for run, other in pairs:
        if emptied := emptied_subsets(run, other.run):
            notes[f"{run.config.benchmark.name}: {emptied}"] = emptied_note(run.config.benchmark.name, emptied)
        name = run.config.benchmark.name
        if not other.listed:
            names = ", ".join(listed.items["benchmark"].unique().sort()) or "no item"
            notes[name] = f"Nothing in {listed.path} concerns {name}; it lists {names}."
        elif other.removed < other.listed:
            absent = other.listed - other.removed
            notes[name] = f"{absent:,} of the {other.listed:,} items of {name} in {listed.path} are not in a run of it."
    empty = sum(run.headline.value is not None and other.run.headline.value is None for run, other in pairs)
    if empty:
        notes[""] = f"{empty:,} runs have no number without the items: no item of a part of the overall number is left."
    return [*notes.values()]
