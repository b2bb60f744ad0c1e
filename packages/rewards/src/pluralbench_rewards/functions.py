"""Python functions as reward models, and what identifies a model: a digest of its code or files, or a commit."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any

from pluralbench_calls.model_checks import unreachable_errors
from pluralbench_runs import digest, file_digest, plural, progress

from pluralbench_rewards.contract import Cached, Group, ModelRecord, OnScored, RewardModel, Scored
from pluralbench_rewards.errors import RewardsError

GROUPS_PER_CALL = 64  # an interrupted run keeps the scores of finished calls

Function = Callable[[Sequence[Group]], Sequence[Sequence[float]]]


@dataclass(frozen=True)
class FunctionModel:
    """A Python function as a reward model.

    Attributes:
        function: Maps some of the groups at a time to a list with one number per response, in order, for each.
            Non-finite numbers count as invalid.
        identity: The record of the model that the function belongs to. Default: one of the function.
    """

    function: Function
    identity: ModelRecord | None = None

    def record(self) -> ModelRecord:
        """Return `identity`, else the function's qualified name, its module and the digest of its code."""
        if self.identity is not None:
            return self.identity
        function: Any = inspect.unwrap(self.function)
        if isinstance(function, partial):
            inner = FunctionModel(function.func).record()
            arguments = repr((function.args, sorted(function.keywords.items())))
            code = inner.digest and hashlib.sha256(f"{inner.digest}\n{arguments}".encode()).hexdigest()
            return inner.model_copy(update={"digest": code})
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__
        return ModelRecord(name=name, kind="function", digest=_code_digest(function), settings={"module": module})

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score every group. Raises `RewardsError` if the function does not return one number per response."""
        scores = dict(cached or {})
        new = [index for index in range(len(groups)) if index not in scores]
        remaining = map(groups.__getitem__, new) if scores else iter(groups)
        with progress("scoring", len(groups), done=len(scores)) as meter:
            for start in range(0, len(new), GROUPS_PER_CALL):
                indices = new[start : start + GROUPS_PER_CALL]
                called = dict(zip(indices, self._call([*islice(remaining, len(indices))]), strict=True))
                scores |= called
                if on_scored is not None:
                    on_scored(called)
                meter.advance(items=len(indices))
        return Scored([scores[index] for index in range(len(groups))], tokens_cut=[0] * len(groups))

    def _call(self, groups: Sequence[Group]) -> list[list[float]]:
        result: Any = self.function(groups)
        try:
            rows = [list(row) for row in result]
        except TypeError:
            raise RewardsError(
                f"{self._title} returned {type(result).__name__} instead of a list of scores for each group."
            ) from None
        if len(rows) != len(groups):
            raise RewardsError(f"{self._title} returned scores of {len(rows):,} groups for {len(groups):,} groups.")
        for group, row in zip(groups, rows, strict=True):
            if len(row) != len(group.responses):
                raise RewardsError(
                    f"{self._title} returned {plural(len(row), 'score')} for the {len(group.responses):,} responses of "
                    f"the group {group.id}."
                )
        try:
            return [[float(value) for value in row] for row in rows]
        except (TypeError, ValueError, OverflowError) as error:
            raise RewardsError(f"{self._title} returned a score that is not a number ({error}).") from None

    @property
    def _title(self) -> str:
        return f"The function {self.record().name}"


def as_resumable(model: RewardModel) -> RewardModel:
    """Return a model that can be resumed, around one whose `score` takes groups alone and returns numbers."""
    parameters = inspect.signature(model.score).parameters.values()
    if len(parameters) > 1 and any(one.kind in {one.KEYWORD_ONLY, one.VAR_KEYWORD} for one in parameters):
        return model
    function: Any = model.score
    return FunctionModel(function, model.record())


def _code_digest(function: Any) -> str | None:
    """SHA-256 of a function's bytecode, constants and defaults, without globals; None for a builtin."""
    method = type(function).__call__ if callable(function) else None  # for callable objects
    code = getattr(function, "__code__", None) or getattr(method, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    defaults = repr((getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)))
    return hashlib.sha256("\n".join([*_parts(code), defaults]).encode()).hexdigest()


def _parts(code: CodeType) -> list[str]:
    """Bytecode, names and constants, also of nested functions, without addresses and line numbers."""
    parts = [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts += _parts(constant)
        else:  # the order of a set differs between processes
            parts.append(str(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant))
    return parts


MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.jinja", "*.py", "*.txt")
"""Files that determine a model's output: weights, configuration, tokenizer, chat template and custom code."""


def model_digest(name: str | Path) -> str | None:
    """Compute the SHA-256 of the files of a model folder (names and bytes); None if it is not a local folder."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    paths = sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)})
    return digest({path.name: file_digest(path) for path in paths})


def model_commit(name: str | Path, revision: str | None = None) -> str | None:
    """Look up the current commit of a revision of a model on the Hub; offline, that of the copy in the cache.

    None for a folder, or if neither is available; loading then reports the problem.
    """
    if Path(name).exists() or str(name).count("/") != 1:
        return None
    from huggingface_hub import HfApi, errors, try_to_load_from_cache

    try:
        return HfApi().model_info(str(name), revision=revision, timeout=20).sha
    except (errors.HFValidationError, LookupError, TypeError):  # a missing path such as ./model; no answer of a Hub
        return None
    except unreachable_errors():
        cached = try_to_load_from_cache(str(name), "config.json", revision=revision)
        return Path(cached).parent.name if isinstance(cached, str) else None
