"""PAL: each person's preference is a mixture of a few prototypical ones (Chen et al. 2024)."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from pluralbench_local.personal.bt import mlp
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points

TEMPERATURE, LARGEST_SCALE = 0.07, 100.0


class PAL(nn.Module):
    """PAL-B: r(x, y, u) = c cos(f(y), sum_k w_k(u) g_k(x)).

    f projects a response y, which was read behind its prompt, and g_k the query x for the prototype k, each by an MLP
    of two hidden layers with GELU. w(u) are the weights of the person's mixture: a softmax over the prototypes.
    c = exp(s), at most 100, has a learned s, which begins at log(1 / 0.07).

    P(y_1 preferred to y_2) = exp r_1 / (exp r_1 + exp r_2), and the loss is the cross entropy of the choice.

    As in appendix B of the Personalized RewardBench paper, an MLP of two layers with GELU that is the same for all
    predicts w from what is told of the person, where the original keeps weights for each person it was trained on.
    Without a profile w is one learned vector for everybody. Projectors, w and s have learning rates of their own.
    Departures from the original: AdamW, not Adam; w and s without weight decay; the loss that bounds the prototypes is
    left out, since the original computes it but does not add it.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden, prototypes = options.chosen.hidden_size, options.num_prototypes
        self.options = options
        self.response = mlp(width, hidden, hidden)
        self.prototypes = nn.ModuleList(mlp(width, hidden, hidden) for _ in range(prototypes))
        self.everybody = nn.Parameter(torch.zeros(prototypes))  # the bias of the last layer, and without a profile all
        self.person = (
            nn.Sequential(nn.Linear(about, hidden), nn.GELU(), nn.Linear(hidden, prototypes, bias=False))
            if about
            else None
        )
        self.scale = nn.Parameter(torch.tensor(math.log(1 / TEMPERATURE)))

    def weights(self, points: Points) -> Tensor:
        """Each person's weights of the prototypes, [items, prototypes]; they sum to 1."""
        logits = self.everybody.expand(len(points.query), -1)
        if self.person is not None:
            logits = logits + self.person(points.about)
        return logits.softmax(dim=-1)

    def forward(self, points: Points) -> Tensor:
        """Rewards, [items, responses]."""
        own = torch.stack([prototype(points.query) for prototype in self.prototypes], dim=1)  # [items, prototypes, ...]
        ideal = (self.weights(points).unsqueeze(-1) * own).sum(dim=1)
        likeness = (normalize(self.response(points.responses), dim=-1) * normalize(ideal, dim=-1).unsqueeze(1)).sum(-1)
        rewards: Tensor = self.scale.exp().clamp(max=LARGEST_SCALE) * likeness
        return rewards

    def loss(self, points: Points, progress: float) -> Tensor:
        """Cross entropy of the choice, the mean over pairs. points: two responses an item, the better first."""
        return cross_entropy(self(points), torch.zeros(len(points.query), dtype=torch.long))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Projectors, the mixture's weights and the temperature, each with its rate."""
        mixture = [self.everybody, *([] if self.person is None else self.person.parameters())]
        return [
            {"params": [*self.response.parameters(), *self.prototypes.parameters()]},
            {"params": mixture, "lr": self.options.mixture_learning_rate, "weight_decay": 0.0},
            {"params": [self.scale], "lr": self.options.temperature_learning_rate, "weight_decay": 0.0},
        ]
