"""A planner by TRL's SFTTrainer with adapters of peft: what is learned of is the tokens of the plans alone."""

import copy
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from pluralbench_local import ModelError
from pluralbench_local.training_files import CHECKPOINT, checkpoints, cut_log
from pluralbench_runs import one_line
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from pluralbench_policies.planner_files import planner_lines
from pluralbench_policies.planner_options import PlannerOptions, Read
from pluralbench_policies.trl_trainers import Silent, own_pad, trl_folder, trl_is_quiet

UNLEARNED = -100  # the label of a token that no loss is taken over
PART_LOG = {"loss": "loss", "grad_norm": "gradient_norm", "learning_rate": "learning_rate"}
"""What a line takes from the log of the library, by the names there."""


class _Sft(Silent, SFTTrainer):
    """order: the places of the items, all steps of them; the library would draw them anew for each epoch."""

    order: Sequence[int] = ()

    def _get_train_sampler(self, *_: Any) -> Any:
        return list(self.order)


def fit(
    model: Any,
    tokenizer: Any,
    learned: Sequence[Read],
    judged: Sequence[Read] | None,
    order: Sequence[int],
    options: PlannerOptions,
    work: Path,
) -> tuple[Any, tuple[float | None, float | None]]:
    """Take all steps that the checkpoint in `work` does not have.

    order: the places of the items of all steps. Returns the model with its adapters merged, and the held-out loss
    without the adapters and with them.
    """
    found = checkpoints(work)
    done = found[-1][0] if found else 0
    cut_log(work, done)
    torch.manual_seed(options.seed)
    with (
        planner_lines(work, done, options.steps) as write,
        trl_folder(work) as folder,
        trl_is_quiet(),
        own_pad(model),
    ):
        trainer = _trainer(model, tokenizer, learned, judged, options, folder)
        trainer.order = order
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_Steps(trainer, write, options, work, measured=judged is not None))
        before = None if judged is None else _loss_of_base(trainer)
        trainer.train(resume_from_checkpoint=str(found[-1][1]) if found else None)
        after = None if judged is None else _loss(trainer)
        merged = trainer.model.merge_and_unload()
    return merged, (before, after)


class _Steps(TrainerCallback):
    """Writes a line when a step is done, and says when to save; a checkpoint counts only where it is whole."""

    def __init__(self, trainer: Any, write: Any, options: PlannerOptions, work: Path, *, measured: bool) -> None:
        self._trainer, self._write, self._options, self._work = trainer, write, options, work
        self._measured, self._began = measured, time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step, of = state.global_step, self._options.steps
        control.should_save = step < of and step % self._options.checkpoint_every == 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if "loss" not in logs:  # of a measure, or the last one, of the whole training
            return
        line = {ours: float(logs[theirs]) for theirs, ours in PART_LOG.items()}
        line["seconds"] = time.perf_counter() - self._began
        if self._measured and state.global_step % self._options.loss_every == 0:
            line["held_out_loss"] = _loss(self._trainer)
        self._write(line)
        self._began = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        older = checkpoints(self._work)
        name = f"{CHECKPOINT}{state.global_step}"
        (Path(args.output_dir) / name).rename(self._work / name)
        for _step, path in older:
            shutil.rmtree(path)


def _trainer(
    model: Any,
    tokenizer: Any,
    learned: Sequence[Read],
    judged: Sequence[Read] | None,
    options: PlannerOptions,
    folder: Path,
) -> Any:
    on_gpu = model.device.type == "cuda"
    args = SFTConfig(
        output_dir=str(folder),
        dataset_kwargs={"skip_prepare_dataset": True},  # tokens and labels are ours
        max_length=None,
        per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=1,
        gradient_accumulation_steps=options.accumulation,
        max_steps=options.steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_gradient_norm,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=False,  # the weights say in what is computed
        fp16=False,
        use_cpu=not on_gpu,
        dataloader_pin_memory=on_gpu,
        gradient_checkpointing=options.gradient_checkpointing,
        seed=options.seed,
    )
    args._n_gpu = min(args.n_gpu, 1)  # noqa: SLF001 - one process on one GPU, however many the machine has
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        bias="none",
        target_modules=list(options.lora_targets) or None,
    )
    try:
        # A copy, since TRL sets a pad token where there is none.
        return _Sft(
            model=model, args=args, train_dataset=_dataset(learned),
            eval_dataset=None if judged is None else _dataset(judged),
            processing_class=copy.deepcopy(tokenizer), peft_config=lora,
        )  # fmt: skip
    except ValueError as error:
        if "target" not in str(error).lower():
            raise
        raise ModelError(
            f"Adapters cannot be put on this model ({one_line(error, 200)}); name its modules by lora_targets."
        ) from None


def _dataset(read: Sequence[Read]) -> Dataset:
    return Dataset.from_list(
        [{"input_ids": one.ids, "labels": [UNLEARNED] * one.prompt + one.ids[one.prompt :]} for one in read]
    )


def _loss(trainer: Any) -> float:
    with _same_draws():
        return float(trainer.evaluate()["eval_loss"])


def _loss_of_base(trainer: Any) -> float:
    with trainer.model.disable_adapter():
        return _loss(trainer)


@contextmanager
def _same_draws() -> Iterator[None]:
    """A measure takes random numbers, which training then would not have."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
