"""LaMP-QA from the Hub, asked for real: a Hub on loopback, and the command in a process of its own."""

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from commands import command
from live_hub import NO_NETWORK, Hub, live_hub

REBUILT = """
import sys
from pathlib import Path
from pluralbench_release import rebuild
for number, release in enumerate(map(Path, sys.argv[1:])):
    print("another" if any(rebuild(release, Path(f"again-{number}"))) else "the same")
"""
CONFIGS = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]


@dataclass(frozen=True)
class Asked:
    """A Hub whose `acme/lamp` holds the sample's questions in two commits, the older with one a config."""

    hub: Hub
    old: str
    new: str
    environment: dict[str, str]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    questions = {config: (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8") for config in CONFIGS}
    paths = {config: {"test": f"data/{config}/test.jsonl"} for config in CONFIGS}
    first = {paths[config]["test"]: text.split("\n")[0] for config, text in questions.items()}
    every = {paths[config]["test"]: text for config, text in questions.items()}
    with live_hub(tmp_path_factory.mktemp("hub")) as hub:
        old = hub.publish("acme/lamp", first, paths, license="mit")
        new = hub.publish("acme/lamp", every, paths, license="cc-by-sa-4.0")
        yield Asked(hub, old, new, hub.environment(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def newest(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The release of what is on the Hub, not to be changed, and what the Hub was asked for."""
    out = tmp_path_factory.mktemp("newest") / "out"
    asked.hub.asked.clear()
    built = command("build-personalized", "--source", "lamp-qa:acme/lamp", "--out", out, env=asked.environment)
    assert built.returncode == 0, built.stderr
    return out, list(asked.hub.asked)


def test_three_configs_are_built_and_the_commit_is_pinned(asked: Asked, newest: tuple[Path, list[str]]) -> None:
    out, requests = newest
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
    read = [line for line in requests if "/resolve/" in line]
    assert read
    assert all(f"/{asked.new}/" in line for line in read), "only the pinned commit is read"


def test_what_the_hub_does_not_give_comes_with_the_mend(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    status, output = run("--source", "lamp-qa", "--out", tmp_path / "out")
    assert (status, output.count("\n")) == (2, 1), output
    assert output.startswith("Error: The Hub cannot be reached for alireza7/LaMP-QA (")
    fix = "use a local copy, or try again online; give `lamp-qa:DIRECTORY` or `lamp-qa:ORG/NAME@REVISION`.\n"
    assert output.endswith(fix)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_a_release_rebuilds_from_the_cache_without_a_network(
    asked: Asked, newest: tuple[Path, list[str]], tmp_path: Path
) -> None:
    # So that the newest in the cache is not the newest on the Hub.
    words = ("--source", f"lamp-qa:acme/lamp@{asked.old}", "--limit", "2", "--out", tmp_path / "old")
    assert command("build-personalized", *words, env=asked.environment).returncode == 0
    releases = [newest[0], tmp_path / "old"]
    rebuilt = command("python", "-c", REBUILT, *releases, cwd=tmp_path, env=asked.environment | NO_NETWORK)
    assert (rebuilt.returncode, rebuilt.stdout) == (0, "the same\n" * 2), rebuilt.stderr
