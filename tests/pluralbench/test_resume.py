"""Interrupted runs go on from what is there, under the same settings only; finished ones are read, not made again."""

import json
import os
import runpy
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pluralbench.data.prompts
import pytest
import verbs
from commands import environment, script
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from killing import killed_when
from live_hub import live_hub, point_clients
from pluralbench import LocalModel
from pluralbench.config import ScoringConfig
from pluralbench.contract import Group
from pluralbench.errors import RunError
from pluralbench.evaluation.work import open_journal
from pluralbench.results import Run
from pluralbench_rewards import FunctionModel, RewardModel
from pluralbench_runs import OutputError
from verbs import by_text, scoring, work
from written_tables import write

Rows = list[dict[str, Any]]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(20))


def journal(out: Path) -> Path:
    return out.with_name(f"{out.name}.work") / "scores.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's folder whose weights are no weights: what it is "loaded" as scores by the texts alone."""

    def load(_: LocalModel, __: ScoringConfig) -> RewardModel:
        return FunctionModel(by_text)

    monkeypatch.setattr("pluralbench_local.loading.load_to_score", load)
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def interrupted(data: Path, out: Path, model: object, **options: Any) -> None:
    """Begin a run that is interrupted after its first scores."""

    def some(self: FunctionModel, groups: Sequence[Group], **rest: Any) -> Any:
        on_scored = rest["on_scored"]
        for place, values in enumerate(by_text(groups[:7])):
            on_scored({place: values})
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionModel, "score", some)
        with pytest.raises(KeyboardInterrupt):
            verbs.score(model, benchmark="pairs", data=data, out=out, **options)
    assert len(journal(out).read_text(encoding="utf-8").splitlines()) == 7
    assert not out.exists()


def refused(*keys: str, **options: Any) -> None:
    """Assert that a run is not gone on with, for these settings and no others."""
    with pytest.raises(OutputError) as caught:
        verbs.score(benchmark="pairs", **options)
    differs, _, mend = str(caught.value).partition(" was made with other settings (")[2].partition("); ")
    assert [one.partition(" ")[0] for one in differs.split("; ")] == [*keys], differs
    assert mend.endswith("or start over with `fresh=True`.")


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.param(RuntimeError, marks=pytest.mark.heavy)])
def test_an_interrupted_run_of_a_model_computes_the_rest_only(
    score: Callable[..., Run],
    model: str,
    data: Path,
    tmp_path: Path,
    error: type[BaseException],
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pluralbench_local import LocalRewardModel

    rewards, batches = LocalRewardModel.rewards, []

    def some(self: LocalRewardModel, *args: Any) -> Any:
        batches.append(1)
        if len(batches) > 4:
            raise error("enough")
        return rewards(self, *args)

    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalRewardModel, "rewards", some)
        with pytest.raises(error):
            score("pairs", data, by=model, out=out, token_budget=120)
    done = len(journal(out).read_text(encoding="utf-8").splitlines())
    assert 0 < done < 20
    run = score("pairs", data, by=model, out=out, token_budget=120)
    assert f"{done} of 20 items were scored before.\n" in capsys.readouterr().err
    assert scoring(run).items_resumed == done
    assert work(run).conversations == 2 * (20 - done)
    whole = score("pairs", data, by=model, token_budget=120)
    assert scoring(whole).items_resumed == 0
    assert run.items.equals(whole.items), "to the bit"
    assert run.metrics.equals(whole.metrics)
    assert not journal(out).parent.exists()


def test_a_journal_cut_short_in_its_last_line_is_taken_without_it(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    interrupted(data, tmp_path / "run", by_text)
    path = journal(tmp_path / "run")
    path.write_text(path.read_text(encoding="utf-8")[:-8], encoding="utf-8")
    run = score("pairs", data, out=tmp_path / "run")
    assert scoring(run).items_resumed == 6
    assert run.items.equals(score("pairs", data).items)


@pytest.mark.parametrize("line", ["[[7, [1.0]]]", "[[20, [1.0, 2.0]]]", '[[7, ["1", 2.0]]]', "[7, [1.0, 2.0]]", "{"])
def test_a_journal_with_a_line_that_is_not_scores_of_the_items_is_refused(
    data: Path, tmp_path: Path, line: str
) -> None:
    interrupted(data, tmp_path / "run", by_text)
    path = journal(tmp_path / "run")
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"scores\.jsonl is damaged; start over with `fresh=True`\.$"):
        verbs.score(by_text, benchmark="pairs", data=data, out=tmp_path / "run")
    assert path.read_text(encoding="utf-8").endswith(f"{line}\n")


@given(st.lists(st.lists(st.floats(), max_size=3), max_size=5))
def test_scores_read_back_are_those_recorded_to_the_bit(scores: list[list[float]]) -> None:
    with TemporaryDirectory() as folder:
        for _ in range(2):
            with open_journal(Path(folder), [*map(len, scores)]) as (journaled, record):
                if not journaled and record is not None:
                    record(dict(enumerate(scores)))
    assert repr(journaled) == repr(dict(enumerate(scores)))


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"mode": "exact"}, "mode"),
    ({"max_length": 900}, "max_length"),
    ({"on_overflow": "drop"}, "on_overflow"),
    ({"dtype": "bfloat16"}, "dtype"),
    ({"label": "logit:0"}, "label"),
    ({"profile_size": 3}, "profile_size"),
    ({"on_empty": "keep"}, "on_empty"),
]


@pytest.mark.parametrize("finished", [pytest.param(False, marks=pytest.mark.heavy), True])
def test_another_setting_is_refused_by_name(data: Path, folder: Path, tmp_path: Path, finished: bool) -> None:
    given: dict[str, Any] = {"data": data, "out": tmp_path / "run"}
    if finished:
        verbs.score(folder, benchmark="pairs", **given)
    else:
        interrupted(data, tmp_path / "run", folder)
    for changed, key in CHANGES:
        refused(key, model=folder, **given, **changed)
    refused("limit", model=folder, limit=7, **given)
    again = verbs.score(folder, benchmark="pairs", token_budget=99, **given)
    assert scoring(again).items_resumed == (0 if finished else 7), "what was there is still there"


@pytest.mark.parametrize("file", ["model.safetensors", "chat_template.jinja", "tokenizer.json"])
def test_a_changed_model_is_refused(data: Path, folder: Path, tmp_path: Path, file: str) -> None:
    interrupted(data, tmp_path / "run", folder)
    (folder / file).write_text("another", encoding="utf-8")
    refused("model.digest", model=folder, data=data, out=tmp_path / "run")


def test_a_changed_reference_or_template_is_refused(data: Path, folder: Path, tmp_path: Path) -> None:
    base, template = tmp_path / "base", tmp_path / "t.jinja"
    base.mkdir()
    (base / "config.json").write_text("{}", encoding="utf-8")
    (base / "model.safetensors").write_text("weights", encoding="utf-8")
    template.write_text("{{ messages }}", encoding="utf-8")
    options: dict[str, Any] = {"kind": "implicit", "reference": str(base), "chat_template": template}
    interrupted(data, tmp_path / "run", folder, **options)
    (base / "model.safetensors").write_text("other weights", encoding="utf-8")
    refused("reference_digest", model=folder, data=data, out=tmp_path / "run", **options)
    (base / "model.safetensors").write_text("weights", encoding="utf-8")
    template.write_text("{{ messages[0] }}", encoding="utf-8")
    refused("chat_template_digest", model=folder, data=data, out=tmp_path / "run", **options)


def test_a_changed_base_of_an_adapter_is_refused(data: Path, folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    named = json.dumps({"base_model_name_or_path": str(folder)})
    (adapter / "adapter_config.json").write_text(named, encoding="utf-8")
    interrupted(data, tmp_path / "run", adapter)
    (folder / "model.safetensors").write_text("other weights", encoding="utf-8")
    refused("base_digest", model=adapter, data=data, out=tmp_path / "run")


def test_a_model_on_the_hub_that_moved_is_refused(
    data: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder  # only what it is loaded as matters here
    with live_hub() as hub:
        point_clients(monkeypatch, hub, tmp_path / "home")
        model = hub.create("acme/reward", "models")
        old = model.commit({"config.json": b"{}"})
        run = verbs.score("acme/reward", benchmark="pairs", data=data, out=tmp_path / "done")
        assert run.result.model.kind == "function", "it says what scored, which here is a function"
        assert verbs.config(tmp_path / "done")["model"]["commit"] == old
        interrupted(data, tmp_path / "run", "acme/reward")
        model.commit({"config.json": b"{ }"})
        for out in ("done", "run"):
            refused("commit", model="acme/reward", data=data, out=tmp_path / out)
        pinned = verbs.score("acme/reward", benchmark="pairs", data=data, out=tmp_path / "done", revision=old)
    assert (pinned.config, pinned.result, pinned.provenance) == (run.config, run.result, run.provenance)


def test_an_adapter_on_the_hub_whose_base_moved_is_refused(
    data: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder  # only what it is loaded as matters here
    with live_hub() as hub:
        point_clients(monkeypatch, hub, tmp_path / "home")
        base, adapter = hub.create("acme/base", "models"), hub.create("acme/adapter", "models")
        old = base.commit({"config.json": b"{}"})
        base.tag("v1", old, "The base of the adapter")
        named = {"base_model_name_or_path": "acme/base", "revision": "v1"}
        commit = adapter.commit({"adapter_config.json": json.dumps(named).encode()})
        done: dict[str, Any] = {"benchmark": "pairs", "data": data, "out": tmp_path / "done"}
        verbs.score("acme/adapter", **done)
        model = verbs.config(tmp_path / "done")["model"]
        assert (model["commit"], model["base"], model["base_commit"]) == (commit, "acme/base", old)
        interrupted(data, tmp_path / "run", "acme/adapter")
        new = base.commit({"config.json": b"{ }"})
        verbs.score("acme/adapter", **done)  # the tag is where it was
        base.tag("v1", new, "Another base")
        for out in ("done", "run"):
            refused("base_commit", model="acme/adapter", data=data, out=tmp_path / out)


def test_changed_data_is_refused_and_fresh_starts_over(
    score: Callable[..., Run], data: Path, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    interrupted(data, tmp_path / "run", by_text)
    rows = pairs(20)
    rows[19]["rejected"] += "."
    write(data, rows)
    refused("data.digest", model=by_text, data=data, out=tmp_path / "run")
    run = score("pairs", data, out=tmp_path / "run", fresh=True)
    assert scoring(run).items_resumed == 0


def test_a_finished_run_is_read_without_scoring_and_leaves_nothing_beside_it(
    score: Callable[..., Run],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = score("pairs", data, out=tmp_path / "runs" / "a")
    assert "complete" not in capsys.readouterr().err
    monkeypatch.setattr(FunctionModel, "score", lambda *_, **__: pytest.fail("it was scored again"))
    again = score("pairs", data, out=tmp_path / "runs" / "a")
    assert f"{tmp_path / 'runs' / 'a'} is already complete.\n" in capsys.readouterr().err
    assert (again.config, again.result, again.provenance) == (run.config, run.result, run.provenance)
    assert again.items.equals(run.items)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a"]


def test_two_processes_cannot_write_one_run(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    journal(out).parent.mkdir()
    with FileLock(journal(out).parent / "lock"), pytest.raises(OutputError, match="Another process is writing"):
        score("pairs", data, out=out)
    assert score("pairs", data, out=out).items.height == 20


SLOWLY = """
import sys, time, pluralbench
def slowly(groups):
    for group in groups:
        time.sleep(0.01)
    return [[float(len(response)) for response in group.responses] for group in groups]
pluralbench.score(slowly, benchmark="pairs", data=sys.argv[1], out=sys.argv[2])
"""


@pytest.mark.heavy
def test_a_killed_process_goes_on_where_it_was(
    pairs: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write(tmp_path / "many.jsonl", pairs(500)), tmp_path / "run"
    (tmp_path / "slow.py").write_text(SLOWLY, encoding="utf-8")
    words = [script("python"), str(tmp_path / "slow.py"), str(data), str(out)]
    with subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True) as process:
        until = time.monotonic() + 120
        while not (journal(out).exists() and journal(out).stat().st_size > 500):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    assert not out.exists()
    lines = journal(out).read_text(encoding="utf-8").rpartition("\n")[0].split("\n")
    known = [*chain.from_iterable(map(json.loads, lines))]
    assert 0 < len(known) < 500
    monkeypatch.setattr("sys.argv", words[1:])
    runpy.run_path(words[1], run_name="__main__")
    run = pluralbench.load_run(out)
    assert scoring(run).items_resumed == len(known)
    assert run.items["id"].to_list() == [row["id"] for row in pairs(500)]
    for place, scores in known:
        assert list(run.items.select("score_chosen", "score_rejected").row(place)) == scores


@pytest.mark.parametrize("wording", ["posts", "told", "plan"])
def test_another_wording_of_the_prompt_is_refused(
    people: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: str
) -> None:
    data = write(tmp_path / "people.jsonl", people(20))
    options: dict[str, Any] = {"data": data, "out": tmp_path / "run", "columns": ["prompt=question", "profile=profile"]}
    interrupted(data, tmp_path / "run", by_text, profile="raw", columns=options["columns"])
    monkeypatch.setitem(pluralbench.data.prompts.WORDINGS, wording, "Other words: {posts}")
    refused("wordings_digest", model=by_text, profile="raw", **options)


def test_a_kill_once_the_run_is_in_its_place_leaves_nothing_behind(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with killed_when(out.exists, monkeypatch) as killed:
        verbs.score(by_text, benchmark="pairs", data=data, out=out)
    assert killed()
    assert (tmp_path / "run.work").exists()

    made = (out / "run.json").read_bytes()
    assert verbs.score(by_text, benchmark="pairs", data=data, out=out).count("items") == 20
    assert (out / "run.json").read_bytes() == made
    assert not (tmp_path / "run.work").exists()
