"""VPL: a latent variable for each user, inferred from their earlier pairs (Poddar et al. 2024)."""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from pluralbench_local.personal.bt import SingleRateNetwork, bradley_terry, concat_to_responses, mlp
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Points

CYCLES, BASELINE = 4, 0.1  # annealing of the divergence's weight
LEAKY = partial(nn.LeakyReLU, 0.2)


def annealing(progress: float) -> float:
    """Return the factor of the divergence's weight: a cosine from 0.1 to 1, in each of 4 cycles of the training."""
    phase = progress * CYCLES % 1
    return BASELINE + (1 - BASELINE) * (1 - math.cos(math.pi * phase)) / 2


class VPL(SingleRateNetwork):
    """q(z | earlier pairs, user context) = N(mean, diag exp(log-variance)), and r(x, y, z) = MLP([y; x; z]).

    Encoder: an MLP of three layers maps each earlier pair [chosen; rejected] to `hidden` numbers, and a linear layer
    maps the user context to as many. Single-head attention runs over this sequence; the mean of its outputs gives the
    mean and the log-variance of z, both clamped to [-1, 1]. In training z = mean + eps * deviation, scaled to the norm
    sqrt(dimensions); otherwise z is the mean, unscaled.

    The loss is -log sigmoid(r_w - r_l) + w KL(q || N(0, 1)), with w from `kl_weight` (`annealing`) and

        KL = -1/2 sum (1 + log-variance - mean^2 - exp(log-variance)).

    The encoder reads the user's earlier pairs, never the pair that is judged. The adaptation in appendix B of the
    Personalized RewardBench paper has no earlier pairs: its encoder reads the chosen and the rejected response of the
    judged pair, in this order, which reveals the answer.

    Differences from the original: the user context is one more element of the sequence, so that a user without earlier
    pairs has a latent too. Without a profile z is the prior's mean, 0, also in training, so that only the reward is
    learned. The query is an input besides the response. A cycle of the annealing is a fourth of the training instead of
    10,000 steps, which this training rarely has.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden, latent = options.chosen.hidden_size, options.latent_size
        self.kl_weight = options.kl_weight
        self.pair = mlp(2 * width, hidden, hidden, LEAKY)
        self.context = nn.Linear(about, hidden) if about else None
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.reward = mlp(2 * width + latent, hidden, 1, LEAKY)

    def posterior(self, points: Points) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of z, each of shape (items, latent); without a profile those of the prior."""
        if self.context is None:
            prior = points.query.new_zeros(len(points.query), self.mean.out_features)
            return prior, prior
        sequence = torch.cat([self.context(points.about).unsqueeze(1), self.pair(points.earlier.flatten(2))], dim=1)
        mask = nn.functional.pad(points.pair_mask, (1, 0), value=True)  # (items, 1 + pairs)
        attended = scaled_dot_product_attention(
            self.query(sequence), self.key(sequence), self.value(sequence), mask.unsqueeze(1)
        )
        user = (attended * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return self.mean(user).clamp(-1, 1), self.log_variance(user).clamp(-1, 1)

    def latent(self, points: Points) -> Tensor:
        """Return the mean of z, of shape (items, latent): a trained model's representation of the user."""
        return self.posterior(points)[0]

    def forward(self, points: Points) -> Tensor:
        """Return rewards of shape (items, responses), with z at its mean."""
        return self._rewards(points, self.latent(points))

    def loss(self, points: Points, progress: float) -> Tensor:
        """Return the mean of -log sigmoid(r_w - r_l) + w KL, for items with two responses, the better first."""
        if self.context is None:
            return bradley_terry(self(points))
        mean, log_variance = self.posterior(points)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        scaled = nn.functional.normalize(sample, dim=-1) * math.sqrt(mean.shape[1])
        divergence = -(1 + log_variance - mean.square() - log_variance.exp()).sum(dim=1).mean() / 2
        return bradley_terry(self._rewards(points, scaled)) + self.kl_weight * annealing(progress) * divergence

    def _rewards(self, points: Points, latent: Tensor) -> Tensor:
        rewards: Tensor = self.reward(concat_to_responses(points, points.query, latent)).squeeze(-1)
        return rewards
