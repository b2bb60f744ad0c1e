"""An option means one thing in all commands: one explanation, one type, one placeholder; and defaults are shown."""

import importlib
from pathlib import Path
from typing import Any, get_args

import pytest
from command_options import options
from pluralbench_runs.options import Key, recipe_defaults
from pydantic import BaseModel
from pydantic.fields import FieldInfo

DIFFERENT = {
    "--batch-size": "a step of a personalized reward model has pairs, a batch of another one responses",
    "--benchmark": "who scores or judges finds it in the data's manifest, other verbs have a benchmark of their own",
    "--data": "the data of a run that is shown may have moved",
    "--engine": "a reward model is behind servers, a policy is trained by a library",
    "--format": "a command has the formats that fit what it prints",
    "--held-out": "a planner is measured on a share of the people, a reward model on other items too",
    "--import": "studies come back in a folder, calls in files",
    "--judge": "the benchmarks have stand-ins of their own for a judge",
    "--labels": "a judge is compared with any, a builder keeps those of its own items",
    "--learning-rate": "the rate of a reward model falls, that of a policy does not",
    "--limit": "builders count what their source has, `show` the items of all configs",
    "--max-length": "what is trained has a limit of its own, what is scored the model's",
    "--on-overflow": "training cannot truncate a response",
    "--out": "what is written is a run, a release, a model, a folder of tasks or a file",
    "--personas": "personalize reads them whatever else is told",
    "--policy": "a policy that answers may be served, one that is trained may not",
    "--posts": "some are embedded, others a persona is written from",
    "--price": "translations are paid by the character",
    "--profile": "personalize trains with and without one, other verbs choose which",
    "--prompts": "annotators are given responses apart from the prompts, judges with them",
    "--recipe": "builders have recipes of their own",
    "--reward": "a policy is optimised against one reward model",
    "--steps": "a planner is trained for so many steps, a policy for so many in place of epochs",
    "--source": "builders have sources of their own",
}
BUILDERS = {
    "build_chinese": "ChineseRecipe",
    "build_multilingual": "MultilingualRecipe",
    "build_persona_judge": "PersonaJudgeRecipe",
    "build_personalized": "PersonalizedRecipe",
    "build_personalized.training": "TrainingRecipe",
}


def test_an_option_means_one_thing_in_all_commands() -> None:
    differing = {flag: dict(kinds) for flag, kinds in options().items() if len(kinds) > 1}
    assert {flag: kinds for flag, kinds in differing.items() if flag not in DIFFERENT} == {}
    assert differing.keys() == DIFFERENT.keys(), "an exception that is none any more"


def test_a_flag_is_never_also_a_switch() -> None:
    names = [name for flag in options() for name in flag.split("/")]
    assert len(names) == len(set(names))


def test_every_option_is_explained() -> None:
    unexplained = {flag for flag, kinds in options().items() if any(not what[0] for what in kinds)}
    assert unexplained == set()


def field(model: type[BaseModel], dotted: str) -> FieldInfo:
    """The field of a recipe that a dotted key names."""
    first, _, rest = dotted.partition(".")
    found = model.model_fields[first]
    if not rest:
        return found
    [inner] = [one for one in (found.annotation, *get_args(found.annotation)) if is_table(one)]
    return field(inner, rest)


def is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_help_shows_where_recipes_are_silent_is_the_default(builder: str) -> None:
    model = getattr(importlib.import_module(f"{builder}.recipe"), BUILDERS[builder])
    for key in importlib.import_module(f"{builder}.cli").KEYS.values():
        default = field(model, key.dotted).default
        assert key.otherwise in {None, default}, key


def test_defaults_are_shown_as_the_recipes_have_them(tmp_path: Path) -> None:
    keys = {name: Key(f"table.{name}", otherwise) for name, otherwise in {"size": 5, "on": True, "names": None}.items()}
    keys |= {"none": Key("none"), "price": Key("price"), "seed": Key("seed")}
    (tmp_path / "a.toml").write_text('seed = 1\n[table]\nsize = 2\nnames = ["x", "y"]\n', encoding="utf-8")
    (tmp_path / "b.toml").write_text(
        'seed = 1\nprice = { input = 1, output = 2.5 }\n[table]\nnames = ["q", "r", "s", "t"]', encoding="utf-8"
    )
    assert recipe_defaults(tmp_path, keys) == {
        "size": "a: 2, b: 5",
        "on": "yes",
        "names": "a: x y, b: 4 of them",
        "price": "b: 1/2.5",
        "seed": "1",
    }
