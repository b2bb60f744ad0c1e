"""`pluralbench show`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import plural
from pluralbench_runs.console import terminal_json
from pluralbench_runs.options import Flag
from pydantic import Field

from pluralbench.commands.printing import AsJson, console
from pluralbench.config.fields import PLACE
from pluralbench.errors import EvaluationError

Selection = Annotated[bool, Flag(panel="Selection")]


def show(
    run: Path,
    *,
    ids: Annotated[Sequence[str], Flag("--id", "ID", "Selection")] = (),
    invalid: Selection = False,
    lost: Selection = False,
    tied: Selection = False,
    flipped: Selection = False,
    closest: Annotated[int | None, Field(ge=1), Flag(metavar="N", panel="Selection")] = None,
    limit: Annotated[int, Field(ge=1)] = 5,
    full: bool = False,
    data: Annotated[str | None, Flag(metavar=PLACE)] = None,
    as_json: AsJson = False,
) -> None:
    """Show items of a run with prompt, user context, answers, and scores or the judge's replies.

    Runs contain no texts; they are read from the data, and compared with the digests in the run.

    Args:
        run: A run directory.
        ids: Item with this id; repeatable.
        invalid: Items without a valid score or verdict.
        lost: Wrong decisions, largest margin first.
        tied: Equal scores, or verdicts that change with the order.
        flipped: Decisions that differ from the same item in English.
        closest: N decisions, smallest margin first.
        limit: Maximum number of items.
        full: Show long texts and all posts of a user.
        data: Current location of the run's data, if it has moved.
        as_json: Print JSON.

    Examples:
        pluralbench show runs/a
        pluralbench show runs/a --lost --limit 20
        pluralbench show runs/a --id q17 --full
        pluralbench show runs/multilingual-a --flipped
        pluralbench show runs/judge --invalid --json
    """
    from pluralbench.reports.items import item_page, overview
    from pluralbench.results.evaluations import EvaluationRunConfig
    from pluralbench.results.examples import examples, outcomes_of, read_texts, selected
    from pluralbench.results.runs import load_run

    options = {"--id": ids, "--invalid": invalid, "--lost": lost, "--tied": tied, "--flipped": flipped}
    selected_by = [name for name, value in {**options, "--closest": closest}.items() if value]
    if len(selected_by) > 1:
        raise EvaluationError(f"{' and '.join(selected_by)} select different items; choose one of them.")
    outcome = {"--invalid": "invalid", "--lost": "loss", "--tied": "tie"}.get("".join(selected_by))
    loaded = load_run(run, EvaluationRunConfig)
    matches = selected(loaded, ids=ids, outcome=outcome, flips=flipped, closest=closest)
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
    console.print(*overview(loaded), sep="\n")
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
