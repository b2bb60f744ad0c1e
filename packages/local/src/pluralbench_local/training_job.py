"""One training job for every kind of model: resume or refuse, train, put the folder in its place, read it back.

What a training says itself is its data, its loss and its model. While it runs, `OUT.work` holds a checkpoint and the
log; the same call goes on from there. Then `OUT` holds the model, `log.jsonl`, `settings.toml`, and a record in JSON.
"""

import json
import math
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Json, Recipe, file_digest, output_directory, progress, versions, write_text
from transformers import PreTrainedModel

from pluralbench_local.batches import is_out_of_memory
from pluralbench_local.config import LocalModel
from pluralbench_local.errors import DeviceError, TrainingError
from pluralbench_local.models import silence_transformers

LOG_FILE, SETTINGS_FILE = "log.jsonl", "settings.toml"
CHECKPOINT = "checkpoint-"


@dataclass(frozen=True)
class Kind:
    """A kind of training. record: the JSON file of its folders. maker: the distribution that makes them.

    packages: further ones that the record gives the versions of. format: of the record.
    """

    record: str
    maker: str
    packages: tuple[str, ...]
    format: int = 1


@dataclass(frozen=True)
class Result:
    """What was trained. save: writes the model into a folder, beside its log. facts: what the record says of it."""

    save: Callable[[Path], object]
    facts: Mapping[str, Json]


@dataclass(frozen=True)
class Trained:
    """A trained model. folder: where it lies, as what it was trained to be. record: what its JSON file holds."""

    folder: Path
    record: dict[str, Any]

    @property
    def accuracy(self) -> float | None:
        """Share of the held-out pairs whose better response got the strictly higher reward; None without them."""
        accuracy: float | None = self.record["held_out_accuracy"]
        return accuracy

    @property
    def held_out_loss(self) -> float | None:
        """Of a planner: nats a token of held-out plans, the mean over items of each one's mean; None without them."""
        loss: float | None = self.record["held_out_loss"]
        return loss


def run_job(
    kind: Kind,
    out: Path | str,
    settings: Recipe,
    train: Callable[[Path], Result],
    *,
    too_large: str,
    fresh: bool = False,
) -> Trained:
    """Train into the folder `out`, or read what the same call left there.

    settings: all that the weights depend on. train: takes the folder that holds checkpoints and log. too_large: what to
    do where memory does not suffice, as a sentence.

    Raises `DeviceError` with that sentence, whatever `train` raises, and `OutputError` where `out` was made by other
    settings.
    """
    target = Path(out)
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / kind.record).exists() and not fresh:
            return _read(target, kind)
        try:
            result = train(output.work)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise DeviceError(too_large) from None
        staged = output.staging()
        # Copied, since a kill before the end of `publish` leaves them to the next run.
        shutil.copyfile(output.work / LOG_FILE, staged / LOG_FILE)
        shutil.copyfile(output.work / "recipe.toml", staged / SETTINGS_FILE)
        result.save(staged)
        record = _made(kind, staged) | dict(result.facts)
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        (staged / kind.record).write_text(text + "\n", encoding="utf-8")
        output.publish(staged)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return _read(target, kind)


def _read(folder: Path, kind: Kind) -> Trained:
    return Trained(folder, json.loads((folder / kind.record).read_text(encoding="utf-8")))


def _made(kind: Kind, staged: Path) -> dict[str, Any]:
    """Software, time and machine that made the model, and the SHA-256 of its weights, which identify it."""
    lines = read_log(staged)
    return {
        "format": kind.format,
        "made_by": f"{kind.maker} {version(kind.maker)}",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": sum(line["seconds"] for line in lines),
        "steps": len(lines),
        "weights": {path.name: file_digest(path) for path in sorted(staged.glob("*.safetensors"))},
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions((kind.maker, "torch", "accelerate", *kind.packages)),
    }


def saved_network(
    model: PreTrainedModel,
    tokenizer: Any,
    device: torch.device,
    facts: Mapping[str, Json],
    *,
    beside: Iterable[Path] = (),
) -> Result:
    """A network of transformers and its tokenizer as the result. facts: for the record. beside: files to copy."""

    def save(folder: Path) -> None:
        for path in beside:
            shutil.copyfile(path, folder / path.name)
        with silence_transformers():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)

    own = {
        "saved_dtype": str(model.dtype).removeprefix("torch."),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "architecture": type(model).__name__,
        "base_commit": getattr(model.config, "_commit_hash", None),
        "device": str(device),
    }
    return Result(save, own | dict(facts))


# What is asked


def check_base(base: LocalModel, unused: Iterable[str], sentence: str) -> None:
    """Raise `TrainingError` where a description says what this training has no use for, the `{field}` of `sentence`."""
    given = base.model_dump(exclude_defaults=True)
    wrong = sorted(given.keys() & set(unused))
    if wrong:
        raise TrainingError(sentence.format(field=wrong[0]))


def check_names(names: Iterable[str], what: str) -> None:
    """Raise `TrainingError` where two have the same id. what: what they are, in a sentence."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise TrainingError(f"Two {what} have the id {twice}; give each an id of its own.")


def at_commit(base: LocalModel, record: ModelRecord) -> LocalModel:
    """The base by its commit, since what a revision names may move while training is interrupted."""
    return base.model_copy(update={"revision": record.commit or base.revision})


# While it runs


def accelerator_of(device: torch.device) -> Accelerator:
    """Accelerate for this device, in bfloat16 on a GPU. Raises `DeviceError` in one of several processes."""
    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001 - as transformers' Trainer does
    accelerator = Accelerator(
        mixed_precision="bf16" if device.type == "cuda" else "no", device_placement=False, cpu=device.type == "cpu"
    )
    if accelerator.num_processes > 1:
        raise DeviceError("Training runs in one process; start it without `accelerate launch` or `torchrun`.")
    return accelerator


@contextmanager
def step_log(
    work: Path,
    what: str,
    done: int,
    of: int,
    *,
    note: Callable[[Mapping[str, Any]], str] = lambda line: f"loss {line['loss']:.3f}",
    unit: str = "step",
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A function that takes what a step gave: it writes a line of the log, and shows how far the work is.

    done: steps that the log has. note: what to show of a line, beside the last measure on held-out items. The function
    raises `TrainingError` for a loss, or the norm of a gradient, that is no finite number. When a run fails before its
    first checkpoint, its log is deleted, so that the next run may have other settings.
    """
    path, number, measured = work / LOG_FILE, done, ""
    with progress(what, of - done) as meter:

        def write(line: Mapping[str, Any]) -> None:
            nonlocal number, measured
            number += 1
            if not math.isfinite(line["loss"] + line["gradient_norm"]):
                raise TrainingError(
                    f"The loss or its gradient is no number at {unit} {number:,} of {of:,}; lower learning_rate and "
                    "start over."
                )
            with path.open("a", encoding="utf-8") as file:
                print(json.dumps({unit: number, "of": of, **line}), file=file)
            held_out = next((value for name, value in line.items() if name.startswith("held_out")), None)
            measured = measured if held_out is None else f", held-out {held_out:.3f}"
            meter.advance(note=note(line) + measured)

        try:
            yield write
        except BaseException:
            if not checkpoints(work):
                path.unlink(missing_ok=True)
            raise


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The lines of a log, one a step."""
    return [json.loads(line) for line in (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()]


def save_checkpoint(accelerator: Accelerator, work: Path, step: int) -> None:
    """Write weights, optimizer, schedule and random states."""
    new = work / "checkpoint.new"
    shutil.rmtree(new, ignore_errors=True)
    accelerator.save_state(str(new))
    keep_checkpoint(work, new, step)


def keep_checkpoint(work: Path, new: Path, step: int) -> None:
    """Take the folder `new` for the checkpoint of these steps; the previous one stayed until this was whole."""
    old = checkpoints(work)
    new.rename(work / f"{CHECKPOINT}{step}")
    for _, path in old:
        shutil.rmtree(path)


def newest_checkpoint(work: Path) -> tuple[int, Path | None]:
    """How many steps the newest checkpoint has, and where it is; 0 and None without one. Cuts the log to its steps."""
    done, path = next(reversed(checkpoints(work)), (0, None))
    log = work / LOG_FILE
    if log.exists():
        write_text(log, "".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:done]))
    return done, path


def restore(accelerator: Accelerator, work: Path) -> int:
    """Go back to the newest checkpoint. Returns how many steps it has, 0 without one."""
    done, path = newest_checkpoint(work)
    if path is not None:
        accelerator.load_state(str(path))
    return done


def checkpoints(work: Path) -> list[tuple[int, Path]]:
    """The checkpoints in `work` with the steps that each has, the newest last."""
    return sorted((int(path.name.removeprefix(CHECKPOINT)), path) for path in work.glob(f"{CHECKPOINT}*"))
