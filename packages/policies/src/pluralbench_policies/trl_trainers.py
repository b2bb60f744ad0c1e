"""RLOO and GRPO with TRL's trainers, and a `RewardModel` as the reward function.

TRL excludes a completion whose reward is None from its group's baseline and gives it the advantage 0.
"""

import copy
import logging
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from pluralbench_local.models import hub_options, silence_transformers
from pluralbench_local.rendering import fixed_date
from pluralbench_local.training_job import CHECKPOINT, CheckpointClock, keep_checkpoint, newest_checkpoint
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_config import RLOOConfig
from trl.trainer.rloo_trainer import RLOOTrainer

from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.reward_functions import completion_parts, or_none
from pluralbench_policies.scorer import Optimization, Scorer, draw_curves, lengths, step_lines
from pluralbench_policies.trainable import divergence, end_ids, load_policy, make_rows


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
        names: Names in the line by names in the library's log.
        extra_values: Returns further values of a step's line.
        of: Number of steps.
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


LOG_NAMES = {"entropy": "entropy", "loss": "loss", "grad_norm": "gradient_norm", "clip_ratio/region_mean": "clipped"}
"""Names in our log by names in TRL's log."""


class _AutocastGenerationMixin(SilentTrainerMixin):
    def _generate_single_turn(self, *values: Any) -> Any:
        # One autocast context for all tokens; otherwise the weights are rounded to bfloat16 for each token.
        args: Any = self.args  # type: ignore[attr-defined]
        with torch.autocast(args.device.type, torch.bfloat16, enabled=args.bf16):
            return super()._generate_single_turn(*values)  # type: ignore[misc]


class _Rloo(_AutocastGenerationMixin, RLOOTrainer):
    pass


class _Grpo(_AutocastGenerationMixin, GRPOTrainer):
    pass


def optimize_by_trl(optimization: Optimization) -> None:
    """Run all steps after the checkpoint."""
    source, model, tokenizer, scorer, steps, prompts, options, work = optimization
    done, checkpoint = newest_checkpoint(work)
    ends = end_ids(model, tokenizer)
    # With a KL term in the loss, TRL keeps the initial policy itself.
    start = load_policy(source).eval() if options.kl_steps and not options.kl_coef else None
    reward = _Reward(scorer, prompts, ends, options, done, model, start)
    with step_lines(work, done, len(steps)) as write, trl_session(model, work) as folder:
        trainer = _trainer(optimization, reward, folder)
        if options.kl_coef and options.kl_steps:
            reward.start = trainer.ref_model
        trainer.add_callback(
            Steps(
                work,
                write,
                LOG_NAMES,
                lambda _: reward.line,
                of=len(steps),
                clock=CheckpointClock(options.save_steps),
                updates=options.updates,
                saved=draw_curves,
            )
        )
        with fixed_date(tokenizer):
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))


@dataclass
class _Reward:
    """The reward function, called once per step with all completions; `line` has their values for the log."""

    scorer: Scorer
    prompts: Sequence[Sequence[int]]
    ends: Sequence[int]
    options: OptimizeConfig
    step: int
    model: Any
    start: Any
    line: dict[str, Any] = field(default_factory=dict)
    __name__ = "reward"

    def __call__(
        self, *, completions: Sequence[Any], completion_ids: Sequence[Sequence[int]], place: Sequence[int], **_: Any
    ) -> list[float | None]:
        self.step += 1
        rewards = self.scorer(place, [completion_parts(messages)[0] for messages in completions])
        self.line = {**self.scorer.line, **lengths(completion_ids, self.ends)}
        if self.start is not None and self.step % self.options.kl_steps == 0:
            rows = make_rows([self.prompts[index] for index in place], completion_ids, self.model.device)
            self.line["kl"] = divergence(self.model, self.start, rows, self.options)
        return [or_none(reward) for reward in rewards]


def _trainer(optimization: Optimization, reward: _Reward, folder: Path) -> Any:
    source, model, tokenizer, scorer, steps, _, options, _ = optimization
    rows = [
        {"prompt": [dict(message) for message in scorer.tasks[place].messages], "place": place}
        for step in steps
        for place in step
    ]
    settings = trainer_arguments(model, folder) | {
        "per_device_train_batch_size": options.part,
        "gradient_accumulation_steps": options.update_size // options.part,
        "steps_per_generation": options.batch_size * options.completions // options.part,
        "num_generations": options.completions,
        "max_completion_length": options.max_tokens,
        "temperature": options.temperature,
        "beta": options.kl_coef,
        "model_init_kwargs": hub_options(source),  # for the initial policy
        "epsilon": options.clip_range,
        "learning_rate": options.learning_rate,
        "lr_scheduler_type": "constant",
        "weight_decay": options.weight_decay,
        "max_grad_norm": options.max_grad_norm,
        "num_train_epochs": 1,  # the rows already contain all epochs in order
        "shuffle_dataset": False,
        "logging_steps": options.updates,
        "bf16": options.in_bfloat16(model.device.type),
        "gradient_checkpointing": options.gradient_checkpointing,
        "seed": options.seed,
    }
    kind: Any
    args: Any
    if options.algorithm == "rloo":
        kind, args = _Rloo, RLOOConfig(**settings)
    else:
        # The mean over each completion's tokens, then over the completions, as in the GRPO paper.
        kind, args = _Grpo, GRPOConfig(**settings, loss_type="grpo", scale_rewards="group")
    data = Dataset.from_list(rows)
    return make_trainer(kind, args, model, tokenizer, reward_funcs=reward, train_dataset=data)
