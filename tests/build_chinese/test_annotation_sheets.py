"""What annotators are given: sheets and labels, what they show and hide, and that a filled sheet is read as filled."""

import json
from pathlib import Path

from build_chinese.annotation.forms import GUIDE, RUBRIC, form_of, with_texts, write_forms
from build_chinese.annotation.tasks import build_tasks
from build_chinese.recipe import Tasks
from chinese_project import sheet_rows
from chinese_prompts import counted_prompts, prompts_of
from pluralbench_studies import label_studio_config

SEVEN = [f"ann-{number}" for number in range(1, 8)]


def test_a_sheet_tells_neither_models_nor_ids_nor_kinds(tmp_path: Path) -> None:
    prompts = prompts_of({f"q{number}": [f"甲{number}", f"乙{number}", f"丙{number}"] for number in range(60)})
    checks = [f"q{number}-t1" for number in range(20)]
    options = Tasks(overlap=0.5, check_share=0.3)
    tasks = build_tasks(prompts, SEVEN, options, seed=1, checks=checks)
    write_forms(tmp_path, tasks, prompts)
    for path in (tmp_path / "sheets").iterdir():
        text = path.read_text(encoding="utf-8")
        for secret in ("secret-model", "q1-a", "first", "overlap", "check"):
            assert secret not in text
    # Nor does the place: within a sheet, tasks of each kind lie in the first half about as often as in the second.
    kinds = {(task, annotator): kind for task, annotator, kind in tasks.select("task", "annotator", "kind").iter_rows()}
    halves: dict[str, list[int]] = {"first": [], "overlap": [], "check": []}
    for name in SEVEN:
        sheet = sheet_rows(tmp_path / f"sheets/{name}.csv")
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
    write_forms(tmp_path, tasks, prompts)
    labels = tmp_path / "label_studio"
    contents = {response["id"]: response["content"] for row in prompts["responses"] for response in row}
    by_task = dict(tasks.select("task", "responses").iter_rows())
    for folder, size in ((labels, 3), (labels / "pairs", 2)):
        data = [task["data"] for task in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))]
        assert {(row["task"], row["assigned_to"]) for row in data} == {
            given for given in tasks.select("task", "annotator").iter_rows() if len(by_task[given[0]]) == size
        }
        for row in data:
            assert list(row) == ["task", "assigned_to", "prompt", *"ABC"[:size]]
            assert [row[letter] for letter in "ABC"[:size]] == [contents[name] for name in by_task[row["task"]]]
        assert (folder / "label_config.xml").read_text(encoding="utf-8") == label_studio_config(form_of(size))
        assert "A>C=B" in (folder / "guide.md").read_text(encoding="utf-8")
    assert all(f"- {score} {words}" in GUIDE.read_text(encoding="utf-8") for score, words in RUBRIC.items())
    paths = [*labels.glob("*.json"), *labels.glob("*.xml"), *(labels / "pairs").glob("*.json")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    for secret in ("secret-model", "p-a", "overlap", '"kind"', "check"):
        assert secret not in text
    triples = counted_prompts(3)
    write_forms(tmp_path / "triples", build_tasks(triples, SEVEN, Tasks(), seed=1), triples)
    assert not (tmp_path / "triples/label_studio/pairs").exists()
