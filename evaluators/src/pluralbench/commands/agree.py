"""`pluralbench agree`."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from pluralbench_runs import log_status
from pluralbench_runs.console import terminal_json

from pluralbench.commands.options import RESCORING, CurrentModel, DataNow, TrustRemoteCode
from pluralbench.commands.terminal import console

FILES = "Published files"


def agree(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a file of scores as --published.")],
    *,
    published: Annotated[
        str,
        typer.Option(
            metavar="FILE|RUN",
            help="Scores by item: files of reward-bench and JudgeBench, a table with id and scores, or another run.",
            rich_help_panel=FILES,
        ),
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Rows of --published to read, such as model=NAME; repeatable.",
            rich_help_panel=FILES,
        ),
    ] = None,
    where_run: Annotated[
        list[str] | None,
        typer.Option(
            "--where-run", metavar="COLUMN=VALUE", help="The same for RUN, if it is a file.", rich_help_panel=FILES
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--score-column",
            metavar="FIELD=COLUMN",
            help="Name of a column of the files, such as id=uid or score=reward; repeatable.",
            rich_help_panel=FILES,
        ),
    ] = None,
    rescore: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Score the N items with the largest differences again, to find the cause. Default: 8 if the model is "
            "a directory, else 0.",
            rich_help_panel=RESCORING,
        ),
    ] = None,
    data: DataNow = None,
    model: CurrentModel = None,
    trust_remote_code: TrustRemoteCode = False,
    form: Annotated[
        Literal["table", "markdown", "latex", "json"], typer.Option("--format", help="Output format.")
    ] = "table",
) -> None:
    """Compare the scores of a run with published ones, item by item, and find out why they differ.

    Prints both accuracies, the correlation of scores and margins, the largest difference, and the decisions that
    differ. If the model is at hand, some items are scored again with other BOS tokens, without the chat template, with
    other maximum lengths and in other dtypes; what comes closest to the published scores is named.

    Examples:

    pluralbench agree runs/a --published scores.jsonl

    pluralbench agree runs/a --published scores.jsonl --where model=org/name --rescore 16

    pluralbench agree ours.csv --published theirs.json --format json > agreement.json
    """
    log_status("Reading scores...")
    from pluralbench.commands.console_output import print_report  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.agree import agree as agree_with  # noqa: PLC0415 - the same
    from pluralbench.evaluation.causes import Recheck  # noqa: PLC0415 - the same
    from pluralbench.reports.agreement import report_agreement  # noqa: PLC0415 - the same

    agreement = agree_with(
        run,
        published,
        where=where or (),
        where_run=where_run or (),
        columns=columns or (),
        recheck=Recheck(rescore, data, model, trust_remote_code),
    )
    if form == "json":
        typer.echo(terminal_json(agreement.as_dict()))
        return
    print_report(report_agreement(agreement), form, width=console.width)
