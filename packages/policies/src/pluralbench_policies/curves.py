"""The log of an optimisation while it runs, its curves, and what is to be said of it in the end."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pluralbench_local.training_job import read_log, step_log

from pluralbench_policies.scorer import ALIKE

CURVES_FILE = "curves.png"
CURVES = {
    "reward": "reward, mean",
    "length": "completion, tokens",
    "kl": "divergence from the start,\nnats a token",
    "entropy": "entropy, nats a token",
}


def step_lines(work: Path, done: int, of: int) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """A function that takes what a step gave, see `step_log`; `line["alike"]` says whether all scores were the same."""
    return step_log(
        work, "optimising", done, of, note=lambda line: f"reward {line['reward']:.3f}, {line['length']:.0f} tokens"
    )


def lengths(completions: Sequence[Sequence[int]], ends: Sequence[int]) -> dict[str, float]:
    """Mean tokens of the completions, and the share of them that ended by themselves."""
    return {
        "length": sum(map(len, completions)) / len(completions),
        "ended": sum(ids[-1] in ends for ids in completions) / len(completions),
    }


def draw_curves(folder: Path) -> None:
    """Draw reward, length, divergence and entropy by step from the log in a folder, into `curves.png` beside it."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    lines = read_log(folder)
    figure = Figure(figsize=(8, 5))
    figure.subplots_adjust(left=0.1, right=0.98, bottom=0.1, top=0.97, wspace=0.3, hspace=0.12)
    for axes, (name, label) in zip(figure.subplots(2, 2, sharex=True).flat, CURVES.items(), strict=True):
        points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else "") if points else None
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("step")
    figure.savefig(folder / CURVES_FILE, dpi=120)


def warnings_of(work: Path) -> dict[str, Any]:
    """What the log says that a reader has to know."""
    lines = read_log(work)
    alike, failed = sum(line["alike"] for line in lines), sum(line["failed"] for line in lines)
    warnings = [f"In {alike:,} of {len(lines):,} steps {ALIKE}."] if alike else []
    if failed:
        warnings.append(f"{failed:,} completions got no finite score and were left out.")
    return {"failed_scores": failed, "warnings": warnings}
