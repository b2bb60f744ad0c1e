"""Interrupted runs go on from what is there, under the same settings only; finished ones are read, not made again."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench_rewards
import pytest
import torch
from commands import environment, script
from filelock import FileLock
from pluralbench import Run
from pluralbench_local import Classifier
from pluralbench_runs import OutputError
from polars.testing import assert_frame_equal
from safetensors.torch import load_file, save_file
from verbs import scoring, work
from written_tables import write

Rows = list[dict[str, Any]]
BUDGET = 120


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(20))


@pytest.fixture
def own(model: str, tmp_path: Path) -> str:
    """A copy of the model, to be changed."""
    return str(shutil.copytree(model, tmp_path / "model"))


def journal(out: Path) -> Path:
    return out.with_name(f"{out.name}.work") / "scores.jsonl"


def interrupted(
    score: Callable[..., Run], data: Path, out: Path, error: type[BaseException] = KeyboardInterrupt, **options: Any
) -> int:
    """Begin a run that is interrupted after four batches; how many items it had scored."""
    rewards, batches = Classifier.rewards, []

    def some(self: Classifier, *args: Any) -> Any:
        batches.append(1)
        if len(batches) > 4:
            raise error("enough")
        return rewards(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Classifier, "rewards", some)
        with pytest.raises(error):
            score("pairs", data, out=out, token_budget=BUDGET, **options)
    done = len(journal(out).read_text(encoding="utf-8").splitlines())
    assert 0 < done < 20
    assert not out.exists()
    return done


def same(run: Run, other: Run) -> None:
    assert_frame_equal(run.items, other.items, abs_tol=1e-5, rel_tol=0)
    assert run.items["outcome"].to_list() == other.items["outcome"].to_list()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_computes_the_rest_only(
    score: Callable[..., Run], data: Path, tmp_path: Path, error: type[BaseException]
) -> None:
    done = interrupted(score, data, tmp_path / "run", error)
    run = score("pairs", data, out=tmp_path / "run", token_budget=BUDGET)
    assert scoring(run).items_from_an_earlier_part == done
    assert work(run).conversations == 2 * (20 - done)
    whole = score("pairs", data)
    assert scoring(whole).items_from_an_earlier_part == 0
    same(run, whole)
    assert run.count("wins") == whole.count("wins")
    assert not journal(tmp_path / "run").parent.exists()


def test_a_journal_cut_short_in_its_last_line_is_taken_without_it(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    done = interrupted(score, data, tmp_path / "run")
    path = journal(tmp_path / "run")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-8], encoding="utf-8")
    run = score("pairs", data, out=tmp_path / "run", token_budget=BUDGET)
    assert scoring(run).items_from_an_earlier_part == done - 1
    same(run, score("pairs", data))


def test_the_batch_size_may_change_between_the_parts(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    interrupted(score, data, tmp_path / "run")
    same(score("pairs", data, out=tmp_path / "run", token_budget=5000), score("pairs", data))


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"seed": 5}, "`seed`"),
        ({"mode": "exact"}, "`mode`"),
        ({"max_length": 900}, "`max_length`"),
        ({"dtype": "bfloat16"}, "`dtype`"),
        ({"on_overflow": "drop"}, "`on_overflow`"),
        ({"limit": 7}, "`data.limit`"),
        ({"profile_size": 3}, "`data.profile_size`"),
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_another_setting_is_refused_by_name(
    score: Callable[..., Run], data: Path, tmp_path: Path, changed: dict[str, Any], key: str, finished: bool
) -> None:
    if finished:
        score("pairs", data, out=tmp_path / "run")
    else:
        interrupted(score, data, tmp_path / "run")
    with pytest.raises(OutputError) as caught:
        score("pairs", data, out=tmp_path / "run", **changed)
    assert key in str(caught.value)
    assert "`fresh`" in str(caught.value)
    score("pairs", data, out=tmp_path / "run")  # what was there is still there


def test_a_changed_model_is_refused(score: Callable[..., Run], data: Path, own: str, tmp_path: Path) -> None:
    interrupted(score, data, tmp_path / "run", by=own)
    weights = load_file(f"{own}/model.safetensors")
    weights["score.weight"] = weights["score.weight"] + torch.ones(1)
    save_file(weights, f"{own}/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(OutputError, match="`model_digest`"):
        score("pairs", data, out=tmp_path / "run", by=own)


def test_changed_data_is_refused(
    score: Callable[..., Run], data: Path, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    interrupted(score, data, tmp_path / "run")
    rows = pairs(20)
    rows[19]["rejected"] += "."
    write(data, rows)
    with pytest.raises(OutputError, match=r"`data\.digest`"):
        score("pairs", data, out=tmp_path / "run")
    assert scoring(score("pairs", data, out=tmp_path / "run", fresh=True)).items_from_an_earlier_part == 0


def test_fresh_starts_over(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    interrupted(score, data, tmp_path / "run")
    run = score("pairs", data, out=tmp_path / "run", fresh=True, seed=9)
    assert (scoring(run).items_from_an_earlier_part, run.record.bootstrap.seed) == (0, 9)
    assert work(run).conversations == 40
    again = score("pairs", data, out=tmp_path / "run", fresh=True)
    assert again.record.bootstrap.seed == 0


def test_a_finished_run_is_read_without_loading_a_model(
    score: Callable[..., Run], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = score("pairs", data, out=tmp_path / "run")
    monkeypatch.setattr(pluralbench_rewards, "load_local", lambda *_, **__: pytest.fail("a model was loaded"))
    again = score("pairs", data, out=tmp_path / "run")
    assert again.run == run.run
    assert_frame_equal(again.items, run.items)


def test_a_finished_run_that_is_asked_for_again_leaves_nothing_beside_it(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        score("pairs", data, out=tmp_path / "runs" / "a")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a"]


def test_a_run_that_failed_before_its_first_score_binds_nothing(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    with pytest.raises(pluralbench_rewards.ConversationError):
        score("pairs", data, out=tmp_path / "run", max_length=8)
    assert not journal(tmp_path / "run").parent.exists()
    score("pairs", data, out=tmp_path / "run", max_length=900)


def test_two_processes_cannot_write_one_run(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    journal(out).parent.mkdir()
    with FileLock(journal(out).parent / "lock"), pytest.raises(OutputError, match="Another process is writing"):
        score("pairs", data, out=out)
    assert score("pairs", data, out=out).items.height == 20


def test_a_killed_command_goes_on_where_it_was(
    score: Callable[..., Run], pairs: Callable[..., Rows], model: str, tmp_path: Path
) -> None:
    data, out = write(tmp_path / "many.jsonl", pairs(500)), tmp_path / "run"
    words = ["score", model, "--benchmark", "pairs", "--data", str(data), "--out", str(out), "--device", "cpu"]
    with subprocess.Popen(
        [script("pluralbench"), *words, "--token-budget", "1"],
        env=environment({"OMP_NUM_THREADS": "1"}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + 120
        while not (journal(out).exists() and journal(out).stat().st_size > 500):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    assert not out.exists()
    known = journal(out).read_text(encoding="utf-8").rpartition("\n")[0].split("\n")
    run = score("pairs", data, out=out)
    assert 0 < scoring(run).items_from_an_earlier_part == len(known) < 500
    assert run.items["id"].to_list() == [row["id"] for row in pairs(500)]
    for place, scores in map(json.loads, known):
        assert list(run.items.select("score_chosen", "score_rejected").row(place)) == scores
