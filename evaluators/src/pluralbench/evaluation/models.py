"""Where models are: reward models, judges and policies, from names, descriptions, objects and plain functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple, cast, get_args

from pluralbench_calls import Backend
from pluralbench_calls.chat import LOCAL, ChatModel, ConnectionConfig, model_overrides
from pluralbench_local import LocalModel, ServedModel
from pluralbench_local.config import described
from pluralbench_policies.language_models import Library, chat_model_of, language_model
from pluralbench_rewards import (
    AnyRewardModel,
    FunctionModel,
    MeasuresTolerance,
    ModelConfig,
    ModelRecord,
    PairwiseRewardModel,
    RewardModel,
    ScoringConfig,
    as_resumable,
)
from pluralbench_rewards.cluster import load_checked, on_cluster
from pluralbench_runs import ClusterConfig, check_recipe, log_status, step

from pluralbench.errors import EvaluationError

DUPLICATE_NAME = "Two reward models have the name {name}; give each its own, as NAME=MODEL."

Scorable = str | Path | ModelConfig | AnyRewardModel | Callable[..., Any]


@dataclass(frozen=True)
class FoundModel:
    """A reward model that is not loaded yet; can be pickled if its source can.

    Attributes:
        source: What describes it, or the model itself.
        scoring: How it runs.
        cluster: Ray cluster that loads it and scores. None: this process.
    """

    source: ModelConfig | AnyRewardModel
    scoring: ScoringConfig
    cluster: ClusterConfig | None = None

    @cached_property
    def record(self) -> ModelRecord:
        """The record of the model before it is loaded."""
        return self.source.record()

    @property
    def local(self) -> LocalModel | None:
        """The `LocalModel` of a local or served model; None for anything else."""
        return as_local_model(self.source)

    def check_folders(self) -> None:
        """Check the folders of the model, and of its reference, without importing libraries. Raises `LocalError`."""
        if isinstance(self.source, ServedModel):
            self.source.check_location()
        elif isinstance(self.source, LocalModel) and self.source.personal() is None:
            self.source.check_location()
            if self.source.reference is not None:
                LocalModel(name=self.source.reference).check_location()

    def load(self) -> AnyRewardModel:
        """Load the model. Raises `LocalError`."""
        if self.cluster is not None:
            load_there: Callable[[], AnyRewardModel] = replace(self, cluster=None).load
            if isinstance(self.source, ModelConfig):
                load_there = partial(load_checked, self.source, self.scoring, self.record)
            return on_cluster(self.cluster, load_there, self.record)
        if not isinstance(self.source, ModelConfig):
            return self.source
        self.check_folders()  # importing the libraries takes seconds
        if isinstance(self.source, LocalModel):
            self.source.check_on_hub()
        with step("Importing the libraries of the model"):
            load = resolve_name(self.source.loader)
        return cast("AnyRewardModel", load(self.source, self.scoring))


def find_model(model: Scorable, scoring: ScoringConfig, cluster: ClusterConfig | None = None) -> FoundModel:
    """Find a reward model: a folder or a name on the Hub, servers, a function, or a model in this process.

    "local" is the implicit reward of the embedded model.

    Raises:
        EvaluationError: If the model has no known type, or the other arguments do not apply to it.
    """
    if isinstance(model, str | Path | LocalModel):
        model = local_model(model, kind="implicit")
    if not isinstance(model, ModelConfig) and scoring != ScoringConfig():
        raise EvaluationError("`scoring=...` applies to models that are loaded in this process; leave it out.")
    if isinstance(model, ModelConfig | PairwiseRewardModel):
        found = FoundModel(model, scoring)
    elif isinstance(model, RewardModel):
        found = FoundModel(as_resumable(model), scoring)
    elif callable(model):
        found = FoundModel(FunctionModel(cast("Any", model)), scoring)
    else:
        raise EvaluationError(
            f"{type(model).__name__} is not a model; pass a name or directory, a `LocalModel`, a `RewardModel`, a "
            "`PairwiseRewardModel`, or a function from groups to scores."
        )
    if cluster is None or cluster.address is None:
        return found
    if isinstance(model, ServedModel):
        raise EvaluationError(
            f"The reward model {found.record.name} runs in servers and uses no cluster; leave out the servers or the "
            "cluster."
        )
    if isinstance(model, RewardModel | PairwiseRewardModel):
        raise EvaluationError(
            f"The reward model {found.record.name} is loaded in this process, so a worker of a cluster cannot load it; "
            "pass its name or a `LocalModel`."
        )
    return replace(found, cluster=cluster)


def reward_loader(model: Scorable, scoring: ScoringConfig, use: str) -> Callable[[], RewardModel]:
    """Return a function that loads a model to reward a policy, for the `use` that an error names.

    The function raises `EvaluationError`, too, if the model only compares two responses.

    Raises:
        EvaluationError: The model has no known type, is to run on all GPUs, or `scoring` does not apply to it.
    """
    found = find_model(model, scoring)
    found.check_folders()
    if isinstance(found.source, LocalModel) and found.source.device == "all":
        raise EvaluationError(
            f'`device="all"` loads {found.source.name} on each GPU for every batch, and {use} has many; choose one '
            "device."
        )
    return partial(_load_reward, found, use)


def _load_reward(found: FoundModel, use: str) -> RewardModel:
    model = found.load()
    if not isinstance(model, RewardModel):
        raise EvaluationError(
            f"{model.record().name} only compares two responses, and {use} needs a score of each; use another reward "
            "model."
        )
    return model.unmeasured() if isinstance(model, MeasuresTolerance) else model


def as_local_model(model: Scorable) -> LocalModel | None:
    """Return the `LocalModel` of a local or served model; None for anything else."""
    source = model.model if isinstance(model, ServedModel) else model
    return source if isinstance(source, LocalModel) else None


def local_model(model: str | Path | LocalModel, **of_embedded: Any) -> LocalModel:
    """Return a name or directory as a `LocalModel`; "local" is the embedded model, with these fields."""
    if not isinstance(model, LocalModel):
        model = LocalModel(name=str(model))
    return described(model, name=_embedded_folder(), **of_embedded) if model.name == LOCAL else model


Place = Literal["embedded", "endpoint", "here"]


class Role(NamedTuple):
    """What a chat model is for.

    Attributes:
        name: The role in errors.
        connection: Parameter of its connection, in errors.
        plain_name: Place of a name that is no folder and has no slash, if there is no endpoint.
        takes_schema: Whether the record of one in this process says that it takes JSON schemas. None there does.
    """

    name: str
    connection: str = "connection"
    plain_name: Place = "here"
    takes_schema: bool = True


JUDGE = Role("judge", plain_name="endpoint", takes_schema=False)  # no model of OpenAI's API has a slash in its name
RUBRIC_WRITER = JUDGE._replace(name="rubric model")
POLICY = Role("policy", "policy_connection")
PLANNER = Role("planner")


class FoundChat(NamedTuple):
    """A chat model, the connection to it, and, if it runs in this process, what makes its backend."""

    model: ChatModel
    connection: ConnectionConfig
    here: Callable[[], Backend] | None = None


def place_of(name: str | Path | LocalModel, connection: ConnectionConfig | None, role: Role) -> Place:
    """Return where a chat model is: the first of these places that has it.

    A description is of a model in this process, "local" is the embedded model, an endpoint has all other names. Without
    one, folders and names with a slash are in this process; plain names are where the role says: OpenAI's API or here.
    """
    if isinstance(name, LocalModel):
        return "here"
    if str(name) == LOCAL:
        return "embedded"
    if connection is not None and connection.base_url is not None:
        return "endpoint"
    return "here" if "/" in str(name) or Path(name).is_dir() else role.plain_name


def find_chat_model(
    name: str | Path | LocalModel,
    connection: ConnectionConfig | None,
    sampling: Mapping[str, Any],
    role: Role,
    *,
    seeded: bool = True,
) -> FoundChat:
    """Find a chat model and its connection, as `place_of` says.

    Args:
        name: Name or description.
        connection: Endpoint and limits.
        sampling: Sampling options of `ChatModel`.
        role: What the model is for.
        seeded: Whether requests to the embedded model carry seeds.

    Raises:
        RecipeError: An option is not valid.
        EvaluationError: A model in this process has options of a connection.
        PolicyError: The model in this process writes no text.
    """
    connection = connection or ConnectionConfig()
    place = place_of(name, connection, role)
    if place == "here":
        return _chat_model_here(name, connection, sampling, role)
    if place == "endpoint" and Path(str(name)).is_dir():
        # A server that loaded a folder may serve it under this name.
        log_status(
            f"{name} is a folder here, but the {role.name} is the server's model of this name; leave out --base-url "
            f"(`{role.connection}.base_url=...`) to run the folder."
        )
    tables: dict[str, dict[str, Any]] = {"model": dict(sampling), "connection": connection.explicit_values()}
    overrides = model_overrides("model", str(name), connection.base_url, connection.api_key_env, {"seeded": seeded})
    for dotted, value in overrides.items():
        table, _, key = dotted.partition(".")
        tables[table][key] = value
    return FoundChat(
        check_recipe(ChatModel, tables["model"], f"of the {role.name}"),
        check_recipe(ConnectionConfig, tables["connection"], f"of the {role.name}'s connection"),
    )


def _chat_model_here(
    name: str | Path | LocalModel, connection: ConnectionConfig, sampling: Mapping[str, Any], role: Role
) -> FoundChat:
    default = ConnectionConfig()
    given = [field for field in ConnectionConfig.model_fields if getattr(connection, field) != getattr(default, field)]
    if given:
        raise EvaluationError(
            f"{getattr(name, 'name', name)} runs in this process, where `{role.connection}.{given[0]}=...` has no "
            "effect; leave it out."
        )
    model = language_model(name)
    chat = chat_model_of(model, **sampling).model_copy(update={"structured_output": role.takes_schema})

    def backend() -> Backend:
        with step("Importing the libraries of the model"):  # takes seconds, so what cannot run is refused before
            from pluralbench_policies import generation_backend

        return generation_backend(model)

    return FoundChat(chat, connection, backend)


def chat_file_name(chat: ChatModel) -> str:
    """Return the name of a chat model for a directory's name; of one in this process, without its digest."""
    name = chat.model.rpartition("@")[0] if chat.provider in get_args(Library) else chat.model
    return Path(name).name


def _embedded_folder() -> str:
    """Return the embedded model's folder in the user's cache, where the first use writes its weights."""
    from platformdirs import user_cache_path

    from pluralbench.results.record import EMBEDDED

    folder = user_cache_path("pluralbench") / EMBEDDED
    if (folder / "config.json").is_file():  # it appears only when it is complete; checking it would import torch
        return str(folder)
    with step(f"Writing {EMBEDDED} to {folder}"):
        from pluralbench_policies import embedded_folder

        return str(embedded_folder(folder))
