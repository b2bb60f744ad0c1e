"""The files of a planner: its log while it is trained, then a language model and a record of how it was made."""

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_local.models import quiet
from pluralbench_local.training_files import LOG_FILE, SETTINGS_FILE, made, step_log
from pluralbench_runs import Output, progress

from pluralbench_policies.errors import PolicyError

RECORD_FILE = "planner.json"
PACKAGES = ("pluralbench-policies", "torch", "transformers", "tokenizers", "accelerate", "trl", "peft")


@dataclass(frozen=True)
class TrainedPlanner:
    """A trained planner. folder: it loads as a causal language model. record: what `planner.json` holds.

    held_out_loss: nats a token of the held-out plans, the mean over items of each one's mean; None without them.
    """

    folder: Path
    held_out_loss: float | None
    record: dict[str, Any]


@contextmanager
def planner_lines(work: Path, done: int, of: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that takes what a step gave: it writes a line of the log and shows how far the work is.

    It raises `PolicyError` for a loss that is no finite number.
    """
    with step_log(work) as log, progress("training", of - done) as meter:
        number, measured = done, ""

        def write(line: Mapping[str, Any]) -> None:
            nonlocal number, measured
            number += 1
            if not all(math.isfinite(line[key]) for key in ("loss", "gradient_norm")):
                raise PolicyError(
                    f"The loss or its gradient is no number at step {number:,} of {of:,}; lower learning_rate and "
                    "start over."
                )
            if "held_out_loss" in line:
                measured = f", held-out {line['held_out_loss']:.3f}"
            log({"step": number, "of": of, **line})
            meter.advance(note=f"loss {line['loss']:.3f}{measured}")

        yield write


def publish_planner(output: Output, model: Any, tokenizer: Any, task: Mapping[str, Any]) -> None:
    """Put the planner in place with its tokenizer, log, settings and `planner.json`.

    task: settings, counts and results, for `planner.json`, which adds software, time and machine.
    """
    staged = output.staging()
    with quiet():
        model.save_pretrained(staged)
        tokenizer.save_pretrained(staged)
    # Copied, since a kill before the end of `publish` leaves them to the next run.
    shutil.copyfile(output.work / LOG_FILE, staged / LOG_FILE)
    shutil.copyfile(output.work / "recipe.toml", staged / SETTINGS_FILE)
    record = made(model, model.device, staged, "pluralbench-policies", PACKAGES) | dict(task)
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    (staged / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    output.publish(staged)


def read_planner(folder: Path) -> TrainedPlanner:
    """What a finished training left in `folder`."""
    record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    return TrainedPlanner(folder, record["held_out_loss"], record)
