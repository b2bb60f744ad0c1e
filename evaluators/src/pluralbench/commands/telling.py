"""What a command says of the run that it made."""

from rich.console import Console

from pluralbench.reports.report import notes, render
from pluralbench.results.runs import VERDICTS_FILE, Run

console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def tell(done: Run) -> None:
    """Print a run's table, and what a reader has to know of it."""
    record = done.record
    console.print()
    console.print(render([done], "table"))
    for note in notes([done]):
        console.print(note)
    work = record.scoring.work if record.scoring else None
    if record.scoring and work and work.seconds:
        saved = work.computed_tokens / max(work.unique_tokens, 1)
        console.print(
            f"Mode {record.scoring.mode}: {work.computed_tokens:,} tokens computed, {saved:.2f} for each unique one, "
            f"in {work.seconds:.1f} s; scores of other modes lie within {record.scoring.tolerance:.2g}."
        )
    if record.data.ignored_columns:
        console.print(f"Columns that are not read: {', '.join(record.data.ignored_columns)}.")
    empty = record.data.empty
    if empty:
        kept = "dropped" if record.data.on_empty == "drop" else "kept"
        named = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
        console.print(f"{len(empty):,} items with an empty prompt or response were {kept} (ids {named}).")
    verdicts = done.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    console.print(f"\n{done.path}: items.parquet, metrics.json, run.json{further}")
