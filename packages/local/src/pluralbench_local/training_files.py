"""The files of training: log and checkpoints while it runs, then a classifier and a record of how it was made."""

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from pluralbench_runs import Output, file_digest, versions
from transformers import PreTrainedModel

from pluralbench_local.conversations import Template
from pluralbench_local.models import quiet
from pluralbench_local.training_model import Trainee

TRAINING_FILE, LOG_FILE, SETTINGS_FILE = "training.json", "log.jsonl", "settings.toml"
CHECKPOINT = "checkpoint-"
FORMAT = 1
PACKAGES = ("pluralbench-local", "torch", "transformers", "tokenizers", "accelerate", "peft")


@dataclass(frozen=True)
class Trained:
    """A trained reward model. folder: it loads as a classifier. record: what `training.json` holds.

    accuracy: share of the held-out pairs whose better response got the strictly higher reward; None without them.
    """

    folder: Path
    accuracy: float | None
    record: dict[str, Any]


@contextmanager
def step_log(work: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that writes a line of the log.

    When a run fails before its first checkpoint, its log is deleted, so that the next run may have other settings.
    """
    path = work / LOG_FILE
    try:
        with path.open("a", encoding="utf-8") as file:
            yield lambda line: print(json.dumps(line), file=file, flush=True)
    except BaseException:
        if not checkpoints(work):
            path.unlink(missing_ok=True)
        raise


def save_checkpoint(accelerator: Accelerator, work: Path, step: int) -> None:
    """Write weights, optimizer, schedule and random states; the previous ones stay until these are whole."""
    new = work / "checkpoint.new"
    shutil.rmtree(new, ignore_errors=True)
    accelerator.save_state(str(new))
    old = checkpoints(work)
    new.rename(work / f"{CHECKPOINT}{step}")
    for _, path in old:
        shutil.rmtree(path)


def restore(accelerator: Accelerator, work: Path) -> int:
    """Go back to the newest checkpoint, and cut the log to its steps. Returns how many steps it has, 0 without one."""
    found = checkpoints(work)
    done = found[-1][0] if found else 0
    if found:
        accelerator.load_state(str(found[-1][1]))
    cut_log(work, done)
    return done


def cut_log(work: Path, steps: int) -> None:
    """Leave these first steps of the log."""
    log = work / LOG_FILE
    if log.exists():
        log.write_text("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:steps]), encoding="utf-8")


def checkpoints(work: Path) -> list[tuple[int, Path]]:
    """The checkpoints in `work` with the steps that each has, the newest last."""
    return sorted((int(path.name.removeprefix(CHECKPOINT)), path) for path in work.glob(f"{CHECKPOINT}*"))


def publish(output: Output, trainee: Trainee, template: Template, task: Mapping[str, Any]) -> None:
    """Put the classifier in place with its tokenizer, the log, the settings and `training.json`.

    task: base, data and results, for `training.json`, which adds software, time and machine.
    """
    staged = output.staging()
    with quiet():
        trainee.network.model.save_pretrained(staged)
        template.tokenizer.save_pretrained(staged)
    # Copied, since a kill before the end of `publish` leaves them to the next run.
    shutil.copyfile(output.work / LOG_FILE, staged / LOG_FILE)
    shutil.copyfile(output.work / "recipe.toml", staged / SETTINGS_FILE)
    network = trainee.network
    record = made(network.model, network.device, staged, "pluralbench-local", PACKAGES) | dict(task)
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    (staged / TRAINING_FILE).write_text(text + "\n", encoding="utf-8")
    output.publish(staged)


def read_trained(folder: Path) -> Trained:
    """What a finished training left in `folder`."""
    record = json.loads((folder / TRAINING_FILE).read_text(encoding="utf-8"))
    return Trained(folder, record["held_out_accuracy"], record)


def made(
    model: PreTrainedModel, device: torch.device, staged: Path, maker: str, packages: Sequence[str]
) -> dict[str, Any]:
    """Software, time and machine that made the model, and the SHA-256 of its weights, which identify it.

    staged: where its weights and the log are. maker: the distribution that made it. packages: those to name.
    """
    lines = [json.loads(line) for line in (staged / LOG_FILE).read_text(encoding="utf-8").splitlines()]
    weights = {path.name: file_digest(path) for path in sorted(staged.glob("*.safetensors"))}
    return {
        "format": FORMAT,
        "made_by": f"{maker} {version(maker)}",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": sum(line["seconds"] for line in lines),
        "steps": len(lines),
        "weights": weights,
        "saved_dtype": str(model.dtype).removeprefix("torch."),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "architecture": type(model).__name__,
        "base_commit": getattr(model.config, "_commit_hash", None),
        "device": str(device),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions(packages),
    }
