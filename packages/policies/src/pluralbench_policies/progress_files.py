"""The files of an optimisation: log and curves while it runs, then a policy and a record of how it was made."""

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_local.models import quiet
from pluralbench_local.training_files import LOG_FILE, SETTINGS_FILE, made, step_log
from pluralbench_runs import Output, progress

from pluralbench_policies.errors import PolicyError

RECORD_FILE, CURVES_FILE = "optimization.json", "curves.png"
PACKAGES = ("pluralbench-policies", "torch", "transformers", "tokenizers", "accelerate", "trl", "torchrl", "tensordict")
CURVES = {
    "reward": "reward, mean",
    "length": "completion, tokens",
    "kl": "divergence from the start,\nnats a token",
    "entropy": "entropy, nats a token",
}
ALIKE = "the reward model scored all completions alike, so there was nothing to learn"


@dataclass(frozen=True)
class Optimized:
    """An optimised policy. folder: it loads as a causal language model. record: what `optimization.json` holds."""

    folder: Path
    record: dict[str, Any]


@contextmanager
def step_lines(work: Path, done: int, of: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that takes what a step gave: it writes a line of the log and shows how far the work is.

    It raises `PolicyError` for a loss that is no finite number.
    """
    with step_log(work) as log, progress("optimising", of - done) as meter:
        number = done

        def write(line: Mapping[str, Any]) -> None:
            nonlocal number
            number += 1
            if not all(math.isfinite(line[key]) for key in ("loss", "gradient_norm")):
                raise PolicyError(
                    f"The loss or its gradient is no number at step {number:,} of {of:,}; lower learning_rate and "
                    "start over."
                )
            warning = {"warning": ALIKE} if line["alike"] else {}
            log({"step": number, "of": of, **line, **warning})
            meter.advance(note=f"reward {line['reward']:.3f}, {line['length']:.0f} tokens")

        yield write


def lengths(completions: Sequence[Sequence[int]], ends: Sequence[int]) -> dict[str, float]:
    """Mean tokens of the completions, and the share of them that ended by themselves."""
    return {
        "length": sum(map(len, completions)) / len(completions),
        "ended": sum(ids[-1] in ends for ids in completions) / len(completions),
    }


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The lines of a log, one a step."""
    return [json.loads(line) for line in (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()]


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


def publish(output: Output, model: Any, tokenizer: Any, device: Any, task: Mapping[str, Any]) -> None:
    """Put the policy in place with its tokenizer, log, curves, settings and `optimization.json`.

    task: settings and counts, for `optimization.json`, which adds what the log says, software, time and machine.
    """
    staged = output.staging()
    with quiet():
        model.save_pretrained(staged)
        tokenizer.save_pretrained(staged)
    # Copied, since a kill before the end of `publish` leaves them to the next run.
    shutil.copyfile(output.work / LOG_FILE, staged / LOG_FILE)
    shutil.copyfile(output.work / "recipe.toml", staged / SETTINGS_FILE)
    draw_curves(staged)
    record = made(model, device, staged, "pluralbench-policies", PACKAGES) | dict(task) | _told(read_log(staged))
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    (staged / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    output.publish(staged)


def _told(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    alike, failed = sum(line["alike"] for line in lines), sum(line["failed"] for line in lines)
    warnings = [f"In {alike:,} of {len(lines):,} steps {ALIKE}."] if alike else []
    if failed:
        warnings.append(f"{failed:,} completions got no finite score and were left out.")
    return {"failed_scores": failed, "warnings": warnings}


def read_optimized(folder: Path) -> Optimized:
    """What a finished optimisation left in `folder`."""
    return Optimized(folder, json.loads((folder / RECORD_FILE).read_text(encoding="utf-8")))
