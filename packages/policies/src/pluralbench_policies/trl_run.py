"""Shared parts of trainings with TRL's trainers: arguments, log and checkpoints."""

import copy
import logging
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pluralbench_local.models import silence_transformers
from pluralbench_local.training_job import CHECKPOINT, CheckpointClock, keep_checkpoint
from transformers import PrinterCallback, TrainerCallback


class SilentTrainerMixin:
    """Turns off TRL's telemetry and its model cards in checkpoints."""

    def _send_telemetry(self) -> None:
        pass

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


@dataclass(eq=False)
class Steps(TrainerCallback):
    """Writes a log line after each step, and saves checkpoints.

    Attributes:
        work: Folder of the checkpoint.
        write: Writes a line.
        names: Names in the line by names in the library's log.
        extra_values: Returns further values of a step's line.
        of: Number of steps.
        clock: Says when a checkpoint is due.
        updates: Updates of the weights per step.
        saved: Called with `work` after a checkpoint.
    """

    work: Path
    write: Callable[[Mapping[str, Any]], None]
    names: Mapping[str, str]
    extra_values: Callable[[int], Mapping[str, Any]]
    of: int
    clock: CheckpointClock
    updates: int = 1
    saved: Callable[[Path], None] = lambda work: None
    began: float = field(default_factory=time.perf_counter)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Request a checkpoint if one is due."""
        step, update = divmod(state.global_step, self.updates)
        control.should_save = update == 0 and step < self.of and self.clock.due(step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Write the step's line."""
        if "loss" not in logs:  # an evaluation, or the summary of the training
            return
        seconds = time.perf_counter() - self.began
        line = {name: float(logs[library_name]) for library_name, name in self.names.items()}
        self.write({**self.extra_values(state.global_step // self.updates), **line, "seconds": seconds})
        self.began = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Move the complete checkpoint to its place."""
        checkpoint = Path(args.output_dir) / f"{CHECKPOINT}{state.global_step}"
        keep_checkpoint(self.work, checkpoint, state.global_step // self.updates)
        self.clock.saved()
        self.saved(self.work)


def make_trainer(kind: Any, args: Any, model: Any, tokenizer: Any, **options: Any) -> Any:
    """Make a trainer of the class `kind` on at most one GPU."""
    args._n_gpu = min(args.n_gpu, 1)  # noqa: SLF001 - one process on one GPU, however many the machine has
    # A copy, since TRL adds a missing pad token.
    trainer = kind(model=model, args=args, processing_class=copy.deepcopy(tokenizer), **options)
    trainer.remove_callback(PrinterCallback)
    return trainer


def trainer_arguments(model: Any, folder: Path) -> dict[str, Any]:
    """Return the arguments of all trainers: log everything, save and display nothing on their own."""
    on_gpu = model.device.type == "cuda"
    return {
        "output_dir": str(folder),
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
    }


@contextmanager
def trl_session(model: Any, work: Path) -> Iterator[Path]:
    """Silence TRL's warnings, and restore the model's pad token afterwards.

    Yields a folder for the trainer's unfinished files.
    """
    folder, logger = work / "trl", logging.getLogger("trl")
    # TRL sets a pad token in the model's configuration, which must not be saved.
    configs = [model.config.get_text_config(), model.generation_config]
    pads, level = [config.pad_token_id for config in configs], logger.level
    logger.setLevel(logging.ERROR)
    with silence_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern deliberate settings
        try:
            yield folder
        finally:
            logger.setLevel(level)
            shutil.rmtree(folder, ignore_errors=True)
            for config, pad in zip(configs, pads, strict=True):
                config.pad_token_id = pad
