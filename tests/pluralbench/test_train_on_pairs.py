"""A preference release is trained on the pairs that its `annotations` kept, not on all that its ranks order."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench import DataConfig, train
from pluralbench.config import TrainingConfig
from pluralbench.downstream.study_recipe import FOLDER
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.evaluation.train import items_to_rankings
from pluralbench_local import LocalModel
from samples import sample
from small_world import write_study
from undrawn import undrawn
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
Row = dict[str, Any]
STUDIES = ("cheems-sets", "cheems-scaling")
QUICK = {"batch_size": 8, "gradient_accumulation_steps": 1, "max_length": 1024, "head_init": "by-width", "epochs": 1}


def release() -> Path:
    return sample("build-chinese").release


def row(**changed: Any) -> Row:
    """One prompt whose response "d" nobody ranked."""
    names = "abcd"
    return {
        "input": "怎么泡茶？",
        "responses": [{"id": name, "content": f"答{name}"} for name in names],
        "rank": {"a": 1, "b": 2, "c": 2},
        "annotations": [["a", "b", "1"], ["c", "a", "2"], ["b", "c", "s"], ["b", "c", "1"]],
        "category": ["理解"],
    } | changed


def learned(path: Path) -> list[tuple[list[str], list[tuple[int, int]]]]:
    """The responses and pairs of each item, as they are trained on."""
    loaded = load_benchmark("chinese", path, None, for_training=True)
    return [(list(one.responses), one.pairs_to_learn()) for one in items_to_rankings(loaded)]


@pytest.mark.heavy
def test_the_kept_pairs_of_the_release_are_trained_on_and_lengths_stay_balanced() -> None:
    loaded = load_benchmark(
        "chinese", DataConfig(location=str(release()), configs=("preference",)), None, for_training=True
    )
    rows = {
        one["id"]: one for one in pl.read_parquet(release() / "data/preference/train.parquet").iter_rows(named=True)
    }
    counts = {name: [0, 0, 0] for name in ("people", "invented-judge")}
    for ranking in items_to_rankings(loaded):
        of_row, texts = rows[ranking.id], ranking.responses
        text = {one["id"]: one["content"] for one in of_row["responses"]}
        gaps = [len(texts[better]) - len(texts[worse]) for better, worse in ranking.pairs_to_learn()]
        count = counts[of_row["annotated_by"]]
        for place, number in enumerate((len(gaps), sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps))):
            count[place] += number
        if of_row["annotated_by"] == "people":  # whose marks are in conflict: the ranks say which are kept
            kept = {(texts[better], texts[worse]) for better, worse in ranking.pairs_to_learn()}
            assert kept == {(text[better], text[worse]) for better, worse in of_row["order"]}
        else:
            assert len(gaps) == len(of_row["annotations"])
    assert counts == {"people": [131, 93, 32], "invented-judge": [70, 33, 33]}


def test_train_takes_the_split_and_the_pairs_without_being_told(
    run: Command, language_models: Callable[..., str], tmp_path: Path
) -> None:
    words = ["--benchmark", "chinese", "--data", release(), "--config", "preference", "--device", "cpu"]
    words += ["--epochs", "1", "--gradient-accumulation-steps", "1", "--trainable", "head", "--max-length", "250"]
    status, said, error = run("train", language_models(), *words, "--out", tmp_path / "out")
    assert status == 0, error
    assert "Left out, because no training pair has them: 20 responses." in said
    assert " training responses were too long and were left out, and with them " in said
    # What is scored needs a rank of every response, whether training has a use for it or not.
    with pytest.raises(DataError) as refused:
        load_benchmark("chinese", DataConfig(location=str(release()), configs=("preference",), split="train"), None)
    assert str(refused.value).endswith("at id q19: the responses q19-b have no rank.")


def test_what_ranks_have_equal_is_no_pair_and_rows_of_one_prompt_are_joined(tmp_path: Path) -> None:
    path = write(tmp_path / "preference.jsonl", [row()])
    assert learned(path) == [(["答a", "答b", "答c"], [(0, 1), (0, 2)])]
    whole = row()
    first = whole | {"annotations": whole["annotations"][:1]}
    more = {name: whole[name] for name in ("input", "responses", "category")} | {"annotations": [["a", "c"]]}
    assert learned(write(tmp_path / "two.jsonl", [first, more])) == learned(path)


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        (None, "`annotations` is missing"),
        (["ab"], "'ab' is neither [better, worse] nor [first, second, mark]"),
        ([["a", "b", "1", "2"]], "['a', 'b', '1', '2'] is neither [better, worse] nor [first, second, mark]"),
        ([["a", "b", "3"]], "the mark '3' of a and b is not one of 1, 2, s"),
        ([["a", "d", "1"]], "the pair of a and d has an unranked response"),
        ([["a", "x", "1"]], "the pair of a and x has an unranked response"),
        ([["b", "a", "1"]], "the pair of b and a contradicts the ranks"),
    ],
)
def test_annotations_that_cannot_be_trained_on_are_named(tmp_path: Path, annotations: Any, why: str) -> None:
    path = write(tmp_path / "preference.jsonl", [row(annotations=annotations)])
    with pytest.raises(DataError) as refused:
        load_benchmark("chinese", path, None, for_training=True)
    assert str(refused.value) == f"{path} does not have the benchmark's shape at id 0: {why}."


def test_any_ranking_may_name_its_pairs(language_models: Callable[..., str], tmp_path: Path) -> None:
    rows = [
        {"id": f"q{place}", "prompt": f"Tea {place}?", "responses": ["a cup", "a pot"], "rank": [1, 2], "kept": kept}
        for place, kept in enumerate([[["0", "1"]], [["0", "1"]], [["1", "0", "2"]], []])
    ]
    done = train(
        LocalModel(name=language_models(), device="cpu"),
        tmp_path / "out",
        benchmark="rankings",
        data=DataConfig(location=str(write(tmp_path / "rankings.jsonl", rows)), columns=("pairs=kept",)),
        label_noise=1.0,
        options=TrainingConfig(**QUICK | {"batch_size": 2}),
    )
    assert (done.record["data"]["pairs"], len(done.record["origin"]["flipped"])) == (3, 3)
    assert done.record["origin"]["without_pair"] == {"items": 1, "responses": 2}


def on_the_sample(study: str, base: str) -> Row:
    """A study of the package on the sample release, its models trained from this base, of at most three sizes."""
    values = tomllib.loads((FOLDER / f"{study}.toml").read_text(encoding="utf-8"))
    for name, items in values["benchmarks"].items():
        values["benchmarks"][name] |= {"location": "sample" if name == "RewardBench" else str(release())}
        assert items["profile"] == "none"
    values["runtime"] = {"device": "cpu", "dtype": "float32"}
    values["models"] = values["models"][:2]
    for number, model in enumerate(values["models"]):
        assert model["train"]["options"]["epochs"] == 1, "two are for what people annotated"
        model["train"] |= {"base": base, "options": QUICK}
        model["train"]["items"] |= {"location": str(release())}
        if "pairs" in model["train"]:
            model["train"]["pairs"] = 20 + 15 * number
    return values


@pytest.mark.heavy
def test_the_study_of_preference_sets_shows_each_setting_of_the_papers_table(run: Command) -> None:
    status, shown, _ = run("study", "cheems-sets", "--show")
    assert status == 0
    for model in tomllib.loads(shown)["models"]:
        options = model["train"]["options"]
        assert options["batch_size"] * options["gradient_accumulation_steps"] == 256
        names = ("learning_rate", "warmup_ratio", "center_rewards_coefficient", "max_length")
        assert [options[name] for name in names] == [5e-6, 0.1, 0.1, 2048]


@pytest.mark.heavy
@pytest.mark.parametrize("study", STUDIES)
def test_a_study_of_preference_sets_runs_to_its_end(study: str, run: Command, tmp_path: Path) -> None:
    from reward_models import save_language_model
    from training_runs import SMALL

    values = on_the_sample(study, save_language_model(tmp_path / "base", **SMALL))
    values["models"] = values["models"][1:]
    with undrawn():
        status, _, error = run("study", write_study(tmp_path / "mine.toml", values), "--out", tmp_path / "out")
    assert status == 0, error
    page = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert f"- {values['models'][-1]['name']}: trained on 201 pairs of 35 items.\n" in page
    scores = pl.read_csv(tmp_path / "out/scores.csv")
    assert scores.columns == ["model", *values["benchmarks"]]
    assert scores.null_count().sum_horizontal().item() == 0
    drawn = "axis" in values
    assert drawn == ("figures/axis.png" in page) == (tmp_path / "out/figures/axis.png").exists()


def test_the_study_of_bases_differs_from_that_of_sizes_in_its_models_alone() -> None:
    texts = ((FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in ("cheems-scaling", "cheems-models"))
    sizes, bases = map(tomllib.loads, texts)
    assert bases["benchmarks"] == sizes["benchmarks"]
    for model in bases["models"]:
        like_any = sizes["models"][0]["train"] | {"base": model["train"]["base"]}
        assert model["train"] | {"pairs": like_any["pairs"]} == like_any


def test_more_items_than_there_are_is_refused_before_anything_is_made(run: Command, tmp_path: Path) -> None:
    values = on_the_sample("cheems-scaling", "no-such-base")
    values["models"][0]["train"]["pairs"] = 500
    status, _, error = run("study", write_study(tmp_path / "mine.toml", values), "--out", tmp_path / "out")
    assert (status, " ".join(error.split())) == (
        2,
        f"Error: The model '500 prompts' is to be trained on 500 items (`pairs`), but {release()} has 35; lower "
        "`pairs`.",
    )
    assert not (tmp_path / "out/models").exists()
