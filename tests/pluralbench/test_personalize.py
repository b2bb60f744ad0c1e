"""`personalize`: models with and without a profile decide what `score` decides, and interrupted work goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pluralbench.errors
import polars as pl
import pytest
import verbs
from made_personalize import user_rows, users_folder
from pluralbench import DataConfig, check_submission, personalize
from pluralbench.commands.printing import print_personalized
from pluralbench.config import PersonalConfig, PersonalizeConfig
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.personalizing import run as steps
from pluralbench.personalizing.users import load_users
from pluralbench.reports.kinds import markdown_page, personalized_section
from pluralbench.results import Personalized
from pluralbench_runs import OutputError
from session_folder import CACHE, session_folder
from undrawn import undrawn
from written_tables import write

QUICKLY = PersonalConfig(epochs=2, hidden_size=16, num_layers=1, latent_size=8)
Folders = Callable[..., str]


def carried_out(
    backbone: str, data: Path, out: Path, *, options: PersonalConfig = QUICKLY, **changes: Any
) -> Personalized:
    """`personalize` of few small models."""
    chosen = {name: changes.pop(name) for name in [*changes] if name in PersonalizeConfig.model_fields}
    personalizing = PersonalizeConfig(**{"methods": ("bt", "gpo"), "seeds": 1} | chosen)
    return personalize(backbone, data=data, personalizing=personalizing, options=options, out=out, **changes)


@pytest.fixture(scope="module", autouse=True)
def _undrawn() -> Iterator[None]:
    with undrawn():
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return users_folder(tmp_path_factory.mktemp("data") / "users", users=5, pairs=4)


@pytest.fixture(scope="module")
def other(people: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "people"
    for seed, domain in enumerate(("Art", "Society")):
        write(folder / f"{domain}.jsonl", people(3, seed=seed))
    return folder


@pytest.fixture(scope="module")
def done(language_models: Folders, data: Path, other: Path, tmp_path_factory: pytest.TempPathFactory) -> Personalized:
    """Two methods under all conditions on three sets. Not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return carried_out(language_models(), data, out, profile="all", score_on=other)


def test_every_pair_is_decided_by_every_model(done: Personalized) -> None:
    counts = done.items.group_by("method", "condition", "set").len().sort("method", "condition", "set")
    assert dict(counts.group_by("set").agg(pl.col("len").unique()).iter_rows()) == {
        "new": [8], "known": [5], "scored": [6],
    }  # fmt: skip
    assert counts.height == 2 * 3 * 3
    record = done.result
    assert {name: (one.items, one.users, one.configs) for name, one in record.sets.items()} == {
        "new": (8, 2, ("default",)), "known": (5, 5, ("default",)), "scored": (6, 6, ("Art", "Society")),
    }  # fmt: skip
    assert record.trained_on.model_dump() == {"items": 15, "users": 5}
    assert [model.folder for model in record.models] == [
        f"models/{method}-{condition}-0" for method in ("bt", "gpo") for condition in ("without", "with")
    ]
    assert all((done.path / model.folder / "personal.json").is_file() for model in record.models)


def test_known_users_are_decided_by_their_latest_pairs(done: Personalized) -> None:
    known = done.items.filter(pl.col("set") == "known", pl.col("method") == "bt", pl.col("condition") == "with")
    assert known["item"].to_list() == [f"train{user}-3" for user in range(5)]


def test_what_is_told_is_measured(done: Personalized) -> None:
    told = done.items.filter(pl.col("set") == "new").select("cluster", "posts", "words").unique().sort("cluster")
    # "Posts I wrote earlier:" before what `user_rows` has them think.
    assert [(posts, words > 4 + 4 * posts) for _, posts, words in told.iter_rows()] == [(1, True), (2, True)]
    assert done.items["distance"].is_between(0, 2).all()
    alike = done.items.group_by("set", "config", "item").agg(pl.col("posts", "words", "distance").n_unique())
    assert set(alike.select("posts", "words", "distance").unique().row(0)) == {1}


@pytest.mark.parametrize("name", ["bt-with-0", "gpo-without-0"])
def test_a_model_scores_by_the_ordinary_verb_as_it_decided_here(
    done: Personalized, data: Path, name: str, tmp_path: Path
) -> None:
    method, condition, _ = name.split("-")
    profile = "raw" if condition == "with" else "none"
    run = verbs.score(
        str(done.path / "models" / name),
        data=data, benchmark="personalized-training", profile=profile, out=tmp_path / "run", device="cpu",
    )  # fmt: skip
    here = done.items.filter(pl.col("set") == "new", method=method, condition=condition)
    assert run.items["id"].to_list() == here["item"].to_list()
    assert run.items["margin"].to_list() == pytest.approx(here["margin"].to_list(), abs=1e-4)
    assert check_submission(run, rescoring=Rescoring(items=3, seed=0)).state == "verified"


def test_others_profiles_are_shown_to_the_models_with_one(done: Personalized) -> None:
    pages = {condition: done.items.filter(method="bt", condition=condition) for condition in ("with", "shuffled")}
    own, others = (page.sort("set", "config", "item") for page in pages.values())
    assert own["item"].equals(others["item"])
    assert not own["margin"].equals(others["margin"])


@pytest.mark.heavy
def test_both_contrasts_of_the_paper_come_from_one_run(language_models: Folders, data: Path, tmp_path: Path) -> None:
    done = carried_out(language_models(), data, tmp_path / "run", methods=("bt", "synthesizeme"), persona=True)
    assert done.result.conditions == ("without", "posts", "with")
    options = {one.condition: one.training["options"] for one in done.result.models if one.method == "bt"}
    assert {name: (one["profile"], one["persona"]) for name, one in options.items()} == {
        "without": (False, False), "posts": (True, False), "with": (True, True),
    }  # fmt: skip
    # As in the paper, whose two rows are the same in every digit.
    bt, other = (done.items.filter(method=name).drop("method") for name in ("bt", "synthesizeme"))
    assert bt.equals(other)
    margins = {name: bt.filter(condition=name)["margin"].to_list() for name in done.result.conditions}
    assert margins["without"] != margins["posts"] != margins["with"]
    shares = {name: fmean(bt.filter(condition=name, set="new")["correct"].to_list()) for name in margins}
    for first in ("without", "posts"):
        gain = done.estimate("gain", set="new", method="bt", condition=f"with-{first}")
        assert gain.value == pytest.approx(shares["with"] - shares[first])
        tested = done.estimate("p_holm", set="new", method="bt", condition=f"with-{first}").value
        assert (tested is None) == (gain.low is None), "two users"
    page = markdown_page(personalized_section(done))
    assert "New users, user summary against posts alone" in page
    assert "w/: the model gets posts of the user (Bradley-Terry, SynthesizeMe), plus a summary of the user." in page
    assert "w/ against w/o (appendix A.3) and w/ against posts (appendix B" in page


def test_the_directory_has_a_page_with_figures_and_vectors(done: Personalized) -> None:
    print_personalized(done)
    text = (done.path / "report.md").read_text(encoding="utf-8")
    for name in ("user_context_new", "user_context_scored"):
        assert f"](figures/{name}.png)" in text
        assert (done.path / "figures" / f"{name}.svg").is_file()
    assert list((done.path / "embeddings").glob("*.safetensors"))


def test_what_is_finished_is_not_done_again_and_other_settings_are_refused(
    done: Personalized, language_models: Folders, data: Path, other: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.path.rglob("*")}
    again = carried_out(language_models(), data, done.path, profile="all", score_on=other)
    assert again.items.equals(done.items)
    assert {path: path.stat().st_mtime_ns for path in done.path.rglob("*")} == before
    with pytest.raises(OutputError, match=r"seeds 1, now 2"):
        carried_out(language_models(), data, done.path, profile="all", score_on=other, seeds=2)
    with pytest.raises(OutputError, match=r"backbone\.name .*, now "):
        carried_out(language_models(1), data, done.path, profile="all", score_on=other)


@pytest.mark.heavy
def test_an_interrupted_run_goes_on_and_ends_in_the_same_numbers(
    language_models: Folders, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(line: str) -> None:
        if line == "Model 2 of 2: bt-with-0":
            raise KeyboardInterrupt

    shared = tmp_path / "vectors"
    whole = carried_out(language_models(), data, tmp_path / "whole", methods=("bt",), embeddings=shared)
    assert not (whole.path / "embeddings").exists()
    with monkeypatch.context() as patch:
        patch.setattr(steps, "log_status", stopped)
        with pytest.raises(KeyboardInterrupt):
            carried_out(language_models(), data, tmp_path / "out", methods=("bt",), embeddings=shared)
    weights = tmp_path / "out.work" / "models" / "bt-without-0" / "model.safetensors"
    made = weights.stat().st_ino
    done = carried_out(language_models(), data, tmp_path / "out", methods=("bt",), embeddings=shared)
    assert (done.path / "models" / "bt-without-0" / "model.safetensors").stat().st_ino == made
    assert done.items.equals(whole.items)
    assert done.metrics.equals(whole.metrics)


def test_users_of_one_table_are_held_out_by_a_share_or_a_file(language_models: Folders, tmp_path: Path) -> None:
    table = write(tmp_path / "users.jsonl", user_rows(6, 4))
    done = carried_out(language_models(), table, tmp_path / "share", methods=("bt",), profile="without", held_out=0.34)
    assert (done.result.sets["new"].users, done.result.trained_on.users) == (2, 4)
    others = write(tmp_path / "others.jsonl", user_rows(2, 3, prefix="v"))
    users = load_users("personalized-training", DataConfig(location=str(table)), ["posts"], held_out=str(others))
    assert users.sets["new"].items["person"].unique().sort().to_list() == ["v0", "v1"]
    assert users.train.items["person"].n_unique() == 6


def refused(tmp_path: Path, rows: dict[str, list[dict[str, Any]]], **changes: Any) -> str:
    """What is said of such splits, before any model is loaded."""
    for split, own in rows.items():
        write(tmp_path / "data" / f"{split}.jsonl", own)
    with pytest.raises(pluralbench.errors.DataError) as caught:
        carried_out(str(tmp_path), tmp_path / "data", tmp_path / "out", **changes)
    assert not (tmp_path / "out.work").exists()
    return str(caught.value).replace(str(tmp_path), "HERE")


def test_users_in_two_splits_are_named(tmp_path: Path) -> None:
    train = user_rows(4, 4)
    assert refused(tmp_path, {"train": train, "test": train[4:12]}) == (
        "The user u1 (and 1 more) is in both train and test; split the data by user, so that new users are new."
    )


def test_one_user_and_too_few_pairs_are_refused(tmp_path: Path) -> None:
    test = user_rows(2, 3, prefix="v")
    assert refused(tmp_path / "one", {"train": user_rows(1, 20), "test": test}) == (
        "HERE/data has a single user to train on (u0); give items of several users."
    )
    assert refused(tmp_path / "few", {"train": user_rows(3, 2), "test": test}) == (
        "HERE/data has only 6 pairs to train on; give at least 10."
    )


def test_a_profile_that_the_data_has_not_is_refused(tmp_path: Path) -> None:
    def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if name != "profile"} for row in rows]

    one_each = {"train": bare(user_rows(12, 1)), "test": bare(user_rows(2, 1, prefix="v"))}
    assert refused(tmp_path / "posts", one_each) == (
        "HERE/data (benchmark personalized-training) has no posts of its users, which models with a profile read; name "
        'their column with `columns=["profile=COLUMN"]`, or set `profile="without"`.'
    )
    untold = {"train": user_rows(6, 3, persona=False), "test": user_rows(2, 3, prefix="v", persona=False)}
    said = refused(tmp_path / "personas", untold, methods=("bt", "synthesizeme"))
    assert said.startswith(
        "HERE/data (benchmark personalized-training) has no personas of its users, which synthesizeme"
    )


def test_data_without_users_to_test_on_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "users.jsonl", user_rows(6, 3))
    with pytest.raises(
        pluralbench.errors.DataError, match=r"users\.jsonl has no split of test users; hold out a share"
    ):
        carried_out("nowhere", table, tmp_path / "out")
    write(tmp_path / "data" / "train.jsonl", user_rows(6, 3))
    with pytest.raises(
        pluralbench.errors.DataError,
        match=r"data has no split of test users; .* `held_out=0\.2`, or give other users as `held_out=\.\.\.`\.$",
    ):
        carried_out("nowhere", tmp_path / "data", tmp_path / "out")
    with pytest.raises(pluralbench.errors.DataError, match=r"`held_out=0\.01` of 6 "):
        carried_out("nowhere", table, tmp_path / "out", held_out=0.01)


def test_what_a_command_refuses_is_a_sentence(data: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    words = ("personalize", "nowhere", "--data", data)
    assert run(*words, "--methods", "bt,gpoo") == (
        2, "",
        "Error: --methods: unknown method `gpoo`; did you mean `gpo`? choose from bt, gpo, vpl, pal, "
        "synthesizeme.\n",
    )  # fmt: skip
    assert run(*words, "--methods", "bt,bt")[2] == ("Error: --methods: the method `bt` is listed twice.\n")


def test_the_command_tells_what_was_found(
    language_models: Folders, data: Path, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    status, said, progress = run(
        "personalize", language_models(), "--data", data, "--methods", "pal", "--seeds", "1", "--epochs", "1",
        "--profile", "with", "--hidden-size", "16", "--out", tmp_path / "out",
    )  # fmt: skip
    assert status == 0
    assert "New users" in said
    assert "PAL" in said
    assert f"pluralbench score {tmp_path}/out/models/pal-with-0 --profile raw" in said
    assert "Model 1 of 1: pal-with-0" in progress


@pytest.mark.heavy
def test_a_model_on_the_embedded_one_is_scored(
    other: Path, tmp_path: Path, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = users_folder(tmp_path / "users", users=5, pairs=2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_folder(CACHE)))
    trained = ["--data", data, "--methods", "bt", "--seeds", "1", "--epochs", "1", "--profile-size", "1"]
    status, said, error = run("personalize", "local", *trained, "--profile", "with", "--out", tmp_path / "out")
    assert status == 0, error
    assert "Bradley-Terry" in said
    model = tmp_path / "out" / "models" / "bt-with-0"
    told = ["--benchmark", "personalized", "--data", other / "Art.jsonl", "--profile", "raw", "--profile-size", "1"]
    told += ["--limit", "1", "--mode", "exact"]
    status, said, error = run("score", model, *told, "--out", tmp_path / "scored")
    assert status == 0, error
    assert "bt-with-0" in said
