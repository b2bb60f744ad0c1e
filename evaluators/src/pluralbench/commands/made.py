"""Arguments of verbs that are made of several options, or of text."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pluralbench_local import LocalModel, ServedModel
from pluralbench_local.served.config import described
from pluralbench_runs import check_output
from pluralbench_runs.command import model_from_words
from pluralbench_runs.options import Flag, Options
from pydantic import Field

from pluralbench.arguments import HeldOut, PolicyConnection, Undrawn
from pluralbench.config import (
    ConnectionConfig,
    DataConfig,
    GenerationRuntime,
    RuntimeConfig,
    SamplingConfig,
    ServingConfig,
)
from pluralbench.config.fields import PLACE
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import DUPLICATE_NAME

if TYPE_CHECKING:
    from pluralbench.evaluation.models import Role
    from pluralbench.evaluation.without import ItemList

Policy = Annotated[str, Flag("--policy", "MODEL", "Policy")]
Reward = Annotated[str, Flag("--reward", "[NAME=]MODEL", "Reward model", model=LocalModel)]
Runtime = Annotated[RuntimeConfig, Options("Models in this process")]
Generating = Annotated[GenerationRuntime, Options("Model in this process")]


def model(model: LocalModel, *, serving: Annotated[ServingConfig, Options("Server")]) -> LocalModel | ServedModel:
    """Return the model behind the servers, or the local model if there are none."""
    return described(model, serving)


def local_reward(model: LocalModel) -> LocalModel:
    """Return the reward model in this process."""
    return model


def judges(
    model: Annotated[Sequence[str], Flag(metavar="MODEL...")], *, running: Generating, connection: ConnectionConfig
) -> str | LocalModel | Sequence[str | LocalModel]:
    """Return a judge or a panel: names of models at an endpoint, and models in this process."""
    models = [judge_model(name, running=running, connection=connection) for name in model]
    return models[0] if len(models) == 1 else models


def locations(*, data: Annotated[Sequence[str], Flag(metavar=f"[NAME=]{PLACE}")] = ()) -> dict[str, str]:
    """Return the locations of data by benchmark; "" for all others.

    Args:
        data: Location of the data: of one benchmark (NAME=LOCATION), or of all others; sample: bundled rows.
            Repeatable.
    """
    split = [("", "", text) if Path(text).exists() or "=" not in text else text.partition("=") for text in data]
    return {name: location for name, _, location in split}


def held_out(*, held_out: HeldOut = None) -> float | str | None:
    """Return a fraction, or the location of other items."""
    try:
        return None if held_out is None else float(str(held_out))
    except ValueError:
        return str(held_out)


def item_list(*, without: Annotated[Path | None, Flag(metavar="FILE")] = None) -> "ItemList | None":
    """Read a list of items.

    Args:
        without: Also show the overall numbers without these items, such as those of `contamination --out`.
    """
    from pluralbench.evaluation.without import read_item_list

    return None if without is None else read_item_list(without)


def page(*, html: Annotated[Path | None, Flag(metavar="FILE")] = None) -> Path | None:
    """Check that a page can be written, before the work that it reports.

    Args:
        html: Write a self-contained HTML page with tables, figures and items.
    """
    if html is not None:
        check_output(html)
    return html


def item_file(*, out: Annotated[Path | None, Flag(metavar="FILE")] = None) -> Path | None:
    """Check that items can be written to a file, before they are computed.

    Args:
        out: Write the contaminated items to this file (.jsonl or .parquet).
    """
    from pluralbench.evaluation.contamination import check_item_file

    if out is not None:
        check_item_file(out)
    return out


def judge_model(
    model: Annotated[str, Flag(metavar="MODEL")], *, running: Generating, connection: ConnectionConfig
) -> str | LocalModel:
    """Return the name of a judge at an endpoint, or a model in this process.

    Args:
        model: Name of a model at the endpoint; a directory or ORG/NAME on the Hub, which runs here if there is no
            --base-url; or `local` (small embedded model).
    """
    from pluralbench.evaluation.models import JUDGE

    return _chat_model(model, JUDGE, running, connection)


def _chat_model(name: str, role: "Role", running: GenerationRuntime, connection: ConnectionConfig) -> str | LocalModel:
    """Return a chat model in this process, or the name of another, which takes no options of `running`."""
    from pluralbench_policies import LanguageModel

    from pluralbench.evaluation.models import place_of

    if place_of(name, connection, role) == "here":
        return LanguageModel(name=name, **running.model_dump())
    given = next(iter(running.model_dump(exclude_defaults=True)), None)
    if given is not None:
        raise EvaluationError(
            f"`{given}=...` is for a model in this process, and {name} is called at an endpoint; give a directory or "
            f"ORG/NAME on the Hub without `base_url=...`, or leave out `{given}=...`."
        )
    return name


def planner(
    planner: Annotated[str, Flag(metavar="MODEL")], *, running: Generating, connection: ConnectionConfig
) -> str | LocalModel:
    """Return the name of a planner at an endpoint, or a model in this process."""
    from pluralbench.evaluation.models import PLANNER

    return _chat_model(planner, PLANNER, running, connection)


def policy(policy: Policy, *, running: Runtime, policy_connection: PolicyConnection) -> str | LocalModel:
    """Return the name of a policy at an endpoint, or a model in this process.

    Args:
        policy: Directory or ORG/NAME on the Hub to run here, a model of --policy-base-url, or `local` (embedded).
    """
    from pluralbench_policies import LanguageModel

    from pluralbench.evaluation.models import POLICY, place_of

    is_here = place_of(policy, policy_connection, POLICY) == "here"
    return LanguageModel(name=policy, **running.model_dump()) if is_here else policy


def local_policy(policy: Policy, *, running: Runtime) -> LocalModel:
    """Return the policy to optimize, in the dtype of its training.

    Args:
        policy: Language model with a chat template: directory or ORG/NAME on the Hub.
    """
    return LocalModel(name=policy, **running.model_dump(exclude={"dtype"}))


def rewards(
    reward: Annotated[list[str], Flag("--reward", "[NAME=]MODEL", "Reward models", model=LocalModel)],
    *,
    running: Runtime,
) -> Mapping[str, LocalModel]:
    """Return reward models by name.

    Args:
        reward: Reward model: directory or ORG/NAME on the Hub, in quotes with those options of `score` that it needs,
            such as "gpm=./gpm --label scaled"; repeatable.
    """
    models: dict[str, LocalModel] = {}
    for text in reward:
        model, dashes, options = text.partition(" --")
        name, _, model = model.partition("=") if "=" in model else (Path(model).name, "", model)
        if not name or not model:
            raise EvaluationError("A reward model has an empty name; write MODEL or NAME=MODEL.")
        if name in models:
            raise EvaluationError(DUPLICATE_NAME.format(name=name))
        own = model_from_words(LocalModel, [model, *_split(dashes + options)], "pluralbench score")
        models[name] = LocalModel(**(running.model_dump() | own.model_dump(exclude_defaults=True)))
    return models


def _split(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError as error:  # a quotation mark that is not closed
        raise EvaluationError(f"The options{options} of a reward model cannot be read: {error}.") from None


def reward(reward: Reward, *, running: Runtime) -> Mapping[str, LocalModel]:
    """Return the reward model by its name.

    Args:
        reward: Reward model: directory or ORG/NAME on the Hub, in quotes with those options of `score` that it needs,
            such as "./my-model --label mean".
    """
    return rewards([reward], running=running)


def judged_answers(
    *,
    sampling: Annotated[SamplingConfig, Options("Judge", ("n", "k"), "sample-")],
    samples: Annotated[int, Field(ge=1, le=100_000), Flag("--sample-n", panel="Judge")] = 1,
) -> SamplingConfig:
    """Return the sampling of the judged answers.

    Args:
        samples: Judged answers per prompt.
    """
    return sampling.model_copy(update={"n": samples})


def training_prompts(
    *,
    data: Undrawn = None,
    train_data: Annotated[str | None, Flag(metavar=PLACE, panel="Data")] = None,
    train_split: Annotated[str | None, Flag(panel="Data")] = None,
) -> DataConfig | None:
    """Return the prompts to optimize on; None: those that are judged.

    Args:
        train_data: Prompts to optimize on. Default: those of `data`; with --trained, they are not known.
        train_split: Split of `train_data` (or `data`) to optimize on. Default: `train` if `train_data` has it.
    """
    if not isinstance(data, DataConfig) or (train_data is None and train_split is None):
        return None
    return data.model_copy(update={"location": train_data or data.location, "split": train_split})
