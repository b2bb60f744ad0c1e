"""BT: one network for all users, with the user's context as input (Bradley and Terry 1952)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points


def bradley_terry(rewards: Tensor) -> Tensor:
    """Return the mean over pairs of -log sigmoid(better - worse), for rewards of shape (pairs, 2), the better first."""
    return -logsigmoid(rewards[:, 0] - rewards[:, 1]).mean()


def concat_to_responses(points: Points, *vectors: Tensor) -> Tensor:
    """Concatenate vectors of the items, each of shape (items, ...), to the vectors of their responses."""
    _, responses, _ = points.responses.shape
    rows = [vector.unsqueeze(1).expand(-1, responses, -1) for vector in vectors]
    return torch.cat([points.responses, *rows], dim=-1)


def mlp(inputs: int, hidden: int, outputs: int, activation: Callable[[], nn.Module] = nn.GELU) -> nn.Sequential:
    """Return a network of three linear layers."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), activation(), nn.Linear(hidden, hidden), activation(), nn.Linear(hidden, outputs)
    )


class SingleRateNetwork(nn.Module):
    """A network whose parameters all have the same learning rate."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameter groups for an optimizer."""
        return [{"params": list(self.parameters())}]


class BT(SingleRateNetwork):
    """r(x, y, u) = MLP([y; x; u]), for the response y, the query x and the user context u.

    P(y_w preferred to y_l) = sigmoid(r_w - r_l), so the loss of a pair is -log sigmoid(r_w - r_l).

    The inputs are vectors of a frozen backbone, as in appendix B of the Personalized RewardBench paper. The paper does
    not state the head. A linear head could use neither x nor u: both responses of a pair share them, so they cancel in
    r_w - r_l. Hence two hidden layers.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        self.reward = mlp(2 * width + about, options.chosen.hidden_size, 1)

    def forward(self, points: Points) -> Tensor:
        """Return rewards of shape (items, responses)."""
        rewards: Tensor = self.reward(concat_to_responses(points, points.query, points.about)).squeeze(-1)
        return rewards

    def loss(self, points: Points, progress: float) -> Tensor:
        """Return the mean of -log sigmoid(r_w - r_l), for items with two responses, the better first."""
        return bradley_terry(self(points))
