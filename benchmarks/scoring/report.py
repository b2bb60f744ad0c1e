"""Format answers as tables."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Literal

from machine import processor

from scoring.protocol import Answer

Rounds = Mapping[str, Sequence[Answer]]  # by strategy
Clock = Literal["cpu", "wall"]
OPERATORS = ("projections", "gated blocks", "attention")  # parts of the limit


@dataclass(frozen=True)
class Row:
    """The figures of a strategy on one workload.

    Seconds are (median, minimum, maximum) over the rounds; speeds are relative to other strategies, by title.
    """

    strategy: str
    computed_over_unique: float
    cpu: tuple[float, float, float]
    wall: tuple[float, float, float]
    times_faster: dict[str, float]
    largest_difference: float
    decisions: int
    decisions_changed: int
    largest_margin_changed: float


def rows(
    rounds: Rounds, titles: Mapping[str, str], *, unique: int, against: Sequence[str], truth: str, clock: Clock
) -> list[Row]:
    """Build one row per strategy, with its speed relative to those of `against` and its score differences from `truth`.

    A decision is which of two responses to a prompt scores higher.
    """
    made = []
    for name, answers in rounds.items():
        difference, margins = _differences(rounds[truth][0].scores, answers[0].scores)
        changed = [margin for margin, differs in margins if differs]
        made.append(
            Row(
                strategy=titles[name],
                computed_over_unique=answers[0].computed_tokens / unique,
                cpu=_spread([answer.cpu for answer in answers]),
                wall=_spread([answer.wall for answer in answers]),
                times_faster={titles[peer]: times_faster(rounds[peer], answers, clock) for peer in against},
                largest_difference=difference,
                decisions=len(margins),
                decisions_changed=len(changed),
                largest_margin_changed=max(changed, default=0.0),
            )
        )
    return made


def times_faster(slow: Sequence[Answer], fast: Sequence[Answer], clock: Clock) -> float:
    """Return the median of the rounds' ratios."""
    pairs = zip(_times(slow, clock), _times(fast, clock), strict=True)
    return median(one / other for one, other in pairs)


def fastest(rounds: Rounds, names: Sequence[str], clock: Clock) -> str:
    """Return the strategy with the smallest median time."""
    return min((name for name in names if name in rounds), key=lambda name: median(_times(rounds[name], clock)))


def table(made: Sequence[Row]) -> str:
    """Format rows as a Markdown table."""
    peers = list(made[0].times_faster)
    speeds = "".join(f" | times faster than {peer}" for peer in peers)
    lines = [
        f"| strategy | computed / unique | CPU s | wall s{speeds} | largest difference | decisions changed |",
        f"|---|{'---:|' * (5 + len(peers))}",
    ]
    for row in made:
        seconds, least, most = row.cpu
        margin = f" (margin up to {row.largest_margin_changed:.2g})" if row.decisions_changed else ""
        lines.append(
            f"| {row.strategy} | {row.computed_over_unique:.2f} | {seconds:.2f} ({least:.2f}-{most:.2f}) "
            f"| {row.wall[0]:.2f} | {' | '.join(f'{row.times_faster[peer]:.2f}' for peer in peers)} "
            f"| {row.largest_difference:.2g} "
            f"| {row.decisions_changed} of {row.decisions}{margin} |"
        )
    return "\n".join(lines)


def summary(speeds: Mapping[str, Mapping[str, float]]) -> str:
    """Format how many times faster fast mode is than each peer, by workload, as a Markdown table."""
    peers = list(dict.fromkeys(peer for row in speeds.values() for peer in row))
    lines = [f"| times faster than | {' | '.join(peers)} |", f"|---|{'---:|' * len(peers)}"]
    for title, row in speeds.items():
        lines.append(f"| {title} | {' | '.join(f'{row[peer]:.2f}' if peer in row else '' for peer in peers)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Limit:
    """The speed limit.

    Attributes:
        parts: CPU seconds by part.
        operators: CPU seconds of the matrix products and of attention.
        share: The speed of fast mode relative to the limit.
    """

    parts: dict[str, float]
    operators: float
    share: float


def limit(operators: Sequence[Answer], fast: Sequence[Answer]) -> Limit:
    """Compute the limit from medians over the rounds."""
    pairs = list(zip(operators, fast, strict=True))
    parts = {name: median(answer.parts[name] for answer in operators) for name in operators[0].parts}
    return Limit(
        parts=parts,
        operators=sum(parts[name] for name in OPERATORS),
        share=median(sum(least.parts.values()) / answer.cpu for least, answer in pairs),
    )


def limit_sentence(estimate: Limit) -> str:
    """Describe the limit in words."""
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in estimate.parts.items())
    return (
        f"Limit, with the fastest method for each part: {sum(estimate.parts.values()):.2f} CPU s "
        f"({parts}); {estimate.operators:.2f} of them are matrix products and attention. "
        f"Fast mode reaches {estimate.share:.0%} of its speed."
    )


def machine(versions: Mapping[str, Mapping[str, str]], *, threads: int, dtype: str, device: str) -> list[str]:
    """Describe the machine and the environments, in lines."""
    system = (
        f"{platform.platform()}, {processor()}, {os.cpu_count()} cores, {threads} threads, {device}, {dtype}, "
        f"load {os.getloadavg()[0]:.1f} at the end"
    )
    environments = [
        f"{name}: " + ", ".join(f"{package} {version}" for package, version in packages.items())
        for name, packages in versions.items()
    ]
    return [system, *environments]


def _differences(
    expected: Sequence[Sequence[float]], scores: Sequence[Sequence[float]]
) -> tuple[float, list[tuple[float, bool]]]:
    """The largest difference of a score, and for each decision the expected margin and whether it changed."""
    largest, decisions = 0.0, []
    for left, right in zip(expected, scores, strict=True):
        largest = max(largest, *(abs(a - b) for a, b in zip(left, right, strict=True)))
        for a, b in combinations(range(len(left)), 2):
            margin = left[a] - left[b]
            decisions.append((abs(margin), _sign(margin) != _sign(right[a] - right[b])))
    return largest, decisions


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _times(answers: Sequence[Answer], clock: Clock) -> list[float]:
    return [getattr(answer, clock) for answer in answers]


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return median(values), min(values), max(values)
