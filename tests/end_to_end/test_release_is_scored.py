"""A release says itself what it is to be scored as, and none of its columns is one that nobody knows."""

import shutil
from pathlib import Path

import pytest
import yaml
from pluralbench import DataConfig
from pluralbench.data.persona_items import load_personas
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench_release import manifest_at
from samples import sample

BUILT = {"build-personalized": "personalized", "build-multilingual": "multilingual", "build-chinese": "chinese"}
PERSONAS = "run `pluralbench judge-personas`"


def tasks_of(release: Path) -> set[str]:
    """The configs behind the overall number, as the Hub is told."""
    tasks = yaml.safe_load((release / "eval.yaml").read_text(encoding="utf-8"))["tasks"]
    assert tasks[0]["id"] == "overall"
    assert all(task["id"] == task["config"] for task in tasks[1:])
    return {task["id"] for task in tasks[1:]}


@pytest.mark.parametrize("builder", BUILT)
def test_the_manifest_names_the_benchmark_and_the_schema_the_columns(builder: str, tmp_path: Path) -> None:
    release = sample(builder).release
    for place in (release, next(release.glob("data/*/test.parquet"))):
        loaded = load_benchmark(None, place, None)
        assert (loaded.name, loaded.items.source["ignored_columns"]) == (BUILT[builder], [])
    whole = load_benchmark(None, release, None)
    assert tasks_of(release) == {*whole.items.frame["config"]} - whole.benchmark.outside_overall
    alone = shutil.copytree(release / "data", tmp_path / "data")
    assert manifest_at(str(alone)) is None
    assert load_benchmark(BUILT[builder], alone, None).items.source["ignored_columns"] == []


def test_a_release_for_persona_judges_says_what_to_run() -> None:
    release = sample("build-persona-judge").release
    loaded = load_personas(str(release))
    assert (loaded.ignored, {*loaded.frame["config"]}) == ([], tasks_of(release))
    with pytest.raises(BenchmarkError) as caught:
        load_benchmark(None, release, None)
    assert PERSONAS in str(caught.value)


def test_another_benchmark_may_be_named_and_an_error_says_what_the_data_is() -> None:
    release = sample("build-multilingual").release
    assert load_benchmark("pairs", DataConfig(location=str(release), configs=("spa_Latn",)), None).name == "pairs"
    with pytest.raises(DataError) as caught:
        load_benchmark("chinese", release, None)
    assert str(caught.value).endswith(
        " The data's manifest names the benchmark multilingual: leave out `benchmark=...`."
    )
