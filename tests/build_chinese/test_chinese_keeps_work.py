"""What people did is kept: filled sheets, exports and inputs outlast every command, whatever it is told to write."""

from collections.abc import Callable
from pathlib import Path

import pytest
from chinese_project import FIVE, TASKS, annotated, fill, read_rows, write_prompts, write_rows

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def project(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tasks and a filled sheet of each annotator; where commands run."""
    monkeypatch.chdir(tmp_path)
    write_prompts(tmp_path, ["open", "human", "preference"])
    assert run(*TASKS, "--out", "tasks")[0] == 0
    for name in FIVE:
        fill(tmp_path / f"tasks/sheets/{name}.csv", tmp_path / f"{name}.csv")
    return tmp_path


def sheets() -> list[str]:
    return [f"{name}.csv" for name in FIVE]


def test_sheets_filled_in_place_and_exports_kept_beside_them_outlast_the_same_command(run: Run, project: Path) -> None:
    sheet, export = project / "tasks/sheets/an.csv", project / "tasks/export.json"
    fill(sheet, sheet)
    export.write_text("[]", encoding="utf-8")
    before = sheet.read_bytes()
    run(*TASKS, "--out", "tasks")
    assert sheet.read_bytes() == before
    assert export.exists()


@pytest.mark.parametrize("out", ["an.csv", "tasks/tasks.jsonl"])
def test_annotations_are_not_written_over_what_was_read(run: Run, project: Path, out: str) -> None:
    before = (project / out).read_bytes()
    status, said = run("annotations", *sheets(), "--tasks", "tasks", "--out", out)
    assert (project / out).read_bytes() == before
    assert status == 2
    assert "choose another file" in said


@pytest.mark.parametrize("equal", [True, False])
def test_what_is_dropped_is_not_written_over_the_input(run: Run, project: Path, *, equal: bool) -> None:
    rows = [annotated(0), annotated(1)]
    if equal:
        rows[1]["annotations"] = [[first, second, "s"] for first, second, _ in rows[1]["annotations"]]
    path = write_rows(project / "a.dropped.jsonl", rows)
    run("resolve", "a.dropped.jsonl", "--out", "a.jsonl")
    assert read_rows(path) == rows


@pytest.mark.parametrize("verb", ["annotations", "resolve"])
def test_a_file_is_not_written_over_the_folder_where_one_stands(run: Run, project: Path, verb: str) -> None:
    write_rows(project / "annotated.jsonl", [annotated(0)])
    words = {"annotations": [*sheets(), "--tasks", "tasks"], "resolve": ["annotated.jsonl"]}[verb]
    assert run(verb, *words, "--out", ".") == (2, "Error: . is a folder; name a file, such as out.jsonl.\n")
