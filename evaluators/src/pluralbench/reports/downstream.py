"""What best-of-n found, as a table for people and as sentences."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from rich import box
from rich.table import Table as Grid

from pluralbench.downstream.curves import START
from pluralbench.reports.layout import broken
from pluralbench.reports.notes import with_interval
from pluralbench.results.downstream import Downstream

DASH = "–"
NAMED = 5
KEYS = {"rubric": "rubric score", "rating": "rating", "win": "win rate"}


def curve_table(found: Downstream) -> pl.DataFrame:
    """A row a reward model: the outcome at each k, what the largest k gains, and the agreement with the judge.

    Without a judge the reward models' own estimates, in standard deviations within prompts. The best model is first.
    """
    metric, last = shown_metric(found), found.sizes[-1]
    rows = []
    for model in curve_order(found):
        at = {f"best of {k}": _number(found.estimate(metric, model=model, k=k)) for k in found.sizes}
        gain = with_interval(found.estimate("gain", model=model, k=last), 1, "+.3f")
        agreement = _number(found.estimate("agreement", model=model), "+.2f")
        rows.append({"reward model": model, **at, "gain": gain or DASH, "agreement": agreement})
    return pl.DataFrame(rows, infer_schema_length=None)


def curve_order(found: Downstream) -> list[str]:
    """The reward models, the one whose largest k is worth most first."""
    metric, last = shown_metric(found), found.sizes[-1]
    values = {model: found.estimate(metric, model=model, k=last).value for model in found.record.rewards}
    return sorted(values, key=lambda name: -inf if (value := values[name]) is None else value, reverse=True)


def shown_metric(found: Downstream) -> str:
    """What is shown of the best of k: the outcome, or without a judge what reward models promise."""
    return "promised" if found.record.outcome is None else "outcome"


def _number(estimate: Estimate, form: str = ".3f") -> str:
    return DASH if estimate.value is None else f"{estimate.value:{form}}"


def curve_grid(found: Downstream) -> Grid:
    """The table for a terminal."""
    policy, outcome = Path(found.record.policy.name).name, found.record.outcome
    title = "promised gain" if outcome is None else KEYS[outcome.measure]
    grid = Grid(
        title=f"Best of k from {policy}: {title}", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    frame = curve_table(found)
    grid.add_column("reward model", overflow="fold")
    for name in frame.columns[1:]:
        grid.add_column(name.replace("best of ", "k="), justify="right", no_wrap=True)
    for name, *cells in frame.iter_rows():
        grid.add_row(broken(name, 24), *(cell.replace(" [", "\n[") for cell in cells))
    return grid


def level_note(found: Downstream) -> str:
    """What an optimised policy is worth, and what it was at the start, as a sentence."""
    made, gain, end = found.record.optimization or {}, found.estimate("gain"), found.estimate("outcome")
    number = made.get("steps", 0)
    steps = f"{number:,} step{'' if number == 1 else 's'} of {made['settings']['options']['algorithm'].upper()}"
    told = "".join(f" {warning}" for warning in made.get("warnings", ()))
    if end.value is None:
        return f"{steps}; nobody judged what the policy answers.{told}"
    start = found.metrics.filter(pl.col("section") == START, pl.col("config").is_null())["value"]
    before = f"from {start[0]:.3f} " if len(start) else ""
    change = f" ({with_interval(gain, 1, '+.3f')})" if gain.value is not None else ""
    same = " It was judged on the prompts that it was optimised on." if made.get("judged_on_the_same_prompts") else ""
    return f"{before}to {end.value:.3f}{change} in {steps}.{same}{told}"


def downstream_notes(found: Downstream) -> list[str]:
    """What a reader of the table has to know, a sentence each."""
    return [note for part in (_outcome_notes, _curve_notes, _sampling_notes, _reward_notes) for note in part(found)]


def _outcome_notes(found: Downstream) -> Iterator[str]:
    record, outcome = found.record, found.record.outcome
    if record.verb == "optimize":
        for name in record.rewards:
            yield f"Optimised against {name}: {level_note(found)}"
    if outcome is None and record.verb == "optimize":
        return
    if outcome is None:
        yield (
            "Nobody judged the candidates, so these are the reward models' own estimates of what they gain, in "
            "standard deviations within prompts; give --judge MODEL, or rubric-overlap to see the machinery work."
        )
        return
    level = with_interval(found.estimate("outcome"), 1, ".3f")
    if level and record.verb == "best-of-n":
        yield f"The policy by itself: {level}, over {found.estimate('outcome').n:,} prompts."
    yield f"Values, judged by {outcome.judge.name}: {outcome.scale}."
    if record.rewards and record.verb == "best-of-n":
        expectation = outcome.judged and _complete(found)
        over = "in expectation over all sets of k candidates" if expectation else "of the first k candidates"
        yield (
            f"Best of k {over}; gain: of the largest k over the policy by itself, with "
            f"{CONFIDENCE:.0%} intervals over prompts or users."
        )
    if outcome.invalid:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in outcome.invalid_reasons.items())
        yield f"{outcome.invalid:,} of {outcome.judged:,} candidates have no valid value and are left out: {reasons}."


def _complete(found: Downstream) -> bool:
    return any(found.estimate("agreement", model=model).value is not None for model in found.record.rewards) or any(
        found.estimate("realised", model=model, k=found.sizes[-1]).value is not None for model in found.record.rewards
    )


def _curve_notes(found: Downstream) -> Iterator[str]:
    """Whether more selection made the outcome worse: over-optimisation (Gao et al., 2023)."""
    if found.record.outcome is None:
        return
    last = found.sizes[-1]
    for row in found.metrics.filter(metric="since_best").iter_rows(named=True):
        if row["high"] is not None and row["high"] < 0:
            told = with_interval(Estimate(row["value"], row["low"], row["high"]), 1, "+.3f")
            yield (
                f"{row['section']} is over-optimised: from best of {row['subset']} to best of {last} the outcome "
                f"changes by {told}, while its own reward rises."
            )
    if found.record.verb == "optimize":
        return
    promised = {model: found.estimate("promised", model=model, k=last).value for model in found.record.rewards}
    realised = {model: found.estimate("realised", model=model, k=last).value for model in found.record.rewards}
    kept = [
        f"{model} {realised[model]:+.2f} of {promise:.2f}"
        for model, promise in promised.items()
        if promise is not None and realised[model] is not None
    ]
    if kept:
        yield (
            f"Realised of promised gain at best of {last}, in standard deviations within prompts: {', '.join(kept)}. "
            "Agreement: the mean rank correlation of reward and outcome within prompts."
        )


def _sampling_notes(found: Downstream) -> Iterator[str]:
    sampling = found.record.sampling
    candidates = sum(sampling.outcomes.values())
    cut = sampling.outcomes.get("length", 0)
    if cut:
        yield (
            f"{cut:,} of {candidates:,} candidates were cut at {sampling.max_tokens:,} tokens and count as they are; "
            "raise --max-tokens."
        )
    lost = sum(sampling.reasons.values())
    if lost:
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in list(sampling.reasons.items())[:NAMED])
        yield f"{lost:,} of {candidates:,} candidates have no text and are never selected: {reasons}."
    if sampling.without_text:
        ids = ", ".join(sampling.without_text[:NAMED]) + (", …" if len(sampling.without_text) > NAMED else "")
        yield f"{len(sampling.without_text):,} of {sampling.prompts:,} prompts have no candidate at all (ids {ids})."
    if not sampling.seeded:
        yield "No seed was sent with the samples: the recorded calls are what can be repeated."


def _reward_notes(found: Downstream) -> Iterator[str]:
    for name, rewarded in found.record.rewards.items():
        if rewarded.missing:
            reasons = ", ".join(f"{why} ({count:,})" for why, count in rewarded.scoring.invalid_reasons.items())
            yield (
                f"{name}: {rewarded.missing:,} candidates have no reward and are never selected"
                f"{f' ({reasons})' if reasons else ''}."
            )
        if rewarded.alike:
            yield (
                f"{name}: all candidates of {rewarded.alike:,} of {found.record.sampling.prompts:,} prompts have the "
                "same reward, so chance or the order in which they were sampled selects among them."
            )


def line_of(found: Downstream) -> str:
    """A directory of `best-of-n` or `optimize` in one line."""
    policy = Path(found.record.policy.name).name
    if found.record.verb == "optimize":
        return f"{found.path}: {policy} optimised, {level_note(found)}"
    if not found.record.rewards:
        level = with_interval(found.estimate("outcome"), 1, ".3f") or DASH
        return f"{found.path}: the answers of {policy} by themselves, outcome {level}"
    frame = curve_table(found)
    last = f"best of {found.sizes[-1]}"
    told = ", ".join(f"{name} {value}" for name, value in frame.select("reward model", last).iter_rows())
    return f"{found.path}: {last} answers of {policy}, {shown_metric(found)} by reward model: {told}"
