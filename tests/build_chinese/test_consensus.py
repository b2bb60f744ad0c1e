"""From annotators who differ, by way of a discussion, to one judgement: with the commands that people use."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chinese_project import FIVE, fill, read_rows, write_prompts, write_taxonomy

Run = Callable[..., tuple[int, str]]
TASKS: list[object] = ["tasks", "--prompts", "prompts.jsonl", "--responses", "responses.jsonl"]
TASKS += ["--taxonomy", "taxonomy.toml", "--overlap", 0.2, "--out", "tasks"]
TASKS += [word for name in FIVE for word in ("--annotator", name)]


@pytest.fixture
def sheets(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Filled sheets of five annotators, of whom one has everything the wrong way round; six tasks have two."""
    monkeypatch.chdir(tmp_path)
    write_prompts(tmp_path, ["open", "human", "preference"] * 2)
    write_taxonomy(tmp_path)
    status, said = run(*TASKS)
    assert (status, "tasks: 30 tasks on 6 prompts, given out 36 times" in said) == (0, True), said
    return [
        fill(Path(f"tasks/sheets/{name}.csv"), Path(f"{name}.csv"), *([lambda *_: "1"] if name == "an" else []))
        for name in FIVE
    ]


def read(run: Run, *files: Path) -> tuple[str, dict[str, Any]]:
    """What the command said, and the report's consensus."""
    status, said = run("annotations", *files, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert status == 0, said
    return said, json.loads(Path("annotated.report.json").read_text(encoding="utf-8"))["consensus"]


def judgements() -> int:
    return sum(len(row["annotations"]) for row in read_rows(Path("annotated.jsonl")))


def test_what_annotators_differ_on_is_discussed_and_then_counts(run: Run, sheets: list[Path]) -> None:
    said, first = read(run, *sheets)
    assert first["rule"] == "discussion"
    assert first["double_marked"] == 18
    assert first["open"] == first["differed"] == 18 - first["agreed"]["count"] > 0
    assert first["discussion"] == 0
    assert f"and {first['open']} are open: the marks on these are left out." in " ".join(said.split())
    assert judgements() == 90 - first["open"]
    discuss = Path("annotated.discuss.csv")
    assert str(discuss) in said
    with discuss.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["annotator"] for row in rows} == {"consensus"}
    assert len({row["task"] for row in rows}) == len(rows) <= first["open"]
    # Read again without what was filled in, the sheet would be lost.
    fill(discuss, discuss)
    before = discuss.read_bytes()
    status, said = run("annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, said) == (
        2,
        "Error: annotated.discuss.csv has been filled in; read it with the other files, or move it away.\n",
    )
    said, second = read(run, *sheets, discuss)
    assert discuss.read_bytes() == before
    assert second | {"discussion": 0, "open": second["differed"]} == first
    assert (second["open"], judgements()) == (0, 90)
    assert "have the annotators fill in" not in said


def test_without_consensus_all_marks_count(run: Run, sheets: list[Path]) -> None:
    recipe = Path("tasks/provenance/recipe.toml")
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace('consensus = "discussion"', 'consensus = "none"'), encoding="utf-8")
    said, found = read(run, *sheets)
    assert found["rule"] == "none"
    assert "are open: the marks on these are all counted." in " ".join(said.split())
    assert judgements() == 108
    assert not Path("annotated.discuss.csv").exists()


def test_a_folder_without_its_recipe_is_refused(run: Run, sheets: list[Path]) -> None:
    Path("tasks/provenance/recipe.toml").unlink()
    status, said = run("annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, said) == (
        2,
        "Error: tasks has no provenance/recipe.toml; give the folder that `build-chinese tasks` wrote.\n",
    )


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("id", None, "a prompt or response lacks `id`"),
        ("responses", [None], "a prompt or response lacks `id`"),
        ("category", [None], "a prompt or response lacks `category`"),
        ("input", ["x"], ""),
        ("responses", "a", ""),
    ],
)
def test_prompts_that_are_not_those_of_tasks_are_refused(
    run: Run, sheets: list[Path], key: str, value: object, fault: str
) -> None:
    prompts = Path("tasks/prompts.jsonl")
    first, *others = prompts.read_text(encoding="utf-8").splitlines()
    changed = json.dumps(json.loads(first) | {key: value}, ensure_ascii=False)
    prompts.write_text("\n".join([changed, *others]), encoding="utf-8")
    status, said = run("annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert status == 2
    assert said.startswith(f"Error: tasks/prompts.jsonl is not what `build-chinese tasks` wrote ({fault}")
    assert said.endswith("); give the tasks out anew.\n")
