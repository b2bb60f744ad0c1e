"""The log of a policy optimization, its curves, and its warnings."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pluralbench_local.training_job import read_log, step_log

from pluralbench_policies.scorer import EQUAL_SCORES

CURVES_FILE = "curves.png"
CURVES = {
    "reward": "reward, mean",
    "length": "completion, tokens",
    "kl": "KL from initial policy,\nnats per token",
    "entropy": "entropy, nats per token",
}


def step_lines(work: Path, done: int, of: int) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """Open the log of the steps (`step_log`); the context gives a function that writes a step's line."""
    return step_log(
        work, "optimizing", done, of, note=lambda line: f"reward {line['reward']:.3f}, {line['length']:.0f} tokens"
    )


def lengths(completions: Sequence[Sequence[int]], ends: Sequence[int]) -> dict[str, float]:
    """Compute the mean number of tokens of completions, and the share that ended with an end token."""
    return {
        "length": sum(map(len, completions)) / len(completions),
        "ended": sum(ids[-1] in ends for ids in completions) / len(completions),
    }


def draw_curves(folder: Path) -> None:
    """Draw reward, length, KL divergence and entropy by step from the log in `folder` into its `curves.png`."""
    from matplotlib.figure import Figure

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
    """Collect the warnings of a log, and the number of completions without a score."""
    lines = read_log(work)
    equal, failed = sum(line["alike"] for line in lines), sum(line["failed"] for line in lines)
    warnings = [f"In {equal:,} of {len(lines):,} steps {EQUAL_SCORES}."] if equal else []
    if failed:
        warnings.append(f"{failed:,} completions got no finite score and were ignored.")
    return {"failed_scores": failed, "warnings": warnings}
