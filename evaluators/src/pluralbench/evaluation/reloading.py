"""Read the data and the model of a finished run again."""

from pathlib import Path
from typing import Any, NamedTuple

from pluralbench_local.config import READING_FIELDS
from pluralbench_rewards import ModelRecord
from pluralbench_runs import check_recipe, digest

from pluralbench.config import DataConfig, LocalModel, PromptConfig
from pluralbench.data.clusters import assign_blocks
from pluralbench.data.items import Items
from pluralbench.data.persona_items import PersonaItems
from pluralbench.data.personas import read_personas
from pluralbench.data.prompts import UserContext, read_plans
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.loading import SELECTION, LoadedBenchmark, LoadedPersonas, drawn_personas
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.examples import data_location, reload_items
from pluralbench.results.runs import Run

MODEL_FIELDS = (
    *("digest", "commit", "base_digest", "base_commit"),
    *("architecture", "parameters", "chat_template_digest"),
)
"""Fields of a model's record that tell models apart."""


class OtherPrompts(DataError):
    """Prompts of another version of pluralbench, or with a file that the run does not contain."""


class RunInputs(NamedTuple):
    """Inputs of a run that its directory does not contain."""

    data: str | None = None
    plans: Path | None = None
    personas: Path | None = None


RunData = LoadedBenchmark | LoadedPersonas
"""The data of a run, read again: its items with their user context, or those that the persona judge drew."""
DataCache = dict[str, Items | PersonaItems]
"""The data read last, for consecutive runs on the same data."""


def reload_data(run: Run, files: RunInputs, cache: DataCache | None = None) -> RunData:
    """Read the data of a run, with the user context of its prompts.

    Raises:
        UserError: The data or a file cannot be read.
    """
    place, cache = data_location(run, files.data), {} if cache is None else cache
    config: Any = run.config
    selection = config.data.model_dump(mode="json", include={*SELECTION, "on_empty", "reference"})
    key = digest([place, files.data, run.verb, selection, config.benchmark.description.model_dump(mode="json")])
    if key not in cache:
        cache.clear()
        cache[key] = reload_items(run, files.data)
    read = cache[key]
    if isinstance(read, PersonaItems):
        return drawn_personas(read, config.data, config.judging, config.seed)
    prompt = PromptConfig.model_validate(
        config.prompt.model_dump(include={"profile", "profile_size"}, exclude_none=True)
    )
    plans = read_plans(files.plans) if files.plans is not None and prompt.profile == "plan" else {}
    personas_file = files.personas if config.prompt.personas_digest is not None else None
    personas = {} if personas_file is None else read_personas(personas_file)
    context = UserContext(prompt, plans, personas, read.history)
    data = DataConfig.model_validate({name: getattr(config.data, name) for name in SELECTION})
    description = config.benchmark.description.model_copy(update={"strata": read.strata})
    blocks = assign_blocks(read.frame)
    return LoadedBenchmark(config.benchmark.name, description, read, data, context, None, read.frame, blocks)


def check_prompts(config: EvaluationRunConfig, data: RunData) -> LoadedBenchmark:
    """Return the items with their user context.

    Raises:
        OtherPrompts: The run's prompts differ from those that this version makes from the data.
    """
    if isinstance(data, LoadedPersonas):
        raise RunError("A run of `judge-personas` has prompts of its own.")
    current, recorded = data.prompt_record(), config.prompt
    if current.wordings_digest != recorded.wordings_digest:
        raise OtherPrompts("Its prompts differ from those of this version of pluralbench.")
    if current != recorded:
        raise OtherPrompts(
            "Its prompts use a file of plans or personas, which the run does not contain; give that file "
            "(`plans=...`, `personas=...`)."
        )
    return data


def reload_model(run: Run[Any, Any], name: str | None = None, *, trust_remote_code: bool = False) -> LocalModel:
    """Return the model that a run of `score` names, to load it here.

    Raises:
        RunError: The run is not of a model that can be loaded.
    """
    configured, recorded = run.config.model, run.result.model
    if recorded.kind not in {"classifier", "implicit", "token", "process", "pairwise", "personal"}:
        raise RunError(f"{run.path} is of {recorded.name}, of the kind {recorded.kind}, which cannot be loaded here.")
    settings = {name: value for name, value in configured.settings.items() if name in {*READING_FIELDS, "date"}}
    return check_recipe(
        LocalModel,
        {
            "name": name or recorded.name,
            "kind": None if recorded.kind == "personal" else recorded.kind,
            "base": recorded.base,
            "reference": configured.reference,
            "label": configured.label,
            "revision": recorded.commit if name is None else None,
            "dtype": configured.dtype or "auto",
            "trust_remote_code": trust_remote_code,
            **settings,
        },
        f"of the model of {run.path}",
    )


def check_same_model(run: Run, loaded: ModelRecord) -> None:
    """Raise `RunError` if the loaded model is not the one that the run records."""
    for name in MODEL_FIELDS:
        ours, theirs = getattr(run.result.model, name), getattr(loaded, name)
        if ours is not None and theirs is not None and ours != theirs:
            raise RunError(
                f"{loaded.name} is not the model that {run.path} records: its {name.replace('_', ' ')} is "
                f"{str(theirs)[:12]}, not {str(ours)[:12]}."
            )
