"""What each training by one of TRL's trainers shares: its arguments, lines of the log, and checkpoints."""

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
from pluralbench_local.training_job import CHECKPOINT, keep_checkpoint
from transformers import PrinterCallback, TrainerCallback


class SilentTrainerMixin:
    """TRL would report each trainer that is made to the Hub, and write a model card into each checkpoint."""

    def _send_telemetry(self) -> None:
        pass

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none."""


@dataclass(eq=False)
class Steps(TrainerCallback):
    """Writes a line when a step is done, and says when to save; a checkpoint counts only where it is whole.

    names: what a line takes from the library's log, by the names there. line_of: further values of a line, by the step.
    of: how many steps; every: steps between two checkpoints. updates: of the weights, in a step.
    """

    work: Path
    write: Callable[[Mapping[str, Any]], None]
    names: Mapping[str, str]
    line_of: Callable[[int], Mapping[str, Any]]
    of: int
    every: int
    updates: int = 1
    saved: Callable[[Path], None] = lambda work: None
    began: float = field(default_factory=time.perf_counter)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask for a checkpoint where one is due."""
        step, update = divmod(state.global_step, self.updates)
        control.should_save = update == 0 and step < self.of and step % self.every == 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Write the step's line."""
        if "loss" not in logs:  # of a measure, or the last one, of the whole training
            return
        seconds = time.perf_counter() - self.began
        line = {ours: float(logs[theirs]) for theirs, ours in self.names.items()}
        self.write({**self.line_of(state.global_step // self.updates), **line, "seconds": seconds})
        self.began = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take what was saved for the checkpoint."""
        saved = Path(args.output_dir) / f"{CHECKPOINT}{state.global_step}"
        keep_checkpoint(self.work, saved, state.global_step // self.updates)
        self.saved(self.work)


def trainer_of(kind: Any, args: Any, model: Any, tokenizer: Any, **given: Any) -> Any:
    """A trainer of this class, on one GPU at most."""
    args._n_gpu = min(args.n_gpu, 1)  # noqa: SLF001 - one process on one GPU, however many the machine has
    # A copy, since TRL sets a pad token where there is none.
    trainer = kind(model=model, args=args, processing_class=copy.deepcopy(tokenizer), **given)
    trainer.remove_callback(PrinterCallback)
    return trainer


def arguments(model: Any, folder: Path) -> dict[str, Any]:
    """What is asked of each trainer: all is logged, and what it saves and shows is ours."""
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
def under_trl(model: Any, work: Path) -> Iterator[Path]:
    """Within this context TRL trains: it warns of nothing, and the model is to be saved as it was configured.

    Yields a folder for what a trainer writes before it is whole.
    """
    folder, logger = work / "trl", logging.getLogger("trl")
    # TRL sets a pad token in the model's configuration, which is not to be saved with it.
    configs = [model.config.get_text_config(), model.generation_config]
    pads, level = [config.pad_token_id for config in configs], logger.level
    logger.setLevel(logging.ERROR)
    with silence_transformers(), warnings.catch_warnings():
        # Of what is chosen here on purpose.
        warnings.simplefilter("ignore")
        try:
            yield folder
        finally:
            logger.setLevel(level)
            shutil.rmtree(folder, ignore_errors=True)
            for config, pad in zip(configs, pads, strict=True):
                config.pad_token_id = pad
