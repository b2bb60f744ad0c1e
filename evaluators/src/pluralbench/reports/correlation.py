"""Tables and notes of `correlate`."""

from collections.abc import Iterator

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.correlation import PAPER, PERSISTENCE, STANDARD
from pluralbench_measures.rank_intervals import MIN_MODELS, Difference, min_models

from pluralbench.downstream.correlate import Baseline, Correlation, Statistic
from pluralbench.reports.tables import Column, Row, Table
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
    columns = [
        Column("value", three_digits),
        *([Column("without noise", three_digits)] if noise else []),
        Column("p", p_value),
    ]
    rows = []
    for group, name in _names():
        statistic = correlation.statistics[name]
        without = [statistic.without_noise] if noise else []
        rows.append(Row(LABELS[name], (_estimate(statistic), *without, statistic.p_value), group=group))
    yield Table("", "statistic", columns, rows, "form")
    for other, baseline in correlation.baselines.items():
        title = f"Against {other} ({baseline.source}), on {baseline.n} models"
        columns = [Column(other, three_digits), Column("difference", change), Column("p", p_value)]
        rows = []
        for group, name in _names():
            gap = baseline.differences[name]
            values = (baseline.statistics[name].value, _estimate(gap), gap.p_value)
            rows.append(Row(LABELS[name], values, group=group))
        yield Table(title, "statistic", columns, rows, "form")


def _names() -> Iterator[tuple[str, str]]:
    yield from ((group, name) for group, names in GROUPS.items() for name in names)


def _estimate(statistic: Statistic | Difference) -> Estimate:
    return Estimate(statistic.value, statistic.low, statistic.high)


def correlation_notes(correlation: Correlation) -> Iterator[str]:
    """Write the notes on the tables, a sentence or two each."""
    yield from correlation.warnings
    models = len(correlation.names)
    if any(statistic.low is not None for statistic in correlation.statistics.values()):
        yield f"Brackets are {CONFIDENCE:.0%} intervals."
    yield (
        f"The truncated RBO of {models} models is at most {1 - PERSISTENCE**models:.3f}; the extrapolated RBO is at "
        "most 1."
    )
    yield from _about_p(correlation)
    if models >= MIN_MODELS and correlation.statistics["spearman"].low is not None:
        yield _about_intervals(correlation)
    for name, baseline in correlation.baselines.items():
        yield from _about_baseline(name, baseline)


def _about_p(correlation: Correlation) -> Iterator[str]:
    rho, models = correlation.statistics["spearman"], len(correlation.names)
    orders = f"all {correlation.orders:,}" if correlation.exact else f"{correlation.orders:,} random"
    if rho.p_value is None or rho.value is None:
        return
    yield (
        f"p: one-sided permutation test, the share of {orders} orders of the models that agree with the benchmark at "
        "least as much."
    )
    if rho.p_value < SMALL:
        yield f"Spearman's rho is significant (p {_equals(rho.p_value)})."
        return
    few = f"With {models} models the p-values are large. " if models <= 9 else ""
    yield (
        f"{few}Spearman's rho is not significant: {100 * rho.p_value:.0f} of 100 orders reach {rho.value:.2f} by "
        "chance. This neither shows nor rules out that the benchmark predicts the downstream result."
    )
    if correlation.models_needed is not None and correlation.models_needed > models:
        yield (
            f"If the true rho is {rho.value:.2f}, a study needs {correlation.models_needed:,} models for 80% power at "
            f"p < {SMALL}."
        )


def _about_intervals(correlation: Correlation) -> str:
    sides = [side for side, share in correlation.reliabilities.items() if share is not None]
    if not sides:
        return (
            "Intervals are over resampled models (Gaussian copula) and include the noise of the scores, which can be "
            "estimated only from run directories."
        )
    shares = " and ".join(f"{100 * (correlation.reliabilities[side] or 0):.0f}% ({side})" for side in sides)
    other = "" if len(sides) == 2 else " The noise of the other side is unknown and is not removed."
    return (
        "Intervals are over resampled models (Gaussian copula) and items. The noise of the items is removed: "
        f"{shares} of the variance between models is not noise.{other}"
    )


def _about_baseline(name: str, baseline: Baseline) -> Iterator[str]:
    gap = baseline.differences["spearman"]
    if gap.value is None or gap.p_value is None:
        return
    if baseline.n < (least := min_models("spearman", difference=True)):
        yield (
            f"No intervals of the differences from {name}: {baseline.n} models are too few for reliable intervals "
            f"(minimum: {least})."
        )
    verdict = "differ significantly" if gap.p_value < SMALL else "do not differ significantly"
    text = f"In Spearman's rho, the benchmark and {name} {verdict} (p {_equals(gap.p_value)}, two-sided permutation "
    text += "test that swaps the two within models)."
    if baseline.models_needed is not None and gap.p_value >= SMALL and baseline.models_needed > baseline.n:
        text += f" If this difference is the true one, a study needs {baseline.models_needed:,} models for 80% power."
    yield text


def _equals(value: float) -> str:
    shown = p_value(value)
    return shown.replace("<", "< ") if shown.startswith("<") else f"= {shown}"
