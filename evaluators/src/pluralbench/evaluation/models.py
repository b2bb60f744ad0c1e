"""What can be scored with: a name or folder, a description, a reward model, or a plain function."""

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

from pluralbench_local import LocalModel
from pluralbench_rewards import Description, FunctionModel, ModelRecord, RewardModel, Scoring

from pluralbench.errors import EvaluationError

Scorable = str | Path | Description | RewardModel | Callable[..., Any]


def opened(model: Scorable, scoring: Scoring) -> tuple[ModelRecord, Callable[[], RewardModel]]:
    """What is known of a model before it is loaded, and how to load it. Raises `EvaluationError`."""
    if isinstance(model, str | Path):
        model = LocalModel(name=str(model))
    if isinstance(model, Description):
        described = model
        return described.record(), lambda: cast("RewardModel", resolve_name(described.loader)(described, scoring))
    if scoring != Scoring():
        raise EvaluationError("`scoring` says how a model is run that is loaded here; this one runs in its own way.")
    if isinstance(model, RewardModel):
        loaded = model
        return loaded.record(), lambda: loaded
    if callable(model):
        function = FunctionModel(cast("Any", model))
        return function.record(), lambda: function
    raise EvaluationError(
        f"Nothing can be scored with {type(model).__name__}: give a name or folder, a description such as LocalModel, "
        "a RewardModel, or a function from groups to scores."
    )
