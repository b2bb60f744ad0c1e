"""Probabilities of a judge's verdicts, from the logprobs of the token that says each verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

from pluralbench_calls import ParsedReply
from pluralbench_calls.logprobs import FIELDS, SoftVerdict

from pluralbench.config import JudgeConfig, PersonaJudgeConfig, SynthesizeConfig
from pluralbench.data.votes import INVALID, VERDICTS

Value = TypeVar("Value")
EVEN = 0.5
NO_PROBABILITY = "no single token decides the verdict, so it has no probability"
COLUMNS = ("probability_chosen_first", "probability_rejected_first")
PERSONA_COLUMNS = ("probability", "probability_swapped")


def request_fields(judging: JudgeConfig | PersonaJudgeConfig | SynthesizeConfig) -> dict[str, Any]:
    """Return the fields of requests that a configuration adds: those for logprobs, then those of `extra`."""
    asked = not isinstance(judging, SynthesizeConfig) and judging.logprobs
    return (FIELDS if asked else {}) | judging.extra


def probability_of_first(soft: SoftVerdict[Value], letter: Callable[[Value], str]) -> float | None:
    """Return the probability that what the judge sees first is better, among its verdicts; a tie counts half.

    None if the token cannot give both A and B, so that it is not that of the verdict.
    """
    sums: dict[str, float] = {}
    for value, probability in zip(soft.values, soft.probabilities, strict=True):
        sums[letter(value)] = sums.get(letter(value), 0.0) + probability
    total = sum(sums.values())
    return (sums["A"] + sums.get("C", 0.0) / 2) / total if {"A", "B"} <= sums.keys() and total > 0 else None


def mean_probability(
    replies: Sequence[ParsedReply[Value]], letter: Callable[[Value], str]
) -> SoftVerdict[Value] | None:
    """Return the soft verdict of several replies to a question: of one as it is, else the mean of all readable ones.

    None if no reply can be read, or one that can has no probability.
    """
    if len(replies) == 1:
        return replies[0].soft
    soft = [reply.soft for reply in replies if not reply.reason]
    known = [one for one in soft if one is not None]
    first = [probability_of_first(one, letter) for one in known]
    values = {letter(value): value for one in known for value in one.values}
    if not known or len(known) < len(soft) or None in first:
        return None
    mean = fmean(one for one in first if one is not None)
    return SoftVerdict((values["A"], values["B"]), (mean, 1 - mean), any(one.bounded for one in known))


def record_probabilities(
    rows: Sequence[dict[str, Any]],
    questions: Iterable[tuple[int, bool]],
    replies: Iterable[ParsedReply[Value]],
    letter: Callable[[Value], str],
    columns: tuple[str, str] = COLUMNS,
) -> None:
    """Write the probability of each order into the rows of their items, and their mean over orders as the margin.

    The margin is the mean probability that the response of the first column is better, less 1/2; empty if an order that
    was judged has no probability. Arguments as in `record_replies`; `columns` are in the data's order and swapped.
    """
    margins: dict[int, list[float | None]] = {}
    for (place, swapped), reply in zip(questions, replies, strict=True):
        probability = None if reply.soft is None else probability_of_first(reply.soft, letter)
        row = rows[place]
        row[columns[swapped]] = probability
        row["bounds"] = row.get("bounds", 0) + (
            probability is not None and reply.soft is not None and reply.soft.bounded
        )
        margin = None if probability is None else (EVEN - probability if swapped else probability - EVEN)
        margins.setdefault(place, []).append(margin)
    for place, own in margins.items():
        known = [margin for margin in own if margin is not None]
        rows[place]["margin"] = sum(known) / len(own) if len(known) == len(own) else None


def decide_by_probability(row: Mapping[str, Any], tie_margin: float) -> dict[str, Any]:
    """Return verdict and outcome of a row by its margin: a tie up to `tie_margin`; invalid without a margin."""
    margin = row["margin"]
    if row.get("reason") is not None or margin is None:
        letter = INVALID
    else:
        letter = "C" if abs(margin) <= tie_margin else "A" if margin > 0 else "B"
    reason = {"reason": NO_PROBABILITY} if letter == INVALID and row.get("reason") is None else {}
    return dict(zip(("verdict", "outcome"), VERDICTS[letter], strict=True)) | reason
