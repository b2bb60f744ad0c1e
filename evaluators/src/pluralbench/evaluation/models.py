"""Models to score with, from names, configurations, reward models and plain functions."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

from pluralbench_calls.chat import LOCAL, ChatModel, ConnectionConfig, model_overrides
from pluralbench_local import LocalModel, ServedModel
from pluralbench_rewards import (
    AnyRewardModel,
    FunctionModel,
    ModelConfig,
    ModelRecord,
    PairwiseRewardModel,
    RewardModel,
    ScoringConfig,
    as_resumable,
)
from pluralbench_rewards.cluster import load_checked, on_cluster
from pluralbench_runs import ClusterConfig, check_recipe, step

from pluralbench.errors import EvaluationError
from pluralbench.results.record import EMBEDDED

DUPLICATE_NAME = "Two reward models have the name {name}; give each its own, as NAME=MODEL."

Scorable = str | Path | ModelConfig | AnyRewardModel | Callable[..., Any]


def resolve_model(
    model: Scorable, scoring: ScoringConfig, cluster: ClusterConfig | None = None
) -> tuple[ModelRecord, Callable[[], AnyRewardModel]]:
    """Return the record of a model before it is loaded, and a function that loads it.

    Args:
        model: A name, configuration, reward model or function.
        scoring: How the model runs.
        cluster: Ray cluster that loads the model and scores. Default: this process.

    Raises:
        EvaluationError: If the model has no known type, or the other arguments do not apply to it.
    """
    if cluster is not None and cluster.address is not None:
        record, load = _resolve_for_cluster(model, scoring)
        return record, lambda: on_cluster(cluster, load, record)
    model = model_config(model)
    if isinstance(model, ModelConfig):
        config = model
        return config.record(), partial(_load, config, scoring)
    if scoring != ScoringConfig():
        raise EvaluationError("`scoring=...` applies to models that are loaded in this process; leave it out.")
    if isinstance(model, RewardModel):
        loaded_model = as_resumable(model)
        return loaded_model.record(), lambda: loaded_model
    if isinstance(model, PairwiseRewardModel):
        pairwise = model
        return pairwise.record(), lambda: pairwise
    if callable(model):
        function = FunctionModel(cast("Any", model))
        return function.record(), lambda: function
    raise EvaluationError(
        f"{type(model).__name__} is not a model; pass a name or directory, a `LocalModel`, a `RewardModel`, a "
        "`PairwiseRewardModel`, or a function from groups to scores."
    )


def with_scores(model: AnyRewardModel, use: str) -> RewardModel:
    """Return a model that gives scores. Raises `EvaluationError` for one that only compares two responses.

    Args:
        model: The model.
        use: What needs scores, for the error.
    """
    if isinstance(model, RewardModel):
        return model
    raise EvaluationError(
        f"{model.record().name} only compares two responses, and {use} needs a score of each; use another reward model."
    )


def _load(config: ModelConfig, scoring: ScoringConfig) -> AnyRewardModel:
    if isinstance(config, ServedModel) or (isinstance(config, LocalModel) and config.personal() is None):
        config.check_location()  # importing the libraries takes seconds
    with step("Importing the libraries of the model"):
        load = resolve_name(config.loader)
    return cast("AnyRewardModel", load(config, scoring))


def _resolve_for_cluster(model: Scorable, scoring: ScoringConfig) -> tuple[ModelRecord, Callable[[], AnyRewardModel]]:
    """Return the record of a model, and a picklable function that loads it in a worker."""
    model = model_config(model)
    record, load = resolve_model(model, scoring)
    if isinstance(model, ServedModel):
        raise EvaluationError(
            f"The reward model {record.name} runs in servers and uses no cluster; leave out the servers or the cluster."
        )
    if isinstance(model, ModelConfig):
        return record, partial(load_checked, model, scoring, record)
    if isinstance(model, RewardModel | PairwiseRewardModel):
        raise EvaluationError(
            f"The reward model {record.name} is loaded in this process, so a worker of a cluster cannot load it; pass "
            "its name or a `LocalModel`."
        )
    return record, load


def model_config(model: Scorable) -> Scorable:
    """Convert a name or directory to a `LocalModel`; "local" is the implicit reward of the embedded model."""
    if isinstance(model, str | Path):
        model = LocalModel(name=str(model))
    if isinstance(model, LocalModel) and model.name == LOCAL:
        return model.model_copy(update={"name": base_model_path(LOCAL), "kind": "implicit"})
    return model


def resolve_chat_model(
    name: str, connection: ConnectionConfig | None, sampling: Mapping[str, Any], role: str, *, seeded: bool = True
) -> tuple[ChatModel, ConnectionConfig]:
    """Resolve a chat model's name and its connection.

    Args:
        name: Name of a model at the connection's endpoint, or "local" for the embedded model.
        connection: Endpoint and limits. Default: OpenAI's API.
        sampling: Sampling options of `ChatModel`.
        role: What the model is used as in errors, such as "judge".
        seeded: Whether requests to the embedded model carry seeds.

    Raises:
        RecipeError: If an option is not valid.
    """
    connection = connection or ConnectionConfig()
    tables: dict[str, dict[str, Any]] = {"model": dict(sampling), "connection": connection.explicit_values()}
    overrides = model_overrides("model", name, connection.base_url, connection.api_key_env, {"seeded": seeded})
    for dotted, value in overrides.items():
        table, _, key = dotted.partition(".")
        tables[table][key] = value
    return (
        check_recipe(ChatModel, tables["model"], f"of the {role}"),
        check_recipe(ConnectionConfig, tables["connection"], f"of the {role}'s connection"),
    )


def as_local_model(model: Scorable) -> LocalModel | None:
    """Return the `LocalModel` of a local or served model; None for anything else."""
    if isinstance(model, ServedModel):
        return model.model
    return model if isinstance(model, LocalModel) else None


def base_model_path(name: str) -> str:
    """Return the directory or name of a model; "local" is the embedded model's directory in the user's cache.

    The first use writes its weights there, which takes a few seconds (`pluralbench_policies.embedded_folder`).
    """
    if name != LOCAL:
        return name
    from platformdirs import user_cache_path

    folder = user_cache_path("pluralbench") / EMBEDDED
    if (folder / "config.json").is_file():  # it appears only when it is complete; checking it would import torch
        return str(folder)
    with step(f"Writing {EMBEDDED} to {folder}"):
        from pluralbench_policies import embedded_folder

        return str(embedded_folder(folder))
