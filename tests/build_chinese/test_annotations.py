"""Annotations in every form they come in: what they say, what is wrong with them, and what is refused."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

import polars as pl
import pytest
from build_chinese.annotation.annotations import (
    CHECKS,
    CONTRADICTION,
    MARKS,
    REMARKS,
    SCORES,
    Annotations,
    judgments_of,
    parse_order,
    read_annotations,
    read_checks,
)
from build_chinese.annotation.tasks import TASKS, read_tasks
from build_chinese.errors import AnnotationsError
from chinese_project import read_rows, write_rows
from chinese_prompts import SAMPLE, sample_prompts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_studies import AnswersError
from pluralbench_studies.answers import MISSING

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
    with pytest.raises((AnnotationsError, AnswersError)) as caught:
        read_annotations([path], TASKS_GIVEN, **named)
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_the_sample_says_what_it_says_and_three_of_it_contradict_themselves() -> None:
    tasks = read_tasks(SAMPLE / "annotations.jsonl", sample_prompts())
    found = read_annotations([SAMPLE / "annotations.jsonl"], tasks)
    recorded = read_rows(SAMPLE / "annotations.jsonl")
    as_published = {"g": "1", "b": "2", "s": "s"}
    assert found.marks.rows() == [
        (row["prompt"], row["task"], row["annotator"], first, second, as_published[mark])
        for row in recorded
        for first, second, mark in row["marks"]
    ]
    assert found.scores.rows() == [
        (row["prompt"], row["task"], row["annotator"], response, float(row["scores"][response]))
        for row in recorded
        for response in row["triple"]
    ]
    assert found.problems["task"].to_list() == ["p31-t5", "p36-t5", "p39-t4"]
    assert set(found.problems["kind"]) == {CONTRADICTION}
    assert found.problems["detail"][1] == (
        "p36-e > p36-a but by scores p36-e < p36-a; p36-e > p36-b but by scores p36-e < p36-b; "
        "p36-a > p36-b but by scores p36-a < p36-b"
    )
    for frame, schema in (
        (found.marks, MARKS),
        (found.scores, SCORES),
        (found.remarks, REMARKS),
    ):
        assert frame.schema == schema


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"A_B": "g", "A_C": "s", "B_C": "b"}, {"ca": "1", "cb": "s", "ab": "2"}),
        ({"A_B": " Ｇ ", "A_C": "ｓ", "B_C": "Ｂ"}, {"ca": "1", "cb": "s", "ab": "2"}),
        ({"A_B": "1", "A_C": "２", "B_C": "S"}, {"ca": "1", "cb": "2", "ab": "s"}),
        ({"order": "A>C=B"}, {"ca": "1", "cb": "1", "ab": "s"}),
        ({"order": "Ｂ＞Ａ＝Ｃ"}, {"ca": "2", "cb": "s", "ab": "1"}),
        ({"order": " b 》 a ＝ c "}, {"ca": "2", "cb": "s", "ab": "1"}),
        ({"order": "p-b > p-c > p-a"}, {"ca": "1", "cb": "2", "ab": "2"}),
        ({"score_A": "3", "score_B": "3", "score_C": "5"}, {"ca": "s", "cb": "2", "ab": "2"}),
        ({"score_A": "０", "score_B": "４.５", "score_C": "5.0"}, {"ca": "2", "cb": "2", "ab": "2"}),
    ],
)
def test_marks_orders_and_scores(tmp_path: Path, answers: dict[str, str], expected: dict[str, str]) -> None:
    found = read_annotations([sheet(tmp_path, [P1 | answers])], TASKS_GIVEN)
    assert said(found) == expected
    assert not problems(found)
    as_ids = {"A": "p-c", "B": "p-a", "C": "p-b"}
    named = {
        "marks": [[as_ids[key[0]], as_ids[key[2]], mark] for key, mark in answers.items() if key[1:2] == "_"],
        "order": answers.get("order", ""),
        "scores": {as_ids[key[-1]]: value for key, value in answers.items() if key.startswith("score_")},
    }
    assert read_annotations([lines(tmp_path, [P1 | named])], TASKS_GIVEN).marks.equals(found.marks)


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
    assert dict(found.scores.select("response", "score").iter_rows()) == {"p-c": 2, "p-a": 2, "p-b": 5}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (P1 | {"annotator": "ann-9", "order": "A>B>C"}, "{}, row 2: there is no annotator 'ann-9'; map the "
         "account to an annotator, or fix the name."),
        (P1 | {"task": "p-t9", "order": "A>B>C"}, "{}, row 2: there is no task 'p-t9'; give the sheets of "
         "this study, whose tasks are others."),
        (P1 | {"A_B": "x"}, "{}, row 2 (task p-t1): the mark 'x' on A and B is not g (the first is better), b "
         "or s."),
        (P1 | {"order": "A>B"}, "{}, row 2 (task p-t1): the order 'A>B' does not have each response once."),
        (P1 | {"order": "A>B>B"}, "{}, row 2 (task p-t1): the order 'A>B>B' has B twice."),
        (P1 | {"order": "A>C>p-b=B"}, "{}, row 2 (task p-t1): the order 'A>C>p-b=B' does not have each response once."),
        (P1 | {"order": "A>>B"}, "{}, row 2 (task p-t1): 'A>>B' is not an order such as A>C=B."),
        (P1 | {"order": "A>B>D"}, "{}, row 2 (task p-t1): 'D' is not a response of the prompt p; the task shows p-c, "
         "p-a, p-b."),
        (P1 | {"order": "p-d>p-a>p-b"}, "{}, row 2 (task p-t1): 'p-d' is not shown in this task; the task shows p-c, "
         "p-a, p-b."),
        (P1 | {"score_A": "6"}, "{}, row 2 (task p-t1): the score '6' is not a number from 0 to 5."),
        (P1 | {"score_A": "-1"}, "{}, row 2 (task p-t1): the score '-1' is not a number from 0 to 5."),
        (P1 | {"score_A": "nan"}, "{}, row 2 (task p-t1): the score 'nan' is not a number from 0 to 5."),
        (P1 | {"score_A": "优"}, "{}, row 2 (task p-t1): the score '优' is not a number from 0 to 5."),
        ({"task": "p-t2", "annotator": "ann-2", "A_C": "g"}, "{}, row 2 (task p-t2): 'C' is not a response of the "
         "prompt p; the task shows p-d, p-a."),
        ({"annotator": "ann-1", "A_B": "g"}, "{} has no column `task`; it has annotator, A_B."),
        (P1 | {"better": "A"}, "{} has no column of answers, such as A_B, A_C, B_C, order, score_A, score_B, "
         "score_C, remark."),
    ],
)  # fmt: skip
def test_sheets_that_are_refused(tmp_path: Path, row: dict[str, str], message: str) -> None:
    path = sheet(tmp_path, [row])
    assert refused(path) == message.format(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (P1 | {"marks": [["p-a", "p-a", "g"]]}, "{}, row 1 (task p-t1) compares the response p-a with itself."),
        (P1 | {"marks": [["p-a", "A", "g"], ["B", "p-a", "s"]]},
         "{}, row 1 (task p-t1) compares the response B with itself."),
        (P1 | {"marks": [["p-a", "q-b", "g"]]}, "{}, row 1 (task p-t1): 'q-b' is not a response of the prompt p; "
         "the task shows p-c, p-a, p-b."),
        (P1 | {"marks": [["p-a", "p-b", "g"], ["p-b", "p-a", "s"]]},
         "{}, row 1 (task p-t1) has two different marks on p-b and p-a."),
        (P1 | {"marks": ["p-a>p-b"]}, "{}, row 1: `marks` is not a list of [first, second, mark]."),
        (P1 | {"scores": [1, 2, 3]}, "{}, row 1: `scores` is not an object with a score for each response."),
        (P1 | {"order": "A>B>C", "triple": ["p-a", "p-b", "p-c"]},
         "{}, row 1 (task p-t1) is on p-a, p-b, p-c; the task shows p-c, p-a, p-b."),
        ({"annotator": "ann-1", "order": "A>B>C"}, "{}, row 1: there is no task ''; give the sheets of this study, "
         "whose tasks are others."),
    ],
)  # fmt: skip
def test_lines_that_are_refused(tmp_path: Path, row: Row, message: str) -> None:
    path = lines(tmp_path, [row])
    assert refused(path) == message.format(path)


def test_a_remark_is_kept_as_it_was_written(tmp_path: Path) -> None:
    found = read_annotations([sheet(tmp_path, [P1 | {"order": "A>B=C", "remark": "答得不错"}])], TASKS_GIVEN)
    assert found.remarks["remark"].to_list() == ["答得不错"]


def test_every_cell_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    rows = [P1 | {"A_B": "x", "B_C": "g", "score_A": "9"}, {"task": "p-t2", "annotator": "ann-2", "order": "A>A"}]
    first, second, third = refused(sheet(tmp_path, rows)).splitlines()[1:]
    path = tmp_path / "sheet.csv"
    assert first.startswith(f"{path}, row 2 (task p-t1): the mark 'x'")
    assert second.startswith(f"{path}, row 2 (task p-t1): the score '9'")
    assert third.startswith(f"{path}, row 3 (task p-t2): the order 'A>A'")


@given(st.text(st.sampled_from("ABCDE>=＞＝﹥ 》"), max_size=9))
@example("A>C>B=D>E")
@example("Ａ ＞ C 》B＝D﹥E")
@example("　")
@settings(max_examples=140)
def test_an_order_is_parsed_and_anything_else_is_none(text: str) -> None:
    plain = normalize("NFKC", text).replace("》", ">").strip()
    names = [name.strip() for level in plain.split(">") for name in level.split("=")]
    if not plain:
        assert parse_order(text) == []
    elif not all(names):
        with pytest.raises(ValueError, match=rf"^{re.escape(repr(text))} is not an order such as A>C=B$"):
            parse_order(text)
    elif len(set(names)) < len(names):
        with pytest.raises(ValueError, match=rf"^the order {re.escape(repr(text))} has .+ twice$"):
            parse_order(text)
    else:
        found = parse_order(text)
        assert [name for level in found for name in level] == names
        assert ">".join("=".join(level) for level in found) == re.sub(" *([>=]) *", r"\1", plain)


def test_known_answers(tmp_path: Path) -> None:
    tasks = read_tasks(SAMPLE / "annotations.jsonl", sample_prompts())
    checks = read_checks(SAMPLE / "checks.jsonl", tasks)
    assert checks.schema == CHECKS
    assert checks.height == 18
    assert checks.row(0) == ("p04-t3", "p04-c", "p04-d", "1")
    shown = dict(tasks.select("task", "responses").iter_rows())
    for task, first, second in checks.select("task", "first", "second").iter_rows():
        assert (first, second) in combinations(shown[task], 2)
    path = lines(tmp_path, [{"task": "p-t1", "order": "C>A=B"}])
    assert read_checks(path, TASKS_GIVEN)["mark"].to_list() == ["s", "2", "2"]
    for rows, message in (
        ([{"task": "p-t9"}], "{}, row 1: the task 'p-t9' does not exist; use the file of the same tasks."),
        ([{"task": "p-t1", "order": "A>B>C"}] * 2, "{} has the answers to a task more than once; keep one of them."),
        ([{"task": "p-t1", "marks": [["p-a", "p-a", "s"]]}], "{}, row 1 (task p-t1) compares the response p-a with "
         "itself."),
    ):  # fmt: skip
        path = lines(tmp_path, rows)
        with pytest.raises(AnnotationsError) as caught:
            read_checks(path, TASKS_GIVEN)
        assert str(caught.value) == message.format(path)


# q-t1 is given to two annotators, who differ on the first pair and agree on the second.
DIFFERING = [
    {"task": "q-t1", "annotator": "ann-1", "order": "A>C>B"},
    {"task": "q-t1", "annotator": "ann-2", "order": "B>A>C"},
    {"task": "p-t1", "annotator": "ann-1", "order": "A>B>C"},
]


def judgements(path: Path, rule: Literal["discussion", "none"], *more: Row) -> dict[str, str]:
    """What enters the graph on the pairs of q-t1."""
    marks = read_annotations([lines(path, [*DIFFERING, *more])], TASKS_GIVEN).marks
    counted, _ = judgments_of(marks, None, rule)
    assert counted.filter(task="p-t1")["mark"].to_list() == ["1", "1", "1"]
    found = counted.filter(task="q-t1").select("first", "second", "mark").rows()
    return {f"{first[-1]}{second[-1]}{place}": mark for place, (first, second, mark) in enumerate(found)}


def test_a_task_of_two_annotators_enters_the_graph_once(tmp_path: Path) -> None:
    # Both prefer a to c; on the other two pairs they differ, so nothing is said until they have discussed them.
    assert judgements(tmp_path, "discussion") == {"ac0": "1"}
    talked = {"task": "q-t1", "annotator": "consensus", "marks": [["q-b", "q-a", "g"]]}
    assert judgements(tmp_path, "discussion", talked) == {"ab0": "2", "ac1": "1"}
    every = judgements(tmp_path, "none")
    assert every == {"ab0": "1", "ac1": "1", "bc2": "2", "ab3": "2", "ac4": "1", "bc5": "1"}


def test_a_known_answer_settles_what_annotators_differ_on(tmp_path: Path) -> None:
    key = lines(tmp_path, [{"task": "q-t1", "order": "C>B>A"}], "key.jsonl")
    marks = read_annotations([lines(tmp_path, DIFFERING)], TASKS_GIVEN).marks
    counted, found = judgments_of(marks, read_checks(key, TASKS_GIVEN), "discussion")
    assert counted.filter(task="q-t1").rows() == [
        ("q", "q-t1", "q-a", "q-b", "2"),
        ("q", "q-t1", "q-a", "q-c", "1"),  # on this they agree, though it is not the known answer
        ("q", "q-t1", "q-b", "q-c", "2"),
    ]
    assert found.filter(task="q-t1")["by"].to_list() == ["known answer", "agreement", "known answer"]
