"""A stranger's recipe names no path, and nothing that `datasets` could not load: it is refused when it is read."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from build_chinese.build import rebuild as rebuild_chinese
from build_chinese.recipe import RECIPES as CHINESE_RECIPES
from build_multilingual.build import rebuild as rebuild_multilingual
from build_multilingual.recipe import RECIPES as MULTILINGUAL_RECIPES
from build_persona_judge.build import rebuild as rebuild_personas
from build_persona_judge.recipe import RECIPES as PERSONAS_RECIPES
from build_personalized.build import rebuild as rebuild_personalized
from build_personalized.recipe import RECIPES as PERSONALIZED_RECIPES
from pluralbench_release import RECIPE
from pluralbench_runs import UserError

Rebuild = Callable[[Path, Path, Sequence[str]], None]
NAMES = ["../../../x", "/tmp/x", "x[red]y", "a*b", "a\0b", "..", "x" * 300, "nul"]  # noqa: S108 - a name to refuse
PERSONALIZED = (rebuild_personalized, PERSONALIZED_RECIPES)
CHINESE = (rebuild_chinese, CHINESE_RECIPES)
PERSONAS = (rebuild_personas, PERSONAS_RECIPES)
MULTILINGUAL = (rebuild_multilingual, MULTILINGUAL_RECIPES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("builder", "key", "value"),
    [
        (PERSONALIZED, "name", lambda name: name),
        (PERSONALIZED, "source.split", lambda name: name),
        (PERSONALIZED, "source.config_names", lambda name: {"Art_and_Entertainment": name}),
        (CHINESE, "annotated.benchmarks", lambda name: ["open", name]),
        (PERSONAS, "people_csv", lambda name: [{"location": "people", "task": name}]),
        (MULTILINGUAL, "languages", lambda name: [name]),
    ],
)
def test_a_name_that_is_none_is_refused_when_the_recipe_is_read(
    tmp_path: Path, builder: tuple[Rebuild, Path], key: str, value: Callable[[str], Any], name: str
) -> None:
    rebuild, recipes = builder
    values = tomllib.loads((recipes / "sample.toml").read_text(encoding="utf-8"))
    first, _, last = key.rpartition(".")
    table = values[first] if first else values
    table[last] = value(name)
    folder = tmp_path / "a" / "b" / "c"
    (folder / RECIPE).parent.mkdir(parents=True)
    (folder / RECIPE).write_text(tomli_w.dumps(values), encoding="utf-8")
    with pytest.raises(UserError, match=rf"`{first or last}[\w.]*`(: | has a null)") as caught:
        rebuild(folder, folder / "out", [])
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.rglob("*")} == {"a", "b", "c", "provenance", "recipe.toml"}
