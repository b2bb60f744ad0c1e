"""Recall and precision of the aspects of plans."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from pluralbench.metrics.best_of_n import Key, mean_numbers
from pluralbench.metrics.metric import Metric, Numbers

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Array

WORDS, EMBEDDINGS = "words", "embeddings"


class AspectMatches(NamedTuple):
    """The matches of an item.

    Attributes:
        matches: Number of matches.
        recall: Share of the true aspects that match.
        precision: Share of the planned aspects that match; None if there are none.
    """

    matches: int
    recall: float
    precision: float | None


def aspect_numbers(items: pl.DataFrame, matches: Mapping[str, Sequence[AspectMatches]], *, by_config: bool) -> Numbers:
    """Compute mean recall and precision, overall and by config, with intervals over clusters.

    Precision is averaged over items whose plan has a list.

    Args:
        items: `config` and `cluster` of each item.
        matches: Matches of the items, by similarity (`WORDS`, `EMBEDDINGS`).
        by_config: Whether the overall number is the unweighted mean over configs, instead of the mean over items.
    """
    columns: dict[Key, Array] = {
        (kind, metric, None): np.array([np.nan if (value := getattr(item, name)) is None else value for item in values])
        for kind, values in matches.items()
        for metric, name in (("aspect_recall", "recall"), ("aspect_precision", "precision"))
    }
    columns = {key: values for key, values in columns.items() if not np.isnan(values).all()}
    return mean_numbers(items, columns, "matching", by_config=by_config, within=(0.0, 1.0))


_MATCHED = ("matching", "config matching")
METRICS = (
    Metric("aspect_recall", "share", "Share of the true aspects that the plan has.", _MATCHED),
    Metric("aspect_precision", "share", "Share of the planned aspects that are true.", _MATCHED),
)
