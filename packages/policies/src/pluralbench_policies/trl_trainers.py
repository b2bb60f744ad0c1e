"""RLOO and GRPO by TRL's trainers, with a reward model of the contract as the reward function.

TRL leaves a completion whose reward is None out of its group's baseline and gives it the advantage 0.
"""

import copy
import logging
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from pluralbench_local import LocalModel
from pluralbench_local.models import from_pretrained, quiet
from pluralbench_local.training_files import CHECKPOINT, checkpoints, cut_log
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_config import RLOOConfig
from trl.trainer.rloo_trainer import RLOOTrainer

from pluralbench_policies.description import OptimizeOptions
from pluralbench_policies.progress_files import draw_curves, lengths, step_lines
from pluralbench_policies.scorer import Scorer
from pluralbench_policies.trainable import divergence, end_ids, laid_out, load_policy

PART_LOG = {"entropy": "entropy", "loss": "loss", "grad_norm": "gradient_norm", "clip_ratio/region_mean": "clipped"}
"""What a line takes from TRL's log, by the names there."""


class Silent:
    """TRL would report each trainer that is made to the Hub, and write a model card into each checkpoint."""

    def _send_telemetry(self) -> None:
        pass

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none."""


class _Adapted(Silent):
    def _generate_single_turn(self, *given: Any) -> Any:
        # Without this, the weights are rounded to bfloat16 anew for each token.
        args: Any = self.args  # type: ignore[attr-defined]
        with torch.autocast(args.device.type, torch.bfloat16, enabled=args.bf16):
            return super()._generate_single_turn(*given)  # type: ignore[misc]


class _Rloo(_Adapted, RLOOTrainer):
    pass


class _Grpo(_Adapted, GRPOTrainer):
    pass


def optimize_by_trl(
    source: LocalModel,
    model: Any,
    tokenizer: Any,
    scorer: Scorer,
    steps: Sequence[Sequence[int]],
    prompts: Sequence[Sequence[int]],
    options: OptimizeOptions,
    work: Path,
) -> None:
    """Take all steps that the checkpoint in `work` does not have.

    source: what `model` was loaded from. steps: of each step its tasks' places. prompts: of each task the tokens of its
    prompt.
    """
    found = checkpoints(work)
    done = found[-1][0] if found else 0
    cut_log(work, done)
    ends = end_ids(model, tokenizer)
    # With a divergence in the loss, TRL holds the start itself.
    start = load_policy(source, model.device).eval() if options.kl_every and not options.kl else None
    reward = _Reward(scorer, prompts, ends, options, done, model, start)
    with step_lines(work, done, len(steps)) as write, trl_folder(work) as folder, trl_is_quiet(), own_pad(model):
        trainer = _trainer(source, model, tokenizer, reward, steps, options, folder)
        if options.kl and options.kl_every:
            reward.start = trainer.ref_model
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_Steps(reward, write, options, len(steps), work))
        trainer.train(resume_from_checkpoint=str(found[-1][1]) if found else None)


@dataclass
class _Reward:
    """The reward function, called once a step with all its completions; it keeps what the step's line says of them."""

    scorer: Scorer
    prompts: Sequence[Sequence[int]]
    ends: Sequence[int]
    options: OptimizeOptions
    step: int
    model: Any
    start: Any
    line: dict[str, Any] = field(default_factory=dict)
    __name__ = "reward"

    def __call__(
        self, *, completions: Sequence[Any], completion_ids: Sequence[Sequence[int]], place: Sequence[int], **_: Any
    ) -> list[float | None]:
        self.step += 1
        rewards = self.scorer(place, [messages[0]["content"] for messages in completions])
        self.line = {**self.scorer.line, **lengths(completion_ids, self.ends)}
        if self.start is not None and self.step % self.options.kl_every == 0:
            rows = laid_out([self.prompts[each] for each in place], completion_ids, self.model.device)
            self.line["kl"] = divergence(self.model, self.start, rows, self.options)
        return [None if reward != reward else reward for reward in rewards]  # noqa: PLR0124 - NaN


class _Steps(TrainerCallback):
    """Writes a line when a step is done, and says when to save; a checkpoint counts only where it is whole."""

    def __init__(self, reward: _Reward, write: Any, options: OptimizeOptions, of: int, work: Path) -> None:
        self._reward, self._write, self._options, self._of, self._work = reward, write, options, of, work
        self._began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step, update = divmod(state.global_step, self._options.updates)
        control.should_save = update == 0 and step < self._of and step % self._options.checkpoint_every == 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" not in logs:  # the last one, of the whole training
            return
        now = time.perf_counter()
        line = self._reward.line | {ours: logs[theirs] for theirs, ours in PART_LOG.items()}
        self._write(line | {"seconds": now - self._began})
        self._began = now

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        older = checkpoints(self._work)
        saved = Path(args.output_dir) / f"{CHECKPOINT}{state.global_step}"
        saved.rename(self._work / f"{CHECKPOINT}{state.global_step // self._options.updates}")
        for _step, path in older:
            shutil.rmtree(path)
        draw_curves(self._work)


def _trainer(
    source: LocalModel,
    model: Any,
    tokenizer: Any,
    reward: _Reward,
    steps: Sequence[Sequence[int]],
    options: OptimizeOptions,
    folder: Path,
) -> Any:
    rows = [{"prompt": reward_messages(reward.scorer, place), "place": place} for step in steps for place in step]
    on_gpu = model.device.type == "cuda"
    wanted: dict[str, Any] = {
        "output_dir": str(folder),
        "per_device_train_batch_size": options.part,
        "gradient_accumulation_steps": options.update_size // options.part,
        "steps_per_generation": options.prompts * options.completions // options.part,
        "num_generations": options.completions,
        "max_completion_length": options.max_tokens,
        "temperature": options.temperature,
        "beta": options.kl,
        "model_init_kwargs": from_pretrained(source),  # of the start
        "epsilon": options.clip,
        "learning_rate": options.learning_rate,
        "lr_scheduler_type": "constant",
        "max_grad_norm": options.max_gradient_norm,
        "num_train_epochs": 1,  # the rows hold all of ours, in our order
        "shuffle_dataset": False,
        "logging_steps": options.updates,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "bf16": options.in_bfloat16(model.device.type),
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
        "gradient_checkpointing": options.gradient_checkpointing,
        "seed": options.seed,
    }
    kind: Any
    args: Any
    if options.algorithm == "rloo":
        kind, args = _Rloo, RLOOConfig(**wanted)
    else:
        # The mean over each completion's tokens, then over the completions, as GRPO was published.
        kind, args = _Grpo, GRPOConfig(**wanted, loss_type="grpo", scale_rewards="group")
    args._n_gpu = min(args.n_gpu, 1)  # noqa: SLF001 - one process on one GPU, however many the machine has
    # A copy, since TRL sets a pad token where there is none.
    return kind(
        model=model, args=args, reward_funcs=reward, train_dataset=Dataset.from_list(rows),
        processing_class=copy.deepcopy(tokenizer),
    )  # fmt: skip


def reward_messages(scorer: Scorer, place: int) -> list[dict[str, str]]:
    """What the policy reads of the task at that place."""
    return [dict(message) for message in scorer.tasks[place].messages]


@contextmanager
def trl_folder(work: Path) -> Iterator[Path]:
    """A folder for what the trainer writes before it is whole."""
    folder = work / "trl"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_pad(model: Any) -> Iterator[None]:
    """TRL sets a pad token in the model's configuration, which is not to be saved with it."""
    configs = [model.config.get_text_config(), model.generation_config]
    pads = [config.pad_token_id for config in configs]
    try:
        yield
    finally:
        for config, pad in zip(configs, pads, strict=True):
            config.pad_token_id = pad


@contextmanager
def trl_is_quiet() -> Iterator[None]:
    """Keep the libraries from warning of what is chosen here on purpose."""
    logger = logging.getLogger("trl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
