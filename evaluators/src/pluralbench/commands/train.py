"""`pluralbench train`."""

import shlex
from typing import Annotated

import typer
from pluralbench_runs.options import Fresh, Options, with_options

from pluralbench.commands.options import Benchmark
from pluralbench.commands.terminal import console
from pluralbench.config import DataConfig, LocalModel, PromptConfig, TrainingConfig

DATA = "Data"
HeldOut = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|FILE",
        help="Measure accuracy on this share of the clusters, such as 0.2, or on other items.",
        rich_help_panel=DATA,
    ),
]


@with_options
def train(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="A language model, which gets a head, or a classifier: a folder, or ORG/NAME; or `local`, the small "
            "embedded language model.",
        ),
    ],
    *,
    benchmark: Benchmark = "pairs",
    data: Annotated[DataConfig, Options(DATA, left_out=("legacy", "english"))],
    held_out: HeldOut = None,
    label_noise: Annotated[
        float, typer.Option(help="Learn this share of the items the wrong way round.", rich_help_panel=DATA)
    ] = 0.0,
    prompt: Annotated[PromptConfig, Options("Prompt")],
    model: Annotated[
        LocalModel, Options("Model", given={"name": "base"}, left_out=("kind", "reference", "label", "dtype"))
    ],
    options: Annotated[TrainingConfig, Options("Training")],
    out: Annotated[str, typer.Option(help="Folder of the trained model.", rich_help_panel="Result")],
    fresh: Fresh = False,
) -> None:
    """Train a reward model on the items of a benchmark.

    Writes a folder with an ordinary classifier, a log of the steps, and training.json, which says what it was trained
    on. Interrupted training goes on with the same command.

    Examples:

    pluralbench train ./base --data pairs.jsonl --held-out 0.2 --learning-rate 5e-5 --out my-model

    pluralbench train ./base --data pairs.jsonl --trainable head --epochs 20 --learning-rate 0.01 --out my-model

    pluralbench train ORG/NAME --benchmark personalized --profile raw --data dist/train --lora 16/32 --out my-model
    """
    from pluralbench.evaluation.train import train as run_training  # noqa: PLC0415 - `--help` need not wait for it

    done = run_training(
        model,
        out,
        data=data,
        benchmark=benchmark,
        prompt=prompt,
        held_out=share_of(held_out),
        label_noise=label_noise,
        options=options,
        fresh=fresh,
    )
    record = done.record
    learned, judged, turned = record["data"], record["held_out"], len(record["origin"]["flipped"])
    bare = record["origin"]["without_pair"]
    console.print(
        f"\n{done.folder}: trained on {learned['pairs']:,} pairs of {learned['rankings']:,} items in "
        f"{record['steps']:,} steps ({record['seconds']:,.0f} s)."
    )
    if any(bare.values()):
        parts = " and ".join(f"{count:,} {name}" for name, count in bare.items() if count)
        console.print(f"Left out, as no pair is trained on: {parts}.")
    if turned:
        console.print(f"{turned:,} items were learned the wrong way round (--label_noise {label_noise}).")
    for part, what in ((learned, "to learn from"), (judged, "held out")):
        if part and part["responses_too_long"]:
            lost = f", and {part['rankings_too_long']:,} items with them" if part["rankings_too_long"] else ""
            console.print(f"{part['responses_too_long']:,} responses {what} were left out for their length{lost}.")
    if judged:
        console.print(
            f"Accuracy on {judged['pairs']:,} held-out pairs of {judged['rankings']:,} items: {done.accuracy:.3f}"
        )
    words = ["pluralbench", "score", str(done.folder), "--benchmark", benchmark]
    words += ["--profile", prompt.profile] if prompt.profile != "none" else []
    console.print(f"Score it: {shlex.join(words)} --data ...")


def share_of(held_out: str | None) -> float | str | None:
    """What was given as a share, or as a file."""
    try:
        return None if held_out is None else float(held_out)
    except ValueError:
        return held_out
