"""Sentences about the cost of runs: calls, tokens, money and time."""

from collections.abc import Sequence

from pluralbench_runs import plural

from pluralbench.results.evaluations import JudgeResult
from pluralbench.results.plans import PlanResult, SynthesizeResult
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Run


def cost_summary(runs: Sequence[Run]) -> str:
    """Sum the cost of runs, as "64 calls, 12,345 tokens, $0.12 at 0.25/2 per million, 31 s"; empty if not recorded."""
    judged = [run.judged for run in runs if run.judged is not None]
    costs = [run.result.cost for run in runs if run.result.cost is not None]
    text = cost_text(judged, costs)
    return f"{text} in {len(runs)} runs" if text and len(runs) > 1 else text


def cost_text(results: Sequence[JudgeResult | PlanResult | SynthesizeResult], costs: Sequence[CostRecord]) -> str:
    """Format calls, tokens, money and time as `cost_summary` does; no results for runs that make no calls."""
    priced = [(cost.dollars, cost.price) for cost in costs if cost.dollars is not None and cost.price is not None]
    parts = [plural(sum(one.calls for one in results), "call"), _tokens(results)] if results else []
    if priced:
        prices = dict.fromkeys(f"{price.input:g}/{price.output:g}" for _, price in priced)
        money = sum(dollars for dollars, _ in priced)
        amount = f"{money:,.2f}" if money >= 0.1 or not money else f"{money:.2g}"
        parts.append(f"${amount} at {' and '.join(prices)} per million")
    if costs:
        parts.append(f"{format_seconds(sum(cost.seconds for cost in costs))} s")
    return ", ".join(parts)


def _tokens(results: Sequence[JudgeResult | PlanResult | SynthesizeResult]) -> str:
    prompts, cached = (sum(getattr(one, f"{kind}_tokens") for one in results) for kind in ("prompt", "cached"))
    text = f"{prompts + sum(one.completion_tokens for one in results):,} tokens"
    return f"{text} ({cached / prompts:.0%} of the prompts cached by the server)" if cached and prompts else text


def format_seconds(seconds: float) -> str:
    """Format a number of seconds, without the unit; a time that would round to 0 is "under 1"."""
    return f"{seconds:,.0f}" if seconds >= 1 else "under 1"
