"""Train with TRL's `RewardTrainer` from PyPI, in its own environment because the workspace does not depend on it.

It is used as in its documentation: a conversational preference dataset with one row per pair, a model folder and a
`RewardConfig`. Defaults that would cost time or precision are off (gradient checkpointing, bfloat16). Schedule,
learning rate, clipping, lengths, epochs and rows per forward pass are the same for both. Its term on squared rewards,
`center_rewards_coefficient`, which has another formula at the same cost, is off.
"""

from typing import TYPE_CHECKING, Any

from training.protocol import Outcome, Ranked, Settings, Train

if TYPE_CHECKING:
    import torch

VERSION = "1.16.0"


def random(settings: Settings) -> Train:
    """Train on pairs in random order, the default. Runs in TRL's environment."""
    return _trainer(settings, "random")


def grouped(settings: Settings) -> Train:
    """Train on pairs grouped by length, by a setting of the trainer that needs a column of lengths."""
    return _trainer(settings, "group_by_length")


def _trainer(settings: Settings, order: str) -> Train:
    from datasets import Dataset
    from trl import RewardConfig, RewardTrainer  # type: ignore[attr-defined]

    arguments = RewardConfig(
        output_dir=settings.out,
        per_device_train_batch_size=settings.rows // 2,
        gradient_accumulation_steps=settings.accumulation,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=0.1,
        max_grad_norm=1.0,
        max_length=settings.max_length,
        bf16=False,
        gradient_checkpointing=False,
        train_sampling_strategy=order,
        remove_unused_columns=order == "random",  # it would remove the lengths before their use
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=settings.seed,
    )

    def train(rankings: list[Ranked]) -> Outcome:
        rows = [
            {
                "prompt": [{"role": "user", "content": ranking.prompt}],
                "chosen": [{"role": "assistant", "content": better}],
                "rejected": [{"role": "assistant", "content": worse}],
                "length": max(len(better), len(worse)) + len(ranking.prompt),
            }
            for ranking in rankings
            for better, worse in ranking.pairs
        ]
        trainer = RewardTrainer(model=settings.base, args=arguments, train_dataset=Dataset.from_list(rows))
        computed = _count_tokens(trainer)
        trainer.train()
        trainer.save_model()
        trained_on: Any = trainer.train_dataset
        pairs = len(trained_on) * settings.epochs
        return Outcome(trainer.state.global_step, pairs, 2 * pairs, sum(computed))

    return train


def _count_tokens(trainer: Any) -> list[int]:
    computed: list[int] = []
    collate = trainer.data_collator

    def counting(examples: list[dict[str, Any]]) -> "dict[str, torch.Tensor]":
        batch: dict[str, torch.Tensor] = collate(examples)
        computed.append(batch["input_ids"].numel())
        return batch

    trainer.data_collator = counting
    return computed
