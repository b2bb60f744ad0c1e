"""PRISM from the Hub, asked for real: a Hub on loopback."""

import tomllib
from collections.abc import Callable
from pathlib import Path

from build_persona_judge.sources.loaded import FOLDER
from live_hub import Hub
from pluralbench_release import read_manifest, rebuild

Run = Callable[..., tuple[int, str]]


def test_prism_is_read_from_a_pinned_commit(run: Run, tmp_path: Path, hub: Hub) -> None:
    tables = {name: (FOLDER / f"prism/{name}.jsonl").read_text(encoding="utf-8") for name in ("survey", "utterances")}
    splits = {name: {"train": f"{name}.jsonl"} for name in tables}
    texts = {f"{name}.jsonl": text for name, text in tables.items()}
    words = ("--prism", "acme/prism", "--size", "20", "--exclude-family", "gpt")
    commit = hub.publish("acme/prism", texts, splits, license="cc-by-4.0")
    status, said = run(*words, "--out", tmp_path / "out")
    assert status == 0, said
    recipe = tomllib.loads((tmp_path / "out/provenance/recipe.toml").read_text(encoding="utf-8"))
    assert recipe["prism"]["location"] == f"acme/prism@{commit}"
    [source] = read_manifest(tmp_path / "out").sources
    assert (source.location, source.revision, source.license) == ("acme/prism", commit, "cc-by-4.0")
    assert not any(rebuild(tmp_path / "out", tmp_path / "local", sources=[str(FOLDER / "prism")]))
