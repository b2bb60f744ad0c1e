"""The reward function that verl calls: one completion at a time, by a reward model that is loaded once a process."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pluralbench_rewards import EarlierPair, Group, Person, RewardModel, ScoringConfig

from pluralbench_policies.errors import PolicyError


def scorer_of(path: Path) -> Callable[..., float]:
    """What verl calls with a completion, by the reward model that the file describes."""
    given = json.loads(path.read_text(encoding="utf-8"))

    @cache
    def model() -> RewardModel:
        kind: Any = resolve_name(given["description"])
        description: Any = kind.model_validate(given["values"])
        loaded: RewardModel = resolve_name(description.loader)(
            description, ScoringConfig.model_validate(given["scoring"])
        )
        return loaded

    def compute_score(solution_str: str, extra_info: dict[str, Any], **_: Any) -> float:
        """The reward of a completion. Raises `PolicyError` for one without: verl has no way to leave one out."""
        group = group_of(extra_info["group"], solution_str)
        scored = model().score([group])
        score = next(iter(scored.scores[0]), math.nan)
        if not math.isfinite(score):
            reason = next(iter([*scored.reasons, *scored.dropped.values()]), "it is not finite")
            raise PolicyError(f"A completion of {group.id} got no score ({reason}).")
        return score / float(given["divisor"])

    return compute_score


def group_of(text: str, response: str) -> Group:
    """The group that a task's JSON describes, with this response alone."""
    values = json.loads(text)
    person = values.pop("person")
    return Group(**values | {"responses": [response], "person": None if person is None else _person_of(person)})


def _person_of(values: dict[str, Any]) -> Person:
    return Person(**values | {"earlier": tuple(EarlierPair(**pair) for pair in values["earlier"])})
