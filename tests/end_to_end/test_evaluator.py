"""The evaluator on real weights: SmolLM2 as a reward model, as a policy with a reference, and as a judge."""

from pathlib import Path

import polars as pl
import pytest
import smollm2
from commands import command
from pluralbench import read_run
from samples import sample
from verbs import judging, score, work

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def release() -> Path:
    return sample("build-personalized").release


@pytest.fixture(scope="module")
def base() -> Path:
    return smollm2.language_model()


def test_a_trained_reward_model_scores_the_sample_alike_in_both_modes(
    release: Path, base: Path, tmp_path: Path
) -> None:
    model = smollm2.reward_model(base, tmp_path / "reward")
    words = ("score", model, "--data", release, "--limit", "1", "--mode", "fast", "--out", tmp_path / "fast")
    result = command("pluralbench", *words, env=ONE_THREAD)
    assert result.returncode == 0, result.stderr
    fast = read_run(tmp_path / "fast")
    exact = score(model, data=release, limit=1, mode="exact", out=tmp_path / "exact", device="cpu")
    assert [(work(run).strategy, work(run).unpackable) for run in (fast, exact)] == [("fast", ""), ("exact", "")]
    assert fast.items.height == 3
    assert fast.items["outcome"].to_list() == exact.items["outcome"].to_list()
    for name in ("score_chosen", "score_rejected"):
        assert (fast.items[name] - exact.items[name]).abs().max() < 1e-3  # type: ignore[operator]


def test_a_fine_tuned_copy_is_scored_against_its_reference(release: Path, base: Path, tmp_path: Path) -> None:
    policy = smollm2.fine_tuned(base, tmp_path / "policy")
    words = ("--kind", "implicit", "--reference", base, "--data", release, "--limit", "1", "--out", tmp_path / "run")
    result = command("pluralbench", "score", policy, *words, env=ONE_THREAD)
    assert result.returncode == 0, result.stderr
    run = read_run(tmp_path / "run")
    assert run.estimate("accuracy", "pooled").n == 3
    assert run.items["score_chosen"].abs().max() > 0.01  # type: ignore[operator]


def test_the_embedded_model_judges_with_every_call_recorded(release: Path, tmp_path: Path) -> None:
    words = (
        "--data",
        release,
        "--limit",
        "1",
        "--reply",
        "structured",
        "--max-tokens",
        "16",
        "--out",
        tmp_path / "run",
    )
    result = command("pluralbench", "judge", "local", *words)
    assert result.returncode == 0, result.stderr
    run = read_run(tmp_path / "run")
    assert run.count("verdicts", "position") == 6
    assert run.count("invalid_verdicts", "position") < 6
    assert judging(run).calls == pl.read_parquet(run.path / "ledger.parquet").height >= 6
