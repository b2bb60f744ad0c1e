"""What runs took: calls, tokens, money and time, in words."""

from collections.abc import Sequence

from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Run


def cost_summary(runs: Sequence[Run]) -> str:
    """What some runs took, as "64 calls, 12,345 tokens, $0.12 at 0.25/2 a million, 31 s"; empty where none says it."""
    judged = [run.judged for run in runs if run.judged is not None]
    costs = [run.result.cost for run in runs if run.result.cost is not None]
    calls = sum(one.calls for one in judged) if judged else None
    said = cost_text(calls, sum(one.prompt_tokens + one.completion_tokens for one in judged), costs)
    return f"{said} in {len(runs)} runs" if said and len(runs) > 1 else said


def cost_text(calls: int | None, tokens: int, costs: Sequence[CostRecord]) -> str:
    """Calls, tokens, money and time, as in `cost_summary`; calls are None where none were made."""
    priced = [(cost.dollars, cost.price) for cost in costs if cost.dollars is not None and cost.price is not None]
    parts = [] if calls is None else [f"{calls:,} calls", f"{tokens:,} tokens"]
    if priced:
        prices = dict.fromkeys(f"{price.input:g}/{price.output:g}" for _, price in priced)
        parts.append(f"${_money(sum(dollars for dollars, _ in priced))} at {' and '.join(prices)} a million")
    if costs:
        parts.append(f"{_time(sum(cost.seconds for cost in costs))} s")
    return ", ".join(parts)


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 0.1 or not dollars else f"{dollars:.2g}"


def _time(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 1 else "under 1"
