"""The evaluator on real weights: SmolLM2 as a reward model, as a policy with a reference, and as a judge."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import smollm2
from commands import command

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "sample"
    assert command("build-personalized", "--out", folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return smollm2.language_model(tmp_path_factory.mktemp("models") / "base")


def metrics(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    return loaded


def test_a_trained_reward_model_scores_the_sample_alike_in_both_modes(
    release: Path, base: Path, tmp_path: Path
) -> None:
    model = smollm2.reward_model(base, tmp_path / "reward")
    frames = {}
    for mode in ("fast", "exact"):
        run = tmp_path / mode
        words = ("score", model, "--data", release, "--limit", "3", "--mode", mode, "--out", run)
        result = command("pluralbench", *words, env=ONE_THREAD)
        assert result.returncode == 0, result.stderr
        frames[mode] = pl.read_parquet(run / "items.parquet")
        recorded = json.loads((run / "run.json").read_text(encoding="utf-8"))
        assert recorded["scoring"]["strategy"] == mode
        assert recorded["scoring"]["unpackable"] == ""
    assert frames["fast"]["outcome"].to_list() == frames["exact"]["outcome"].to_list()
    for name in ("score_chosen", "score_rejected"):
        assert (frames["fast"][name] - frames["exact"][name]).abs().max() < 1e-3  # type: ignore[operator]
    compared = command("pluralbench", "compare", tmp_path / "fast", tmp_path / "exact", "--json")
    assert json.loads(compared.stdout)["difference"] == 0


def test_a_fine_tuned_copy_is_scored_against_its_reference(release: Path, base: Path, tmp_path: Path) -> None:
    policy = smollm2.fine_tuned(base, tmp_path / "policy")
    words = ("--kind", "implicit", "--reference", base, "--data", release, "--limit", "2", "--out", tmp_path / "run")
    result = command("pluralbench", "score", policy, *words, env=ONE_THREAD)
    assert result.returncode == 0, result.stderr
    assert metrics(tmp_path / "run")["pooled"]["n"] == 6
    scores = pl.read_parquet(tmp_path / "run" / "items.parquet")["score_chosen"]
    assert scores.abs().max() > 0.01  # type: ignore[operator]


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
    position = metrics(tmp_path / "run")["position"]
    assert position["verdicts"] == 6
    assert position["invalid_verdicts"] < 6
    assert pl.read_parquet(tmp_path / "run" / "ledger.parquet").height >= 6
