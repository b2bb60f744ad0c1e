"""The reward function for verl, which scores one completion per call; each process loads the reward model once."""

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
    """Make verl's reward function from a file that describes the reward model."""
    settings = json.loads(path.read_text(encoding="utf-8"))

    @cache
    def model() -> RewardModel:
        kind: Any = resolve_name(settings["description"])
        description: Any = kind.model_validate(settings["values"])
        loaded: RewardModel = resolve_name(description.loader)(
            description, ScoringConfig.model_validate(settings["scoring"])
        )
        return loaded

    def compute_score(solution_str: str, extra_info: dict[str, Any], **_: Any) -> float:
        """Score a completion. Raises `PolicyError` if it has no finite score: verl cannot ignore a completion."""
        group = group_of(extra_info["group"], solution_str)
        scored = model().score([group])
        score = next(iter(scored.scores[0]), math.nan)
        if not math.isfinite(score):
            reason = next(iter([*scored.reasons, *scored.dropped.values()]), "it is not finite")
            raise PolicyError(f"A completion of {group.id} has no score ({reason}).")
        return score / float(settings["divisor"])

    return compute_score


def group_of(text: str, response: str) -> Group:
    """Parse a task's JSON into a group with this single response."""
    values = json.loads(text)
    person = values.pop("person")
    return Group(**values | {"responses": [response], "person": None if person is None else _person_of(person)})


def _person_of(values: dict[str, Any]) -> Person:
    return Person(**values | {"earlier": tuple(EarlierPair(**pair) for pair in values["earlier"])})
