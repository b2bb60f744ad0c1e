"""Rankings that a tiny model can learn, and what training them leaves behind."""

import random
from pathlib import Path
from typing import Any

import torch
from pluralbench_local import LocalModel, LoraOptions, Ranking, Trained, TrainingConfig
from pluralbench_local.training_job import read_log
from pluralbench_local.training_model import TrainableModel, load_trainee
from reward_models import user, words


def rankings(number: int, seed: int) -> list[Ranking]:
    """The more of its words are "drumming", the better a response is; some are tied."""
    draw = random.Random(seed)
    made = []
    for place in range(number):
        good = [draw.randint(0, 4) for _ in range(draw.randint(3, 5))]
        texts = [" ".join(draw.sample(["drumming"] * count + ["origami"] * (5 - count), 5)) for count in good]
        made.append(Ranking(f"{seed}-{place}", user(words(draw, 6)), texts, [-count for count in good]))
    return made


RANKINGS, HELD_OUT = rankings(20, seed=0), rankings(12, seed=1)
QUICK = TrainingConfig(
    epochs=2,
    batch_size=8,
    gradient_accumulation_steps=2,
    learning_rate=4e-3,
    save_steps=3,
    eval_steps=2,
    max_length=500,
)
"""Some ten steps."""
SMALL: dict[str, Any] = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 32, "head_dim": 8}
"""Sizes of a base that learns these rankings all the same."""


def options(**changed: Any) -> TrainingConfig:
    """The quick options with these changed."""
    return TrainingConfig(**QUICK.model_dump() | changed)


def trainee(
    folder: str,
    lora: LoraOptions | None = None,
    budget: int | None = None,
    *,
    checkpointing: bool = False,
    **settings: Any,
) -> TrainableModel:
    """A model in training on the CPU."""
    source = LocalModel(name=folder, device="cpu")
    return load_trainee(
        source, lora=lora, gradient_checkpointing=checkpointing, token_budget=budget, seed=0, **settings
    )


def gradients(model: Any, loss: Any) -> dict[str, torch.Tensor]:
    """The gradients of a loss, by the names of the weights that have one."""
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def weights(trained: Trained) -> bytes:
    """The file of weights."""
    return (trained.folder / "model.safetensors").read_bytes()


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log without the times, which two runs never share."""
    return [{key: value for key, value in line.items() if "second" not in key} for line in read_log(folder)]
