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
    """Matches of an item, and the shares of true and of planned aspects that match; None if none is planned."""

    matches: int
    recall: float
    precision: float | None


def aspect_numbers(items: pl.DataFrame, matches: Mapping[str, Sequence[AspectMatches]], *, by_config: bool) -> Numbers:
    """Compute mean recall and precision by similarity, overall and by config, with intervals over clusters.

    Precision is averaged over items whose plan has a list.
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
