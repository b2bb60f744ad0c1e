"""Synthetic users whose preferences are known functions of what is told of them, to see whether a method learns."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pluralbench_local.personal.corpus import Corpus
from pluralbench_runs import rng_for
from torch import Tensor, nn

PAIRS_SHOWN = 10  # of the earlier ones, the most that an item has


@dataclass(frozen=True)
class Simulated:
    """Items of synthetic users, and the best accuracies possible on them.

    group: of each item's person. first: [items, groups], the probability that somebody of a group chooses the first
    response. decided: [users, items of a user, groups], its logarithm for the response that was chosen. told: [users,
    groups], the logarithm of how likely a user's `about` is in each group.

    A best accuracy is the expected share of right answers on these very items, over the noise in the choices, of who
    knows how users choose: the mean of max(p, 1 - p), p the probability that the first response is chosen. Nobody can
    be expected to do better but by chance.
    """

    corpus: Corpus
    group: Sequence[int]
    first: Tensor
    decided: Tensor
    told: Tensor

    @property
    def best(self) -> float:
        """The best accuracy of who knows each user's group."""
        return _best(self.first[torch.arange(len(self.group)), torch.tensor(self.group)])

    @property
    def best_untold(self) -> float:
        """The best accuracy of who knows nothing of the user."""
        return _best(self.first.mean(dim=1))

    def best_shown(self, pairs: int) -> float:
        """The best accuracy of who knows a user's `about` and, of each item, the latest so many earlier pairs."""
        before = nn.functional.pad(self.decided.cumsum(dim=1), (0, 0, 1, 0))  # [users, 1 + items, groups]
        place = torch.arange(self.decided.shape[1])
        shown = before[:, place] - before[:, (place - pairs).clamp(min=0)]
        known = (self.told.unsqueeze(1) + shown).softmax(dim=-1).flatten(0, 1)
        return _best((self.first * known).sum(dim=1))


def simulated(
    users: int,
    items: int,
    *,
    groups: int = 2,
    width: int = 32,
    quality: float = 0.5,
    taste: float = 3.0,
    told: float = 6.0,
    seed: int = 0,
    world: int = 0,
) -> Simulated:
    """`users` synthetic users with `items` pairs each, decided one after the other.

    A response is a vector of `width` numbers from N(0, 1); so is a query, which says nothing. A user of group g likes a
    response y as much as u_g(y) = quality * (a . y) + taste * (t_g . y): a is one unit vector for everybody, and t_g a
    unit vector of the group. The t_g are the corners of a simplex around 0, so that two groups have opposite tastes and
    the tastes of several cancel: who cannot tell the groups apart learns the quality alone. The first of two responses
    is chosen with probability sigmoid(u_g(y_1) - u_g(y_2)). What is told of a user is the group's corner of another
    simplex, `told` / 2 from 0, and N(0, 1) noise; at told 0 it tells nothing. So is their persona, with noise of its
    own. An item's earlier pairs are the latest 10 of the same user before it.

    world: seed of a, of t and of the corners; two sets of one world have other users with the same tastes. Groups have
    as many users, but for one.
    """
    made = _generator(world, "world")
    axes = torch.linalg.qr(torch.randn(width, 2 * groups + 1, generator=made)).Q.T
    tastes, corners = _simplex(axes[:groups]), _simplex(axes[groups : 2 * groups])
    liking = quality * axes[-1] + taste * tastes  # [groups, width]

    draws = _generator(seed, "users")
    group = torch.arange(users) % groups
    about = told / 2 * corners[group] + torch.randn(users, width, generator=draws)
    persona = told / 2 * corners[group] + torch.randn(users, width, generator=draws)
    query = torch.randn(users * items, width, generator=draws)
    responses = torch.randn(users * items, 2, width, generator=draws)
    asks = torch.arange(users).repeat_interleave(items)
    first = torch.sigmoid((responses[:, 0] - responses[:, 1]) @ liking.T)  # [users * items, groups]
    own = group[asks]
    chosen = torch.rand(users * items, generator=draws) < first[torch.arange(len(own)), own]

    about_row, persona_row, query_row = 0, users, 2 * users
    response_row = query_row + users * items
    pairs = [
        (query_row + item, response_row + 2 * item + (not won), response_row + 2 * item + won)
        for item, won in enumerate(map(int, chosen))
    ]
    corpus = Corpus(
        vectors=torch.cat([about, persona, query, responses.flatten(0, 1)]),
        ids=[f"{seed}-{item}" for item in range(users * items)],
        persons=[f"{seed}-{user}" for user in asks.tolist()],
        query=[query for query, _, _ in pairs],
        responses=[(response_row + 2 * item, response_row + 2 * item + 1) for item in range(users * items)],
        rank=[(1, 2) if won else (2, 1) for won in chosen.tolist()],
        about=[about_row + user for user in asks.tolist()],
        persona=[persona_row + user for user in asks.tolist()],
        earlier=[pairs[item - min(item % items, PAIRS_SHOWN) : item] for item in range(users * items)],
    )
    decided = torch.where(chosen.unsqueeze(1), first, 1 - first).log().reshape(users, items, groups)
    # All corners are as far from 0, so what else stands in the normal density is the same for each group.
    return Simulated(corpus, own.tolist(), first, decided, told=about @ (told / 2 * corners).T)


def _generator(seed: int, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(rng_for(seed, "simulated", *names).getrandbits(63))


def _simplex(axes: Tensor) -> Tensor:
    """Unit vectors, one for each of these orthogonal ones, with sum 0; a single one stays as it is."""
    centred = axes - axes.mean(dim=0) if len(axes) > 1 else axes
    return nn.functional.normalize(centred)


def _best(first: Tensor) -> float:
    return torch.maximum(first, 1 - first).mean().item()
