"""What can be scored with: a name or folder, a description, a reward model, or a plain function."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

from pluralbench_calls.chat import LOCAL, ChatModel, ConnectionConfig, model_overrides
from pluralbench_local import LocalModel, ServedModel
from pluralbench_rewards import FunctionModel, ModelConfig, ModelRecord, RewardModel, ScoringConfig
from pluralbench_rewards.cluster import OnCluster, loaded
from pluralbench_runs import ClusterConfig, check_recipe

from pluralbench.config import RuntimeConfig
from pluralbench.errors import EvaluationError

EMBEDDED = "SmolLM2-135M-Instruct"
DUPLICATE_NAME = "Two reward models are named {name}; give each a name of its own, as NAME=MODEL."

Scorable = str | Path | ModelConfig | RewardModel | Callable[..., Any]


def resolve_model(
    model: Scorable, scoring: ScoringConfig, cluster: ClusterConfig | None = None
) -> tuple[ModelRecord, Callable[[], RewardModel]]:
    """What is known of a model before it is loaded, and how to load it. Raises `EvaluationError`.

    cluster: where one is given, it is loaded and scores there.
    """
    if cluster is not None and cluster.address is not None:
        known, load = _sent(model, scoring)
        return known, lambda: OnCluster(cluster, load, known)
    model = model_config(model)
    if isinstance(model, ModelConfig):
        described = model
        return described.record(), lambda: cast("RewardModel", resolve_name(described.loader)(described, scoring))
    if scoring != ScoringConfig():
        raise EvaluationError("`scoring` says how a model is run that is loaded here; this one runs in its own way.")
    if isinstance(model, RewardModel):
        given = model
        return given.record(), lambda: given
    if callable(model):
        function = FunctionModel(cast("Any", model))
        return function.record(), lambda: function
    raise EvaluationError(
        f"Nothing can be scored with {type(model).__name__}: give a name or folder, a description such as LocalModel, "
        "a RewardModel, or a function from groups to scores."
    )


def _sent(model: Scorable, scoring: ScoringConfig) -> tuple[ModelRecord, Callable[[], RewardModel]]:
    """What is known of a model, and what loads it in a worker of a cluster. Raises `EvaluationError`."""
    model = model_config(model)
    known, load = resolve_model(model, scoring)
    if isinstance(model, ServedModel):
        raise EvaluationError(
            f"The reward model {known.name} is in servers already, so workers of a cluster are of no use to it; leave "
            "out one of the two."
        )
    if isinstance(model, ModelConfig):
        return known, partial(loaded, model, scoring, known)
    if isinstance(model, RewardModel):
        raise EvaluationError(
            f"The reward model {known.name} is in this process already, so no worker of a cluster can load it; give "
            "its description."
        )
    return known, load


def model_config(model: Scorable) -> Scorable:
    """A model that may be given by its name, as its description; "local" is the embedded model's implicit reward."""
    if isinstance(model, str | Path):
        model = LocalModel(name=str(model))
    if isinstance(model, LocalModel) and model.name == LOCAL:
        return model.model_copy(update={"name": base_model_path(LOCAL), "kind": "implicit"})
    return model


def resolve_chat_model(
    name: str, connection: ConnectionConfig | None, sampling: Mapping[str, Any], what: str, *, seeded: bool = True
) -> tuple[ChatModel, ConnectionConfig]:
    """The chat model of a name, sampled so, and how it is reached. Raises `RecipeError`.

    name: of a model of the connection's endpoint (without a base URL, OpenAI's), or "local". what: it is, for errors.
    seeded: whether the embedded one is sent seeds.
    """
    connection = connection or ConnectionConfig()
    tables: dict[str, dict[str, Any]] = {"model": dict(sampling), "connection": connection.given()}
    chosen = model_overrides("model", name, connection.base_url, connection.api_key_env, {"seeded": seeded})
    for dotted, value in chosen.items():
        table, _, key = dotted.partition(".")
        tables[table][key] = value
    return (
        check_recipe(ChatModel, tables["model"], f"of the {what}"),
        check_recipe(ConnectionConfig, tables["connection"], f"of the {what}'s connection"),
    )


def as_local_model(model: Scorable) -> LocalModel | None:
    """What describes a model in this process, also where servers hold it; None for anything else."""
    if isinstance(model, ServedModel):
        return model.model
    return model if isinstance(model, LocalModel) else None


def policy_config(name: str, running: RuntimeConfig, connection: ConnectionConfig) -> str | LocalModel:
    """A policy by its name on a command line: described to run in this process, unless an endpoint serves it."""
    served = name == LOCAL or connection.base_url is not None
    return name if served else LocalModel(name=name, **running.model_dump())


def base_model_path(name: str) -> str:
    """The folder or name of a model; "local" is the embedded model, whose weights are kept in the cache.

    They are written there in half a minute at first (`pluralbench_policies.embedded_folder`).
    """
    if name != LOCAL:
        return name
    from platformdirs import user_cache_path  # noqa: PLC0415 - used by few
    from pluralbench_policies import embedded_folder  # noqa: PLC0415 - needs torch

    return str(embedded_folder(user_cache_path("pluralbench") / EMBEDDED))


def reward_model_configs(names: Sequence[str], running: RuntimeConfig) -> dict[str, LocalModel]:
    """Reward models from a command line, "MODEL" or "NAME=MODEL", by name. Raises `EvaluationError`."""
    pairs = [name.partition("=") if "=" in name else (Path(name).name, "=", name) for name in names]
    twice = next((name for name, _, _ in pairs if [pair[0] for pair in pairs].count(name) > 1), None)
    if twice is not None:
        raise EvaluationError(DUPLICATE_NAME.format(name=twice))
    if any(not name or not model for name, _, model in pairs):
        raise EvaluationError("A reward model is given as MODEL or NAME=MODEL.")
    return {name: LocalModel(name=model, **running.model_dump()) for name, _, model in pairs}
