"""Accuracy with the same weight for each user, as personalization is often reported."""

import polars as pl

from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.accuracies import in_overall
from pluralbench.metrics.accuracy import item_mean
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

NOTE = "Mean over users of their accuracy, so that each counts the same."


def user_numbers(decided: Decided) -> Numbers:
    """Yield the mean accuracy of users, for benchmarks with a column of clusters, such as users."""
    if decided.benchmark.columns.cluster is None:
        return
    ours = decided.credited.filter(in_overall(decided.benchmark))
    for config in (None, *ours["config"].unique().sort()):
        rows = ours if config is None else ours.filter(config=config)
        users = rows.group_by("cluster", maintain_order=True).agg(pl.col("credit").sort().mean())
        if users.height:
            yield MetricKey("user_accuracy", config), item_mean(users, users["credit"])


METRICS = computed_by(
    user_numbers,
    Metric(
        "user_accuracy",
        "share",
        NOTE,
        ("", "config"),
        in_tables=True,
        terms={"user accuracy": f"{NOTE[0].lower()}{NOTE[1:]}"},
    ),
)
