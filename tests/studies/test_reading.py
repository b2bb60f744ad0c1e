"""Answers from any mixture of files, in one shape: what they say, what is wrong with them, and what is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_studies import (
    ANSWERS,
    Form,
    Question,
    StudyError,
    assign,
    preference,
    read_answers,
    read_rows,
    score,
    write_sheets,
)

FORM = Form({"post": "Post"}, [preference("better", "A", "B"), score("good", 1, 5), Question("why", optional=True)])
ASSIGNED = pl.DataFrame(
    [("i2", "an"), ("i2", "bo"), ("i1", "an")], schema={"item": pl.String, "annotator": pl.String}, orient="row"
)


def lines(folder: Path, *rows: Mapping[str, object], name: str = "lines.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


def test_answers_are_read_whatever_their_width_and_case(tmp_path: Path) -> None:
    path = lines(tmp_path, {"item": "i1", "annotator": "an", "better": " Ｓ ", "good": 4, "why": "شكراً", "more": [1]})
    found = read_answers([path], FORM, ASSIGNED)
    assert found.answers.schema == ANSWERS
    assert found.answers.rows() == [
        ("i1", "an", "better", "s"),
        ("i1", "an", "good", "4"),
        ("i1", "an", "why", "شكراً"),
    ]


def test_what_is_only_counted(tmp_path: Path) -> None:
    first = lines(
        tmp_path,
        {"item": "i1", "annotator": "an", "better": "1", "good": "2"},
        {"item": "i1", "annotator": "bo", "better": "1", "good": "2"},
        {"item": "i2", "annotator": "bo", "good": "2"},
        {"item": "i2", "annotator": "an", "why": "no answer, so it is as if it were not there"},
    )
    second = lines(tmp_path, {"item": "i1", "annotator": "A9", "better": "2", "good": "5"}, name="second.jsonl")
    found = read_answers([first, second], FORM, ASSIGNED, accounts={"A9": "an"})
    assert found.problems.rows() == [
        ("missing", "i2", "an", "nothing was submitted"),
        ("incomplete", "i2", "bo", "no answer to better"),
        ("double submission", "i1", "an", f"{second}, row 1 counts, and {first}, row 1 does not"),
        ("wrong annotator", "i1", "bo", f"{first}, row 2"),
    ]
    # By item, as assigned, and by annotator; the last submission counts.
    assert found.answers.rows() == [
        ("i2", "bo", "good", "2"),
        ("i1", "an", "better", "2"),
        ("i1", "an", "good", "5"),
        ("i1", "bo", "better", "1"),
        ("i1", "bo", "good", "2"),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"item": "i1", "annotator": "x", "good": 1}, "{}, row 1: there is no annotator 'x'; map the account to an "
         "annotator, or fix the name."),
        ({"item": "i9", "annotator": "an", "good": 1}, "{}, row 1: there is no item 'i9'; give the sheets of this "
         "study, whose items are others."),
        ({"annotator": "an", "good": 1}, "{}, row 1: there is no item ''; give the sheets of this study, whose "
         "items are others."),
        ({"item": "i1", "annotator": "an", "good": 6}, "{}, row 1 (item i1): the answer '6' to good is not one of 1, "
         "2, 3, 4, 5."),
        ({"item": "i1", "annotator": "an", "good": 2.5}, "{}, row 1 (item i1): the answer '2.5' to good is not one of "
         "1, 2, 3, 4, 5."),
    ],
)  # fmt: skip
def test_lines_that_are_refused(tmp_path: Path, row: Mapping[str, object], message: str) -> None:
    path = lines(tmp_path, row)
    with pytest.raises(StudyError) as caught:
        read_answers([path], FORM, ASSIGNED)
    assert (str(caught.value), caught.value.exit_status) == (message.format(path), 2)


def test_the_outcome_of_a_discussion_may_be_on_any_item_and_leave_things_open(tmp_path: Path) -> None:
    path = lines(tmp_path, {"item": "i2", "annotator": "consensus", "better": "s"})
    found = read_answers([path], FORM, ASSIGNED)
    assert found.answers.rows() == [("i2", "consensus", "better", "s")]
    assert found.problems["kind"].to_list() == ["missing"] * 3


@given(st.integers(1, 8), st.integers(1, 2), st.data())
@settings(max_examples=12)
def test_from_items_to_sheets_to_answers(
    tmp_path_factory: pytest.TempPathFactory, count: int, each: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("study")
    items = pl.DataFrame({"item": [f"i{number}" for number in range(count)], "post": ["=甲"] * count})
    assigned = assign(items, ["an", "bo", "cy"], seed=count, annotators_per_item=each)
    paths = write_sheets(folder, assigned.join(items, on="item"), FORM)
    said: dict[tuple[str, str], Sequence[str]] = {}
    for path in paths:
        rows = read_rows(path)
        answers = [
            (
                data.draw(st.sampled_from("12s")),
                str(data.draw(st.integers(1, 5))),
                data.draw(st.sampled_from(["", "x"])),
            )
            for _ in range(rows.height)
        ]
        said |= {(item, path.stem): one for item, one in zip(rows["item"], answers, strict=True)}
        filled = pl.DataFrame(answers, schema=FORM.names, orient="row")
        mixed = pl.concat([rows.drop(FORM.names), filled], how="horizontal").sample(fraction=1, shuffle=True, seed=1)
        mixed.write_csv(path)
    found = read_answers(data.draw(st.permutations(paths)), FORM, assigned)
    assert found.problems.is_empty()
    expected = [
        (item, annotator, name, answer)
        for item, annotator in assigned.sort(pl.col("item").cast(pl.Enum(items["item"])), "annotator")
        .select("item", "annotator")
        .iter_rows()
        for name, answer in zip(FORM.names, said[item, annotator], strict=True)
        if answer
    ]
    assert found.answers.rows() == expected
