"""Tables and notes of `correlate`."""

from collections.abc import Iterator, Mapping, Sequence

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.correlation import PAPER, PERSISTENCE, STANDARD
from pluralbench_measures.rank_intervals import MIN_MODELS, Difference, min_models

from pluralbench.downstream.correlate import Baseline, Correlation, Statistic
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.numbers import change, p_value, three_digits

LABELS = {
    "ndcg": "NDCG",
    "rbo": "RBO, p 0.8, truncated",
    "weighted_tau": "weighted tau",
    "spearman": "Spearman's rho",
    "rbo_extrapolated": "RBO, p 0.8, extrapolated",
    "scipy_weightedtau": "weighted tau of SciPy",
    "kendall_tau_b": "Kendall's tau-b",
}
GROUPS = {"Forms of the paper": PAPER, "Standard forms": STANDARD}
SMALL = 0.05


def heading(correlation: Correlation) -> Iterator[str]:
    """Describe the two sides of a correlation."""
    yield f"Benchmark:  {correlation.benchmark.source} ({correlation.benchmark.measure})"
    yield f"Downstream: {correlation.downstream.source} ({correlation.downstream.measure})"
    yield f"{len(correlation.names)} models on both sides"


def correlation_findings(correlation: Correlation) -> Iterator[str]:
    """State the correlation and that of each baseline with their tests, a sentence each."""
    rho = correlation.statistics["spearman"]
    if rho.value is None or rho.p_value is None:
        return
    significance = "significant" if rho.p_value < SMALL else "not significant"
    orders = "over all orders" if correlation.exact else "over random orders"
    interval = "" if rho.low is None or rho.high is None else f", 95% interval {rho.low:.2f} to {rho.high:.2f}"
    yield (
        f"over {len(correlation.names)} reward models, the ranking by {correlation.benchmark.source} and the "
        f"downstream ranking have a Spearman correlation of {rho.value:+.2f}{interval} (p = {rho.p_value:.3f}, "
        f"one-sided, {orders}): {significance}."
    )
    for other, baseline in correlation.baselines.items():
        other_rho, gap = baseline.statistics["spearman"], baseline.differences["spearman"]
        if other_rho.value is not None and gap.p_value is not None:
            yield (
                f"the correlation for the baseline {other} is {other_rho.value:+.2f} (p of the difference = "
                f"{gap.p_value:.3f})."
            )


def correlation_tables(correlation: Correlation) -> Iterator[Table]:
    """Make a table of the statistics, and one for each baseline."""
    noise = any(statistic.without_noise is not None for statistic in correlation.statistics.values())
    columns = [Column("value", three_digits), *[Column("without noise", three_digits)] * noise, Column("p", p_value)]
    rows = {
        name: [_estimate(one), *[one.without_noise] * noise, one.p_value]
        for name, one in correlation.statistics.items()
    }
    yield _table("", columns, rows)
    for other, baseline in correlation.baselines.items():
        title = f"Against {other} ({baseline.source}), on {baseline.n} models"
        columns = [Column(other, three_digits), Column("difference", change), Column("p", p_value)]
        gaps = baseline.differences.items()
        yield _table(
            title, columns, {name: [baseline.statistics[name].value, _estimate(gap), gap.p_value] for name, gap in gaps}
        )


def _table(title: str, columns: Sequence[Column], values: Mapping[str, Sequence[Value]]) -> Table:
    rows = [Row(LABELS[name], values[name], group=group) for group, names in GROUPS.items() for name in names]
    return Table(title, "statistic", columns, rows, "form")


def _estimate(statistic: Statistic | Difference) -> Estimate:
    return Estimate(statistic.value, statistic.low, statistic.high)


def correlation_notes(correlation: Correlation) -> Iterator[str]:
    """Write the notes on the tables, a sentence or two each."""
    yield from correlation.warnings
    models, rho = len(correlation.names), correlation.statistics["spearman"]
    if any(statistic.low is not None for statistic in correlation.statistics.values()):
        yield f"Brackets are {CONFIDENCE:.0%} intervals."
    yield f"The truncated RBO of {models} models is at most {1 - PERSISTENCE**models:.3f}; the extrapolated one 1."
    if rho.p_value is not None and rho.value is not None:
        orders = f"all {correlation.orders:,}" if correlation.exact else f"{correlation.orders:,} random"
        yield (
            f"p: one-sided permutation test, the share of {orders} orders of the models that agree with the benchmark "
            "at least as much."
        )
        yield from _significance(correlation, rho.value, rho.p_value)
    if models >= MIN_MODELS and rho.low is not None:
        yield _about_intervals(correlation)
    for name, baseline in correlation.baselines.items():
        yield from _about_baseline(name, baseline)


def _significance(correlation: Correlation, rho: float, p: float) -> Iterator[str]:
    models, needed = len(correlation.names), correlation.models_needed
    if p < SMALL:
        yield f"Spearman's rho is significant (p {_equals(p)})."
        return
    few = f"With {models} models the p-values are large. " if models <= 9 else ""
    yield (
        f"{few}Spearman's rho is not significant: {100 * p:.0f} of 100 orders reach {rho:.2f} by chance. This neither "
        "shows nor rules out that the benchmark predicts the downstream result."
    )
    if needed is not None and needed > models:
        yield f"If the true rho is {rho:.2f}, a study needs {needed:,} models for 80% power at p < {SMALL}."


def _about_intervals(correlation: Correlation) -> str:
    shares = [f"{100 * share:.0f}% ({side})" for side, share in correlation.reliabilities.items() if share is not None]
    begin = "Intervals are over resampled models (Gaussian copula)"
    if not shares:
        return f"{begin} and include the noise of the scores, which can be estimated only from run directories."
    other = "" if len(shares) == 2 else " The noise of the other side is unknown and is not removed."
    removed = f"The noise of the items is removed: {' and '.join(shares)} of the variance between models is not noise."
    return f"{begin} and items. {removed}{other}"


def _about_baseline(name: str, baseline: Baseline) -> Iterator[str]:
    gap, needed = baseline.differences["spearman"], baseline.models_needed
    if gap.value is None or gap.p_value is None:
        return
    if baseline.n < (least := min_models("spearman", difference=True)):
        yield (
            f"No intervals of the differences from {name}: {baseline.n} models are too few for reliable intervals "
            f"(minimum: {least})."
        )
    verdict = "differ significantly" if gap.p_value < SMALL else "do not differ significantly"
    more = f" If this difference is the true one, a study needs {needed:,} models for 80% power." if needed else ""
    yield (
        f"In Spearman's rho, the benchmark and {name} {verdict} (p {_equals(gap.p_value)}, two-sided permutation test "
        f"that swaps the two within models).{more if gap.p_value >= SMALL and (needed or 0) > baseline.n else ''}"
    )


def _equals(value: float) -> str:
    shown = p_value(value)
    return shown.replace("<", "< ") if shown.startswith("<") else f"= {shown}"
