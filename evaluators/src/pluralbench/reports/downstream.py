"""What best-of-n found, as a table for people and as sentences."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_release import counted

from pluralbench.reports.notes import NAMED, named
from pluralbench.reports.numbers import DASH, change, number, signed, three_digits, whole_percent, with_interval
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.results.runs import Downstream, policy_number

KEYS = {"rubric": "rubric score", "rating": "rating", "win": "win rate"}


def curve_table(found: Downstream) -> Table:
    """A row a reward model: the outcome at each k, what the largest k gains, and the agreement with the judge.

    Without a judge the reward models' own estimates, in standard deviations within prompts. The best model is first.
    """
    metric, outcome, gains = shown_metric(found), found.result.outcome, of_rewards(found, "gain")
    columns = [Column(f"best of {k}", three_digits, bounds=False, part=True) for k in found.result.sampling.sizes]
    columns += [Column("gain", change, part=True), Column("agreement", signed, bounds=False, part=True)]
    rows = []
    for model in curve_order(found):
        at = [policy_number(found, metric, model=model, k=k) for k in found.result.sampling.sizes]
        rows.append(Row(model, (*at, gains[model], policy_number(found, "agreement", model=model))))
    what = "promised gain" if outcome is None else KEYS[found.config.outcome.measure]
    policy = Path(found.result.policy.name).name
    return Table(f"Best of k from {policy} on {found.config.benchmark.title}: {what}", "reward model", columns, rows)


def curve_order(found: Downstream) -> list[str]:
    """The reward models, the one whose largest k is worth most first."""
    values = of_rewards(found, shown_metric(found))
    return sorted(values, key=lambda name: -inf if (value := values[name].value) is None else value, reverse=True)


def of_rewards(found: Downstream, metric: str) -> dict[str, Estimate]:
    """A number of each reward model at the largest k."""
    last = found.result.sampling.sizes[-1]
    return {model: policy_number(found, metric, model=model, k=last) for model in found.result.rewards}


def shown_metric(found: Downstream) -> str:
    """What is shown of the best of k: the outcome, or without a judge what reward models promise."""
    return "promised" if found.result.outcome is None else "outcome"


def level_note(found: Downstream) -> str:
    """What an optimised policy is worth, and what it was at the start, as a sentence."""
    made, gain, end = found.result.optimization or {}, policy_number(found, "gain"), policy_number(found, "outcome")
    steps = f"{counted(made.get('steps', 0), 'step')} of {made['settings']['options']['algorithm'].upper()}"
    told = "".join(f" {warning}" for warning in made.get("warnings", ()))
    if end.value is None:
        return f"{steps}; nobody judged what the policy answers.{told}"
    start = policy_number(found, "outcome", start=True).value
    before = "" if start is None else f"from {start:.3f} "
    gained = f" ({with_interval(gain, change)})" if gain.value is not None else ""
    same = " It was judged on the prompts that it was optimised on." if made.get("judged_on_the_same_prompts") else ""
    return f"{before}to {end.value:.3f}{gained} in {steps}.{same}{told}"


def downstream_notes(found: Downstream) -> list[str]:
    """What a reader of the table has to know, a sentence each."""
    return [note for part in NOTES for note in part(found)]


def _outcome_notes(found: Downstream) -> Iterator[str]:
    outcome, rewards = found.result.outcome, found.result.rewards
    if found.verb == "optimize":
        for name in rewards:
            yield f"Optimised against {name}: {level_note(found)}"
    if outcome is None and found.verb == "optimize":
        return
    if outcome is None:
        yield (
            "Nobody judged the candidates, so these are the reward models' own estimates of what they gain, in "
            "standard deviations within prompts; give --judge MODEL, or rubric-overlap to see the machinery work."
        )
        return
    level = with_interval(policy_number(found, "outcome"), three_digits)
    if level and found.verb == "best-of-n":
        yield f"The policy by itself: {level}, over {policy_number(found, 'outcome').n:,} prompts."
    yield f"Values, judged by {outcome.judge.name}: {outcome.scale}."
    if rewards and found.verb == "best-of-n":
        expectation = outcome.judged and _complete(found)
        over = "in expectation over all sets of k candidates" if expectation else "of the first k candidates"
        yield (
            f"Best of k {over}; gain: of the largest k over the policy by itself, with "
            f"{CONFIDENCE:.0%} intervals over prompts or users."
        )
    if outcome.invalid:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in outcome.invalid_reasons.items())
        yield f"{outcome.invalid:,} of {outcome.judged:,} candidates have no valid value and are left out: {reasons}."
        if found.verb == "best-of-n" and _complete(found):
            yield (
                "Best of k is then no unbiased expectation: it is over the sets whose best one has a value, and what "
                "cannot be judged may be worse than the rest."
            )
    prompts = policy_number(found, "outcome").n or 0
    gains = {name: one.n or 0 for name, one in of_rewards(found, "gain").items()}
    fewer = ", ".join(f"{name} {count:,}" for name, count in gains.items() if 0 < count < prompts)
    if fewer:
        yield f"Of {prompts:,} prompts, the gain is over those where both have a value: {fewer}."


def _complete(found: Downstream) -> bool:
    agreements = (policy_number(found, "agreement", model=model) for model in found.result.rewards)
    return any(one.value is not None for one in (*agreements, *of_rewards(found, "realised").values()))


def _curve_notes(found: Downstream) -> Iterator[str]:
    """Whether more selection made the outcome worse: over-optimisation (Gao et al., 2023)."""
    if found.result.outcome is None:
        return
    last = found.result.sampling.sizes[-1]
    for row in found.metrics.filter(metric="since_best").iter_rows(named=True):
        if row["high"] is not None and row["high"] < 0:
            told = with_interval(Estimate(row["value"], row["low"], row["high"]), change)
            yield (
                f"{row['section']} is over-optimised: from best of {row['subset']} to best of {last} the outcome "
                f"changes by {told}, while its own reward rises."
            )
    if found.verb == "optimize":
        return
    promised, realised = of_rewards(found, "promised"), of_rewards(found, "realised")
    kept = [
        f"{model} {realised[model].value:+.2f} of {promise.value:.2f}"
        for model, promise in promised.items()
        if promise.value is not None and realised[model].value is not None
    ]
    if kept:
        yield (
            f"Realised of promised gain at best of {last}, in standard deviations within prompts: {', '.join(kept)}. "
            "Agreement: the mean rank correlation of reward and outcome within prompts."
        )


def _sampling_notes(found: Downstream) -> Iterator[str]:
    sampling = found.result.sampling
    candidates = sum(sampling.outcomes.values())
    cut = sampling.outcomes.get("length", 0)
    if cut:
        yield (
            f"{cut:,} of {candidates:,} candidates were cut at {found.config.sampling.max_tokens:,} tokens and count "
            "as they are; raise --max-tokens."
        )
    lost = sum(sampling.reasons.values())
    if lost:
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in list(sampling.reasons.items())[:NAMED])
        yield f"{lost:,} of {candidates:,} candidates have no text and are never selected: {reasons}."
    if sampling.without_text:
        ids = named(sampling.without_text, len(sampling.without_text))
        yield f"{len(sampling.without_text):,} of {sampling.prompts:,} prompts have no candidate at all (ids {ids})."
    if not sampling.seeded:
        yield "No seed was sent with the samples: the recorded calls are what can be repeated."


def _reward_notes(found: Downstream) -> Iterator[str]:
    for name, rewarded in found.result.rewards.items():
        if rewarded.missing:
            reasons = ", ".join(f"{why} ({count:,})" for why, count in rewarded.scoring.invalid_reasons.items())
            yield (
                f"{name}: {rewarded.missing:,} candidates have no reward and are never selected"
                f"{f' ({reasons})' if reasons else ''}."
            )
        if rewarded.identical:
            yield (
                f"{name}: all candidates of {rewarded.identical:,} of {found.result.sampling.prompts:,} prompts have "
                "the same reward, so chance or the order in which they were sampled selects among them."
            )


def people_notes(found: Downstream) -> Iterator[str]:
    """How far people agree who compared answers, and whether they go by the order."""
    agreed, alpha, alike, first = (
        found.estimate(name, "people") for name in ("agreement", "alpha", "alike", "share_of_first")
    )
    if alike.n:
        same = (
            f"agree on {with_interval(agreed, whole_percent)}% of {agreed.n:,} comparisons by two" if agreed.n else ""
        )
        chance = "" if alpha.value is None else f" (Krippendorff's alpha {alpha.value:.2f})"
        told = f"{same}{chance}, " if same else ""
        yield (
            f"People {told}call {100 * (alike.value or 0):.0f}% alike, and of the others prefer the one shown first in "
            f"{with_interval(first, whole_percent) or DASH}%."
        )


NOTES = (_outcome_notes, people_notes, _curve_notes, _sampling_notes, _reward_notes)


def line_of(found: Downstream) -> str:
    """A directory of `best-of-n` or `optimize` in one line."""
    policy = Path(found.result.policy.name).name
    if found.verb == "optimize":
        return f"{found.path}: {policy} optimised, {level_note(found)}"
    if not found.result.rewards:
        level = with_interval(policy_number(found, "outcome"), three_digits) or DASH
        return f"{found.path}: the answers of {policy} by themselves, outcome {level}"
    metric, last = shown_metric(found), found.result.sampling.sizes[-1]
    values = of_rewards(found, metric)
    told = ", ".join(f"{model} {number(values[model].value, three_digits)}" for model in curve_order(found))
    return f"{found.path}: best of {last} answers of {policy}, {metric} by reward model: {told}"
