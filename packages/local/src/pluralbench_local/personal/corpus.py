"""Items as vectors of a frozen backbone: the data of personalized reward models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from pluralbench_measures.rankings import pairs_of
from pluralbench_runs import rng_for
from torch import Tensor

from pluralbench_local.errors import LocalError, TrainingError
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.texts import BackboneRecord
from pluralbench_local.training_job import check_unique_ids

Earlier = tuple[int, int, int]
"""Rows of the prompt, the chosen and the rejected response of an earlier pair."""


@dataclass(frozen=True)
class Points:
    """A batch of items with the same number of responses, in float32.

    Attributes:
        query: Shape (items, width).
        responses: Each read after its prompt, of shape (items, responses, width). In training there are two, the better
            first.
        about: User contexts, of shape (items, features). Without a profile, features is 0.
        earlier_query: Prompts of the user's earlier pairs, of shape (items, pairs, width).
        earlier: Shape (items, pairs, 2, width), the chosen response first.
        pair_mask: Which earlier pairs exist, of shape (items, pairs). The others are zeros.
    """

    query: Tensor
    responses: Tensor
    about: Tensor
    earlier_query: Tensor
    earlier: Tensor
    pair_mask: Tensor


@dataclass(frozen=True)
class Corpus:
    """Embedded items, in which each distinct text has one vector.

    `vectors` have the shape (texts, width), in float32; from `query` on, the other attributes are their rows, by item.
    A lower rank is better; tied responses share one. Earlier pairs are those of the user, the oldest first.
    """

    vectors: Tensor
    ids: Sequence[str]
    persons: Sequence[str]
    query: Sequence[int]
    responses: Sequence[Sequence[int]]
    rank: Sequence[Sequence[int]]
    about: Sequence[int | None]
    persona: Sequence[int | None]
    earlier: Sequence[Sequence[Earlier]]

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.vectors.shape[1]

    def pairs(self) -> list[tuple[int, int, int]]:
        """Return all pairs to learn from, as indices of the item, its better and its worse response."""
        return [(item, *pair) for item, rank in enumerate(self.rank) for pair in sorted(pairs_of(rank))]

    def points(
        self,
        items: Sequence[int],
        responses: Sequence[Sequence[int]],
        earlier: Sequence[Sequence[Earlier]],
        options: PersonalConfig,
    ) -> Points:
        """Make the batch of items, by their indices, each with as many responses, with what is read of their users.

        A context that an item does not have is a vector of zeros. Without a profile there are no earlier pairs.
        """
        contexts = [[getattr(self, source)[item] for source in options.context_sources] for item in items]
        size = max(map(len, earlier), default=0)
        padded = [[*pairs, *[(0, 0, 0)] * (size - len(pairs))] for pairs in earlier]
        rows = torch.tensor(padded, dtype=torch.long).reshape(len(items), size, 3)
        mask = torch.tensor([[number < len(pairs) for number in range(size)] for pairs in earlier], dtype=torch.bool)
        mask = mask.reshape(len(items), size)
        pair_vectors = self.vectors[rows] * mask[:, :, None, None]
        response_rows = [
            [self.responses[item][index] for index in indices] for item, indices in zip(items, responses, strict=True)
        ]
        return Points(
            query=self.vectors[torch.tensor([self.query[item] for item in items])],
            responses=self.vectors[torch.tensor(response_rows)],
            about=self._about(contexts),
            earlier_query=pair_vectors[:, :, 0],
            earlier=pair_vectors[:, :, 1:],
            pair_mask=mask,
        )

    def _about(self, contexts: Sequence[Sequence[int | None]]) -> Tensor:
        mask = torch.tensor([[row is not None for row in rows] for rows in contexts], dtype=torch.float32)
        indices = torch.tensor([[row or 0 for row in rows] for rows in contexts], dtype=torch.long)
        return (self.vectors[indices] * mask.unsqueeze(-1)).flatten(1)


CONTEXT_NAMES = {"about": "context", "persona": "persona"}


def latest_pairs(earlier: Sequence[Earlier], limit: int) -> Sequence[Earlier]:
    """Return at most `limit` of the earlier pairs, the latest ones."""
    return earlier[len(earlier) - limit :] if limit < len(earlier) else earlier


def vector_statistics(corpus: Corpus) -> tuple[Tensor, Tensor]:
    """Compute the mean and the standard deviation of each dimension, each of shape (2, width).

    Those of prompts and responses come first, then those of user contexts, so that a response is standardized equally
    with and without user contexts. Each distinct text counts once. Earlier pairs are left out: in training they are
    items too. A constant dimension has the deviation 1, so that it becomes 0.
    """
    texts = {*corpus.query, *(row for rows in corpus.responses for row in rows)}
    parts = [corpus.vectors[torch.tensor(sorted(rows), dtype=torch.long)] for rows in (texts, _context_rows(corpus))]
    mean = [part.mean(dim=0) if len(part) else torch.zeros(corpus.width) for part in parts]
    deviation = torch.stack(
        [part.std(dim=0, correction=0) if len(part) else torch.ones(corpus.width) for part in parts]
    )
    return torch.stack(mean), torch.where(deviation > 0, deviation, 1.0)


def standardize(corpus: Corpus, mean: Tensor, deviation: Tensor) -> Corpus:
    """Return the corpus with its vectors standardized by the results of `vector_statistics`."""
    kind = torch.zeros(len(corpus.vectors), dtype=torch.long)
    kind[torch.tensor(sorted(_context_rows(corpus)), dtype=torch.long)] = 1
    return replace(corpus, vectors=(corpus.vectors - mean[kind]) / deviation[kind])


def _context_rows(corpus: Corpus) -> set[int]:
    return {row for row in (*corpus.about, *corpus.persona) if row is not None}


def shuffle_profiles(corpus: Corpus, seed: int = 0) -> Corpus:
    """Return the corpus with each item's user context, persona and earlier pairs taken from another user's item."""
    users = list(dict.fromkeys(corpus.persons))
    shuffled = rng_for(seed, "others").sample(users, len(users))
    other = dict(zip(shuffled, [*shuffled[1:], *shuffled[:1]], strict=True))  # a cycle: no user keeps their own
    items_of: dict[str, list[int]] = {}
    for item, user in enumerate(corpus.persons):
        items_of.setdefault(user, []).append(item)
    sources = []
    for item, user in enumerate(corpus.persons):
        other_items = items_of[other[user]]
        sources.append(other_items[items_of[user].index(item) % len(other_items)])
    return replace(
        corpus,
        about=[corpus.about[item] for item in sources],
        persona=[corpus.persona[item] for item in sources],
        earlier=[corpus.earlier[item] for item in sources],
    )


def check_user_context(corpus: Corpus, options: PersonalConfig) -> None:
    """Raise `LocalError` if an item lacks the user context that a model reads."""
    for source in options.context_sources:
        without = [name for name, row in zip(corpus.ids, getattr(corpus, source), strict=True) if row is None]
        if without:
            raise LocalError(
                f"The {options.method} model reads the user's {CONTEXT_NAMES[source]}, and {len(without):,} of "
                f"{len(corpus.ids):,} items have none, such as {without[0]}; add it, or use a model without a profile."
            )


def check_vectors(corpus: Corpus, backbone: BackboneRecord, what: str) -> None:
    """Raise `LocalError` if vectors have another width than the backbone's, or are not finite.

    `what` is what the items are, for errors ("items", "held-out items"), as in `check_pairs`.
    """
    if corpus.width != backbone.width:
        raise LocalError(
            f"The vectors of the {what} have the width {corpus.width}, and those of {backbone.name} {backbone.width}; "
            f"embed the texts with {backbone.name}."
        )
    finite = corpus.vectors.isfinite().all(dim=1)
    if not finite.all():
        raise LocalError(
            f"{int((~finite).sum()):,} of the {len(finite):,} vectors of the {what} are not finite; embed the texts "
            'again with `dtype="float32"`.'
        )


def check_pairs(corpus: Corpus, what: str) -> None:
    """Check that a corpus has pairs to learn from.

    Raises:
        TrainingError: If ids repeat, there is no pair, or the responses of all pairs have the same vectors.
    """
    check_unique_ids(corpus.ids, what)
    pairs = corpus.pairs()
    if not pairs:
        raise TrainingError(
            f"None of the {len(corpus.ids):,} {what} has two responses of different rank, so there is no pair."
        )
    better, worse = (
        torch.tensor([corpus.responses[item][indices[side]] for item, *indices in pairs]) for side in range(2)
    )
    if torch.equal(corpus.vectors[better], corpus.vectors[worse]):
        raise TrainingError(
            f"In each of the {len(pairs):,} pairs of the {what} both responses have the same vector, so there is "
            "nothing to learn; check that the backbone reads the responses."
        )


def check_disjoint_users(corpus: Corpus, held_out: Corpus) -> None:
    """Raise `TrainingError` if a user has both training items and held-out items."""
    users = set(corpus.persons)
    both = next((user for user in held_out.persons if user in users), None)
    if both is not None:
        raise TrainingError(
            f"User {both} has both training items and held-out items, so the held-out accuracy is not that of new "
            "users; split the items by user."
        )
