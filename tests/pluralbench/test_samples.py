"""`--data sample`: rows that come with the package, for every benchmark."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import DataConfig, find_benchmark, known_benchmarks, load_items
from pluralbench.data.persona_items import load_personas
from pluralbench.data.samples import FOLDER, read_data
from pluralbench.errors import DataError
from pluralbench.results import Run
from polars.testing import assert_frame_equal
from write_samples import BUILDERS, tables, write
from written_tables import write as write_table

RunsCommand = Callable[..., tuple[int, str, str]]
SCORED = [name for name, known in known_benchmarks().items() if not (known.persona_items or known.prompts_only)]


@pytest.mark.parametrize(
    "name", [name if name == "personalized" else pytest.param(name, marks=pytest.mark.heavy) for name in BUILDERS]
)
def test_the_sample_is_what_the_builder_makes_bare(name: str, tmp_path: Path) -> None:
    """If this fails, a builder's sample has changed: run tests/support/write_samples.py."""
    write(tmp_path, tables(*BUILDERS[name]))
    kept, made = (
        {path.name: path.read_text("utf-8") for path in at.glob("*.jsonl")} for at in (FOLDER / name, tmp_path)
    )
    assert kept == made


def renamed(value: Any, names: set[str | None]) -> Any:
    """A row under other names of its id, its user and its annotators; of `ref:N` and `tied:N`, the kind stays."""
    if isinstance(value, list):
        return [renamed(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    row = {key: renamed(one, names) for key, one in value.items()}
    for column in row.keys() & names:
        several = row[column] if isinstance(row[column], list) else [row[column]]
        parts = [str(one).rpartition(":") for one in several]
        others = [kind + colon + hashlib.sha256(name.encode()).hexdigest() for kind, colon, name in parts]
        row[column] = others if isinstance(row[column], list) else others[0]
    return row


@pytest.mark.parametrize("name", SCORED)
def test_every_benchmark_can_be_scored_on_its_sample_whose_names_and_order_change_no_number(
    score: Callable[..., Run], tmp_path: Path, name: str
) -> None:
    options = {"step_threshold": 0.0} if name == "processbench" else {}
    run = score(name, "sample", **options)
    assert run.config.data.location == "sample"
    assert run.config.data.license == "apache-2.0"
    assert run.headline.value is not None
    assert math.isfinite(run.headline.value)
    known = find_benchmark(name)
    names = {known.columns.id.split("+")[-1], known.columns.cluster}
    names |= {(known.annotations.annotator or "").split("+")[-1]} if known.annotations else set()
    for file in (FOLDER / (known.sample or name)).glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        write_table(tmp_path / "other" / file.name, [renamed(row, names) for row in reversed(rows)])
    other = score(name, tmp_path / "other", **options)
    assert_frame_equal(run.metrics, other.metrics, check_exact=True)


def test_the_sample_in_many_languages_has_its_english_original() -> None:
    frame = load_items(find_benchmark("multilingual"), DataConfig(location="sample")).frame
    assert {"eng_Latn", "translation", "spa_Latn"} <= set(frame["config"].unique())


def test_length_decides_no_language_of_the_sample_of_pairs() -> None:
    frame = load_items(find_benchmark("pairs"), DataConfig(location="sample")).frame
    for [language], part in frame.group_by("config"):
        longer = [len(right) > len(wrong) for right, wrong in part["responses"]]
        assert (sum(longer), len(longer)) == (16, 32), language
        assert all(len(right) != len(wrong) for right, wrong in part["responses"]), language
    assert frame["cluster"].n_unique() == 32  # intervals draw a question with all its languages


def test_the_sample_of_prompts_is_for_a_policy() -> None:
    items = load_items(find_benchmark("prompts"), DataConfig(location="sample"))
    assert set(items.frame["responses"].list.len()) == {0}


def test_the_command_names_the_sample_where_no_data_is_on_the_hub(run: RunsCommand, tmp_path: Path) -> None:
    for words in (["score", "./model", "--benchmark", "chinese"], ["judge-personas", "local"]):
        status, _, said = run(*words, "--out", tmp_path / "run")
        assert status == 2
        assert "has no default dataset; pass your own with `--data`, or use the bundled rows" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--benchmark", "multilingual", "--config", "spa"],
            "The sample of M-RewardBench has no config 'spa'; did you mean `spa_Latn`?",
        ),
        (["--config", "art_and_entertainment"], "did you mean `Art_and_Entertainment`?"),
        (["--config", "xyz"], "has no config 'xyz'; it has Art_and_Entertainment,"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_one_most_like_it(run: RunsCommand, words: list[str], said: str) -> None:
    status, _, error = run("score", "./model", "--data", "sample", *words)
    assert status == 2
    assert said in error


def test_a_benchmark_of_ones_own_has_no_sample(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "Mine"\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"Mine has no sample; pass its data with `data=...`"):
        load_items(find_benchmark(str(file)), DataConfig(location="sample"))


def test_a_folder_called_sample_can_still_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sample"
    folder.mkdir()
    row = {"id": "mine", "prompt": "Which?", "chosen": "this", "rejected": "that"}
    (folder / "mine.jsonl").write_text(json.dumps(row), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = read_data("./sample", title="Pairs", sample="pairs", split="test")
    assert list(found.frames) == ["mine"]


def test_the_sample_of_persons_has_every_task() -> None:
    personas = load_personas("sample")
    assert set(personas.frame["task"]) == {"prism", "opinion_qa", "empathic_conversations", "personal_reddit"}
    assert personas.license == "apache-2.0"


def test_each_item_of_rubric_bench_has_its_rubric() -> None:
    items = load_items("rubric-bench", "sample")
    assert items.frame["rubric"].null_count() == 0
    assert items.frame["rubric"][0].startswith("Does the text have two lines")
