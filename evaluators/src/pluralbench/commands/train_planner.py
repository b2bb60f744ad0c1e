"""`pluralbench train-planner`."""

from typing import Annotated

import typer
from pluralbench_runs import log_status, plural, shell_command
from pluralbench_runs.options import Fresh, Options, with_options

from pluralbench.commands.options import DRAW, Benchmark
from pluralbench.commands.plan import ProfilePrompt
from pluralbench.commands.terminal import console
from pluralbench.config import DataConfig, LocalModel, PlannerConfig


@with_options
def train_planner(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Language model with a chat template: directory, ORG/NAME, or `local` (small embedded model).",
        ),
    ],
    *,
    benchmark: Benchmark = "personalized",
    data: Annotated[DataConfig, Options("Data", left_out=("legacy", "english", "on_empty", *DRAW))],
    prompt: ProfilePrompt,
    held_out: Annotated[
        float | None,
        typer.Option(
            "--held-out",
            metavar="SHARE",
            help="Measure the loss on this fraction of the users, such as 0.05.",
            rich_help_panel="Data",
        ),
    ] = None,
    model: Annotated[
        LocalModel, Options("Model", from_parameters={"name": "base"}, left_out=("kind", "reference", "label"))
    ],
    options: Annotated[PlannerConfig, Options("Training")],
    out: Annotated[str, typer.Option(help="Directory of the trained planner.", rich_help_panel="Result")],
    fresh: Fresh = False,
) -> None:
    """Train a language model to infer what a user expects of an answer, from their posts and question.

    The targets are the rubric aspects of a benchmark's items; training uses LoRA with TRL, of the extra `optimize`
    (in a clone: uv sync --inexact --package pluralbench --extra optimize). Writes a directory with an ordinary language
    model, a log of the steps, and planner.json with the data and options. Rerun the same command to resume.

    Examples:

    pluralbench train-planner Qwen/Qwen2.5-0.5B-Instruct --held-out 0.05 --out planner

    pluralbench train-planner local --data people.jsonl --max-steps 40 --warmup-steps 4 --batch-size 2
    --learning-rate 3e-3 --out planner
    """
    log_status(f"Training on {base}...")
    from pluralbench.planning.training import train_planner as run_training  # noqa: PLC0415 - `--help` need not wait for it

    done = run_training(
        model,
        out,
        data=data,
        benchmark=benchmark,
        profile_size=prompt.profile_size,
        held_out=held_out,
        options=options,
        fresh=fresh,
    )
    record = done.record
    training, held_out_data = record["examples"], record["held_out"]
    console.print(
        f"\n{done.folder}: trained in {plural(record['steps'], 'step')} ({record['seconds']:,.0f} s) on "
        f"{plural(training['given'] - training['too_long'], 'item')} for {record['epochs']:.3g} epochs."
    )
    for part, name in ((training, "training"), (held_out_data, "held-out")):
        if part and part["too_long"]:
            console.print(f"{part['too_long']:,} {name} items were too long and were left out.")
    if held_out_data:
        console.print(
            f"Loss on {held_out_data['given'] - held_out_data['too_long']:,} held-out plans: {done.held_out_loss:.3f} "
            f"nats per token, before training {record['held_out_loss_of_base']:.3f}"
        )
    words = ["plan", done.folder, "--benchmark", benchmark, "--data", "..."]
    console.print(f"Next:\n  {shell_command('pluralbench', *words)}")
