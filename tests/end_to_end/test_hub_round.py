"""The four samples on a Hub: published, loaded by tag as others load them, changed, published again, rebuilt.

READER_PYTHON is the Python of an environment that has `datasets` alone, as `.ci/run` makes one; without it, those who
load have what the tests have.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from commands import environment
from live_hub import Hub
from pluralbench_release import content_digest, publish, read_manifest, rebuild, release_at, verify
from pluralbench_release.content import digests, write_parquet
from pluralbench_release.manifest import ROW_DIGESTS
from pluralbench_runs import file_digest
from releases import edit_manifest, record_again
from samples import sample

BUILDERS = ("build-personalized", "build-multilingual", "build-chinese", "build-persona-judge")
FIRST = "v1.0.0"
READ = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import snapshot_download
from pathlib import Path

assert not {"polars", "pluralbench_release"} & set(sys.modules)
for name, tables in json.loads(sys.argv[1]).items():
    assert get_dataset_config_names(name, revision="v1.0.0") == list(dict.fromkeys(c for c, _, _, _ in tables)), name
    for config, split, rows, first in {tuple(tables[0]), tuple(tables[-1])}:  # their schemas differ, if any do
        loaded = load_dataset(name, config, revision="v1.0.0", split=split)
        assert (len(loaded), loaded[0]["id"]) == (rows, first), (name, config, len(loaded))
        assert next(iter(load_dataset(name, config, revision="v1.0.0", split=split, streaming=True))) == loaded[0]
    folder = Path(snapshot_download(name, repo_type="dataset", revision="v1.0.0"))
    example = (folder / "README.md").read_text(encoding="utf-8").partition("```python")[2].partition("```")[0]
    exec(example)
    assert f'load_dataset("{name}", ' in example and len(dataset) > 0, name
    assert (folder / "SHA256SUMS").is_file() and (folder / "provenance/manifest.json").is_file(), name
"""


def go_round(reader: str, releases: Sequence[Path], hub: Hub, folder: Path) -> None:
    """Publish and load all; change, publish again and rebuild the first, as others differ by their builders alone."""
    copies = {f"org/{path.name}": shutil.copytree(path, folder / path.name) for path in releases}
    told = {}
    for name, copy in copies.items():
        assert publish(copy, name, tag=FIRST, create=True).new
        tables = read_manifest(copy).tables
        ids = {table.path: pl.read_parquet(copy / table.path)["id"][0] for table in tables}
        told[name] = [(table.config, table.split, table.rows, ids[table.path]) for table in tables]
    asks = environment(hub.environment(folder / "reader"))
    subprocess.run([reader, "-c", READ, json.dumps(told)], env=asks | {"PYTHONPATH": ""}, check=True)
    name, copy = next(iter(copies.items()))
    before = [table.digest for table in read_manifest(copy).tables]
    without_a_row(copy)
    again = publish(copy, name)
    assert (again.version.tag, len(again.changes)) == ("v2.0.0", 1), again
    with release_at(f"{name}@{FIRST}") as published:
        assert not any(rebuild(published, folder / "rebuilt"))
        assert [table.digest for table in read_manifest(folder / "rebuilt").tables] == before


def without_a_row(directory: Path) -> None:
    """Take the last row of a release's first table away, as a build without it would."""
    table = read_manifest(directory).tables[0]
    rows = pl.read_parquet(directory / table.path)[:-1]
    write_parquet(rows, directory / table.path)
    found = {
        "rows": rows.height,
        "digest": content_digest(rows),
        "parquet_sha256": file_digest(directory / table.path),
    }
    known = pl.read_parquet(directory / ROW_DIGESTS)
    kept = known.join(pl.DataFrame({"id": [*digests(rows)[1]]}), on="id", how="semi")
    other = known.filter((pl.col("config") != table.config) | (pl.col("split") != table.split))
    write_parquet(pl.concat([kept.filter(config=table.config, split=table.split), other]), directory / ROW_DIGESTS)
    record_again(directory, ROW_DIGESTS)
    edit_manifest(directory, lambda values: values["tables"][0].update(found))
    assert verify(directory) == []


@pytest.mark.heavy
def test_the_samples_go_round(tmp_path: Path, hub: Hub) -> None:
    reader = os.environ.get("READER_PYTHON", sys.executable)
    go_round(reader, [sample(builder).release for builder in BUILDERS], hub, tmp_path)
