"""Annotations in every form they come in: what they say, what is wrong with them, and what is refused."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_chinese.annotation.annotations import (
    CONTRADICTION,
    MARKS,
    REMARKS,
    Annotations,
    judgments_of,
    read_annotations,
    read_checks,
)
from build_chinese.annotation.tasks import TASKS, read_tasks
from chinese_project import read_rows, write_rows
from chinese_prompts import SAMPLE, sample_prompts
from pluralbench_studies import StudyError
from pluralbench_studies.reading import MISSING

# p: a triple for ann-1 and a pair for ann-2; q: a triple that both have.
GIVEN = [
    ("p-t1", "p", "open", ["p-c", "p-a", "p-b"], "ann-1", "first"),
    ("p-t2", "p", "open", ["p-d", "p-a"], "ann-2", "first"),
    ("q-t1", "q", "open", ["q-a", "q-b", "q-c"], "ann-1", "first"),
    ("q-t1", "q", "open", ["q-a", "q-b", "q-c"], "ann-2", "overlap"),
]
TASKS_GIVEN = pl.DataFrame(GIVEN, schema=TASKS, orient="row")
P1 = {"task": "p-t1", "annotator": "ann-1"}
Row = Mapping[str, Any]


def sheet(folder: Path, rows: Sequence[Mapping[str, str]], name: str = "sheet.csv") -> Path:
    names = list(dict.fromkeys(key for row in rows for key in row))
    lines = [",".join(names), *(",".join(row.get(key, "") for key in names) for row in rows)]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def lines(folder: Path, rows: Sequence[Row], name: str = "lines.jsonl") -> Path:
    return write_rows(folder / name, rows)


def said(found: Annotations, task: str = "p-t1") -> dict[str, str]:
    rows = found.marks.filter(task=task).select("first", "second", "mark").iter_rows()
    return {f"{first[-1]}{second[-1]}": mark for first, second, mark in rows}


def problems(found: Annotations) -> list[tuple[str, ...]]:
    return found.problems.filter(pl.col("kind") != MISSING).rows()


def refused(path: Path, **named: Any) -> str:
    with pytest.raises(StudyError) as caught:
        read_annotations([path], TASKS_GIVEN, **named)
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_the_sample_says_what_it_says_and_three_of_it_contradict_themselves() -> None:
    tasks = read_tasks(SAMPLE / "annotations.jsonl", sample_prompts())
    found = read_annotations([SAMPLE / "annotations.jsonl"], tasks)
    recorded = read_rows(SAMPLE / "annotations.jsonl")
    as_published = {"g": "1", "b": "2", "s": "s"}
    assert found.marks.rows() == [
        (row["prompt"], row["task"], row["annotator"], first, second, as_published[row[f"{a}_{b}"]])
        for row in recorded
        for (a, first), (b, second) in combinations(zip("ABC", row["responses"], strict=True), 2)
    ]
    assert found.problems["task"].to_list() == ["p31-t5", "p36-t5", "p39-t4"]
    assert set(found.problems["kind"]) == {CONTRADICTION}
    assert found.problems["detail"][1] == (
        "p36-e > p36-a but by scores p36-e < p36-a; p36-e > p36-b but by scores p36-e < p36-b; "
        "p36-a > p36-b but by scores p36-a < p36-b"
    )
    assert (found.marks.schema, found.remarks.schema) == (MARKS, REMARKS)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"A_B": "g", "A_C": "s", "B_C": "b"}, {"ca": "1", "cb": "s", "ab": "2"}),
        ({"A_B": " Ｇ ", "A_C": "ｓ", "B_C": "Ｂ"}, {"ca": "1", "cb": "s", "ab": "2"}),
        ({"order": "A>C=B"}, {"ca": "1", "cb": "1", "ab": "s"}),
        ({"order": "Ｂ＞Ａ＝Ｃ"}, {"ca": "2", "cb": "s", "ab": "1"}),
        ({"order": " b 》 a ＝ c "}, {"ca": "2", "cb": "s", "ab": "1"}),
        ({"score_A": "3", "score_B": "3", "score_C": "5"}, {"ca": "s", "cb": "2", "ab": "2"}),
        ({"score_A": "０", "score_B": "４.５", "score_C": "5.0"}, {"ca": "2", "cb": "2", "ab": "2"}),
    ],
)
def test_marks_orders_and_scores(tmp_path: Path, answers: dict[str, str], expected: dict[str, str]) -> None:
    found = read_annotations([sheet(tmp_path, [P1 | answers])], TASKS_GIVEN)
    assert said(found) == expected
    assert not problems(found)
    assert read_annotations([lines(tmp_path, [P1 | answers])], TASKS_GIVEN).marks.equals(found.marks)


def test_marks_count_before_an_order_and_an_order_before_scores(tmp_path: Path) -> None:
    row = P1 | {"A_B": "g", "order": "B>A>C", "score_A": "2", "score_B": "2", "score_C": "5"}
    found = read_annotations([sheet(tmp_path, [row])], TASKS_GIVEN)
    assert said(found) == {"ca": "1", "cb": "1", "ab": "1"}
    assert problems(found) == [
        (
            CONTRADICTION,
            "p-t1",
            "ann-1",
            "p-c > p-a but by order p-c < p-a; p-c > p-b but by scores p-c < p-b; p-a > p-b but by scores p-a < p-b",
        )
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (P1 | {"A_B": "x"}, "{}, row 2 (task p-t1): the answer 'x' to A_B is not one of g, b, s."),
        (P1 | {"order": "A>B>B"}, "{}, row 2 (task p-t1): the order 'A>B>B' has B twice."),
        (P1 | {"order": "A>B"}, "ann-1 on the task p-t1, which shows 3 responses: the order 'A>B' does not have each "
         "response once."),
        (P1 | {"score_A": "6"}, "{}, row 2 (task p-t1): the score '6' is not a number from 0 to 5."),
        ({"task": "p-t2", "annotator": "ann-2", "A_C": "g"}, "ann-2 on the task p-t2, which shows 2 responses: there "
         "is no A_C."),
        ({"annotator": "ann-1", "A_B": "g"}, "{} has no column `task`; it has annotator, A_B."),
    ],
)  # fmt: skip
def test_sheets_that_are_refused(tmp_path: Path, row: dict[str, str], message: str) -> None:
    path = sheet(tmp_path, [row])
    assert refused(path) == message.format(path)


def test_a_remark_is_kept_as_it_was_written(tmp_path: Path) -> None:
    found = read_annotations([sheet(tmp_path, [P1 | {"order": "A>B=C", "remark": "答得不错"}])], TASKS_GIVEN)
    assert found.remarks["remark"].to_list() == ["答得不错"]


def test_known_answers(tmp_path: Path) -> None:
    tasks = read_tasks(SAMPLE / "annotations.jsonl", sample_prompts())
    checks = read_checks(SAMPLE / "checks.jsonl", tasks)
    assert checks.height == 18
    assert checks.row(0) == ("p04", "p04-t3", "consensus", "p04-c", "p04-d", "1")
    shown = dict(tasks.select("task", "responses").iter_rows())
    for task, first, second in checks.select("task", "first", "second").iter_rows():
        assert (first, second) in combinations(shown[task], 2)
    path = lines(tmp_path, [{"task": "p-t1", "order": "C>A=B"}])
    assert read_checks(path, TASKS_GIVEN)["mark"].to_list() == ["s", "2", "2"]
    path = lines(tmp_path, [{"task": "p-t1", "order": "A>B>C"}] * 2)
    with pytest.raises(StudyError, match="has a task twice, or one without an answer; give one answer to each"):
        read_checks(path, TASKS_GIVEN)


# q-t1 is given to two annotators, who differ on the first pair and agree on the second.
DIFFERING = [
    {"task": "q-t1", "annotator": "ann-1", "order": "A>C>B"},
    {"task": "q-t1", "annotator": "ann-2", "order": "B>A>C"},
    {"task": "p-t1", "annotator": "ann-1", "order": "A>B>C"},
]


def judgements(path: Path, *more: Row) -> dict[str, str]:
    """What enters the graph on the pairs of q-t1."""
    marks = read_annotations([lines(path, [*DIFFERING, *more])], TASKS_GIVEN).marks
    counted, _ = judgments_of(marks, None)
    assert counted.filter(task="p-t1")["mark"].to_list() == ["1", "1", "1"]
    found = counted.filter(task="q-t1").select("first", "second", "mark").rows()
    return {f"{first[-1]}{second[-1]}{place}": mark for place, (first, second, mark) in enumerate(found)}


def test_a_task_of_two_annotators_enters_the_graph_once(tmp_path: Path) -> None:
    # Both prefer a to c; on the other two pairs they differ, so nothing is said until they have discussed them.
    assert judgements(tmp_path) == {"ac0": "1"}
    talked = {"task": "q-t1", "annotator": "consensus", "A_B": "b"}
    assert judgements(tmp_path, talked) == {"ab0": "2", "ac1": "1"}


def test_a_known_answer_settles_what_annotators_differ_on(tmp_path: Path) -> None:
    key = lines(tmp_path, [{"task": "q-t1", "order": "C>B>A"}], "key.jsonl")
    marks = read_annotations([lines(tmp_path, DIFFERING)], TASKS_GIVEN).marks
    counted, found = judgments_of(marks, read_checks(key, TASKS_GIVEN))
    assert counted.filter(task="q-t1").rows() == [
        ("q", "q-t1", "q-a", "q-b", "2"),
        ("q", "q-t1", "q-a", "q-c", "1"),  # on this they agree, though it is not the known answer
        ("q", "q-t1", "q-b", "q-c", "2"),
    ]
    assert found.filter(task="q-t1")["by"].to_list() == ["known answer", "agreement", "known answer"]
