"""A file that a user names for output replaces no input of the command, and no part of a run, a release or a ledger."""

import os
import sqlite3
from pathlib import Path

import pytest
from pluralbench_runs import OutputError, check_output, open_file, output_file
from pluralbench_runs.regular_files import noted_inputs


@pytest.mark.parametrize("through", ["itself", "a link", "another spelling"])
def test_an_input_is_refused_until_the_command_ends(tmp_path: Path, through: str) -> None:
    path, link = tmp_path / "t.jsonl", tmp_path / "link"
    path.write_text("{}", encoding="utf-8")
    link.symlink_to(path)
    named = {"itself": path, "a link": link, "another spelling": tmp_path / "x" / ".." / "t.jsonl"}[through]
    (tmp_path / "x").mkdir()
    with noted_inputs():
        open_file(link if through == "itself" else path).close()
        with pytest.raises(OutputError, match="is an input of this command"), output_file(named) as new:
            new.write_text("lost", encoding="utf-8")
        check_output(tmp_path / "other.jsonl")
    assert path.read_text(encoding="utf-8") == "{}"
    with output_file(named) as new:
        new.write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("marker", ["run.json", "suite.json", "study.toml", "provenance/manifest.json"])
def test_a_part_of_a_run_or_release_is_refused_and_a_page_beside_it_is_not(tmp_path: Path, marker: str) -> None:
    folder = tmp_path / "made"
    parts = [marker, "README.md", "data/test.parquet", "items.jsonl"]
    pages = ["report.html", "table.md", "figures/README.md", "figures/a.svg"]
    for name in (*parts, *pages):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")
    for name in parts:
        with pytest.raises(OutputError) as caught:
            check_output(folder / name)
        assert f"{folder / name} is a part of {folder}" in str(caught.value)
    for name in (*pages, "new.parquet"):
        check_output(folder / name)


def test_a_ledger_is_refused_wherever_it_is(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "calls.jsonl") as ledger:
        ledger.execute("create table calls (key)")
    ledger.close()
    (tmp_path / "ledger.parquet").touch()
    for name in ("calls.jsonl", "ledger.parquet"):
        with pytest.raises(OutputError, match="is a ledger"):
            check_output(tmp_path / name)
    check_output(tmp_path / "none" / "ledger.parquet")
    check_output(Path(os.devnull))
