"""Measure training a reward model on rankings: `pluralbench_local`, compared with TRL's `RewardTrainer`.

    uv run --group evaluator python benchmarks/train.py --data oasst1_zh_single_turn_3plus.jsonl

Both train a language model with random weights (or --model) on all pairs of the same rankings for the same number of
epochs, from texts to a saved model, in float32 on a CPU. Each run has its own process; each round runs every strategy
once, in random order. Prints the machine and a table; `pluralbench_local` measures all held-out accuracies.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import transformers
import typer
from environments import ENVIRONMENTS, make_environment
from machine import offline_environment
from pluralbench_local import load, score
from pluralbench_rewards import Group
from pluralbench_runs import UserError, rng_for, run, write_text
from scoring.report import machine
from training import trl_trainer
from training.made import make_base, read, split, synthetic
from training.protocol import RANKINGS_FILE, Answer, Ranked, Settings, write_rankings

OURS, TRL, TRL_GROUPED = "ours:whole", "trl_trainer:random", "trl_trainer:grouped"
TITLES = {
    OURS: "ours",
    TRL: f"TRL {trl_trainer.VERSION}",
    TRL_GROUPED: f"TRL {trl_trainer.VERSION}, grouped by length",
}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 3,
    data: Annotated[
        Path | None, typer.Option(help="JSON lines with `prompt` and `responses_best_to_worst`. Default: random texts.")
    ] = None,
    prompts: Annotated[int | None, typer.Option(min=8, help="Number of training rankings.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs over the pairs.")] = 1,
    rows: Annotated[int, typer.Option(min=4, help="Conversations per batch; an even number.")] = 16,
    max_length: Annotated[
        int, typer.Option(min=8, help="Maximum tokens per conversation; longer ones are dropped.")
    ] = 1024,
    learning_rate: Annotated[float, typer.Option(help="Learning rate of both.")] = 1e-4,
    model: Annotated[Path | None, typer.Option(help="Folder of a language model. Default: random weights.")] = None,
    width: Annotated[int, typer.Option(min=64, help="Width of the random model; a multiple of 64.")] = 256,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the random model.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each process.")] = 1,
    without_grouped: Annotated[
        bool, typer.Option("--without-grouped", help="Skip TRL with pairs grouped by length.")
    ] = False,
    environments: Annotated[
        Path, typer.Option(help="Folder of TRL's environment, installed once.", show_default="below ~/.cache")
    ] = ENVIRONMENTS,
    seed: Annotated[int, typer.Option(help="Seed of model, texts, split and order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures of all rounds here.")] = None,
) -> None:
    """Generate model and texts, run the rounds, print the table."""
    if rows % 2:
        raise UserError(f"--rows {rows} is odd, but TRL's batches consist of pairs; use an even number.")
    torch.set_num_threads(threads)
    rankings, held_out = split(read(data) if data else synthetic(seed), prompts, seed)
    versions_of_ours = [f"torch=={torch.__version__.partition('+')[0]}", f"transformers=={transformers.__version__}"]
    trl = [f"trl=={trl_trainer.VERSION}", *versions_of_ours]
    trl_python = make_environment(f"trl-{trl_trainer.VERSION}", trl, below=environments)
    strategies = [OURS, TRL] if without_grouped else [OURS, TRL, TRL_GROUPED]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_rankings(rankings, folder / RANKINGS_FILE)
        base = (
            model.absolute()
            if model
            else make_base(folder / "base", [*rankings, *held_out], width=width, layers=layers, seed=seed)
        )
        answers: dict[str, list[Answer]] = {strategy: [] for strategy in strategies}
        versions: dict[str, dict[str, str]] = {}
        for number in range(1, rounds + 1):
            for strategy in rng_for(seed, "order", number).sample(strategies, len(strategies)):
                settings = Settings(
                    strategy=strategy,
                    base=str(base),
                    rankings=str(folder / RANKINGS_FILE),
                    out=str(folder / f"{strategy.replace(':', '-')}-{number}"),
                    rows=rows,
                    accumulation=1 if strategy == OURS else _accumulation(rankings),
                    epochs=epochs,
                    learning_rate=learning_rate,
                    max_length=max_length,
                    threads=threads,
                    seed=seed,
                )
                result = _run(settings, sys.executable if strategy == OURS else str(trl_python))
                answers[strategy].append(Answer(**result["answer"]))
                versions[TITLES[OURS] if strategy == OURS else "TRL"] = result["versions"]
                answer = answers[strategy][-1]
                _note(f"round {number} of {rounds}, {strategy}: {answer.cpu:.1f} CPU s, {answer.wall:.1f} s")
        accuracy = {s: _accuracy(folder / f"{s.replace(':', '-')}-1", held_out, max_length) for s in strategies}
    pairs, responses = sum(len(r.pairs) for r in rankings), sum(len(r.responses) for r in rankings)
    print(*machine(versions, threads=threads, dtype="float32", device="cpu"), sep="\n", end="\n\n")
    print(f"{len(rankings)} rankings, {responses} responses, {pairs} pairs, {epochs} epochs; load {os.getloadavg()}\n")
    print(_table(answers, accuracy))
    if json_file:
        everything = {s: [asdict(answer) for answer in entries] for s, entries in answers.items()} | {
            "accuracy": accuracy
        }
        write_text(json_file, json.dumps(everything, indent=1) + "\n")


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


def _accumulation(rankings: list[Ranked]) -> int:
    """Batches of pairs per step with which TRL takes about as many steps as ours."""
    return max(1, round(sum(2 * len(r.pairs) for r in rankings) / sum(len(r.responses) for r in rankings)))


def _run(settings: Settings, python: str) -> dict[str, Any]:
    words = [python, "-m", "training.worker", json.dumps(asdict(settings))]
    done = subprocess.run(
        words,
        cwd=Path(__file__).parent,
        env=offline_environment(settings.threads),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-20:])
        raise UserError(f"The process of `{settings.strategy}` ended with status {done.returncode}:\n{tail}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _accuracy(folder: Path, held_out: list[Ranked], max_length: int) -> float:
    """Accuracy of the model in `folder` on the held-out pairs, without prompts with long conversations."""
    groups = [Group(r.id, [{"role": "user", "content": r.prompt}], r.responses) for r in held_out]
    scored = score(load(str(folder), device="cpu"), groups, max_length=max_length, on_overflow="drop")
    right = [a > b for values in scored.scores for index, a in enumerate(values) for b in values[index + 1 :]]
    return sum(right) / len(right)


def _table(answers: dict[str, list[Answer]], accuracy: dict[str, float]) -> str:
    responses = answers[OURS][0].encoded  # each once per epoch
    lines = [
        "| strategy | steps | pairs | encoded | tokens with padding | CPU s | wall s | pairs a s | responses a s "
        "| times faster than TRL | held-out accuracy |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for strategy, entries in answers.items():
        first, cpu = entries[0], [answer.cpu for answer in entries]
        rates = [
            slow.cpu / slow.pairs * answer.pairs / answer.cpu
            for slow, answer in zip(answers[TRL], entries, strict=True)
        ]
        lines.append(
            f"| {TITLES[strategy]} | {first.steps} | {first.pairs} | {first.encoded} | {first.tokens:,} "
            f"| {median(cpu):.1f} ({min(cpu):.1f}-{max(cpu):.1f}) | {median(answer.wall for answer in entries):.1f} "
            f"| {first.pairs / median(cpu):.1f} | {responses / median(cpu):.1f} | {median(rates):.2f} "
            f"| {accuracy[strategy]:.3f} |"
        )
    return "\n".join(lines)


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
