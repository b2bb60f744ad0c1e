"""The promises of a build: `datasets` reads it, a server that dies loses nothing, secrets are not written.

That kills lose nothing either, `tests/faults/test_kills.py` shows.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.cli import main
from chat_server import Reply, serve
from commands import in_process
from pluralbench_release import read_manifest
from samples import sample

SECRET = "sk-planted-4d1f9c77e2"  # noqa: S105 - planted to be searched for


def recipe(path: Path, base_url: str) -> Path:
    """The sample's questions, answered by a server; seeds make each attempt a request of its own."""
    path.write_text(
        f"""
        [source]
        locations = ["sample"]
        [llm]
        provider = "scripted"
        model = "scripted"
        seeded = true
        [connection]
        base_url = "{base_url}"
        api_key_env = "PLANTED_KEY"
        concurrency = 4
        """,
        encoding="utf-8",
    )
    return path


@pytest.mark.heavy
def test_datasets_loads_a_config_of_each_shape_in_each_sample(tmp_path: Path) -> None:
    from datasets import load_dataset

    releases = [
        sample(f"build-{name}").release for name in ("personalized", "multilingual", "chinese", "persona-judge")
    ]
    shapes = {
        (str(release), str(pl.read_parquet_schema(release / table.path))): table
        for release in releases
        for table in read_manifest(release).tables
    }
    assert len(shapes) >= len(releases)
    for (release, _), table in shapes.items():
        loaded = load_dataset(release, table.config, split=table.split, cache_dir=str(tmp_path))
        assert loaded.to_list() == pl.read_parquet(Path(release) / table.path).to_dicts()


@pytest.mark.heavy
def test_the_example_of_a_card_loads_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    # The name of the release, from the folder that contains it: another path would change the card's bytes.
    for out, place in ((Path('my data/in "quotes"'), work / "my data"), (elsewhere / "release", elsewhere)):
        monkeypatch.chdir(work)
        status, built = in_process("build-personalized", main, monkeypatch, capsys)("--out", out)
        assert status == 0, built
        example = (out / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
        monkeypatch.chdir(place)
        found: dict[str, Any] = {}
        exec(example, found)  # noqa: S102 - what the card shows
        assert found["dataset"].num_rows == 8


@pytest.mark.heavy
def test_a_server_that_dies_halfway_loses_nothing_and_no_secret_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = in_process("build-personalized", main, monkeypatch, capsys)
    monkeypatch.setenv("PLANTED_KEY", SECRET)
    out = tmp_path / "out"
    dead = [10_000]

    def script_(body: dict[str, Any], number: int) -> Reply:
        if number >= dead[0]:
            return Reply(f"no such key {SECRET}", status=401)
        return Reply(f"answer {number} " + "word " * 10, headers={"X-Echo": SECRET})

    with serve(script_) as server:
        asked = recipe(tmp_path / "recipe.toml", server.base_url)
        dead[0] = 20
        status, stopped = run("--recipe", asked, "--out", out)
        assert status == 2
        for part in ("Error: ", "does not accept the key in PLANTED_KEY", "20 of 24 chosen answers are recorded"):
            assert part in stopped
        assert not out.exists()
        dead[0] = 10_000
        status, built = run("--recipe", asked, "--out", out)
        assert status == 0, built
        repeats = Counter(server.digests())
        assert set(repeats.values()) <= {1, 2}, "only what was in flight may be sent twice"
        assert sum(count - 1 for count in repeats.values()) <= 4
        assert {header["authorization"] for header in server.headers} == {f"Bearer {SECRET}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in stopped + built
