"""Whether two sources of scores are one model: the same items scored by both, and what a difference looks like."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

Scores = Sequence[Sequence[float]]
"""By item and response."""

# Relative to the largest score. Another machine's kernels round otherwise; measured in float32: 2e-5 and less.
ALLOWED = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.15}
NOISE = {"float32": 1e-4, "float16": 0.01, "bfloat16": 0.03}
CLEAR = 4  # times what is left without it, a constant is no chance


@dataclass(frozen=True)
class Compared:
    """Scores of the same responses by two sources. conversations: how many were compared.

    largest: of the differences. constant: by which all differ alike, 0 where they do not. agree: whether they are one
    model's. decisions: pairs of responses to a prompt. changed: those that the two do not decide alike.
    """

    conversations: int
    largest: float
    constant: float
    agree: bool
    decisions: int
    changed: int


def compare(ours: Scores, theirs: Scores, precision: str) -> Compared:
    """Compare scores. precision: "float32", "float16" or "bfloat16", in which the model computes.

    A constant shift changes no decision of one server, but between two it does, so it is never let pass.
    """
    pairs = [pair for row, other in zip(ours, theirs, strict=True) for pair in zip(row, other, strict=True)]
    differences = [their - our for our, their in pairs]
    scale = max((abs(our) for our, _ in pairs), default=0.0)
    largest = max(map(abs, differences), default=0.0)
    mean = math.fsum(differences) / max(len(differences), 1)
    rest = max((abs(difference - mean) for difference in differences), default=0.0)
    floor = NOISE.get(precision, NOISE["bfloat16"]) * scale
    constant = mean if len(pairs) > 1 and abs(mean) > max(CLEAR * rest, floor) else 0.0
    decided = [
        (_sign(a - b), _sign(c - d))
        for row, other in zip(ours, theirs, strict=True)
        for (a, c), (b, d) in combinations(list(zip(row, other, strict=True)), 2)
    ]
    allowed = ALLOWED.get(precision, ALLOWED["bfloat16"]) * scale
    return Compared(
        len(pairs),
        largest,
        constant,
        largest <= allowed and not constant,
        len(decided),
        sum(one != other for one, other in decided),
    )


def noise(scale: float, precision: str) -> float:
    """How far one server's scores of the same tokens may lie apart from request to request. scale: of its scores."""
    return NOISE.get(precision, NOISE["bfloat16"]) * max(scale, 1e-3)


def detect_activation(rows: Scores) -> str:
    """How rows of logits look that passed an activation, the end of a sentence; "" where they do not."""
    values = [value for row in rows for value in row]
    if len(rows) < 2:
        return ""
    if all(value == values[0] for value in values):
        return f"all scores are {values[0]:g}, as a softmax over one logit makes them"
    if all(0 <= value <= 1 for value in values):
        return "all scores lie between 0 and 1, as a sigmoid or a softmax makes them"
    return ""


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
