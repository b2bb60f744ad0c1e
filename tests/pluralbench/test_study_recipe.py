"""What a study is asked to do: what contradicts itself is refused in a sentence, before anything is made."""

import os
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from pluralbench.downstream.study_recipe import FOLDER, StudyRecipe, read_study
from pluralbench_runs import RecipeError, differing_keys, write_recipe

Command = Callable[..., tuple[int, str, str]]
ITEMS = {"location": "people.jsonl", "profile": "none"}
WHOLE: dict[str, Any] = {
    "title": "A study",
    "policy": "./policy",
    "outcome": {"judge": "rubric-overlap"},
    "samples": {"learn": {"items": ITEMS}},
    "benchmarks": {"own pairs": ITEMS},
    "best_of_n": {"items": ITEMS},
    "models": [{"name": "a", "path": "./a"}, {"name": "b", "train": {"items": {"sample": "learn"}}}],
}
BUILT_IN = sorted(path.stem for path in FOLDER.glob("*.toml"))


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in WHOLE.items() if key not in keys}


def models(*rows: dict[str, Any]) -> dict[str, Any]:
    return {**WHOLE, "models": list(rows)}


A, B = WHOLE["models"]
WRONG = {
    "of one name": (models(A, B, {"name": "a", "path": "./c"}), "two reward models are named a; give them different"),
    "both": (models({**B, "path": "./b"}), "`models.0`: the model b needs either a `path` or a table `train`."),
    "neither": (models({"name": "c"}), "`models.0`: the model c needs either a `path` or a table `train`."),
    "no models": (models(), "`models` is empty; it needs at least one value."),
    "a path as a name": (models({"name": "org/m", "path": "."}), "`models.0.name`: the name 'org/m' has '/'"),
    "the folder above as a name": (models({"name": "..", "path": "."}), "`models.0.name`: the name '..' is the parent"),
    "sample": (
        {**WHOLE, "benchmarks": {"judged": {"sample": "chek"}}},
        "[samples] has no sample 'chek'.",
    ),
    "sample of a model": (
        models({"name": "c", "train": {"items": {"sample": "teach"}}}),
        "[samples] has no sample 'teach'.",
    ),
    "no policy": (without("policy"), "sampling and optimization need a `policy`."),
    "no judge": (without("outcome"), "the policy's answers need a judge; set `judge` in [outcome]."),
    "nothing": (
        without("benchmarks", "best_of_n"),
        "the study measures nothing; add a benchmark, [best_of_n] or [optimization].",
    ),
    "unknown key of items": (
        {**WHOLE, "best_of_n": {"items": {**ITEMS, "splits": "x"}}},
        "unknown key `best_of_n.items.splits`; did you mean `split`?",
    ),
    "unknown option": (
        models({"name": "c", "train": {"items": ITEMS, "options": {"epoch": 2}}}),
        "unknown key `epoch`; did you mean `epochs`?",
    ),
    "axis": ({**WHOLE, "axis": "Pairs"}, "`axis` needs models with a position on it; set `position` of the models."),
    "column": (
        {**WHOLE, "benchmarks": {"optimization": ITEMS}},
        "a benchmark cannot be named optimization, which is a column of scores.csv.",
    ),
    "a path as a benchmark": ({**WHOLE, "benchmarks": {"a/b": ITEMS}}, "the name 'a/b' has '/'"),
    "options": (
        {**WHOLE, "optimization": {"items": ITEMS, "options": {"algorithm": "rloo", "num_generations": 1}}},
        "rloo compares completions of a prompt; set `",
    ),
    "trained against no model": (
        {**WHOLE, "optimization": {"items": ITEMS, "trained": {"z": "./by-verl"}}},
        "`trained` of [optimization] names z, which is no reward model of the study.",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_contradicts_itself_is_refused_in_a_sentence(what: str, tmp_path: Path, run: Command) -> None:
    values, said = WRONG[what]
    path = tmp_path / "study.toml"
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    status, out, error = run("study", path, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert said in " ".join(error.split())
    assert error.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


def test_the_sentence_names_the_file_and_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(tomli_w.dumps(WRONG["of one name"][0]), encoding="utf-8")
    with pytest.raises(RecipeError) as refused:
        read_study(path)
    assert str(refused.value) == f"Recipe {path}: two reward models are named a; give them different names."


def test_an_unknown_study_lists_those_of_the_package(tmp_path: Path, run: Command) -> None:
    status, _, error = run("study", "nothing", "--out", tmp_path / "out")
    assert status == 2
    assert " ".join(error.split()) == (
        f"Error: There is no recipe 'nothing'; give {', '.join(BUILT_IN)} or the path of a TOML file."
    )
    assert "tiny" in BUILT_IN
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_of_the_package_is_shown_as_it_is(name: str, tmp_path: Path, run: Command) -> None:
    status, shown, _ = run("study", name, "--show")
    assert status == 0
    mine = tmp_path / "mine.toml"
    mine.write_text(shown, encoding="utf-8")
    built_in = read_study(name)
    assert read_study(mine) == built_in
    # What a study writes beside its page reads back as the same, too.
    write_recipe(built_in, tmp_path / "study.toml")
    assert differing_keys(read_study(tmp_path / "study.toml"), built_in) == []
    assert built_in.title
    assert built_in.about


@pytest.mark.timeout(30)
def test_a_pipe_is_not_shown(tmp_path: Path, run: Command) -> None:
    os.mkfifo(tmp_path / "mine.toml")
    status, _, error = run("study", tmp_path / "mine.toml", "--show")
    assert status == 2
    assert "mine.toml cannot be read: it is not a regular file" in " ".join(error.split())


def test_optimisation_has_the_seed_of_the_study_or_its_own() -> None:
    optimization: dict[str, Any] = {"items": ITEMS}
    values = {**WHOLE, "seed": 7, "optimization": optimization}
    before = deepcopy(values)
    read = StudyRecipe.model_validate(values)
    assert read.optimization is not None
    assert read.optimization.options.seed == 7
    assert values == before
    own = StudyRecipe.model_validate({**values, "optimization": {**optimization, "options": {"seed": 0}}})
    assert own.optimization is not None
    assert own.optimization.options.seed == 0
    assert tomllib.loads(tomli_w.dumps(own.model_dump(mode="json", exclude_none=True)))["optimization"]["options"]
