"""Steps of each trainer on a card that computes no numbers, backward and optimizer included."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalModel, LoraOptions, training
from pluralbench_local.conversations import Template
from pluralbench_local.models import load_tokenizer
from pluralbench_local.training_batches import batches, tokenize_rankings
from pluralbench_local.training_job import accelerator_of, read_log
from pluralbench_local.training_model import finalize, head_rewards, load_trainee, model_rewards
from pretended_card import CARD, Card, pretended_card
from reward_models import Folders
from training_runs import RANKINGS, options

pytestmark = pytest.mark.heavy

OF_A_STEP = "once a step, after all of its batches, for the log"
WAITS = {
    "training._step: to the CPU": OF_A_STEP,
    "training._step: number": "the norm of the gradient, once a step, for the log",
    "training._accuracy: to the CPU": "once for each evaluation: its rewards are compared on the CPU",
}
"""Each place where the processor waits for the card after the model is loaded, and why."""
STEPS = 1


def train_steps(folder: str, work: Path, card: "Card", lora: LoraOptions | None = None, **changed: Any) -> Any:
    """Take a step of three batches, and evaluate after it; the trained model."""
    chosen = options(gradient_accumulation_steps=3, batch_size=6, eval_steps=STEPS, save_steps=99, **changed)
    source = LocalModel(name=folder, device="cuda")
    head_alone = chosen.trainable == "head"
    trainee = load_trainee(
        source,
        lora=lora,
        gradient_checkpointing=chosen.gradient_checkpointing,
        token_budget=None,
        seed=0,
        head_alone=head_alone,
    )
    template = Template(load_tokenizer(source))
    data = tokenize_rankings(RANKINGS, "rankings", template, 500, "error")
    steps = training._steps([batches(data.rankings, chosen.batch_size, 0, 0)], data.pairs, chosen)[:STEPS]
    accelerator = accelerator_of(trainee.network.device)
    rewards = head_rewards(trainee, template, [data]) if head_alone else model_rewards(trainee, accelerator)
    card.forget()
    training._run(accelerator, trainee, rewards, data, data, steps, chosen, work)
    return trainee


@pytest.mark.parametrize(
    ("architecture", "lora", "changed"),
    [
        ("llama", None, {}),
        ("gemma3", None, {}),
        ("llama", LoraOptions(), {}),
        ("llama", None, {"trainable": "head"}),
        ("llama", None, {"gradient_checkpointing": True}),
    ],
    ids=["all weights", "windows", "adapters", "head", "checkpointing"],
)
def test_steps(
    folders: Folders, tmp_path: Path, architecture: str, lora: LoraOptions | None, changed: dict[str, Any]
) -> None:
    with pretended_card() as card:
        trainee = train_steps(folders(architecture), tmp_path, card, lora, **changed)
        assert set(card.waits) == set(WAITS)
        assert card.waits["training._accuracy: to the CPU"] == 1
        assert card.waits.total() == 4 * STEPS + 1  # not more for three batches than for one
        assert not card.in_layers
        trained = [weights for weights in trainee.whole.parameters() if weights.requires_grad]
        assert trained
        assert all(weights.device == CARD and weights.dtype == torch.float32 for weights in trained)
        assert all(weights.device == CARD for weights in finalize(trainee, torch.bfloat16).network.model.parameters())
    assert [line["pairs"] > 0 for line in read_log(tmp_path)] == [True] * STEPS


def test_a_gradient_reaches_every_weight(folders: Folders) -> None:
    with pretended_card():
        source = LocalModel(name=folders(), device="cuda")
        trainee = load_trainee(source, lora=None, gradient_checkpointing=False, token_budget=None, seed=0)
        accelerator = accelerator_of(trainee.network.device)
        data = tokenize_rankings(RANKINGS[:4], "rankings", Template(load_tokenizer(source)), 500, "error")
        rewards = model_rewards(trainee, accelerator)(data, data.members)
        assert (rewards.shape, rewards.dtype, rewards.device) == ((len(data.members),), torch.float32, CARD)
        loss, _ = training.ranking_loss(rewards, [(0, 1)], 0.1)
        accelerator.backward(loss)
        for name, weights in trainee.whole.named_parameters():
            assert weights.grad is not None, name
            assert (weights.grad.shape, weights.grad.device) == (weights.shape, CARD)
