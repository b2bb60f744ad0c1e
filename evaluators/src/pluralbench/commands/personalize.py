"""`pluralbench personalize`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh, Options, with_options

from pluralbench.commands.options import DRAW, Benchmark, Out
from pluralbench.commands.train import HeldOut, parse_held_out
from pluralbench.config import PERSONAS, PLACE, DataConfig, LocalModel, PersonalConfig, PersonalizeConfig, ScoringConfig

DATA = "Data"


@with_options
def personalize(
    backbone: Annotated[
        str,
        typer.Argument(
            metavar="BACKBONE",
            help="Frozen language model or sentence encoder that computes the embeddings: directory, ORG/NAME, or "
            "`local` (small embedded language model).",
        ),
    ],
    *,
    benchmark: Benchmark = "personalized-training",
    data: Annotated[DataConfig, Options(DATA, left_out=("legacy", "english", "split", *DRAW))],
    held_out: HeldOut = None,
    score_on: Annotated[
        str | None,
        typer.Option(
            metavar=PLACE, help="Also score the items of another benchmark at this location.", rich_help_panel=DATA
        ),
    ] = None,
    score_benchmark: Annotated[
        str, typer.Option(help="Benchmark of --score-on.", rich_help_panel=DATA)
    ] = "personalized",
    personas: Annotated[Path | None, typer.Option(help=PERSONAS, rich_help_panel=DATA)] = None,
    personalizing: Annotated[PersonalizeConfig, Options("Methods")],
    model: Annotated[
        LocalModel, Options("Backbone", from_parameters={"name": "backbone"}, left_out=("kind", "reference", "label"))
    ],
    scoring: Annotated[ScoringConfig, Options("Running")],
    options: Annotated[PersonalConfig, Options("Training", left_out=("method", "profile", "persona", "seed"))],
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Directory of embeddings, which runs can share. Default: in --out.", rich_help_panel="Result"
        ),
    ] = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Train personalized reward models with and without a user profile, and compare their accuracy.

    Writes a run directory with the models, decisions, metrics and report.md. Rerun the same command to resume.

    Examples:

    pluralbench personalize local --data sample --methods bt,pal --seeds 1 --out personal

    pluralbench personalize ORG/NAME --data dist/training --score-on dist/personalized-rewardbench --out personal

    pluralbench personalize ORG/ENCODER --data pairs.parquet --held-out 0.2 --methods bt,gpo,vpl,pal --profile all
    """
    log_status(f"Training on {model.name}...")
    from pluralbench.commands.console_output import print_personalized  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.personalizing.run import personalize as run_personalize  # noqa: PLC0415 - the same

    done = run_personalize(
        model,
        data=data,
        benchmark=benchmark,
        held_out=parse_held_out(held_out),
        score_on=score_on,
        score_benchmark=score_benchmark,
        personalizing=personalizing,
        options=options,
        personas=personas,
        scoring=scoring,
        embeddings=embeddings,
        out=out,
        fresh=fresh,
    )
    print_personalized(done)
