"""`pluralbench train`."""

from typing import Annotated

import typer
from pluralbench_runs import log_status, plural, shell_command, step
from pluralbench_runs.options import Fresh, Options, with_options

from pluralbench.commands.options import DRAW, Benchmark
from pluralbench.commands.terminal import console
from pluralbench.config import DataConfig, LocalModel, PromptConfig, TrainingConfig

DATA = "Data"
HeldOut = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|FILE",
        help="Measure accuracy on this fraction of the clusters, such as 0.2, or on the items of a file.",
        rich_help_panel=DATA,
    ),
]


@with_options
def train(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Language model (gets a new head) or classifier: directory, ORG/NAME, or `local` (small embedded "
            "language model).",
        ),
    ],
    *,
    benchmark: Benchmark = "pairs",
    data: Annotated[DataConfig, Options(DATA, left_out=("legacy", "english", *DRAW))],
    held_out: HeldOut = None,
    label_noise: Annotated[
        float, typer.Option(help="Reverse the order of this fraction of the items (label noise).", rich_help_panel=DATA)
    ] = 0.0,
    prompt: Annotated[PromptConfig, Options("Prompt")],
    model: Annotated[
        LocalModel, Options("Model", from_parameters={"name": "base"}, left_out=("kind", "reference", "label", "dtype"))
    ],
    options: Annotated[TrainingConfig, Options("Training")],
    out: Annotated[str, typer.Option(help="Directory of the trained model.", rich_help_panel="Result")],
    fresh: Fresh = False,
) -> None:
    """Train a reward model on the items of a benchmark.

    Writes a directory with a sequence classifier, a log of the steps, and training.json with the data and options.
    Rerun the same command to resume.

    Examples:

    pluralbench train ./base --data pairs.jsonl --held-out 0.2 --learning-rate 5e-5 --out my-model

    pluralbench train ./base --data pairs.jsonl --trainable head --epochs 20 --learning-rate 0.01 --out my-model

    pluralbench train ORG/NAME --benchmark personalized --profile raw --data dist/train --lora 16/32 --out my-model
    """
    log_status(f"Training {model.name}...")
    with step("Importing the libraries of the model"):
        from pluralbench.evaluation.train import train as run_training  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.reports.costs import format_seconds  # noqa: PLC0415 - the same

    done = run_training(
        model,
        out,
        data=data,
        benchmark=benchmark,
        prompt=prompt,
        held_out=parse_held_out(held_out),
        label_noise=label_noise,
        options=options,
        fresh=fresh,
    )
    record = done.record
    seconds = record["seconds"] + record.get("encoding_seconds", 0.0)
    training, held_out_data, flipped = record["data"], record["held_out"], len(record["origin"]["flipped"])
    without_pair = record["origin"]["without_pair"]
    console.print(
        f"\n{done.folder}: trained on {plural(training['pairs'], 'pair')} of {plural(training['rankings'], 'item')} in "
        f"{plural(record['steps'], 'step')} ({format_seconds(seconds)} s)."
    )
    if any(without_pair.values()):
        parts = " and ".join(f"{count:,} {name}" for name, count in without_pair.items() if count)
        console.print(f"Left out, because no training pair has them: {parts}.")
    if flipped:
        console.print(f"{flipped:,} items were trained in reversed order (--label-noise {label_noise}).")
    for part, name in ((training, "training"), (held_out_data, "held-out")):
        if part and part["responses_too_long"]:
            items = f", and with them {plural(part['rankings_too_long'], 'item')}" if part["rankings_too_long"] else ""
            console.print(f"{part['responses_too_long']:,} {name} responses were too long and were left out{items}.")
    if held_out_data:
        console.print(
            f"Accuracy on {plural(held_out_data['pairs'], 'held-out pair')} of "
            f"{plural(held_out_data['rankings'], 'item')}: {done.accuracy:.3f}"
        )
    profile = ["--profile", prompt.profile] if prompt.profile != "none" else []
    words = ["score", done.folder, "--benchmark", benchmark, *profile, "--data", "..."]
    console.print(f"Next:\n  {shell_command('pluralbench', *words)}")


def parse_held_out(held_out: str | None) -> float | str | None:
    """Parse --held-out: a fraction, or the location of other items."""
    try:
        return None if held_out is None else float(held_out)
    except ValueError:
        return held_out
