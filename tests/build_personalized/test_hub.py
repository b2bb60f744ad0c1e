"""LaMP-QA from the Hub, asked for real: a Hub on loopback, and the command in a process of its own."""

import json
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from commands import command, fails
from hub_server import NO_NETWORK, Hub, card, publish, serving

OLD, NEW, BAD = "a" * 40, "b" * 40, "c" * 40
CONFIGS = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]


def publish_questions(repo: Path, commit: str, questions: dict[str, str], licence: str) -> None:
    paths = {config: f"data/{config}/test.jsonl" for config in questions}
    files = {paths[config]: text for config, text in questions.items()}
    publish(repo, commit, files, card({config: {"test": path} for config, path in paths.items()}, licence))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """`acme/lamp` holds the sample's questions in two commits, the older with one a config; `acme/bad` is damaged."""
    folder = tmp_path_factory.mktemp("hub")
    questions = {config: (SAMPLE / "questions" / f"{config}.jsonl").read_text(encoding="utf-8") for config in CONFIGS}
    publish_questions(folder / "acme/lamp", OLD, {name: text.split("\n")[0] for name, text in questions.items()}, "mit")
    publish_questions(folder / "acme/lamp", NEW, questions, "cc-by-sa-4.0")
    publish_questions(folder / "acme/bad", BAD, {"Art": questions[CONFIGS[0]][:2000]}, "mit")
    with serving(folder, tmp_path_factory.mktemp("hf_home")) as hub:
        yield hub


def test_three_configs_are_built_and_the_commit_is_pinned(hub: Hub, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hub.log.write_text("", encoding="utf-8")
    built = command("build-personalized", "--source", "lamp-qa:acme/lamp", "--out", out, env=hub.environment)
    assert built.returncode == 0, built.stderr
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
    read = [line for line in hub.log.read_text(encoding="utf-8").splitlines() if "/resolve/" in line]
    assert read
    assert all(f"/{NEW}/" in line for line in read), "only the pinned commit is read"


def test_an_older_commit_is_built_as_it_was(hub: Hub, tmp_path: Path) -> None:
    source = f"lamp-qa:acme/lamp@{OLD}"
    built = command("build-personalized", "--source", source, "--out", tmp_path / "out", env=hub.environment)
    assert built.returncode == 0, built.stderr
    manifest = json.loads((tmp_path / "out/provenance/manifest.json").read_text(encoding="utf-8"))
    assert [table["rows"] for table in manifest["tables"]] == [1, 1, 1]
    assert (manifest["sources"][0]["revision"], manifest["sources"][0]["licence"]) == (OLD, "mit")


def test_what_the_hub_does_not_give_is_said_in_a_sentence(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "split.toml").write_text(
        '[source]\nlocations = ["lamp-qa:acme/lamp"]\nsplit = "dev"\n\n'
        '[llm]\nprovider = "hand-written"\nmodel = "hand-written"\n',
        encoding="utf-8",
    )
    cases: list[tuple[list[str | Path], dict[str, str], str]] = [
        (["--source", "lamp-qa:acme/nothing"], {}, "acme/nothing is neither a directory here nor a dataset"),
        (["--source", "lamp-qa:acme/lamp@v9"], {}, "acme/lamp has no revision 'v9'"),
        (
            ["--recipe", tmp_path / "split.toml"],
            {},
            f"acme/lamp at bbbbbbbbbbbb has no split 'dev' in {CONFIGS[0]}; it has test.",
        ),
        (
            ["--source", "lamp-qa:acme/lamp"],
            {"HF_HUB_OFFLINE": "1"},
            "give a local copy, or try again with a network (give `lamp-qa:DIRECTORY`",
        ),
    ]
    with ThreadPoolExecutor() as pool:
        results = pool.map(
            lambda case: command(
                "build-personalized", *case[0], "--out", tmp_path / "out", env=hub.environment | case[1]
            ),
            cases,
        )
        for result, (_, _, sentence) in zip(results, cases, strict=True):
            fails(result, sentence)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists()


def test_no_network_is_said_in_a_sentence(tmp_path: Path) -> None:
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
    result = command("build-personalized", "--source", "lamp-qa", "--out", tmp_path / "out", env=environment)
    fails(result, "The Hub cannot be asked for alireza7/LaMP-QA", "lamp-qa:DIRECTORY")


def test_damaged_files_of_a_repository_are_said_in_a_sentence(hub: Hub, tmp_path: Path) -> None:
    result = command(
        "build-personalized", "--source", "lamp-qa:acme/bad", "--out", tmp_path / "out", env=hub.environment
    )
    fails(result, "acme/bad at cccccccccccc cannot be loaded")


@pytest.mark.heavy
def test_a_release_rebuilds_from_the_cache_without_a_network(hub: Hub, tmp_path: Path) -> None:
    for commit in (NEW, OLD):  # so that the newest in the cache is not the newest on the Hub
        words = ("--source", f"lamp-qa:acme/lamp@{commit}", "--limit", "2", "--out", tmp_path / commit)
        assert command("build-personalized", *words, env=hub.environment).returncode == 0
    for commit in (NEW, OLD):
        rebuilt = command("pluralbench-release", "rebuild", tmp_path / commit, env=hub.environment | NO_NETWORK)
        assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr
