"""Items as vectors of a frozen backbone: the data of personalized reward models."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pluralbench_measures.rankings import pairs_of
from torch import Tensor

Earlier = tuple[int, int, int]
"""Rows of the prompt, the chosen and the rejected response of an earlier pair."""


@dataclass(frozen=True)
class Points:
    """A batch of items with the same number of responses, in float32.

    Attributes:
        query: Prompts, of shape (items, width).
        responses: Responses, each read after its prompt, of shape (items, responses, width). In training there are two,
            the better first.
        about: User contexts, of shape (items, features). Without a profile, features is 0.
        earlier_query: Prompts of the user's earlier pairs, of shape (items, pairs, width).
        earlier: Earlier pairs, of shape (items, pairs, 2, width), the chosen response first.
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

    Attributes:
        vectors: Shape (texts, width), in float32. The other attributes refer to its rows.
        ids: Id of each item.
        persons: Id of each item's user.
        query: Row of each item's prompt.
        responses: Rows of each item's responses.
        rank: Ranks of each item's responses. A lower rank is better; tied responses share a rank.
        about: Row of each item's user context; None if it has none.
        persona: Row of each item's persona; None if it has none.
        earlier: Earlier pairs of each item's user, the oldest first.
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
        contexts: Sequence[Sequence[int | None]],
        earlier: Sequence[Sequence[Earlier]],
    ) -> Points:
        """Make the batch of some items.

        Args:
            items: Indices of items.
            responses: Indices of responses, the same number for each item.
            contexts: Rows of the user contexts, the same number for each item. None is a vector of zeros. Without a
                profile there are none.
            earlier: Earlier pairs of each item's user. Without a profile there are none.
        """
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
