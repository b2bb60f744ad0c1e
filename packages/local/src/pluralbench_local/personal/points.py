"""Items as vectors of a frozen backbone: what a personalized reward model reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pluralbench_measures.rankings import pairs_of
from torch import Tensor

Earlier = tuple[int, int, int]
"""Rows of an earlier pair's prompt, of its chosen and of its rejected response."""


@dataclass(frozen=True)
class Points:
    """A batch of items that have the same number of responses, all in float32.

    query: [items, width], of the prompt. responses: [items, responses, width], each read behind its prompt; in training
    two, the better first. about: [items, features], what is told of the person; features is 0 for a model without a
    profile. earlier_query: [items, pairs, width] and earlier: [items, pairs, 2, width], the pairs that the person
    decided before, the chosen response first. known: [items, pairs], which of these are there; others are 0.
    """

    query: Tensor
    responses: Tensor
    about: Tensor
    earlier_query: Tensor
    earlier: Tensor
    known: Tensor


@dataclass(frozen=True)
class Corpus:
    """Items whose every different text is embedded once.

    vectors: [texts, width], float32. By item: ids; persons, who asks; query, a row of `vectors`; responses, a row each;
    rank, of each response (lower is better, ties share a number); about, the row of what is told of the person, and
    persona, that of their persona, both None where there is none; earlier, the pairs they decided before, oldest first.
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
        """Of a vector."""
        return self.vectors.shape[1]

    def pairs(self) -> list[tuple[int, int, int]]:
        """All pairs to learn from: an item, its better and its worse response (their places in the item)."""
        return [(item, *pair) for item, rank in enumerate(self.rank) for pair in sorted(pairs_of(rank))]

    def points(
        self,
        items: Sequence[int],
        responses: Sequence[Sequence[int]],
        told: Sequence[Sequence[int | None]],
        earlier: Sequence[Sequence[Earlier]],
    ) -> Points:
        """The batch of these items.

        responses: for each, places of its responses, as many for each item. told: for each, rows of what is known of
        the person, as many for each item and none for a model without a profile; None is a vector of zeros.
        earlier: for each, the earlier pairs that are shown; none for a model without a profile.
        """
        most = max(map(len, earlier), default=0)
        padded = [[*pairs, *[(0, 0, 0)] * (most - len(pairs))] for pairs in earlier]
        rows = torch.tensor(padded, dtype=torch.long).reshape(len(items), most, 3)
        known = torch.tensor([[place < len(pairs) for place in range(most)] for pairs in earlier], dtype=torch.bool)
        known = known.reshape(len(items), most)
        shown = self.vectors[rows] * known[:, :, None, None]
        chosen = [
            [self.responses[item][place] for place in places] for item, places in zip(items, responses, strict=True)
        ]
        return Points(
            query=self.vectors[torch.tensor([self.query[item] for item in items])],
            responses=self.vectors[torch.tensor(chosen)],
            about=self._about(told),
            earlier_query=shown[:, :, 0],
            earlier=shown[:, :, 1:],
            known=known,
        )

    def _about(self, told: Sequence[Sequence[int | None]]) -> Tensor:
        there = torch.tensor([[row is not None for row in rows] for rows in told], dtype=torch.float32)
        rows = torch.tensor([[row or 0 for row in rows] for rows in told], dtype=torch.long)
        return (self.vectors[rows] * there.unsqueeze(-1)).flatten(1)
