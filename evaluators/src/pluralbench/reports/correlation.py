"""What `correlate` found, for people: tables, and the sentences without which they would be misread."""

from collections.abc import Iterator

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.correlation import PAPER, PERSISTENCE, STANDARD
from pluralbench_measures.rank_intervals import MIN_MODELS, Difference, min_models

from pluralbench.downstream.correlate import Baseline, Correlation, Statistic
from pluralbench.reports.numbers import change, p_value, three_digits
from pluralbench.reports.tables import Column, Row, Table

LABELS = {
    "ndcg": "NDCG",
    "rbo": "RBO, p 0.8, truncated",
    "weighted_tau": "weighted tau",
    "spearman": "Spearman's rho",
    "rbo_extrapolated": "RBO, p 0.8, extrapolated",
    "scipy_weightedtau": "weighted tau of SciPy",
    "kendall_tau_b": "Kendall's tau-b",
}
GROUPS = {"Personalized RewardBench": PAPER, "Standard forms": STANDARD}
SMALL = 0.05


def heading(found: Correlation) -> Iterator[str]:
    """What was correlated."""
    yield f"Benchmark:  {found.benchmark.source} ({found.benchmark.measure})"
    yield f"Downstream: {found.downstream.source} ({found.downstream.measure})"
    yield f"{len(found.names)} models on both sides"


def tables(found: Correlation) -> Iterator[Table]:
    """A table of the statistics, and one for each baseline."""
    noise = any(one.without_noise is not None for one in found.statistics.values())
    columns = [
        Column("value", three_digits),
        *([Column("without noise", three_digits)] if noise else []),
        Column("p", p_value),
    ]
    rows = []
    for group, name in _names():
        one = found.statistics[name]
        without = [one.without_noise] if noise else []
        rows.append(Row(LABELS[name], (_estimate(one), *without, one.p_value), group=group))
    yield Table("", "statistic", columns, rows, "form")
    for other, baseline in found.baselines.items():
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


def _estimate(found: Statistic | Difference) -> Estimate:
    return Estimate(found.value, found.low, found.high)


def closing(found: Correlation) -> Iterator[str]:
    """What a reader has to know, a sentence or two each."""
    yield from found.warnings
    models = len(found.names)
    if any(one.low is not None for one in found.statistics.values()):
        yield f"Brackets are {CONFIDENCE:.0%} intervals."
    yield (
        f"The truncated RBO of {models} models is at most {1 - PERSISTENCE**models:.3f}; the extrapolated one is at "
        "most 1."
    )
    yield from _about_p(found)
    if models >= MIN_MODELS and found.statistics["spearman"].low is not None:
        yield _about_intervals(found)
    for name, one in found.baselines.items():
        yield from _about_baseline(name, one)


def _about_p(found: Correlation) -> Iterator[str]:
    rho, models = found.statistics["spearman"], len(found.names)
    orders = f"all {found.orders:,}" if found.exact else f"{found.orders:,} random"
    if rho.p_value is None or rho.value is None:
        return
    yield (
        f"p: the share of {orders} orders of the models that agree with the benchmark at least as much, as a benchmark "
        "that says nothing would by chance (one-sided)."
    )
    if rho.p_value < SMALL:
        yield f"By Spearman's rho the agreement is more than chance would often bring (p {_equals(rho.p_value)})."
        return
    said = f"With {models} models the p-values are large. " if models <= 9 else ""
    yield (
        f"{said}A rho of {rho.value:.2f} or more comes by chance in {100 * rho.p_value:.0f} of 100 orders, so this is "
        "no evidence that the benchmark predicts the downstream result, and none that it does not."
    )
    if found.models_needed is not None and found.models_needed > models:
        yield (
            f"If the true rho were {rho.value:.2f}, it would take {found.models_needed:,} models to find p < {SMALL} "
            "in 80 of 100 studies."
        )


def _about_intervals(found: Correlation) -> str:
    given = [side for side, share in found.reliabilities.items() if share is not None]
    base = "Intervals are of other models drawn likewise (a Gaussian copula)"
    if not given:
        return f"{base}, with the noise that the scores have; per-item results (run directories) would tell how much."
    shares = ", ".join(f"{100 * (found.reliabilities[side] or 0):.0f} % of the {side}'s" for side in given)
    rest = "" if len(given) == 2 else " The noise of the other side is not known, and stays in."
    return (
        f"{base} and other items, and without the noise of the items: {shares} variance between models is no noise."
        f"{rest}"
    )


def _about_baseline(name: str, found: Baseline) -> Iterator[str]:
    gap = found.differences["spearman"]
    if gap.value is None or gap.p_value is None:
        return
    if found.n < (least := min_models("spearman", difference=True)):
        yield (
            f"There are no intervals of the differences from {name}: {found.n} models are too few for any that would "
            f"hold; it takes {least}."
        )
    verdict = "differ by more than" if gap.p_value < SMALL else "do not differ by more than"
    said = f"By Spearman's rho the benchmark and {name} {verdict} chance would bring (p {_equals(gap.p_value)}, "
    said += "two-sided, by exchanging the two model by model)."
    if found.models_needed is not None and gap.p_value >= SMALL and found.models_needed > found.n:
        said += (
            f" If their true rhos were as far apart, it would take {found.models_needed:,} models to tell them apart "
            "in 80 of 100 studies."
        )
    yield said


def _equals(value: float) -> str:
    shown = p_value(value)
    return shown.replace("<", "< ") if shown.startswith("<") else f"= {shown}"
