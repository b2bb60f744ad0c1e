"""From a release to its leaderboard on the Hub: published, scored there, proposed to a model."""

import shutil
from pathlib import Path

import pluralbench
import pytest
import yaml
from commands import in_process
from huggingface_hub import HfApi
from live_hub import READER, Hub, point_clients
from pluralbench.commands.app import main
from pluralbench_release import publish
from pluralbench_rewards import Group
from samples import sample

DATASET, MODEL = "org/personalized", "theirs/model"


def longest(groups: list[Group]) -> list[list[float]]:
    return [[float(len(text)) for text in group.responses] for group in groups]


@pytest.mark.heavy
def test_results_on_a_release_reach_its_leaderboard(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import datasets  # noqa: F401 - pointed to the Hub where it is imported

    point_clients(monkeypatch, hub, tmp_path / "home")
    run = in_process("pluralbench", main, monkeypatch, capsys)
    release = shutil.copytree(sample("build-personalized").release, tmp_path / "release")
    publish(release, DATASET, tag="v1.0.0", create=True)
    tasks = [task["id"] for task in yaml.safe_load(hub.repository(DATASET).files("v1.0.0")["eval.yaml"])["tasks"]]
    model = hub.create(MODEL, "models")
    model.commit({"README.md": b"---\nbase_model: theirs/base\n---\nA model.\n"})
    assert HfApi().get_dataset_leaderboard(DATASET) == []

    scored = pluralbench.score(longest, data=f"{DATASET}@v1.0.0", out=tmp_path / "runs/longest")
    monkeypatch.setenv("HF_TOKEN", READER)
    status, said = run("report", scored.path, "--create-pr", MODEL)
    assert (status, "Opened a pull request" in said) == (0, True), said
    entries = yaml.safe_load(model.files("refs/pr/1")[".eval_results/pluralbench.yaml"])
    assert [entry["dataset"]["task_id"] for entry in entries] == tasks
    assert {entry["dataset"]["revision"] for entry in entries} == {hub.repository(DATASET).find("v1.0.0")}

    [listed] = HfApi().get_dataset_leaderboard(DATASET, base_model_only=False)
    assert scored.headline.value is not None
    assert (listed.model_id, listed.pull_request) == (MODEL, 1)
    assert listed.value == pytest.approx(100 * scored.headline.value, abs=1e-3)
