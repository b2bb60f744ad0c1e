"""Meaning of annotators' labels: first response better, second response better, or tie."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import inf, isfinite
from typing import Annotated, Any, Self

from pluralbench_runs import FrozenModel
from pydantic import BeforeValidator, model_validator

TIE, FIRST, SECOND = 0, 1, 2


def label_key(label: object) -> str | None:
    """Normalize a label for comparison: numbers by value (1, 1.0 and "1" are equal), True as "true", no blanks.

    Returns None for a missing label.
    """
    text = "" if label is None else str(label).lower() if isinstance(label, bool) else str(label).strip()
    try:
        return repr(float(text) + 0.0).removesuffix(".0")  # adding 0 turns -0 into 0
    except ValueError:
        return text or None


Values = tuple[Annotated[str, BeforeValidator(lambda value: label_key(value) or "")], ...]


class Labels(FrozenModel):
    """Meaning of the values in a column of labels.

    Of responses that are right or wrong (`Columns.right`), `first` are the values of the right ones and `second` those
    of the wrong ones; a `scale` is then the best and the worst value.

    Attributes:
        first: Values for "the first response is better". Default: 1.
        second: Values for "the second response is better". Default: 2.
        tie: Values for a tie. Default: none.
        scale: Instead of `first` and `second`, the numbers that most favor the first and the second response, such as
            [1, 2] or [-3, 3].
        threshold: Number of the scale that is a tie. Default: the middle of the scale.
    """

    first: Values = ()
    second: Values = ()
    tie: Values = ()
    scale: tuple[float, float] | None = None
    threshold: float | None = None

    @model_validator(mode="after")
    def _one_meaning_each(self) -> Self:
        duplicates = [value for value, count in Counter(chain(*self._values)).items() if count > 1 or not value]
        if duplicates:
            raise ValueError(f"the label {duplicates[0]!r} is empty or has two meanings; name each label once")
        if self.scale is None:
            if self.threshold is not None:
                raise ValueError("`threshold` requires `scale`")
            return self
        if self.first or self.second:
            raise ValueError("`scale` replaces `first` and `second`; leave one of them out")
        if self.scale[0] == self.scale[1] or not all(map(isfinite, (*self.scale, self._middle))):
            raise ValueError("`scale` needs two different numbers")
        if not min(self.scale) < self._middle < max(self.scale):
            raise ValueError(f"the `threshold` {self._middle:g} is not between the ends of the `scale`")
        return self

    @property
    def _values(self) -> tuple[Values, Values, Values]:
        """The values for a tie, the first response and the second response."""
        named = self.first or self.second or self.scale
        return self.tie, self.first if named else ("1",), self.second if named else ("2",)

    @property
    def _middle(self) -> float:
        return sum(self.scale or ()) / 2 if self.threshold is None else self.threshold

    @property
    def expected(self) -> str:
        """The known labels, in words."""
        ties, first, second = map(", ".join, self._values)
        parts = [f"{first} (the first response is better)"] * bool(first)
        parts += [f"{second} (the second is)"] * bool(second)
        if self.scale:
            low, high = self.scale
            parts.append(f"numbers from {low:g} (the first response is better) to {high:g} (the second is)")
        return " or ".join([*parts, *[f"{ties} (a tie)"] * bool(ties)])

    @property
    def right_or_wrong(self) -> str:
        """The known labels of right and wrong responses, in words."""
        if self.scale:
            side = "above" if self.scale[0] > self.scale[1] else "below"
            return f"numbers from {self.scale[0]:g} to {self.scale[1]:g}, right if {side} {self._middle:g}"
        _, right, wrong = map(", ".join, self._values)
        return f"{right} (right) or {wrong} (wrong)"

    def meaning(self, label: object) -> int | None:
        """Return `FIRST`, `SECOND` or `TIE`; None for an unknown label."""
        key = label_key(label)
        for side, values in enumerate(self._values):
            if key in values:
                return side
        try:
            number = float(key or "")
        except ValueError:
            return None
        low, high = self.scale or (inf, inf)
        if not min(low, high) <= number <= max(low, high):
            return None
        return TIE if number == self._middle else SECOND if (number > self._middle) == (high > low) else FIRST

    def strength(self, label: object) -> float | None:
        """Return how far a number of the scale is from the tie, as a share of the largest distance; 0 for a tie.

        None without a scale.
        """
        if self.scale is None:
            return None
        if self.meaning(label) == TIE:
            return 0.0
        return abs(float(label_key(label) or "") - self._middle) / max(abs(end - self._middle) for end in self.scale)

    def majority(self, labels: Iterable[Any]) -> int:
        """Return the meaning of more than half of a pair's labels, else `TIE`; missing labels do not count."""
        return majority_of(self.meaning(label) for label in labels if label_key(label) is not None)


def majority_of(meanings: Iterable[int | None]) -> int:
    """Return the meaning of more than half of some votes, else `TIE`."""
    counts = Counter(meanings)
    return next((side for side in (FIRST, SECOND) if counts[side] * 2 > counts.total()), TIE)
