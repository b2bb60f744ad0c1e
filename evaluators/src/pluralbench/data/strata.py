"""Strata of a draw of items: how many items of each subset a run has, of how many."""

from pluralbench_runs import FrozenModel
from pydantic import Field

Leaf = tuple[str, str | None]
"""A config and one of its subsets: the smallest weighted part of a benchmark."""


class Stratum(FrozenModel):
    """The items of one subset of a config.

    Attributes:
        config: Config.
        subset: Subset; null if the items have none.
        drawn: Number of drawn items.
        items: Number of all items.
    """

    config: str
    subset: str | None = None
    drawn: int = Field(ge=1)
    items: int = Field(ge=1)

    @property
    def weight(self) -> float:
        """The number of items that each drawn item stands for."""
        return self.items / self.drawn
