"""Training jobs of any kind of model: resume, train, save, and record.

While a job runs, `OUT.work` has a checkpoint and the log, and the same call resumes from there. When it is done, `OUT`
has the model, `log.jsonl`, `settings.toml` and a record in JSON.
"""

import json
import math
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Json, Recipe, file_digest, output_directory, progress, versions, write_text

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError, TrainingError, is_out_of_memory
from pluralbench_local.models import silence_transformers

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

LOG_FILE, SETTINGS_FILE = "log.jsonl", "settings.toml"
CHECKPOINT = "checkpoint-"
CHECKPOINT_SECONDS = 120.0  # of work that an interruption may cost
SAVING_SHARE = 1 / 20  # of the time, at most, if no `save_steps` ask for more


@dataclass(frozen=True)
class Kind:
    """A kind of training: its record's file, the distribution that trains, and others whose versions are recorded."""

    record: str
    maker: str
    packages: tuple[str, ...]
    format: int = 1


@dataclass(frozen=True)
class Result:
    """What a training function gives: what writes the model to a folder, and entries of the record."""

    save: Callable[[Path], object]
    facts: Mapping[str, Json]


@dataclass(frozen=True)
class Trained:
    """A trained model: its folder, and the contents of its JSON record."""

    folder: Path
    record: dict[str, Any]

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the held-out pairs; a tie is wrong. None without held-out pairs."""
        accuracy: float | None = self.record["held_out_accuracy"]
        return accuracy

    @property
    def held_out_loss(self) -> float | None:
        """A planner's loss on held-out plans: nats per token, averaged by item, then over items. None without them."""
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
    """Train a model to the folder `out`, or return the one that an earlier call with the same settings left there.

    `train` is called with the folder of checkpoints and log; `too_large` is the error message if memory runs out.

    Raises:
        LocalError: If memory runs out.
        OutputError: If `out` was made with other settings.
    """
    target = Path(out)
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / kind.record).exists() and not fresh:
            return _read_record(target, kind)
        try:
            result = train(output.work)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise LocalError(too_large) from None
        staged = output.staging()
        # Copied, so that a job that is killed before the end of `publish` can be resumed.
        shutil.copyfile(output.work / LOG_FILE, staged / LOG_FILE)
        shutil.copyfile(output.work / "recipe.toml", staged / SETTINGS_FILE)
        result.save(staged)
        record = _provenance(kind, staged) | dict(result.facts)
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        (staged / kind.record).write_text(text + "\n", encoding="utf-8")
        output.publish(staged)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return _read_record(target, kind)


def _read_record(folder: Path, kind: Kind) -> Trained:
    return Trained(folder, json.loads((folder / kind.record).read_text(encoding="utf-8")))


def _provenance(kind: Kind, staged: Path) -> dict[str, Any]:
    """Software, time, machine, and the SHA-256 of the weights, which identifies the model."""
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
    model: "PreTrainedModel",
    tokenizer: Any,
    device: torch.device,
    facts: Mapping[str, Json],
    *,
    extra_files: Iterable[Path] = (),
) -> Result:
    """Return a transformers model and its tokenizer as the result of a training function."""

    def save(folder: Path) -> None:
        for path in extra_files:
            shutil.copyfile(path, folder / path.name)
        with silence_transformers():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)

    network = {
        "saved_dtype": str(model.dtype).removeprefix("torch."),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "architecture": type(model).__name__,
        "base_commit": getattr(model.config, "_commit_hash", None),
        "device": str(device),
    }
    return Result(save, network | dict(facts))


# Checks


def check_base(base: LocalModel, unused: Iterable[str], what: str) -> None:
    """Raise `TrainingError` if a base model sets a field that this training (such as "Optimizing a policy") ignores."""
    wrong = sorted(base.model_dump(exclude_defaults=True).keys() & set(unused))
    if wrong:
        raise TrainingError(f"{what} takes no `{wrong[0]}=...`; leave it out.")


def check_unique_ids(ids: Iterable[str], what: str) -> None:
    """Raise `TrainingError` if an id occurs twice among `what`, such as "rankings"."""
    duplicate = next((name for name, count in Counter(ids).items() if count > 1), None)
    if duplicate is not None:
        raise TrainingError(f"Two {what} have the id {duplicate}; give each an id of its own.")


def at_commit(base: LocalModel, record: ModelRecord) -> LocalModel:
    """Return the base at its recorded commit, since its revision may move while training is interrupted."""
    return base.model_copy(update={"revision": record.commit or base.revision})


# Checkpoints and log


def accelerator_of(device: torch.device) -> "Accelerator":
    """Return an accelerator for a device, in bfloat16 on a GPU. Raises `LocalError` among several processes."""
    from accelerate import Accelerator  # here, since models are also loaded to score
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001 - as transformers' Trainer does
    accelerator = Accelerator(
        mixed_precision="bf16" if device.type == "cuda" else "no", device_placement=False, cpu=device.type == "cpu"
    )
    if accelerator.num_processes > 1:
        raise LocalError("Training runs in one process; start it without `accelerate launch` or `torchrun`.")
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
    """Yield a function that logs a step, or another `unit`, and shows the progress; `done` are in the log already.

    It raises `TrainingError` if the loss or the gradient norm is not finite. The progress bar shows of a line what
    `note` says, by default the loss, before the latest held-out figure.
    """
    path, number, held_out_note = work / LOG_FILE, done, ""
    with progress(what, of - done) as meter:

        def write(line: Mapping[str, Any]) -> None:
            nonlocal number, held_out_note
            number += 1
            if not math.isfinite(line["loss"] + line["gradient_norm"]):
                raise TrainingError(
                    f"The loss or its gradient is not finite at {unit} {number:,} of {of:,}; lower "
                    "`learning_rate=...` and start over."
                )
            with path.open("a", encoding="utf-8") as file:
                print(json.dumps({unit: number, "of": of, **line}), file=file)
            held_out = next((value for name, value in line.items() if name.startswith("held_out")), None)
            if held_out is not None:
                held_out_note = f", held-out {held_out:.3f}"
            meter.advance(note=note(line) + held_out_note)

        yield write


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Read the lines of a log, one for each step."""
    return [json.loads(line) for line in (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()]


@dataclass
class CheckpointClock:
    """Says when a checkpoint is due: after `save_steps` steps, and after some minutes of work.

    A large model, whose saving takes long, is saved more rarely.
    """

    save_steps: int
    _last: float = field(default_factory=time.monotonic)
    _wait: float = field(default_factory=lambda: CHECKPOINT_SECONDS)

    def due(self, step: int) -> bool:
        """Whether to save a checkpoint after this step; `saved` is called afterwards."""
        now = time.monotonic()
        if step % self.save_steps and now - self._last < self._wait:
            return False
        self._last = now
        return True

    def saved(self) -> None:
        """Note how long saving took."""
        now = time.monotonic()
        self._wait = max(CHECKPOINT_SECONDS, (now - self._last) / SAVING_SHARE)
        self._last = now


def save_checkpoint(accelerator: "Accelerator", work: Path, step: int) -> None:
    """Save weights, optimizer, schedule and random states."""
    new = work / "checkpoint.new"
    shutil.rmtree(new, ignore_errors=True)
    accelerator.save_state(str(new))
    keep_checkpoint(work, new, step)


def keep_checkpoint(work: Path, new: Path, step: int) -> None:
    """Make the folder `new` the checkpoint after `step` steps, and delete older ones."""
    old = checkpoints(work)
    new.rename(work / f"{CHECKPOINT}{step}")
    for _, path in old:
        shutil.rmtree(path)


def newest_checkpoint(work: Path) -> tuple[int, Path | None]:
    """Return the steps and the path of the newest checkpoint (0 and None if there is none), and cut the log to it."""
    done, path = next(reversed(checkpoints(work)), (0, None))
    log = work / LOG_FILE
    if log.exists():
        write_text(log, "".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:done]))
    return done, path


def restore(accelerator: "Accelerator", work: Path) -> int:
    """Load the newest checkpoint, and return its number of steps; 0 if there is none."""
    done, path = newest_checkpoint(work)
    if path is not None:
        accelerator.load_state(str(path))
    return done


def checkpoints(work: Path) -> list[tuple[int, Path]]:
    """Return the steps and paths of the checkpoints in `work`, the newest last."""
    return sorted((int(path.name.removeprefix(CHECKPOINT)), path) for path in work.glob(f"{CHECKPOINT}*"))
