"""BT: a reward model with one parameter set for everybody, told of the person (Bradley and Terry 1952)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points


def bradley_terry(rewards: Tensor) -> Tensor:
    """The mean over the pairs of -log sigmoid(better - worse). rewards: [pairs, 2], the better first."""
    return -logsigmoid(rewards[:, 0] - rewards[:, 1]).mean()


def beside(points: Points, *vectors: Tensor) -> Tensor:
    """[items, responses, ...]: each response, and beside it these vectors of its item, [items, ...] each."""
    _, responses, _ = points.responses.shape
    rows = [vector.unsqueeze(1).expand(-1, responses, -1) for vector in vectors]
    return torch.cat([points.responses, *rows], dim=-1)


def mlp(inputs: int, hidden: int, outputs: int, activation: Callable[[], nn.Module] = nn.GELU) -> nn.Sequential:
    """Three linear layers."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), activation(), nn.Linear(hidden, hidden), activation(), nn.Linear(hidden, outputs)
    )


class OneRate(nn.Module):
    """A network all of whose parameters have the rate of the options."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """All parameters, as an optimizer takes them."""
        return [{"params": list(self.parameters())}]


class BT(OneRate):
    """r(x, y, u) = MLP([y; x; u]), for the response y, the query x and what is told of the person u.

    P(y_w preferred to y_l) = sigmoid(r_w - r_l), so the loss of a pair is -log sigmoid(r_w - r_l).

    Adapted as in appendix B of the Personalized RewardBench paper: vectors of a frozen backbone, and beside them that
    of what is told of the person. The paper does not state the head. A linear one could use neither x nor u: both
    responses of a pair have them in common, so they cancel in r_w - r_l. Hence two hidden layers.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        self.reward = mlp(2 * width + about, options.chosen.hidden_size, 1)

    def forward(self, points: Points) -> Tensor:
        """Rewards, [items, responses]."""
        rewards: Tensor = self.reward(beside(points, points.query, points.about)).squeeze(-1)
        return rewards

    def loss(self, points: Points, progress: float) -> Tensor:
        """-log sigmoid(r_w - r_l), the mean over the pairs. points: two responses an item, the better first."""
        return bradley_terry(self(points))
