"""LaMP-QA from the Hub, asked for real: a Hub on loopback."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from live_hub import Hub
from pluralbench_release import rebuild

Run = Callable[..., tuple[int, str]]
CONFIGS = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]


@dataclass(frozen=True)
class Asked:
    """A Hub whose `acme/lamp` holds the sample's questions in two commits, the older with one a config."""

    hub: Hub
    old: str
    new: str


@pytest.fixture
def asked(hub: Hub) -> Asked:
    questions = {config: (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8") for config in CONFIGS}
    paths = {config: {"test": f"data/{config}/test.jsonl"} for config in CONFIGS}
    first = {paths[config]["test"]: text.split("\n")[0] for config, text in questions.items()}
    every = {paths[config]["test"]: text for config, text in questions.items()}
    old = hub.publish("acme/lamp", first, paths, license="mit")
    new = hub.publish("acme/lamp", every, paths, license="cc-by-sa-4.0")
    return Asked(hub, old, new)


@pytest.mark.heavy
def test_three_configs_are_built_from_a_pinned_commit_and_rebuilt_without_a_network(
    run: Run, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, old = tmp_path / "newest", tmp_path / "old"
    status, said = run("--source", "lamp-qa:acme/lamp", "--out", out)
    assert status == 0, said
    recipe = tomllib.loads((out / "provenance/recipe.toml").read_text(encoding="utf-8"))
    assert recipe["source"]["locations"] == [f"lamp-qa:acme/lamp@{asked.new}"]
    manifest = json.loads((out / "provenance/manifest.json").read_text(encoding="utf-8"))
    assert {table["config"]: table["rows"] for table in manifest["tables"]} == dict.fromkeys(CONFIGS, 8)
    (source,) = manifest["sources"]
    assert (source["location"], source["revision"], source["license"]) == ("acme/lamp", asked.new, "cc-by-sa-4.0")
    for config in CONFIGS:
        ours = pl.read_parquet(out / "data" / config / "test.parquet")["question"].to_list()
        lines = (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8").strip().split("\n")
        assert ours == [json.loads(line)["question"] for line in lines]
    read = [line for line in asked.hub.asked if "/resolve/" in line]
    assert read
    assert all(f"/{asked.new}/" in line for line in read), "only the pinned commit is read"
    # So that the newest in the cache is not the newest on the Hub.
    assert run("--source", f"lamp-qa:acme/lamp@{asked.old}", "--limit", "2", "--out", old)[0] == 0
    before = len(asked.hub.asked)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for release in (out, old):
        assert not any(rebuild(release, tmp_path / f"again-{release.name}"))
    assert len(asked.hub.asked) == before


def test_what_the_hub_does_not_give_comes_with_the_mend(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    status, output = run("--source", "lamp-qa", "--out", tmp_path / "out")
    assert (status, output.count("\n")) == (2, 1), output
    assert output.startswith("Error: The Hub cannot be reached for alireza7/LaMP-QA (")
    fix = "use a local copy, or try again online; give `lamp-qa:DIRECTORY` or `lamp-qa:ORG/NAME@REVISION`.\n"
    assert output.endswith(fix)
    assert list(tmp_path.iterdir()) == []
