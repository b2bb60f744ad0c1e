"""Compare scores of the same items from two sources, to detect different models or wrong server settings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

Scores = Sequence[Sequence[float]]
"""Scores by item and response."""

# Relative to the largest score. Kernels of other machines round differently, by at most 2e-5 in float32.
ALLOWED = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.15}
NOISE = {"float32": 1e-4, "float16": 0.01, "bfloat16": 0.03}
CONSTANT_RATIO = 4  # a shift is constant if it is this many times the remaining differences


@dataclass(frozen=True)
class ScoreComparison:
    """A comparison of scores of the same responses from two sources.

    Attributes:
        constant: Shift that all scores share; 0 if there is none.
        decisions: Number of pairs of responses to a prompt.
        changed: Number of pairs with different decisions.
    """

    conversations: int
    largest: float
    constant: float
    agree: bool
    decisions: int
    changed: int


def compare(ours: Scores, theirs: Scores, precision: str) -> ScoreComparison:
    """Compare the scores of two sources, for a model in "float32", "float16" or "bfloat16".

    A constant shift changes no decision of one server, but it does between two, so it never counts as agreement.
    """
    pairs = [pair for row, other in zip(ours, theirs, strict=True) for pair in zip(row, other, strict=True)]
    differences = [their - our for our, their in pairs]
    scale = max((abs(our) for our, _ in pairs), default=0.0)
    largest = max(map(abs, differences), default=0.0)
    mean = math.fsum(differences) / max(len(differences), 1)
    rest = max((abs(difference - mean) for difference in differences), default=0.0)
    floor = NOISE.get(precision, NOISE["bfloat16"]) * scale
    constant = mean if len(pairs) > 1 and abs(mean) > max(CONSTANT_RATIO * rest, floor) else 0.0
    decisions = [
        (_sign(a - b), _sign(c - d))
        for row, other in zip(ours, theirs, strict=True)
        for (a, c), (b, d) in combinations(list(zip(row, other, strict=True)), 2)
    ]
    allowed = ALLOWED.get(precision, ALLOWED["bfloat16"]) * scale
    return ScoreComparison(
        len(pairs),
        largest,
        constant,
        largest <= allowed and not constant,
        len(decisions),
        sum(first != second for first, second in decisions),
    )


def noise(scale: float, precision: str) -> float:
    """Return how far a server's scores of the same tokens may differ between requests, for scores of this scale."""
    return NOISE.get(precision, NOISE["bfloat16"]) * max(scale, 1e-3)


def detect_activation(rows: Scores) -> str:
    """Describe how rows of logits show an activation function, as the end of a sentence; "" if they do not."""
    values = [value for row in rows for value in row]
    if len(rows) < 2:
        return ""
    if all(value == values[0] for value in values):
        return f"all scores are {values[0]:g}, as after a softmax over one logit"
    if all(0 <= value <= 1 for value in values):
        return "all scores lie between 0 and 1, as after a sigmoid or a softmax"
    return ""


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
