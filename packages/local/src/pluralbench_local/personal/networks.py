"""The networks of the methods."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from pluralbench_runs import rng_for
from torch import Tensor, nn
from torch.nn.functional import (
    cross_entropy,
    gaussian_nll_loss,
    logsigmoid,
    normalize,
    scaled_dot_product_attention,
    softplus,
)

from pluralbench_local.personal.corpus import Points
from pluralbench_local.personal.options import HEADS, Method, PersonalConfig


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


EMBEDDER_LAYERS = 4
MIN_DEVIATION = 0.05


class GPO(SingleRateNetwork):
    """A transformer neural process over context points with known outcomes, and target points.

    A point is (x, y): x = [response; query; user context], and y = +h for a chosen response, -h for a rejected one and
    0 for a hidden outcome, where h = sqrt(width). The context points are the responses of the user's earlier pairs, two
    each. The targets are the responses of the item. The embedder, an MLP of 4 layers, maps [x; y] to `hidden` numbers.
    `layers` layers of attention with 4 heads follow, without positions; each point attends to the context points and to
    itself. A head predicts a mean m and a deviation s for each target.

    A softmax is taken over the means of an item's responses. The loss is -log N(o; softmax(m), s^2), averaged over the
    targets; o is 1 for the better response and 0 for the other. A model without a profile has no context points, and no
    user context in x.

    Differences from the original: there a task is a group of people who answer a survey, and y a share of them; here it
    is one user with pairs, and o is 1 or 0 (appendix B of the Personalized RewardBench paper). The deviation is
    0.05 + 0.95 softplus instead of exp, since the density is unbounded if o is 0 or 1. x has the user context, so that
    the model also works without context points. Each target has its own context points.

    Three more differences together let it use the context points of simulated users with vectors of 8 numbers within a
    few thousand steps; the original takes 200,000. The model has to learn a product: the similarity of a response to
    the chosen ones, less that to the rejected ones. So y has the norm of a response's vector, instead of being one
    number among hundreds; the layers normalize their inputs, not their outputs (`norm_first`); and the embedder is
    initialized to preserve the scale of its input (He et al. 2015), since PyTorch's default shrinks it in each of the 4
    layers.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden = options.chosen.hidden_size
        self.outcome = math.sqrt(width)
        first: list[nn.Module] = [nn.Linear(2 * width + about + 1, hidden)]
        further = [layer for _ in range(EMBEDDER_LAYERS - 1) for layer in (nn.ReLU(), nn.Linear(hidden, hidden))]
        self.embedder = nn.Sequential(*first, *further)
        for layer in self.embedder:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        attention = nn.TransformerEncoderLayer(
            hidden, HEADS, dim_feedforward=hidden, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            attention, options.num_layers, norm=nn.LayerNorm(hidden), enable_nested_tensor=False
        )
        self.predictor = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def predict(self, points: Points) -> tuple[Tensor, Tensor]:
        """Return the mean (before the softmax) and the deviation of each response, each of shape (items, responses)."""
        items, responses, _ = points.responses.shape
        pairs = points.pair_mask.shape[1]
        outcome = torch.tensor([self.outcome, -self.outcome]).expand(items, pairs, 2).unsqueeze(-1)
        query = points.earlier_query.unsqueeze(2).expand(-1, -1, 2, -1)
        about = points.about[:, None, None].expand(-1, pairs, 2, -1)
        context = torch.cat([points.earlier, query, about, outcome], dim=-1).flatten(1, 2)
        hidden_outcome = points.query.new_zeros(items, 1)
        targets = concat_to_responses(points, points.query, points.about, hidden_outcome)
        context_mask = points.pair_mask.repeat_interleave(2, dim=1)  # (items, 2 * pairs)
        visible = torch.cat([context_mask, context_mask.new_zeros(items, responses)], dim=1)
        count = visible.shape[1]
        allowed = visible.unsqueeze(1) | torch.eye(count, dtype=torch.bool)  # (items, points, attended points)
        embedded = self.embedder(torch.cat([context, targets], dim=1))
        encoded = self.encoder(embedded, mask=~allowed.repeat_interleave(HEADS, dim=0))
        mean, deviation = self.predictor(encoded[:, -responses:]).unbind(-1)
        return mean, MIN_DEVIATION + (1 - MIN_DEVIATION) * softplus(deviation)

    def forward(self, points: Points) -> Tensor:
        """Return rewards of shape (items, responses): the means before the softmax."""
        return self.predict(points)[0]

    def loss(self, points: Points, progress: float) -> Tensor:
        """Return the mean of -log N(o; softmax(m), s^2), for items with two responses, the better first."""
        mean, deviation = self.predict(points)
        outcome = torch.tensor([1.0, 0.0]).expand_as(mean)
        return gaussian_nll_loss(mean.softmax(dim=1), outcome, deviation.square())


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


Network = BT | GPO | VPL | PAL
NETWORKS: dict[Method, type[Network]] = {"bt": BT, "gpo": GPO, "vpl": VPL, "pal": PAL, "synthesizeme": BT}
"""Network of each method. SynthesizeMe's embedding variant is BT with a synthesized persona (Ryan et al. 2025).

The Personalized RewardBench paper trains a reward model under this name that reads the persona as a vector (appendix
B). Its rows in Tables 2 and 6 are identical to those of BT: it is the same model, not independent evidence. Without a
profile it has the same weights as BT without one.
"""


def new_network(width: int, options: PersonalConfig) -> Network:
    """Create the network of a method for vectors of this width, initialized by the options' seed."""
    with torch.random.fork_rng(devices=[]):
        kind = NETWORKS[options.method]
        torch.manual_seed(rng_for(options.seed, "network", kind.__name__.lower()).getrandbits(63))
        return kind(width, width * len(options.context_sources), options)
