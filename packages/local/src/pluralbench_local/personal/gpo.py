"""GPO: a transformer that predicts preferences from examples, without gradient steps (Zhao et al. 2023)."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gaussian_nll_loss, softplus

from pluralbench_local.personal.bt import SingleRateNetwork, concat_to_responses
from pluralbench_local.personal.options import HEADS, PersonalConfig
from pluralbench_local.personal.points import Points

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
