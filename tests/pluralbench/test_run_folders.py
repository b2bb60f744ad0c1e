"""Where runs lie when nobody says where: what gives other numbers has a folder of its own, with a name that is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from commands import without_status
from persona_tables import release
from persona_tables import rows as persona_rows
from pluralbench import DataConfig, JudgeConfig, LocalModel, PromptConfig, load_run
from pluralbench.config import ScoringConfig
from pluralbench.errors import RunError
from pluralbench.evaluation.folders import run_folder
from pluralbench.results.finding import find_runs
from pluralbench_rewards import FunctionModel
from pluralbench_runs import Recipe
from verbs import by_text
from written_tables import write

Rows = list[dict[str, Any]]
CHOICES: dict[str, Any] = {
    "": (),
    "limit20-raw-exact": (DataConfig(limit=20), PromptConfig(profile="raw"), ScoringConfig(mode="exact")),
    "raw-3-posts-implicit": (PromptConfig(profile="raw", profile_size=3), LocalModel(name="m", kind="implicit")),
    "fr-zh-legacy": (DataConfig(configs=("fr", "zh"), legacy=True),),
    "3-configs-split-train-empty-drop": (DataConfig(configs=("fr", "zh", "de"), split="train", on_empty="drop"),),
    "brief-one-order-oracle-titles-temperature0.5-attempts1": (
        JudgeConfig(orders="one", reply_format="brief", oracle="titles", temperature=0.5, attempts=1),
    ),
    "logit-1-max-length99": (
        LocalModel(name="m", label="logit:1", device="cpu"),
        ScoringConfig(max_length=99, token_budget=5),
    ),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def folders() -> list[str]:
    return sorted(path.name for path in Path("runs").iterdir())


@pytest.mark.parametrize("words", CHOICES)
def test_a_name_says_what_is_not_the_default(words: str) -> None:
    found = run_folder("personalized-m", Recipe(), *CHOICES[words])
    assert found == Path("runs") / "-".join(["personalized-m", *([words] if words else [])])


def load_nothing(monkeypatch: Any) -> None:
    """Score by the text, with any name of a model."""
    monkeypatch.setattr("pluralbench_local.loading.load_to_score", lambda *_: FunctionModel(by_text))
    monkeypatch.setattr("pluralbench_local.config.LocalModel.check_on_hub", lambda _: None)


def test_some_items_first_and_all_of_them_after(run: Any, pairs: Callable[..., Rows], monkeypatch: Any) -> None:
    load_nothing(monkeypatch)
    words = ["score", "models/m", "--benchmark", "pairs", "--data", write(Path("p.jsonl"), pairs(6))]
    for further in (["--limit", "2"], [], ["--mode", "exact"], ["--limit", "2"]):
        status, _, error = run(*words, *further)
        assert (status, without_status(error)) == (0, "")
    assert folders() == ["pairs-m", "pairs-m-exact", "pairs-m-limit2"]
    assert verbs.value(load_run("runs/pairs-m-limit2"), "items") == 2
    status, _, error = run(*words, "--limit", "3", "--mode", "exact", "--max-length", "9", "--out", "runs/pairs-m")
    assert (status, " ".join(error.split())) == (
        2,
        "Error: runs/pairs-m was made with other settings (limit none, now 3; max_length none, now 9; mode fast, now "
        "exact); use the same settings to resume, choose another output directory, or start over with `--fresh`.",
    )


def test_other_data_and_another_model_of_one_name_have_folders_of_their_own(
    run: Any, pairs: Callable[..., Rows], monkeypatch: Any
) -> None:
    load_nothing(monkeypatch)
    for seed in (0, 1):
        write(Path(f"{seed}.jsonl"), pairs(4, seed=seed))
    cases = [("a/m", "0.jsonl"), ("b/m", "0.jsonl"), ("a/m", "1.jsonl")]
    for again in range(2):
        for model, data in cases:
            assert run("score", model, "--benchmark", "pairs", "--data", data)[0] == 0
        names = folders()
        assert len(names) == 3
        assert (names[0], {len(name) for name in names[1:]}) == ("pairs-m", {len("pairs-m-0-012345")})
        assert {name.split("-")[2] for name in names[1:]} == {"0", "1"}, "the data is in the name"
        made = [verbs.config(Path("runs") / name) for name in names]
        assert {(one["model"]["name"], one["data"]["location"]) for one in made} == set(cases), again
    assert run("score", "b/m", "--benchmark", "pairs", "--data", "0.jsonl", "--fresh")[0] == 0
    assert folders() == names, "to start over replaces the run of these settings and no other"
    assert verbs.config(Path("runs/pairs-m"))["model"]["name"] == "a/m"


@pytest.mark.heavy
def test_judges_have_folders_likewise(pairs: Callable[..., Rows]) -> None:
    data = write(Path("p.jsonl"), pairs(2))
    personas = release(Path("data"), prism=persona_rows("prism", 3))
    with serve(lambda *_: Reply("[[A]] [[90]]")) as server:
        for name in ("org/j", "other/j"):
            for orders in ("both", "one"):
                verbs.judge(name, benchmark="pairs", data=data, base_url=server.base_url, orders=orders)
        for samples, variables in ((None, "all"), (2, "all"), (None, "key")):
            verbs.judge_personas("j", data=personas, base_url=server.base_url, limit=samples, variables=variables)
    names = folders()
    assert [name for name in names if len(name) < 20 or "persona" in name or name.endswith("order")] == [
        "pairs-j-judge",
        "pairs-j-judge-one-order",
        "persona-judge-j-certainty-all",
        "persona-judge-j-certainty-all-limit2",
        "persona-judge-j-certainty-key",
    ]
    assert len(names) == 7


@pytest.mark.parametrize("place", [".", "/", "..", ""])
def test_a_directory_without_a_name_of_its_own_is_not_a_run(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(RunError, match=r"is not a finished run; it has no run\.json"):
        load_run(place)


def test_the_current_directory_may_be_that_of_an_unfinished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "here.work"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for read in (load_run, lambda place: find_runs([Path(place)])):
        with pytest.raises(RunError, match=r"is not (a )?finished"):
            read(".")
