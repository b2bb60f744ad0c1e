"""Train a planner with TRL's SFTTrainer and PEFT adapters; the loss covers only the tokens of the plans."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from pluralbench_local import LocalError
from pluralbench_local.training_job import CheckpointClock, newest_checkpoint, step_log
from pluralbench_runs import one_line
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from pluralbench_policies.planner_options import PlannerConfig, TokenizedExample
from pluralbench_policies.trl_trainers import SilentTrainerMixin, Steps, make_trainer, trainer_arguments, trl_session

IGNORED_LABEL = -100  # label of a token without loss
LOG_NAMES = {"loss": "loss", "grad_norm": "gradient_norm", "learning_rate": "learning_rate"}
"""Names in our log by names in the library's log."""


class _OrderedSFTTrainer(SilentTrainerMixin, SFTTrainer):
    """SFTTrainer with a fixed order of the rows over all steps; the library would shuffle each epoch."""

    order: Sequence[int] = ()

    def _get_train_sampler(self, *_: Any) -> Any:
        return list(self.order)


def fit(
    model: Any,
    tokenizer: Any,
    training_rows: Sequence[TokenizedExample],
    held_out_rows: Sequence[TokenizedExample] | None,
    order: Sequence[int],
    options: PlannerConfig,
    work: Path,
) -> tuple[Any, tuple[float | None, float | None]]:
    """Run all steps after the checkpoint in `work`; `order` has the indices of their rows.

    Returns:
        The model with its adapters merged; and the held-out losses without and with the adapters.
    """
    done, checkpoint = newest_checkpoint(work)
    torch.manual_seed(options.seed)
    with step_log(work, "training", done, options.max_steps) as write, trl_session(model, work) as folder:
        trainer = _trainer(model, tokenizer, training_rows, held_out_rows, options, folder)
        trainer.order = order

        def extra_values(step: int) -> Mapping[str, Any]:
            evaluate = held_out_rows is not None and step % options.eval_steps == 0
            return {"held_out_loss": _loss(trainer)} if evaluate else {}

        clock = CheckpointClock(options.save_steps)
        steps = Steps(work, write, LOG_NAMES, extra_values, of=options.max_steps, clock=clock)
        trainer.add_callback(steps)
        before = None if held_out_rows is None else _loss_of_base(trainer)
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        after = None if held_out_rows is None else _loss(trainer)
        merged = trainer.model.merge_and_unload()
    return merged, (before, after)


def _trainer(
    model: Any,
    tokenizer: Any,
    training_rows: Sequence[TokenizedExample],
    held_out_rows: Sequence[TokenizedExample] | None,
    options: PlannerConfig,
    folder: Path,
) -> Any:
    args = SFTConfig(
        **trainer_arguments(model, folder),
        dataset_kwargs={"skip_prepare_dataset": True},  # the rows have tokens and labels
        max_length=None,
        per_device_train_batch_size=options.micro_batch_size,
        per_device_eval_batch_size=1,
        gradient_accumulation_steps=options.accumulation,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        logging_steps=1,
        eval_strategy="no",
        bf16=False,  # compute in the dtype of the weights
        fp16=False,
        gradient_checkpointing=options.gradient_checkpointing,
        seed=options.seed,
    )
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        bias="none",
        target_modules=list(options.lora_target_modules) or None,
    )
    train, evaluation = _dataset(training_rows), None if held_out_rows is None else _dataset(held_out_rows)
    datasets = {"train_dataset": train, "eval_dataset": evaluation}
    try:
        return make_trainer(_OrderedSFTTrainer, args, model, tokenizer, **datasets, peft_config=lora)
    except ValueError as error:
        if "target" not in str(error).lower():
            raise
        raise LocalError(
            f"Adapters cannot be added to this model ({one_line(error, 200)}); set `lora_target_modules=...`."
        ) from None


def _dataset(rows: Sequence[TokenizedExample]) -> Dataset:
    return Dataset.from_list(
        [{"input_ids": row.ids, "labels": [IGNORED_LABEL] * row.prompt + row.ids[row.prompt :]} for row in rows]
    )


def _loss(trainer: Any) -> float:
    with torch.random.fork_rng(devices=[]):  # an evaluation must not consume the random numbers of the training
        return float(trainer.evaluate()["eval_loss"])


def _loss_of_base(trainer: Any) -> float:
    with trainer.model.disable_adapter():
        return _loss(trainer)
