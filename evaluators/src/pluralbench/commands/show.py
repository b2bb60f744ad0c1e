"""`pluralbench show`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status, plural
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import AsJson

from pluralbench.commands.options import DataNow
from pluralbench.commands.terminal import console
from pluralbench.errors import EvaluationError

SELECTION = "Selection"


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    *,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="Item with this id; repeatable.", rich_help_panel=SELECTION),
    ] = None,
    invalid: Annotated[
        bool, typer.Option("--invalid", help="Items without a valid score or verdict.", rich_help_panel=SELECTION)
    ] = False,
    lost: Annotated[
        bool, typer.Option("--lost", help="Wrong decisions, largest margin first.", rich_help_panel=SELECTION)
    ] = False,
    tied: Annotated[
        bool,
        typer.Option("--tied", help="Equal scores, or verdicts that change with the order.", rich_help_panel=SELECTION),
    ] = False,
    flipped: Annotated[
        bool,
        typer.Option(
            "--flipped", help="Decisions that differ from the same item in English.", rich_help_panel=SELECTION
        ),
    ] = False,
    closest: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="N decisions, smallest margin first.", rich_help_panel=SELECTION),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of items.")] = 5,
    full: Annotated[bool, typer.Option("--full", help="Show long texts and all posts of a user.")] = False,
    data: DataNow = None,
    as_json: AsJson = False,
) -> None:
    """Show items of a run with prompt, user context, answers, and scores or the judge's replies.

    Runs contain no texts; they are read from the data, and compared with the digests in the run.

    Examples:

    pluralbench show runs/a

    pluralbench show runs/a --lost --limit 20

    pluralbench show runs/a --id q17 --full

    pluralbench show runs/multilingual-a --flipped

    pluralbench show runs/judge --invalid --json
    """
    log_status("Reading the run...")
    from pluralbench.reports.items import item_page, overview  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.results.evaluations import EvaluationRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.examples import examples, outcomes_of, read_texts, selected  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    outcome = _outcome(bool(ids), invalid=invalid, lost=lost, tied=tied, flipped=flipped, closest=closest)
    loaded = load_run(run, EvaluationRunConfig)
    matches = selected(loaded, ids=ids or (), outcome=outcome, flips=flipped, closest=closest)
    texts = read_texts(loaded, data)
    shown = examples(loaded, matches[: closest or limit], texts)
    if as_json:
        values = {
            "run": str(run),
            "model": loaded.name,
            "benchmark": loaded.config.benchmark.name,
            "outcomes": outcomes_of(loaded),
            "matches": len(matches),
            "items": shown,
        }
        typer.echo(terminal_json(values))
        return
    for line in overview(loaded):
        console.print(line)
    for example in shown:
        console.print()
        for part in item_page(example, console, full=full):
            console.print(part)
    console.print()
    if not texts.same:
        console.print(
            f"{texts.place} has changed: prompts and answers above are as scored, other fields were not checked."
        )
    if not matches:
        console.print("No item matches.")
    elif len(matches) > len(shown):
        console.print(f"{len(shown):,} of {plural(len(matches), 'item')}; --limit {len(matches)} shows all.")


def _outcome(ids: bool, *, invalid: bool, lost: bool, tied: bool, flipped: bool, closest: int | None) -> str | None:
    """Return the outcome that the options select. Raises `EvaluationError` for two options."""
    options = {
        "--id": ids,
        "--invalid": invalid,
        "--lost": lost,
        "--tied": tied,
        "--flipped": flipped,
        "--closest": closest is not None,
    }
    selected = [name for name, is_set in options.items() if is_set]
    if len(selected) > 1:
        raise EvaluationError(f"{' and '.join(selected)} select different items; choose one of them.")
    return {"--invalid": "invalid", "--lost": "loss", "--tied": "tie"}.get(selected[0] if selected else "")
