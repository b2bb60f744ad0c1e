"""The tables of `docs/reference/names.md`: what each setting is called in commands, Python, TOML and `run.json`.

`python tests/support/names_table.py` prints them.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from inspect import Parameter
from typing import Annotated, Any, NamedTuple

from build_chinese.recipe import ChineseRecipe
from build_multilingual.recipe import MultilingualRecipe
from build_persona_judge.recipe import PersonaJudgeRecipe
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.training.recipe import TrainingRecipe
from command_options import options
from pluralbench import config
from pluralbench.results.record import DataRecord, PromptRecord
from pluralbench_rewards import ModelRecord
from pluralbench_runs import FrozenModel, Recipe
from pluralbench_runs.command_line import CommandLine
from pluralbench_runs.options import Options
from pluralbench_runs.recipe_options import RecipeOptions


class Group(NamedTuple):
    """A configuration.

    Attributes:
        model: Its class.
        run: Where `run.json` has it, below `config`; "" for what it does not record.
        record: What `run.json` has there, if not the configuration itself.
        table: Its table in the TOML file of a study; "" for what a study does not set.
    """

    model: type[FrozenModel]
    run: str
    record: type[FrozenModel] | None = None
    table: str = ""


GROUPS = [
    Group(config.DataConfig, "data", DataRecord, "benchmarks.NAME"),
    Group(config.PromptConfig, "prompt", PromptRecord, "benchmarks.NAME"),
    Group(config.LocalModel, "model", ModelRecord),
    Group(config.RuntimeConfig, "", None, "runtime"),
    Group(config.ScoringConfig, "scoring", None, "scoring"),
    Group(config.ServingConfig, ""),
    Group(config.ClusterConfig, ""),
    Group(config.ConnectionConfig, "connection", None, "judge_connection"),
    Group(config.JudgeConfig, "judging"),
    Group(config.PersonaJudgeConfig, "judging"),
    Group(config.SynthesizeConfig, "synthesizing"),
    Group(config.TrainingConfig, "", None, "models.train.options"),
    Group(config.PersonalizeConfig, "personalizing"),
    Group(config.PersonalConfig, "options"),
    Group(config.PlannerConfig, ""),
    Group(config.PlanConfig, "sampling"),
    Group(config.AspectMatchingConfig, "matching"),
    Group(config.SamplingConfig, "sampling", None, "sampling"),
    Group(config.OutcomeConfig, "outcome", None, "outcome"),
    Group(config.OptimizeConfig, "options", None, "optimization.options"),
    Group(config.RewardServerConfig, ""),
]
STUDY_ITEMS = {"location", "configs", "split", "columns", "limit", "profile", "profile_size"}


RECIPES: list[type[Recipe]] = [
    PersonalizedRecipe,
    TrainingRecipe,
    MultilingualRecipe,
    ChineseRecipe,
    PersonaJudgeRecipe,
]


def tables() -> Iterator[str]:
    """Yield a heading and a table for each configuration and each recipe."""
    yield from _configurations()
    for recipe in RECIPES:
        keys = _flags(recipe, RecipeOptions(recipe))
        tables_of_texts = {key.rpartition(".")[0] for key in keys}
        rows = [(f"`{flag}`", f"`{key}`") for key, flag in keys.items() if key not in tables_of_texts]
        yield _section(recipe, ["option", "key of the recipe"], rows)


def _section(model: type[FrozenModel], head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([f"## {model.__name__}", "", *("| " + " | ".join(line) + " |" for line in lines)])


def _flags(model: type[FrozenModel], options: Options | RecipeOptions) -> dict[str, str]:
    kind = dict[str, Any] if isinstance(options, RecipeOptions) else model
    parameter = Parameter("configuration", Parameter.KEYWORD_ONLY, annotation=Annotated[kind, options])
    flags = CommandLine({parameter.name: parameter}, {}).flags
    return {name: flag for name, flag in flags.items() if not name.startswith("configuration")}


def _configurations() -> Iterator[str]:
    for group in GROUPS:
        rows = list(_rows(group))
        used = [0, 1, *(place for place in (2, 3) if any(row[place] for row in rows))]
        head = ["option", "field", "`run.json`", "TOML of a study"]
        yield _section(group.model, [head[place] for place in used], [[row[place] for place in used] for row in rows])


def _rows(group: Group) -> Iterator[tuple[str, str, str, str]]:
    recorded = set((group.record or group.model).model_fields) if group.run else set()
    flags = _flags(group.model, Options("", left_out=("name",)))
    for field in (field for field in group.model.model_fields if field in flags):
        digest = f"{field}_digest"
        name = field if field in recorded else digest if digest in recorded else ""
        in_study = group.table and (group.table != "benchmarks.NAME" or field in STUDY_ITEMS)
        yield (
            f"`{flags[field]}`" if flags[field] in options() else "",
            f"`{field}`",
            f"`config.{group.run}.{name}`" if name else "",
            f"`{group.table}.{field}`" if in_study else "",
        )


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(tables()) + "\n")
