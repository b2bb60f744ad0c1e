"""`correlate` with directories of best-of-n and of optimize: their scores, and the noise of their prompts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pluralbench.config import DownstreamPromptConfig, OutcomeConfig, SamplingConfig
from pluralbench.downstream.best_of_n import best_of_n
from pluralbench.downstream.correlate import correlate
from pluralbench.downstream.score_series import read_series
from pluralbench.downstream.study import Study
from pluralbench.errors import DataError, RunError
from pluralbench_local import LocalModel
from small_world import people_file

Command = Callable[..., tuple[int, str, str]]
Folders = Callable[..., str]


def scores_of(done: Study, column: str) -> dict[str, float]:
    frame = pl.read_csv(done.path / "scores.csv")
    return dict(frame.select("model", column).iter_rows())


@pytest.mark.heavy
@pytest.mark.parametrize("column", ["best-of-n", "optimization"])
def test_a_side_has_the_scores_of_the_study_and_the_noise_of_its_prompts(done: Study, column: str) -> None:
    side = read_series(done.path / column)
    expected = scores_of(done, column)
    assert dict(zip(side.names, side.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert list(side.warnings) == []
    assert side.resampled is not None
    assert side.resampled[0] == pytest.approx(side.scores)
    assert len(side.resampled) == 2001
    # Resamples of 6 prompts have the mean of these, and spread as a mean of 6 does.
    assert side.resampled[1:].mean(0) == pytest.approx(side.scores, abs=0.02)
    for place, name in enumerate(side.names):
        if column == "optimization":
            values = done.optimized[name].frame("outcomes")["value"].to_numpy()
            assert side.resampled[1:, place].std() == pytest.approx(values.std() / np.sqrt(6), rel=0.1)
    what = "outcome of best of 4" if column == "best-of-n" else "outcome of the optimized policy"
    assert side.measure == f"{what}, judged by rubric-overlap"
    other = read_series(done.path / column, seed=1)
    assert other.resampled is not None
    assert (other.resampled[1:] != side.resampled[1:]).any()


def runs_named(done: Study, folder: Path) -> Path:
    """The study's runs on its first benchmark, under the names that its reward models have downstream."""
    for name in done.runs["own pairs"]:
        path = shutil.copytree(done.path / "benchmarks" / "own pairs" / name, folder / name)
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        record["result"]["model"]["name"] = name
        (path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


@pytest.mark.parametrize("column", ["best-of-n", "optimization"])
def test_runs_against_what_came_of_them(done: Study, tmp_path: Path, run: Command, column: str) -> None:
    from scipy.stats import spearmanr

    runs = runs_named(done, tmp_path / "runs")
    status, out, error = run("correlate", runs, done.path / column, "--json")
    assert (status, error) == (0, "")
    found = json.loads(out)
    benchmark, downstream = scores_of(done, "own pairs"), scores_of(done, column)
    rho = spearmanr([benchmark[name] for name in downstream], list(downstream.values())).statistic
    assert found["n"] == 4
    assert found["spearman"] == pytest.approx(rho)
    assert {one["model"]: one["downstream"] for one in found["models"]} == pytest.approx(downstream)
    assert {one["model"]: one["benchmark"] for one in found["models"]} == pytest.approx(benchmark)
    assert all(value is not None for value in found["reliability"].values())
    # A pattern does as well as the folder; of best-of-n it is one directory.
    if column == "optimization":
        status, again, _ = run("correlate", runs, done.path / column / "*", "--json")
        assert status == 0
        assert json.loads(again)["spearman"] == found["spearman"]


def refused(location: Path) -> str:
    with pytest.raises((DataError, RunError)) as failed:
        read_series(location)
    assert failed.value.exit_status == 2
    return str(failed.value)


def test_folders_that_are_no_side_are_refused(done: Study, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(done.path / "benchmarks" / "own pairs" / "0 pairs", mixed / "run")
    shutil.copytree(done.path / "best-of-n", mixed / "best")
    assert refused(mixed) == f"{mixed} holds runs of benchmarks and of best-of-n; give only one kind."
    several = tmp_path / "several"
    for name in ("one", "other"):
        shutil.copytree(done.path / "best-of-n", several / name)
    assert refused(several) == f"{several} holds several runs of best-of-n; give one of them."
    both = tmp_path / "both"
    shutil.copytree(done.path / "best-of-n", both / "best")
    shutil.copytree(done.path / "optimization" / "0 pairs", both / "end")
    assert refused(both) == f"{both} holds runs of best-of-n and of optimize; give only one kind."
    twice = tmp_path / "twice"
    for name in ("one", "other"):
        shutil.copytree(done.path / "optimization" / "0 pairs", twice / name)
    assert refused(twice) == (
        f"{twice / 'one'} and {twice / 'other'} both have the reward model 0 pairs; remove one of them."
    )
    with pytest.raises(DataError) as failed:
        read_series(done.path / "best-of-n", ["score"])
    assert "leave out `columns=...`." in str(failed.value)


@pytest.fixture
def two(done: Study, tmp_path: Path) -> Path:
    """A folder with two of the study's optimised policies."""
    for name in ("0 pairs", "8 pairs"):
        shutil.copytree(done.path / "optimization" / name, tmp_path / name)
    return tmp_path


def test_policies_that_were_judged_otherwise_are_not_compared(two: Path) -> None:
    path = two / "8 pairs" / "run.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    record["result"]["outcome"]["judge"]["name"] = "gpt-5-mini"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert refused(two) == (
        f"{two / '0 pairs'} and {two / '8 pairs'} cannot be compared: their judge differs (rubric-overlap, "
        "gpt-5-mini); run one of them again."
    )
    record["result"]["outcome"] = None
    path.write_text(json.dumps(record), encoding="utf-8")
    assert refused(two) == (
        f"{two / '8 pairs'} has no outcomes, because it ran without a judge; run it again with one."
    )


def test_policies_that_answered_other_prompts_have_no_noise_and_it_is_said(two: Path) -> None:
    path = two / "8 pairs" / "candidates.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(id=pl.lit("other ") + pl.col("id")).write_parquet(path)
    outcomes = two / "8 pairs" / "outcomes.parquet"
    pl.read_parquet(outcomes).with_columns(id=pl.lit("other ") + pl.col("id")).write_parquet(outcomes)
    side = read_series(two)
    assert side.resampled is None
    assert side.warnings == (f"{two}: the policies answered different prompts, so the noise of the items is unknown.",)


def test_the_same_prompts_in_another_order_are_the_same_prompts(two: Path) -> None:
    before = read_series(two)
    path = two / "8 pairs" / "candidates.parquet"
    pl.read_parquet(path).reverse().write_parquet(path)
    after = read_series(two)
    assert before.resampled is not None
    assert after.resampled is not None
    assert after.resampled == pytest.approx(before.resampled)


@pytest.mark.heavy
def test_best_of_n_that_nobody_judged_is_refused_and_names_are_matched_by_their_last_part(
    talker: str, classifiers: Folders, tmp_path: Path, run: Command
) -> None:
    data = people_file(tmp_path / "people.jsonl", 6)
    rewards = [LocalModel(name=classifiers(seed=seed), device="cpu") for seed in (1, 2)]
    given: dict[str, Any] = {"data": data, "prompt": DownstreamPromptConfig(profile="none")}
    given["sampling"] = SamplingConfig(n=3, max_tokens=12)
    policy = LocalModel(name=talker, device="cpu")
    best_of_n(policy, rewards, **given, out=tmp_path / "unjudged")
    assert refused(tmp_path / "unjudged") == (
        f"{tmp_path / 'unjudged'} has no outcomes, because it ran without a judge; run it again with one."
    )
    best_of_n(policy, rewards, **given, outcome=OutcomeConfig(judge="rubric-overlap"), out=tmp_path / "judged")
    for reward in rewards:
        words = ["score", reward.name, "--data", data, "--profile", "none", "--device", "cpu"]
        assert run(*words, "--out", tmp_path / "runs" / Path(reward.name).name)[0] == 0
    found = correlate(tmp_path / "runs", tmp_path / "judged")
    assert sorted(found.names) == sorted(Path(reward.name).name for reward in rewards)
    assert found.warnings[0] == (
        "No full model name is on both sides, so models are matched by the last parts of their names."
    )
    status, out, _ = run("correlate", tmp_path / "runs", tmp_path / "judged")
    assert status == 0
    assert "models are matched by the last parts of their names" in " ".join(out.split())
