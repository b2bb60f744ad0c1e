"""What worker processes check is what this process would have: the same release."""

from importlib import import_module
from pathlib import Path

import pytest
from build_multilingual import MultilingualRecipe, build
from build_multilingual.recipe import RECIPES
from pluralbench_runs import BuildOptions, read_recipe
from releases import files_of


@pytest.mark.heavy
def test_with_and_without_worker_processes_every_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("build_multilingual.build"), "MIN_TEXTS_FOR_WORKERS", 0)
    releases = [tmp_path / "one" / "release", tmp_path / "two" / "release"]
    recipe = read_recipe(MultilingualRecipe, RECIPES / "sample.toml").model_copy(update={"languages": ["spa_Latn"]})
    for processes, release in enumerate(releases, start=1):
        build(recipe, BuildOptions(out=release), processes=processes)
    one, two = map(files_of, releases)
    assert one.keys() == two.keys()
    assert [path for path in one if one[path] != two[path]] == []
