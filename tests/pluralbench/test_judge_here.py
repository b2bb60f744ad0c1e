"""Judges that generate in this process: the verdicts are those of a server with the same weights, and are recorded."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, serve
from pluralbench import ConnectionConfig, LocalModel
from pluralbench.data.votes import SIDES
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import JUDGE, PLANNER, POLICY, RUBRIC_WRITER, place_of
from pluralbench.leaderboard.checks import check_submission
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.results import Run
from pluralbench.results.run_files import LEDGER_FILE
from pluralbench_calls import CallsError
from pluralbench_policies import LanguageModel
from pluralbench_policies.decoding import Decoder
from pluralbench_runs import UserError
from reward_models import save_adapter, save_classifier
from verbs import judging
from writing_judges import save_judge, write_prompt
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_judge(tmp_path_factory.mktemp("models") / "judge")


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(12))


@pytest.fixture
def judged(data: Path, tmp_path: Path) -> Callable[..., Run]:
    def judge(model: Any, out: str = "run", **options: Any) -> Run:
        place = {"benchmark": "pairs", "data": str(data), "out": tmp_path / out}
        asking = {"prompt": write_prompt(tmp_path / "letters.toml"), "max_tokens": 40, "attempts": 1, "orders": "one"}
        return verbs.judge(model, **place | asking | options)

    return judge


def replies(run: Run) -> list[list[str]]:
    """What the judge wrote about each item, as characters that are whole."""
    texts = dict(pl.read_parquet(run.path / LEDGER_FILE).select("key", "text").iter_rows())
    calls = run.items.select(pl.coalesce(calls for _, calls in SIDES)).to_series()
    return [[texts[key].replace("\N{REPLACEMENT CHARACTER}", "") for key in keys] for keys in calls]


def test_the_verdicts_are_those_of_llama_cpp_with_the_same_weights(
    judged: Callable[..., Run], model: str, tmp_path: Path
) -> None:
    llamacpp = pytest.importorskip("llamacpp_server")
    here = judged(model, "here")
    file = llamacpp.write_gguf(model, tmp_path / "judge.gguf", generates=True)
    with llamacpp.serve_states(file, embeddings=False) as url:
        there = judged("tiny", "there", base_url=f"{url}/v1")
    assert replies(here) == replies(there)
    columns = ["id", *(letter for letter, _ in SIDES), "verdict", "outcome"]
    assert here.items.select(columns).equals(there.items.select(columns))
    assert {"win", "loss"} <= set(here.items["outcome"])
    assert (judging(here).model.provider, judging(here).calls) == ("transformers", 12)
    assert check_submission(here).accepted


def test_an_interrupted_run_asks_nothing_twice(
    judged: Callable[..., Run], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, drawn = Decoder.samples, 0

    def samples(self: Decoder, *arguments: Any) -> Any:
        nonlocal drawn
        for one in whole(self, *arguments):
            if drawn == 5:
                raise KeyboardInterrupt
            drawn += 1
            yield one

    expected = replies(judged(model, "whole"))
    monkeypatch.setattr(Decoder, "samples", samples)
    with pytest.raises(CallsError, match=r"Interrupted. 5 of 12 verdicts are recorded; rerun"):
        judged(model)
    drawn = -7
    monkeypatch.setattr(Decoder, "samples", samples)
    assert replies(judged(model)) == expected
    assert drawn == 0


def test_what_cannot_judge_here_is_refused_by_name(
    judged: Callable[..., Run], model: str, data: Path, run: Command, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    shutil.copytree(model, empty, ignore=shutil.ignore_patterns("*.safetensors"))
    classifier = save_classifier(tmp_path / "classifier")
    for folder, message in (
        (str(empty), "empty has no weights; copy the model's .safetensors files into it"),
        (classifier, "classifier is a LlamaForSequenceClassification, which writes no text; score with it"),
        (str(save_adapter(tmp_path / "adapter", model)), "adapter is an adapter; merge it into its base"),
        ("./nowhere", r"\./nowhere is not a model folder; give a folder, or ORG/NAME on the Hub"),
    ):
        with pytest.raises(UserError, match=message):
            judged(folder)
    with pytest.raises(EvaluationError, match=r"runs in this process, where `connection\.batch=\.\.\.` has no effect"):
        judged(model, batch=True)
    with pytest.raises(UserError, match="needs vLLM, which is not installed beside pluralbench: `uv pip install vllm`"):
        judged(LanguageModel(name=model, library="vllm"))
    with pytest.raises(UserError, match="where the request field 'reasoning_effort' has no effect; leave it out"):
        judged(model, extra={"reasoning_effort": "low"})
    for words in (("judge", "gpt-5", "--benchmark", "pairs"), ("plan", "gpt-5", "--base-url", "http://127.0.0.1:9")):
        status, _, said = run(*words, "--data", data, "--device", "cpu")
        assert status == 2
        assert "`--device` is for a model in this process, and gpt-5 is called at an endpoint" in said


SERVED = ConnectionConfig(base_url="http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("name", "connection", "judge", "policy"),
    [
        ("local", None, "embedded", "embedded"),
        ("local", SERVED, "embedded", "embedded"),
        ("org/model", SERVED, "endpoint", "endpoint"),
        ("tests", SERVED, "endpoint", "endpoint"),  # a folder's name, too
        ("org/model", ConnectionConfig(timeout=9), "here", "here"),
        (Path(__file__).parent, None, "here", "here"),
        ("gpt-5", None, "endpoint", "here"),
        (LocalModel(name="gpt-5"), SERVED, "here", "here"),
    ],
)
def test_a_name_is_looked_up_in_one_order_of_places(
    name: Any, connection: ConnectionConfig | None, judge: str, policy: str
) -> None:
    assert [place_of(name, connection, role) for role in (JUDGE, RUBRIC_WRITER)] == [judge, judge]
    assert [place_of(name, connection, role) for role in (POLICY, PLANNER)] == [policy, policy]


def test_prompts_beyond_the_positions_are_counted_and_the_rest_is_judged(
    judged: Callable[..., Run], model: str, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = pairs(4)
    rows[1]["prompt"] = "tea " * 1000
    run = judged(model, data=str(write(tmp_path / "long.jsonl", rows)))
    assert run.items["reason"][1] == "prompt too long"
    assert judging(run).invalid_reasons["prompt too long"] == 1


def test_a_run_is_checked_again_with_the_model(judged: Callable[..., Run], model: str) -> None:
    done = judged(LanguageModel(name=model, dtype="float32", device="cpu"))
    again = check_submission(done, rescoring=Rescoring(4, seed=1, model=model))
    assert again.accepted, again
    assert "4 of 12 items were judged again (seed 1), 4 of 4 verdicts are equal" in str(again)
    other = check_submission(done, rescoring=Rescoring(4, seed=1))
    assert "ran in its author's process; give its directory" in str(other)


@pytest.mark.heavy
def test_a_panel_has_judges_in_this_process_and_at_an_endpoint(judged: Callable[..., Run], model: str) -> None:
    with serve(lambda *_: Reply("A")) as server:
        run = judged([LocalModel(name=model), "judge-1"], base_url=server.base_url, samples=2, temperature=0.8)
        assert len(server.requests) == 12 * 2
    replies = run.frame("replies")
    assert replies["judge"].value_counts().sort("count")["count"].to_list() == [24, 24]
    assert replies.filter(judge="judge-1")["verdict"].unique().to_list() == ["A"]
    assert replies.filter(pl.col("judge") != "judge-1")["verdict"].n_unique() > 1
    texts = dict(pl.read_parquet(run.path / LEDGER_FILE).select("key", "text").iter_rows())
    own = replies.filter(pl.col("judge") != "judge-1").sort("sample", maintain_order=True)["calls"].list.last()
    assert all(texts[first] != texts[second] for first, second in zip(own[:12], own[12:], strict=True))
    assert check_submission(run).state == "checked"
    with pytest.raises(EvaluationError, match="in the panel twice"):
        judged([model, f"{model}/"], "twice")
