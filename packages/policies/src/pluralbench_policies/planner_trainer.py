"""A planner by TRL's SFTTrainer with adapters of peft: what is learned of is the tokens of the plans alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from pluralbench_local import ModelError
from pluralbench_local.training_job import newest_checkpoint, step_log
from pluralbench_runs import one_line
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from pluralbench_policies.planner_options import PlannerConfig, TokenizedExample
from pluralbench_policies.trl_run import SilentTrainerMixin, Steps, arguments, trainer_of, under_trl

UNLEARNED = -100  # the label of a token that no loss is taken over
PART_LOG = {"loss": "loss", "grad_norm": "gradient_norm", "learning_rate": "learning_rate"}
"""What a line takes from the log of the library, by the names there."""


class _Sft(SilentTrainerMixin, SFTTrainer):
    """order: the places of the items, all steps of them; the library would draw them anew for each epoch."""

    order: Sequence[int] = ()

    def _get_train_sampler(self, *_: Any) -> Any:
        return list(self.order)


def fit(
    model: Any,
    tokenizer: Any,
    learned: Sequence[TokenizedExample],
    judged: Sequence[TokenizedExample] | None,
    order: Sequence[int],
    options: PlannerConfig,
    work: Path,
) -> tuple[Any, tuple[float | None, float | None]]:
    """Take all steps that the checkpoint in `work` does not have.

    order: the places of the items of all steps. Returns the model with its adapters merged, and the held-out loss
    without the adapters and with them.
    """
    done, checkpoint = newest_checkpoint(work)
    torch.manual_seed(options.seed)
    with step_log(work, "training", done, options.max_steps) as write, under_trl(model, work) as folder:
        trainer = _trainer(model, tokenizer, learned, judged, options, folder)
        trainer.order = order

        def line_of(step: int) -> Mapping[str, Any]:
            wanted = judged is not None and step % options.eval_steps == 0
            return {"held_out_loss": _loss(trainer)} if wanted else {}

        steps = Steps(work, write, PART_LOG, line_of, of=options.max_steps, every=options.save_steps)
        trainer.add_callback(steps)
        before = None if judged is None else _loss_of_base(trainer)
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        after = None if judged is None else _loss(trainer)
        merged = trainer.model.merge_and_unload()
    return merged, (before, after)


def _trainer(
    model: Any,
    tokenizer: Any,
    learned: Sequence[TokenizedExample],
    judged: Sequence[TokenizedExample] | None,
    options: PlannerConfig,
    folder: Path,
) -> Any:
    args = SFTConfig(
        **arguments(model, folder),
        dataset_kwargs={"skip_prepare_dataset": True},  # tokens and labels are ours
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
        bf16=False,  # the weights say in what is computed
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
    learn, measure = _dataset(learned), None if judged is None else _dataset(judged)
    try:
        return trainer_of(_Sft, args, model, tokenizer, train_dataset=learn, eval_dataset=measure, peft_config=lora)
    except ValueError as error:
        if "target" not in str(error).lower():
            raise
        raise ModelError(
            f"Adapters cannot be put on this model ({one_line(error, 200)}); name its modules by lora_targets."
        ) from None


def _dataset(read: Sequence[TokenizedExample]) -> Dataset:
    return Dataset.from_list(
        [{"input_ids": one.ids, "labels": [UNLEARNED] * one.prompt + one.ids[one.prompt :]} for one in read]
    )


def _loss(trainer: Any) -> float:
    with torch.random.fork_rng(devices=[]):  # a measure takes random numbers, which training then would not have
        return float(trainer.evaluate()["eval_loss"])


def _loss_of_base(trainer: Any) -> float:
    with trainer.model.disable_adapter():
        return _loss(trainer)
