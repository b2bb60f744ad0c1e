"""PAL: the preference of each user is a mixture of a few prototypes (Chen et al. 2024)."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from pluralbench_local.personal.bt import mlp
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points

TEMPERATURE, MAX_SCALE = 0.07, 100.0


class PAL(nn.Module):
    """PAL-B: r(x, y, u) = c cos(f(y), sum_k w_k(u) g_k(x)).

    f projects a response y, which is read after its prompt, and g_k projects the query x for the prototype k; each is
    an MLP of two hidden layers with GELU. w(u) are the mixture weights of the user: a softmax over the prototypes.
    c = exp(s), at most 100; s is learned and starts at log(1 / 0.07).

    P(y_1 preferred to y_2) = exp r_1 / (exp r_1 + exp r_2), and the loss is the cross entropy of the choice.

    As in appendix B of the Personalized RewardBench paper, a shared MLP of two layers with GELU predicts w from the
    user context; the original learns weights for each user of the training data. Without a profile, w is one learned
    vector for all users. Projectors, w and s have separate learning rates. Differences from the original: AdamW instead
    of Adam; no weight decay of w and s; no loss that bounds the prototypes, which the original computes but does not
    add.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden, prototypes = options.chosen.hidden_size, options.num_prototypes
        self.options = options
        self.response = mlp(width, hidden, hidden)
        self.prototypes = nn.ModuleList(mlp(width, hidden, hidden) for _ in range(prototypes))
        self.bias = nn.Parameter(torch.zeros(prototypes))  # the last layer's bias; without a profile the logits
        self.person = (
            nn.Sequential(nn.Linear(about, hidden), nn.GELU(), nn.Linear(hidden, prototypes, bias=False))
            if about
            else None
        )
        self.scale = nn.Parameter(torch.tensor(math.log(1 / TEMPERATURE)))

    def weights(self, points: Points) -> Tensor:
        """Return the mixture weights of each item's user, of shape (items, prototypes); they sum to 1."""
        logits = self.bias.expand(len(points.query), -1)
        if self.person is not None:
            logits = logits + self.person(points.about)
        return logits.softmax(dim=-1)

    def forward(self, points: Points) -> Tensor:
        """Return rewards of shape (items, responses)."""
        projected = torch.stack([prototype(points.query) for prototype in self.prototypes], dim=1)
        ideal = (self.weights(points).unsqueeze(-1) * projected).sum(dim=1)
        cosine = (normalize(self.response(points.responses), dim=-1) * normalize(ideal, dim=-1).unsqueeze(1)).sum(-1)
        rewards: Tensor = self.scale.exp().clamp(max=MAX_SCALE) * cosine
        return rewards

    def loss(self, points: Points, progress: float) -> Tensor:
        """Return the mean cross entropy of the choice, for items with two responses, the better first."""
        return cross_entropy(self(points), torch.zeros(len(points.query), dtype=torch.long))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return projectors, mixture weights and temperature, each with its learning rate."""
        mixture = [self.bias, *([] if self.person is None else self.person.parameters())]
        return [
            {"params": [*self.response.parameters(), *self.prototypes.parameters()]},
            {"params": mixture, "lr": self.options.mixture_learning_rate, "weight_decay": 0.0},
            {"params": [self.scale], "lr": self.options.temperature_learning_rate, "weight_decay": 0.0},
        ]
