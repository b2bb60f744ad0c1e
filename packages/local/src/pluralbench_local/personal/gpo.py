"""GPO: a transformer that predicts preferences from examples of them, without gradient steps (Zhao et al. 2023)."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gaussian_nll_loss, softplus

from pluralbench_local.personal.bt import OneRate, beside
from pluralbench_local.personal.options import HEADS, PersonalConfig
from pluralbench_local.personal.points import Points

EMBEDDER = 4  # linear layers of the embedder
LEAST_DEVIATION = 0.05


class GPO(OneRate):
    """A transformer neural process over context points, whose outcome is known, and target points.

    A point is (x, y): x = [response; query; what is told of the person], and y = +h for a chosen response, -h for a
    rejected one and 0 for one whose outcome is hidden, where h = sqrt(width). The context points are the responses of
    the person's earlier pairs, two each; the targets are the responses of the item. The embedder, an MLP of 4 layers,
    takes [x; y] to `hidden` numbers; `layers` layers of attention with 4 heads follow, without positions, in which each
    point attends to the context points and to itself. A head predicts a mean m and a deviation s for each target.

    The means of an item's responses are softmaxed, and the loss is -log N(o; softmax(m), s^2), the mean over the
    targets; o is 1 for the better response and 0 for the other. A model without a profile has no context points, and x
    has nothing of the person.

    Departures from the original: a task there is a group of people with answers to questions of a survey, and y a share
    of them, while here it is one person with pairs, and o is 1 or 0 (appendix B of the Personalized RewardBench paper);
    the deviation is 0.05 + 0.95 softplus, not exp, since a density grows beyond all bounds where o is 0 or 1; x has
    what is told of the person, so that it works without context points too; each target has context points of its own.

    Three more, together, made it use the context points of simulated users with vectors of 8 numbers within some
    thousand steps, where it did not without; the original takes 200,000. What it must find is a product: how a response
    lies to those that the person chose, less how it lies to those that they rejected. So y is as long as a response's
    vector, not one number among hundreds; the layers normalise what they read, not what they give (`norm_first`); and
    the embedder starts with weights that keep the size of what passes (He et al. 2015), since PyTorch's own make it
    smaller in each of its 4 layers.
    """

    def __init__(self, width: int, about: int, options: PersonalConfig) -> None:
        super().__init__()
        hidden = options.chosen.hidden_size
        self.outcome = math.sqrt(width)
        first: list[nn.Module] = [nn.Linear(2 * width + about + 1, hidden)]
        further = [layer for _ in range(EMBEDDER - 1) for layer in (nn.ReLU(), nn.Linear(hidden, hidden))]
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
        """Mean, before the softmax, and deviation of each response: [items, responses] each."""
        items, responses, _ = points.responses.shape
        pairs = points.known.shape[1]
        outcome = torch.tensor([self.outcome, -self.outcome]).expand(items, pairs, 2).unsqueeze(-1)
        query = points.earlier_query.unsqueeze(2).expand(-1, -1, 2, -1)
        about = points.about[:, None, None].expand(-1, pairs, 2, -1)
        context = torch.cat([points.earlier, query, about, outcome], dim=-1).flatten(1, 2)
        hidden_outcome = points.query.new_zeros(items, 1)
        targets = beside(points, points.query, points.about, hidden_outcome)
        known = points.known.repeat_interleave(2, dim=1)  # [items, 2 * pairs]
        seen = torch.cat([known, known.new_zeros(items, responses)], dim=1)
        count = seen.shape[1]
        allowed = seen.unsqueeze(1) | torch.eye(count, dtype=torch.bool)  # [items, points, points seen]
        embedded = self.embedder(torch.cat([context, targets], dim=1))
        encoded = self.encoder(embedded, mask=~allowed.repeat_interleave(HEADS, dim=0))
        mean, deviation = self.predictor(encoded[:, -responses:]).unbind(-1)
        return mean, LEAST_DEVIATION + (1 - LEAST_DEVIATION) * softplus(deviation)

    def forward(self, points: Points) -> Tensor:
        """Rewards, [items, responses]: the means before the softmax."""
        return self.predict(points)[0]

    def loss(self, points: Points, progress: float) -> Tensor:
        """-log N(o; softmax(m), s^2), the mean over targets. points: two responses an item, the better first."""
        mean, deviation = self.predict(points)
        outcome = torch.tensor([1.0, 0.0]).expand_as(mean)
        return gaussian_nll_loss(mean.softmax(dim=1), outcome, deviation.square())
