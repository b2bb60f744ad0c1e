"""A plain function from groups to scores as a reward model."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from pluralbench_runs import progress

from pluralbench_rewards.contract import Group, ModelRecord, OnScored, Scored
from pluralbench_rewards.errors import FunctionError

AT_ONCE = 64  # groups that a function is given in one call, so that an interrupted run keeps what is done

Function = Callable[[Sequence[Group]], Sequence[Sequence[float]]]


@dataclass(frozen=True)
class FunctionModel:
    """A function from groups to scores: for each group a list with a number for each response, in their order.

    What is not a finite number counts as invalid. It is called with some groups at a time.
    """

    function: Function

    def record(self) -> ModelRecord:
        """Its qualified name, the file it stands in, and the digest of its code."""
        function: Any = inspect.unwrap(self.function)
        if isinstance(function, partial):
            inner = FunctionModel(function.func).record()
            given = repr((function.args, sorted(function.keywords.items())))
            code = inner.digest and hashlib.sha256(f"{inner.digest}\n{given}".encode()).hexdigest()
            return inner.model_copy(update={"digest": code})
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__
        return ModelRecord(name=name, kind="function", digest=_code_digest(function), settings={"module": module})

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Score every group. Raises `FunctionError` for a result that has not a number for each response."""
        scores = dict(known or {})
        new = [place for place in range(len(groups)) if place not in scores]
        with progress("scoring", len(new)) as meter:
            for start in range(0, len(new), AT_ONCE):
                places = new[start : start + AT_ONCE]
                given = [groups[place] for place in places]
                for place, values in zip(places, self._checked(given), strict=True):
                    scores[place] = values
                    meter.advance()
                    if on_scored is not None:
                        on_scored(place, values)
        return Scored([scores[place] for place in range(len(groups))], cut=[0] * len(groups))

    def _checked(self, groups: Sequence[Group]) -> list[list[float]]:
        result: Any = self.function(groups)
        try:
            rows = [list(row) for row in result]
        except TypeError:
            raise FunctionError(
                f"{self._named} returned {type(result).__name__}, not a list of scores for each group."
            ) from None
        if len(rows) != len(groups):
            raise FunctionError(f"{self._named} returned scores of {len(rows):,} groups for {len(groups):,}.")
        for group, row in zip(groups, rows, strict=True):
            if len(row) != len(group.responses):
                raise FunctionError(
                    f"{self._named} returned {len(row):,} scores for the {len(group.responses):,} responses of "
                    f"{group.id}."
                )
        try:
            return [[float(value) for value in row] for row in rows]
        except (TypeError, ValueError) as error:
            raise FunctionError(f"{self._named} returned a score that is no number ({error}).") from None

    @property
    def _named(self) -> str:
        return f"The function {self.record().name}"


def _code_digest(function: Any) -> str | None:
    """SHA-256 of a function's compiled code with its constants and default values; None where it has no such code.

    What it reads from elsewhere, such as other functions and global variables, is not in it.
    """
    method = type(function).__call__ if callable(function) else None  # of an object that can be called
    code = getattr(function, "__code__", None) or getattr(method, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    defaults = repr((getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)))
    return hashlib.sha256("\n".join([*_parts(code), defaults]).encode()).hexdigest()


def _parts(code: CodeType) -> list[str]:
    """Bytecode, names and constants, those of nested functions included; without addresses and line numbers."""
    parts = [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts += _parts(constant)
        else:  # the order of a set differs from process to process
            parts.append(str(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant))
    return parts
