"""`pluralbench train`: the items of a benchmark become rankings, some held out, some flipped; the rest is `train`'s."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluralbench
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench import DataConfig, PromptConfig
from pluralbench.config import ScoringConfig, TrainingConfig
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.evaluation.train import count_unusual_pairs, flip_labels, items_to_rankings, split_by_cluster
from pluralbench_local import LocalModel
from samples import sample
from session_folder import CACHE, session_folder
from written_tables import write

if TYPE_CHECKING:
    from pluralbench_local import Ranking

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
Folders = Callable[..., str]
QUICK = TrainingConfig(epochs=1, batch_size=4, gradient_accumulation_steps=1, learning_rate=1e-3, max_length=500)
EXACT = ScoringConfig(mode="exact")  # which measures no tolerance
WORDS = [
    "--epochs",
    "1",
    "--batch-size",
    "4",
    "--gradient-accumulation-steps",
    "1",
    "--learning-rate",
    "1e-3",
    "--max-length",
    "500",
]


def ranking(place: int, *rank: int) -> "Ranking":
    from pluralbench_local import Ranking

    return Ranking(f"r{place}", [{"role": "user", "content": "?"}], [f"{n}" for n in range(len(rank))], rank)


def written(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return found


@given(
    st.lists(st.sampled_from([(1, 2), (2, 1), (1, 1), (1, 2, 2, 4)]), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_exactly_this_share_is_turned_round_and_turning_back_gives_the_same(
    ranks: list[tuple[int, ...]], share: float, seed: int
) -> None:
    made = [ranking(place, *rank) for place, rank in enumerate(ranks)]
    turned = flip_labels(made, share, seed)
    paired = sum(bool(one.pairs_to_learn()) for one in made)
    changed = [(one, other) for one, other in zip(made, turned, strict=True) if one != other]
    assert len(changed) == round(share * paired)
    for one, other in changed:
        assert {(b, a) for a, b in one.pairs_to_learn()} == set(other.pairs_to_learn())
    assert [(one.id, list(one.rank)) for one in flip_labels(turned, share, seed)] == [
        (o.id, list(o.rank)) for o in made
    ]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=40), st.floats(0.01, 0.99), st.integers(0, 5))
def test_no_cluster_is_in_both_parts_and_none_is_lost(clusters: list[str], share: float, seed: int) -> None:
    made = [ranking(place, 1, 2) for place in range(len(clusters))]
    cluster_of = {one.id: cluster for one, cluster in zip(made, clusters, strict=True)}
    number = len(set(clusters))
    if not 0 < round(share * number) < number:
        with pytest.raises(DataError, match="clusters leaves one part empty; choose a share between 0 and 1"):
            split_by_cluster(made, clusters, share, seed)
        return
    learned, judged = split_by_cluster(made, clusters, share, seed)
    assert sorted([one.id for one in learned + judged]) == sorted(cluster_of)
    inside = {cluster_of[one.id] for one in judged}
    assert len(inside) == round(share * number)
    assert not inside & {cluster_of[one.id] for one in learned}


def test_it_trains_holds_out_and_says_how_to_score(
    run: Command, pairs: Callable[..., Rows], language_models: Folders, tmp_path: Path
) -> None:
    data, out = write(tmp_path / "pairs.jsonl", pairs(20)), tmp_path / "out"
    words = [
        "train",
        language_models(),
        "--data",
        data,
        "--out",
        out,
        "--held-out",
        "0.25",
        "--label-noise",
        "0.2",
        *WORDS,
    ]
    status, said, _ = run(*words, "--device", "cpu")
    assert status == 0
    assert f"{out}: trained on 15 pairs of 15 items in 8 steps" in said
    assert "3 items were trained in reversed order (--label-noise 0.2)." in said
    assert "Accuracy on 5 held-out pairs of 5 items: " in said
    words_to_score = f"uv run --group evaluator pluralbench score {out} --benchmark pairs --data ..."
    assert f"Next, on items that it did not learn:\n  {words_to_score}" in said
    record = written(out)
    assert (record["data"]["pairs"], record["held_out"]["pairs"]) == (15, 5)
    origin = record["origin"]
    assert len(origin["flipped"]) == 3
    assert (origin["location"], origin["label_noise"], origin["held_out"]) == (str(data), 0.2, 0.25)
    assert run("score", out, "--benchmark", "pairs", "--data", data, "--device", "cpu", "--out", tmp_path / "r")[0] == 0
    before = (out / "model.safetensors").read_bytes()
    assert run(*words, "--device", "cpu")[0] == 0  # finished, so it only says so again
    assert (out / "model.safetensors").read_bytes() == before
    status, _, error = run(*words, "--device", "cpu", "--seed", "1")
    assert (status, "was made with other settings" in error) == (2, True)


def test_what_is_learned_from_is_what_score_would_show(
    people: Callable[..., Rows], language_models: Folders, tmp_path: Path
) -> None:
    data = write(tmp_path / "people.jsonl", people(4))
    prompt = PromptConfig(profile="raw", profile_size=2)
    loaded = load_benchmark("personalized", str(data), prompt)
    made = items_to_rankings(loaded)
    assert [one.prompt for one in made] == [group.messages for group in loaded.groups()]
    assert "Post no. 2 of 0." in made[0].prompt[-1]["content"]
    assert "Post no. 3 of 0." not in made[0].prompt[-1]["content"]
    assert all(list(one.rank) == [1, 2] for one in made)
    base = LocalModel(name=language_models(), device="cpu")
    done = pluralbench.train(
        base,
        tmp_path / "out",
        benchmark="personalized",
        data=data,
        prompt=prompt,
        options=QUICK.model_copy(update={"epochs": 4}),
        held_out=0.5,
    )
    assert (done.record["data"]["pairs"], done.record["origin"]["profile"]) == (2, "raw")


def test_rankings_with_ties_are_learned_from(language_models: Folders, tmp_path: Path) -> None:
    rows = [
        {"id": f"q{place}", "prompt": f"Tea {place}?", "responses": ["a cup", "a pot", "a jar"], "rank": [1, 1, 2]}
        for place in range(6)
    ]
    data = write(tmp_path / "rankings.jsonl", rows)
    done = pluralbench.train(
        LocalModel(name=language_models(), device="cpu"),
        tmp_path / "out",
        benchmark="rankings",
        data=data,
        options=QUICK,
    )
    assert (done.record["data"]["pairs"], done.record["data"]["responses"]) == (12, 18)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--label-noise", "2"], "`--label-noise 2.0` is not between 0 and 1."),
        (["--held-out", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--lora", "16/32", "--trainable", "head"], "`--trainable head`"),
    ],
)
def test_a_mistake_is_one_sentence(
    run: Command, pairs: Callable[..., Rows], language_models: Folders, tmp_path: Path, words: list[str], said: str
) -> None:
    data = write(tmp_path / "pairs.jsonl", pairs(6))
    status, printed, error = run(
        "train", language_models(), "--data", data, "--out", tmp_path / "out", "--device", "cpu", *WORDS, *words
    )
    assert (status, printed) == (2, ""), error
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert said in error
    assert not (tmp_path / "out").exists()


@pytest.mark.heavy
def test_the_embedded_model_is_taught_and_its_weights_are_kept(
    run: Command, pairs: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smollm2 import in_bfloat16

    kept = in_bfloat16() / "model.safetensors"
    before = kept.stat().st_mtime_ns
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_folder(CACHE)))
    data, out = write(tmp_path / "pairs.jsonl", pairs(3)), tmp_path / "taught"
    status, _, error = run(
        "train", "local", "--data", data, "--out", out, "--trainable", "head", *WORDS, "--batch-size", "2"
    )
    assert status == 0, error
    assert kept.stat().st_mtime_ns == before
    one = DataConfig(location=str(data), limit=1)
    scored = pluralbench.score(out, benchmark="pairs", data=one, scoring=EXACT, out=tmp_path / "run")
    assert scored.headline.n == 1


def test_the_function_does_what_the_command_does(
    run: Command, pairs: Callable[..., Rows], language_models: Folders, tmp_path: Path
) -> None:
    data, base = write(tmp_path / "pairs.jsonl", pairs(12)), language_models()
    held = write(tmp_path / "held.jsonl", pairs(6, seed=3))
    words = ["--data", data, "--held-out", held, "--limit", "8", "--device", "cpu", "--trainable", "head", *WORDS]
    assert run("train", base, "--out", tmp_path / "command", *words)[0] == 0
    done = pluralbench.train(
        LocalModel(name=base, device="cpu"),
        tmp_path / "function",
        data=DataConfig(location=str(data), limit=8),
        held_out=held,
        options=QUICK.model_copy(update={"trainable": "head"}),
    )
    assert done.record["data"]["rankings"] == 8
    assert done.record["held_out"]["rankings"] == 6
    one, other = (tmp_path / name / "model.safetensors" for name in ("command", "function"))
    assert one.read_bytes() == other.read_bytes()
    assert written(tmp_path / "command")["origin"] == done.record["origin"]


@pytest.mark.parametrize(
    ("files", "read", "split"),
    [
        (["train", "test"], "train", "train"),
        (["data/en/train", "data/en/test"], "data/en/train", "train"),
        (["test"], "test", "test"),
        (["validation", "test"], "test", "test"),
        (["pairs"], "pairs", None),
    ],
)
def test_what_is_scored_by_default_is_learned_only_without_a_training_split(
    pairs: Callable[..., Rows], tmp_path: Path, files: list[str], read: str, split: str | None
) -> None:
    rows = {name: pairs(3 + place, seed=place) for place, name in enumerate(files)}
    for name, of_file in rows.items():
        write(tmp_path / "data" / f"{name}.jsonl", of_file)
    loaded = load_benchmark("pairs", tmp_path / "data", None, for_training=True)
    learned = [one.responses[0] for one in items_to_rankings(loaded)]
    assert learned == [row["chosen"] for row in rows[read]]
    assert (loaded.items.split, loaded.data_record().split) == (split, split)
    named = DataConfig(location=str(tmp_path / "data"), split="test")
    assert load_benchmark("pairs", named, None, for_training=True).items.split == (split and "test")
    [file] = [tmp_path / "data" / f"{name}.jsonl" for name in files if name == read]
    assert load_benchmark("pairs", file, None, for_training=True).items.split is None


def test_a_release_is_read_as_its_manifest_says_and_its_test_split_is_held_out(
    run: Command, language_models: Folders, tmp_path: Path
) -> None:
    release = sample("build-personalized", "training").release
    words = ["train", language_models(), "--data", release, "--device", "cpu", *WORDS]
    status, said, error = run(*words, "--held-out", release, "--out", tmp_path / "out")
    assert status == 0, error
    learned, held_out = (
        pl.read_parquet(release / "data/everyday_questions" / f"{split}.parquet") for split in ("train", "test")
    )
    assert f"trained on {learned.height} pairs of {learned.height} items of the split train in" in said
    assert "--benchmark personalized-training --data ..." in said
    record = written(tmp_path / "out")
    assert (record["data"]["pairs"], record["held_out"]["pairs"]) == (learned.height, held_out.height)
    assert (record["origin"]["benchmark"], record["origin"]["split"]) == ("personalized-training", "train")
    file = release / "data/everyday_questions/train.parquet"
    status, _, error = run(*words, "--held-out", file, "--out", tmp_path / "same")
    assert (status, f"{learned.height} of the {learned.height} held-out items of" in error) == (2, True), error


def test_identical_responses_are_not_learned_and_repeated_pairs_are_counted(
    run: Command, pairs: Callable[..., Rows], language_models: Folders, tmp_path: Path
) -> None:
    rows = pairs(8)
    rows[3]["rejected"] = rows[3]["chosen"]
    rows += [rows[0] | {"id": "again"}, rows[0] | {"id": "and again"}, rows[1] | {"id": "other", "rejected": "no"}]
    data = write(tmp_path / "pairs.jsonl", rows)
    loaded = load_benchmark("pairs", data, None, for_training=True)
    rankings = items_to_rankings(loaded)
    assert count_unusual_pairs(loaded, rankings) == {"identical_pairs": 1, "repeated_pairs": 2}
    assert sum(len(one.pairs_to_learn()) for one in rankings) == len(rows) - 1
    expected = "Left out: 1 pair of identical responses.\nKept: 2 pairs that repeat an earlier one.\n"
    status, said, error = run("train", language_models(), "--data", data, "--out", tmp_path / "m", *WORDS)
    assert (status, expected in said) == (0, True), said + error
    words = ["--benchmark", "pairs", "--data", data, "--held-out", "0.5", "--out", tmp_path / "e"]
    status, said, error = run("export", "--for", "trl", *words)
    assert (status, expected in said) == (0, True), said + error
    exported = [*(tmp_path / "e").glob("t*.jsonl")]
    texts = [json.loads(line) for file in exported for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(texts) == len(rows) - 1
    assert all(one["chosen"] != one["rejected"] for one in texts)
