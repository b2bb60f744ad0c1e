"""Agreement and position bias of people who compare two answers."""

from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_studies import agreement, first_answers, share_over

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.metric import Metric, Numbers


def people_numbers(better: pl.DataFrame) -> Numbers:
    """Yield the annotators' agreement and position bias, with intervals clustered by prompt."""
    answers = better.select("item", "annotator", "answer")
    agreed: dict[str, Any] = agreement(answers, ["1", "s", "2"])
    pairs = agreed["pairs"]
    yield MetricKey("agreement"), Estimate(pairs["share"], pairs["low"], pairs["high"], pairs["compared"])
    yield MetricKey("alpha"), Estimate(agreed["alpha"]["nominal"], n=pairs["compared"])
    own = first_answers(better.select("item", "annotator", "answer", "config", "id"))
    strict = own.filter(pl.col("answer") != "s")
    for metric, frame, answer in (("alike", own, "s"), ("share_of_first", strict, "1")):
        share = share_over(frame, ["config", "id"], pl.col("answer") == answer)
        yield MetricKey(metric), Estimate(share["share"], share["low"], share["high"], share["of"])


METRICS = (
    Metric("agreement", "share", "Share of pairs of answers on one comparison that are equal."),
    Metric("alpha", "correlation", "Krippendorff's alpha of the answers, nominal."),
    Metric("alike", "share", "Share of answers that both are equally good."),
)
