"""LaMP-QA from the Hub, asked for real: a Hub on loopback, and the command in a process of its own."""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from commands import command
from hub_server import NO_NETWORK, Hub, card, publish, serving

OLD, NEW = "a" * 40, "b" * 40
REBUILT = """
import sys
from pathlib import Path
from pluralbench_release import rebuild
for number, release in enumerate(map(Path, sys.argv[1:])):
    print("another" if any(rebuild(release, Path(f"again-{number}"))) else "the same")
"""
CONFIGS = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]


def publish_questions(repo: Path, commit: str, questions: dict[str, str], licence: str) -> None:
    paths = {config: f"data/{config}/test.jsonl" for config in questions}
    files = {paths[config]: text for config, text in questions.items()}
    publish(repo, commit, files, card({config: {"test": path} for config, path in paths.items()}, licence))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """`acme/lamp` holds the sample's questions in two commits, the older with one a config."""
    folder = tmp_path_factory.mktemp("hub")
    questions = {config: (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8") for config in CONFIGS}
    publish_questions(folder / "acme/lamp", OLD, {name: text.split("\n")[0] for name, text in questions.items()}, "mit")
    publish_questions(folder / "acme/lamp", NEW, questions, "cc-by-sa-4.0")
    with serving(folder, tmp_path_factory.mktemp("hf_home")) as hub:
        yield hub


@pytest.fixture(scope="module")
def newest(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The release of what is on the Hub, not to be changed, and what the Hub was asked for."""
    out = tmp_path_factory.mktemp("newest") / "out"
    hub.log.write_text("", encoding="utf-8")
    built = command("build-personalized", "--source", "lamp-qa:acme/lamp", "--out", out, env=hub.environment)
    assert built.returncode == 0, built.stderr
    return out, hub.log.read_text(encoding="utf-8")


def test_three_configs_are_built_and_the_commit_is_pinned(newest: tuple[Path, str]) -> None:
    out, asked = newest
    recipe = tomllib.loads((out / "provenance/recipe.toml").read_text(encoding="utf-8"))
    assert recipe["source"]["locations"] == [f"lamp-qa:acme/lamp@{NEW}"]
    manifest = json.loads((out / "provenance/manifest.json").read_text(encoding="utf-8"))
    assert {table["config"]: table["rows"] for table in manifest["tables"]} == dict.fromkeys(CONFIGS, 8)
    (source,) = manifest["sources"]
    assert (source["location"], source["revision"], source["licence"]) == ("acme/lamp", NEW, "cc-by-sa-4.0")
    for config in CONFIGS:
        ours = pl.read_parquet(out / "data" / config / "test.parquet")["question"].to_list()
        lines = (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8").strip().split("\n")
        assert ours == [json.loads(line)["question"] for line in lines]
    read = [line for line in asked.splitlines() if "/resolve/" in line]
    assert read
    assert all(f"/{NEW}/" in line for line in read), "only the pinned commit is read"


def test_what_the_hub_does_not_give_comes_with_the_mend(
    run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    status, said = run("--source", "lamp-qa", "--out", tmp_path / "out")
    assert (status, said.count("\n")) == (2, 1), said
    assert said.startswith("Error: The Hub cannot be asked for alireza7/LaMP-QA (")
    mend = "give a local copy, or try again with a network (give `lamp-qa:DIRECTORY` or `lamp-qa:ORG/NAME@REVISION`).\n"
    assert said.endswith(mend)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_a_release_rebuilds_from_the_cache_without_a_network(
    hub: Hub, newest: tuple[Path, str], tmp_path: Path
) -> None:
    # So that the newest in the cache is not the newest on the Hub.
    words = ("--source", f"lamp-qa:acme/lamp@{OLD}", "--limit", "2", "--out", tmp_path / "old")
    assert command("build-personalized", *words, env=hub.environment).returncode == 0
    releases = [newest[0], tmp_path / "old"]
    rebuilt = command("python", "-c", REBUILT, *releases, cwd=tmp_path, env=hub.environment | NO_NETWORK)
    assert (rebuilt.returncode, rebuilt.stdout) == (0, "the same\n" * 2), rebuilt.stderr
