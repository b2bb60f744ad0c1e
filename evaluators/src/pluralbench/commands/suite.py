"""`pluralbench suite`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import check_output, log_status
from pluralbench_runs.options import RESULT, Fresh, Options, with_options

from pluralbench.commands.options import Shard, Without, parse_location_overrides
from pluralbench.commands.score import ModelName
from pluralbench.config import (
    OF_ONE_BENCHMARK,
    ClusterConfig,
    DataConfig,
    LocalModel,
    PromptConfig,
    ScoringConfig,
    ServingConfig,
)
from pluralbench.reports import Format


@with_options
def suite(
    name: ModelName,
    *,
    suite: Annotated[
        str, typer.Option("--suite", help="release, plural, all, or a TOML file.", rich_help_panel="Data")
    ] = "release",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Benchmark or column to run; repeatable. Default: all.", rich_help_panel="Data"
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="sample|NAME=LOCATION",
            help="sample: bundled rows of every benchmark; NAME=LOCATION: data of one (directory, file or ORG/NAME); "
            "repeatable. Default: the Hub.",
            rich_help_panel="Data",
        ),
    ] = None,
    options: Annotated[DataConfig, Options("Data", left_out=OF_ONE_BENCHMARK)],
    prompt: Annotated[PromptConfig, Options("Prompt")],
    model: Annotated[LocalModel, Options("Model", from_parameters={"name": "name"})],
    scoring: Annotated[ScoringConfig, Options("Running")],
    serving: Annotated[ServingConfig, Options("Server")],
    cluster: Annotated[ClusterConfig, Options("Cluster")],
    shard: Shard = None,
    out: Annotated[
        str | None, typer.Option(help="Directory of the suite. Default: a name under runs/.", rich_help_panel=RESULT)
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="Output format: table, markdown and latex for people, json and csv for programs.",
            rich_help_panel=RESULT,
        ),
    ] = "table",
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a self-contained HTML page with tables, figures and items.",
            rich_help_panel=RESULT,
        ),
    ] = None,
    without: Without = None,
    fresh: Fresh = False,
) -> None:
    """Score a reward model on the benchmarks of a suite and print the row of results.

    Each benchmark is an ordinary run in a subdirectory of the suite's directory. The model is loaded once. All data are
    read before it is loaded. Rerun the same command to resume; finished runs are only read.

    --profile and the other options of the prompt apply to benchmarks whose items have user context.

    Examples:

    pluralbench suite Skywork/Skywork-Reward-V2-Llama-3.2-1B

    pluralbench suite local --suite plural --data sample

    pluralbench suite ./my-model --suite all --data chinese=downloads/cheems_bench --html report.html

    pluralbench suite ./my-model --only JudgeBench --only rm-bench --format latex

    pluralbench suite ./my-model --without contaminated.jsonl

    pluralbench suite ORG/NAME --server http://gpu1:8000 --suite my-suite.toml --out runs/mine
    """
    log_status(f"Scoring {model.name} on the suite {suite}...")
    from pluralbench_local.served.config import described  # noqa: PLC0415 - `--help` need not wait for it

    from pluralbench.commands.console_output import print_suite  # noqa: PLC0415 - the same
    from pluralbench.evaluation.suite import suite as run_suite  # noqa: PLC0415 - the same
    from pluralbench.evaluation.without import read_item_list  # noqa: PLC0415 - the same

    if html is not None:
        check_output(html)
    listed = None if without is None else read_item_list(without)
    done = run_suite(
        described(model, serving),
        suite,
        only=only or (),
        data=parse_location_overrides(data),
        options=options,
        prompt=prompt,
        scoring=scoring,
        cluster=cluster,
        shard=shard,
        out=out,
        fresh=fresh,
    )
    print_suite(done, form, html, listed)
