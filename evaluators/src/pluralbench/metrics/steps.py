"""Answers in steps, of which a model finds the first wrong one by a threshold of its scores."""

from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by


def threshold_numbers(decided: Decided) -> Numbers:
    """Yield the threshold of a run."""
    rows = decided.responses
    if rows is not None and "threshold" in rows.columns and rows.height:
        yield MetricKey("threshold"), Estimate(float(rows["threshold"][0]))


METRICS = computed_by(
    threshold_numbers,
    Metric("threshold", "number", "Score below which a step of an answer is wrong.", in_tables=True),
)
