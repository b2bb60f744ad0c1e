"""VPL: a latent variable for each person, inferred from the pairs that they decided before (Poddar et al. 2024)."""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from pluralbench_local.personal.bt import OneRate, beside, bradley_terry, mlp
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points

CYCLES, BASELINE = 4, 0.1  # of the weight of the divergence
LEAKY = partial(nn.LeakyReLU, 0.2)


def annealed(progress: float) -> float:
    """The divergence's share of its weight: from 0.1 to 1 by a cosine, in each of 4 cycles of the training."""
    phase = progress * CYCLES % 1
    return BASELINE + (1 - BASELINE) * (1 - math.cos(math.pi * phase)) / 2


class VPL(OneRate):
    """q(z | earlier pairs, what is told) = N(mean, diag exp(log-variance)), and r(x, y, z) = MLP([y; x; z]).

    Encoder: an MLP of three layers takes each earlier pair [chosen; rejected] to `hidden` numbers, a linear layer what
    is told of the person to as many; single-head attention goes over this sequence, and its mean gives the mean and the
    log-variance of z, both clamped to [-1, 1]. In training z = mean + eps * deviation, scaled to the norm
    sqrt(dimensions); else it is the mean, unscaled.

    The loss is -log sigmoid(r_w - r_l) + w KL(q || N(0, 1)), with w from `kl_weight` (`annealed`) and

        KL = -1/2 sum (1 + log-variance - mean^2 - exp(log-variance)).

    The encoder sees what the person decided before, never the pair that is judged. In the adaptation of appendix B of
    the Personalized RewardBench paper there are no earlier pairs, and it sees the chosen and the rejected response of
    that very pair, in this order, which tells it the answer.

    Departures from the original: what is told of the person is one more element of the sequence, so that somebody
    without earlier pairs has a latent too; without a profile z is the prior's mean, 0, in training as well, so that
    nothing but the reward is learned; the query stands beside the response; a cycle of the annealing is a fourth of the
    training and not 10,000 steps, which this training seldom has.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden, latent = options.chosen.hidden_size, options.latent_size
        self.kl_weight = options.kl_weight
        self.pair = mlp(2 * width, hidden, hidden, LEAKY)
        self.told = nn.Linear(about, hidden) if about else None
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.reward = mlp(2 * width + latent, hidden, 1, LEAKY)

    def posterior(self, points: Points) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of z, [items, latent] each; without a profile those of the prior."""
        if self.told is None:
            prior = points.query.new_zeros(len(points.query), self.mean.out_features)
            return prior, prior
        sequence = torch.cat([self.told(points.about).unsqueeze(1), self.pair(points.earlier.flatten(2))], dim=1)
        there = nn.functional.pad(points.known, (1, 0), value=True)  # [items, 1 + pairs]
        attended = scaled_dot_product_attention(
            self.query(sequence), self.key(sequence), self.value(sequence), there.unsqueeze(1)
        )
        person = (attended * there.unsqueeze(-1)).sum(dim=1) / there.sum(dim=1, keepdim=True)
        return self.mean(person).clamp(-1, 1), self.log_variance(person).clamp(-1, 1)

    def latent(self, points: Points) -> Tensor:
        """The mean of z, [items, latent], by which a trained model knows the person."""
        return self.posterior(points)[0]

    def forward(self, points: Points) -> Tensor:
        """Rewards by the mean of z, [items, responses]."""
        return self._rewards(points, self.latent(points))

    def loss(self, points: Points, progress: float) -> Tensor:
        """-log sigmoid(r_w - r_l) + w KL, the mean over pairs. points: two responses an item, the better first."""
        if self.told is None:
            return bradley_terry(self(points))
        mean, log_variance = self.posterior(points)
        drawn = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        scaled = nn.functional.normalize(drawn, dim=-1) * math.sqrt(mean.shape[1])
        divergence = -(1 + log_variance - mean.square() - log_variance.exp()).sum(dim=1).mean() / 2
        return bradley_terry(self._rewards(points, scaled)) + self.kl_weight * annealed(progress) * divergence

    def _rewards(self, points: Points, latent: Tensor) -> Tensor:
        rewards: Tensor = self.reward(beside(points, points.query, latent)).squeeze(-1)
        return rewards
