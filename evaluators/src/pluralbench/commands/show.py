"""`show`: items of a run with their texts."""

import json
from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs.options import AsJson

from pluralbench.commands.options import DataNow
from pluralbench.commands.terminal import console
from pluralbench.errors import EvaluationError

WHICH = "Which items"


def show(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    *,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="This item; repeatable.", rich_help_panel=WHICH),
    ] = None,
    invalid: Annotated[
        bool, typer.Option("--invalid", help="Without a score or a verdict that can be read.", rich_help_panel=WHICH)
    ] = False,
    lost: Annotated[
        bool, typer.Option("--lost", help="Decided wrongly, the largest margin first.", rich_help_panel=WHICH)
    ] = False,
    tied: Annotated[
        bool, typer.Option("--tied", help="Alike by score, or changed with the order.", rich_help_panel=WHICH)
    ] = False,
    flipped: Annotated[
        bool,
        typer.Option("--flipped", help="Decided otherwise than the same item in English.", rich_help_panel=WHICH),
    ] = False,
    closest: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="So many, the smallest margin first.", rich_help_panel=WHICH),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many items.")] = 5,
    full: Annotated[bool, typer.Option("--full", help="Show long texts and all posts of a person.")] = False,
    data: DataNow = None,
    as_json: AsJson = False,
) -> None:
    """Show items of a run: prompt, person, answers, and their scores or what the judge replied.

    A run keeps no texts: they are read from its data again, and checked to be what was scored.

    Examples:

    pluralbench show runs/a

    pluralbench show runs/a --lost --limit 20

    pluralbench show runs/a --id q17 --full

    pluralbench show runs/multilingual-a --flipped

    pluralbench show runs/judge --invalid --json
    """
    from pluralbench.reports.items import item_page, overview  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.results.evaluations import EvaluationRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.examples import examples, outcomes_of, read_texts, selected  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    outcome = _outcome(bool(ids), invalid=invalid, lost=lost, tied=tied, flipped=flipped, closest=closest)
    read = load_run(run, EvaluationRunConfig)
    found = selected(read, ids=ids or (), outcome=outcome, flips=flipped, closest=closest)
    texts = read_texts(read, data)
    shown = examples(read, found[: closest or limit], texts)
    if as_json:
        said = {"run": str(run), "model": read.name, "benchmark": read.config.benchmark.name}
        told = {"outcomes": outcomes_of(read), "found": len(found), "items": shown}
        typer.echo(json.dumps(said | told, indent=2, ensure_ascii=False, allow_nan=False))
        return
    for line in overview(read):
        console.print(line)
    for example in shown:
        console.print()
        for part in item_page(example, console, full=full):
            console.print(part)
    console.print()
    if not texts.same:
        console.print(
            f"{texts.place} has changed since: prompts and answers above are as scored, more was not checked."
        )
    if not found:
        console.print("No item is like that.")
    elif len(found) > len(shown):
        console.print(f"{len(shown):,} of {len(found):,} items; --limit {len(found)} shows all.")


def _outcome(ids: bool, *, invalid: bool, lost: bool, tied: bool, flipped: bool, closest: int | None) -> str | None:
    """The outcome that is asked for. Raises `EvaluationError` for two wishes."""
    wishes = {
        "--id": ids,
        "--invalid": invalid,
        "--lost": lost,
        "--tied": tied,
        "--flipped": flipped,
        "--closest": closest is not None,
    }
    given = [name for name, wish in wishes.items() if wish]
    if len(given) > 1:
        raise EvaluationError(f"{' and '.join(given)} ask for different items; give one of them.")
    return {"--invalid": "invalid", "--lost": "loss", "--tied": "tie"}.get(given[0] if given else "")
