"""What annotators are given: sheets and labels, what they show and hide, and that a filled sheet is read as filled."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from build_chinese.annotation.annotations import MARKS, read_annotations
from build_chinese.annotation.forms import form_of, with_texts, write_csv, write_labels
from build_chinese.annotation.tasks import TASKS, build_tasks
from build_chinese.recipe import Tasks
from chinese_project import sheet_rows, write_sheet
from chinese_prompts import counted_prompts, prompts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_studies import label_studio_config

SEVEN = [f"ann-{number}" for number in range(1, 8)]


def test_a_sheet_tells_neither_models_nor_ids_nor_kinds(tmp_path: Path) -> None:
    prompts = prompts_of({f"q{number}": [f"甲{number}", f"乙{number}", f"丙{number}"] for number in range(60)})
    checks = [f"q{number}-t1" for number in range(20)]
    options = Tasks(overlap=0.5, check_share=0.3)
    tasks = build_tasks(prompts, SEVEN, options, seed=1, checks=checks)
    write_csv(tmp_path, tasks, prompts)
    for path in tmp_path.iterdir():
        text = path.read_text(encoding="utf-8")
        for secret in ("secret-model", "q1-a", "first", "overlap", "check"):
            assert secret not in text
    # Nor does the place: within a sheet, tasks of each kind lie in the first half about as often as in the second.
    kinds = {(task, annotator): kind for task, annotator, kind in tasks.select("task", "annotator", "kind").iter_rows()}
    halves: dict[str, list[int]] = {"first": [], "overlap": [], "check": []}
    for name in SEVEN:
        sheet = sheet_rows(tmp_path / f"{name}.csv")
        assert [row["task"] for row in sheet] != sorted(row["task"] for row in sheet)
        for number, row in enumerate(sheet):
            halves[kinds[row["task"], name]].append(number < len(sheet) / 2)
    for kind, early in halves.items():
        assert len(early) == tasks.filter(kind=kind).height
        assert 0.25 < sum(early) / len(early) < 0.75
    # The same task looks the same to everybody.
    looks = with_texts(tasks, prompts).drop("annotator").unique()
    assert looks.height == tasks["task"].n_unique()


def test_labels_of_three_and_of_two_lie_apart_and_hide_as_much(tmp_path: Path) -> None:
    prompts = prompts_of(
        {"p": ["=1+1", "乙", "丙 <b>&amp;\n第二行"], "q": ["甲", "乙"], "r": ["一", "二", "三", "四", "五"]}
    )
    tasks = build_tasks(prompts, SEVEN, Tasks(overlap=0.3, check_share=0.3), seed=1, checks=["p-t1"])
    paths = write_labels(tmp_path, tasks, prompts)
    contents = {response["id"]: response["content"] for row in prompts["responses"] for response in row}
    by_task = dict(tasks.select("task", "responses").iter_rows())
    for folder, size in ((tmp_path, 3), (tmp_path / "pairs", 2)):
        data = [task["data"] for task in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))]
        assert {(row["task"], row["assigned_to"]) for row in data} == {
            given for given in tasks.select("task", "annotator").iter_rows() if len(by_task[given[0]]) == size
        }
        for row in data:
            assert list(row) == ["task", "assigned_to", "prompt", *"ABC"[:size]]
            assert [row[letter] for letter in "ABC"[:size]] == [contents[name] for name in by_task[row["task"]]]
        assert (folder / "label_config.xml").read_text(encoding="utf-8") == label_studio_config(form_of(size))
        assert "A>C=B" in (folder / "guide.md").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    for secret in ("secret-model", "p-a", "overlap", '"kind"', "check"):
        assert secret not in text
    write_labels(tmp_path / "triples", build_tasks(counted_prompts(3), SEVEN, Tasks(), seed=1), counted_prompts(3))
    assert not (tmp_path / "triples" / "pairs").exists()


ANSWER_FORMS = ("marks", "order", "scores")


def as_filled(row: dict[str, str], level: dict[str, int], form: str) -> dict[str, str]:
    """A row filled in by how good each letter is, 0 for the best."""
    letters = [name for name in "ABC" if row[name]]
    if form == "marks":
        marks = {
            f"{a}_{b}": "s" if level[a] == level[b] else "g" if level[a] < level[b] else "b"
            for a, b in combinations(letters, 2)
        }
        return row | marks
    if form == "order":
        levels = sorted({level[name] for name in letters})
        return row | {"order": ">".join("=".join(n for n in letters if level[n] == rank) for rank in levels)}
    return row | {f"score_{name}": str(5 - level[name]) for name in letters}


@given(st.lists(st.integers(2, 6), min_size=1, max_size=5), st.data())
@settings(max_examples=20)
def test_from_tasks_to_sheets_to_marks(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sheets")
    prompts = counted_prompts(*counts)
    tasks = build_tasks(prompts, SEVEN, Tasks(overlap=0.5), seed=data.draw(st.integers(0, 3)))
    quality = {
        response["id"]: data.draw(st.integers(0, 5), label=response["id"])
        for row in prompts["responses"]
        for response in row
    }
    paths = write_csv(folder, tasks, prompts)
    by_task = dict(tasks.select("task", "responses").iter_rows())
    for path in paths:
        filled = []
        for row in sheet_rows(path):
            level = {letter: quality[response] for letter, response in zip("ABC", by_task[row["task"]], strict=False)}
            filled.append(as_filled(row, level, data.draw(st.sampled_from(ANSWER_FORMS))))
        write_sheet(path, data.draw(st.permutations(filled)))
    found = read_annotations(data.draw(st.permutations(paths)), tasks)
    assert found.problems.is_empty()
    expected = [
        (prompt, task, annotator, first, second)
        for task, prompt, _, responses, annotator, _ in tasks.select(TASKS.names())
        .sort("task", "annotator")
        .iter_rows()
        for first, second in combinations(responses, 2)
    ]
    assert sorted(found.marks.select(MARKS.names()[:5]).iter_rows()) == sorted(expected)
    for first, second, mark in found.marks.select("first", "second", "mark").iter_rows():
        a, b = quality[first], quality[second]
        assert mark == ("s" if a == b else "1" if a < b else "2")
    # Whatever the order of the files and of their rows.
    assert (
        found.marks["task"].unique(maintain_order=True).to_list() == tasks["task"].unique(maintain_order=True).to_list()
    )
