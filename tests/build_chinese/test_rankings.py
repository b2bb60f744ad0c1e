"""Rows in the published fields: what is read, what is merged, what is refused, and what comes out resolved."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from build_chinese.rankings import (
    ALL_EQUAL,
    DROPPED,
    NO_ANNOTATION,
    ONE_RESPONSE,
    VOTE,
    Row,
    ranked_pairs,
    read_rankings,
    resolve_rows,
)
from chinese_project import write_rows
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError
from pluralbench_runs import UserError
from pluralbench_tables import write_jsonl

TEXTS = {"r1": "雨停了就走。", "r2": "带上伞，现在就走。☂️", "r3": "明天再说。"}
RESPONSES = [{"id": name, "content": text, "model": f"m-{name}"} for name, text in TEXTS.items()]
PROMPT: Row = {
    "input": "下雨了，现在出门吗？",
    "responses": RESPONSES,
    "annotations": [["r1", "r2", "2"], ["r2", "r3", "1"], ["r1", "r3", "s"]],
    "category": ["生活", "建议"],
    "sys_prompt": "请用中文回答。",
    "source": {"name": "made", "numbers": [1, 2.5, None]},
}


def written(folder: Path, rows: Sequence[Row]) -> Path:
    return write_rows(folder / "rows.jsonl", rows)


def one(folder: Path, **changes: Any) -> Row:
    """The row that `PROMPT` with these changes is read as."""
    [row] = read_rankings(written(folder, [PROMPT | changes]))
    return row


def refused(folder: Path, *rows: Any) -> str:
    """What is said about the rows, without the folder they are in."""
    with pytest.raises(SourceError) as caught:
        read_rankings(written(folder, rows))
    assert isinstance(caught.value, UserError)
    return str(caught.value).replace(f"{folder}/", "")


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def test_published_fields_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [PROMPT, PROMPT | {"input": "第二个问题", "rank": {"r2": 1, "r1": 2, "r3": 2}}]
    read = read_rankings(written(tmp_path, rows))
    assert read == rows
    write_jsonl(read, tmp_path / "again.jsonl")
    assert read_rankings(tmp_path / "again.jsonl") == read


def test_a_resolved_row_has_ranks_order_and_counts(tmp_path: Path) -> None:
    [row], _ = resolve_rows([one(tmp_path, rank={"r1": 1, "r2": 2, "r3": 3})])
    assert row == PROMPT | {
        "rank": {"r1": 2, "r2": 1, "r3": 2},
        "order": [["r2", "r1"], ["r2", "r3"]],
        "counts": {"judgements": {"strict": 2, "equal": 1}, "conflicts": {"strict": 0, "equal": 0}},
    }
    assert ranked_pairs(row) == [("r2", "r1"), ("r2", "r3")]


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        *((mark, mark) for mark in "12s"),
        *((wide, narrow) for wide, narrow in zip("１２ｓＳ①②", "12ss12", strict=True)),
        *((letter, mark) for letter, mark in zip("gbGBｇｂ", "121212", strict=True)),
        (1, "1"),
        (2, "2"),
        (" s\n", "s"),
        ("\u30001\u3000", "1"),
    ],
)
def test_marks_are_understood_as_they_are_typed(tmp_path: Path, given: object, mark: str) -> None:
    assert one(tmp_path, annotations=[["r1", "r2", given]])["annotations"] == [["r1", "r2", mark]]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (without(PROMPT, "input") | {"prompt": PROMPT["input"]}, PROMPT),
        (PROMPT | {"category": "生活"}, PROMPT | {"category": ["生活"]}),
        (without(PROMPT, "category"), without(PROMPT, "category")),
        (PROMPT | {"responses": [*RESPONSES, RESPONSES[0]]}, PROMPT),
    ],
)
def test_other_forms_of_a_row_are_understood(tmp_path: Path, given: Row, read: Row) -> None:
    assert read_rankings(written(tmp_path, [given])) == [read]


def test_without_annotations_where_none_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, [without(PROMPT, "annotations")])
    assert read_rankings(path, annotated=False) == [PROMPT | {"annotations": []}]
    with pytest.raises(SourceError, match="`annotations` is missing"):
        read_rankings(path)


def test_rows_of_one_prompt_become_one(tmp_path: Path) -> None:
    rows = [
        {
            "input": "问题",
            "responses": RESPONSES[:2],
            "annotations": [["r1", "r2", "1"]],
            "category": ["生活"],
            "annotator": "a",
            "rank": {"r1": 1, "r2": 2},
        },
        PROMPT,
        # A response of the first row may be annotated here.
        {"input": "问题", "responses": RESPONSES[2:], "annotations": [["r3", "r1", "1"]], "category": ["知识"]},
        {"input": "问题", "responses": RESPONSES[1:], "annotations": [["r3", "r1", "1"]], "category": ["知识"]},
    ]
    merged = {
        "input": "问题",
        "responses": RESPONSES,
        "annotations": [["r1", "r2", "1"], ["r3", "r1", "1"], ["r3", "r1", "1"]],
        "category": ["生活"],
    }
    assert read_rankings(written(tmp_path, rows)) == [merged, PROMPT]
    [row, _], _ = resolve_rows(read_rankings(written(tmp_path, rows)))
    assert row["rank"] == {"r1": 2, "r2": 3, "r3": 1}
    assert row["counts"]["judgements"] == {"strict": 3, "equal": 0}


OTHER = {"id": "r1", "content": "别的回答"}
BEGINNING = "下雨了，现在出门吗？"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"input": None}, "row 2: `input` is missing or empty."),
        ({"responses": [{"id": "r1"}]}, "row 2: a response is not an object with `id` and `content`."),
        ({"responses": [*RESPONSES, OTHER]}, "row 2: two responses have the id r1."),
        (
            {"input": "第一个问题", "responses": [OTHER]},
            "row 2: an earlier row has the same input, and another response r1; rename one.",
        ),
        ({"annotations": [["r1", "r2"]]}, "row 2: the annotation ['r1', 'r2'] is not [id, id, mark]."),
        (
            {"annotations": [["r1", "r2", "A"]]},
            "row 2: the annotation of r1 and r2 has the mark 'A', which is not 1, 2 or s.",
        ),
        ({"id": [1]}, "row 2: the id '[1]' is neither text nor an integer."),
        ({"votes": ["r1"]}, "row 2: the vote r1 is not an object with annotator, first, second, vote."),
        (
            {"votes": [{"annotator": "ann", "first": "r1", "second": "r2"}]},
            "row 2: the annotation ['r1', 'r2', None] is not [id, id, mark].",
        ),
    ],
)
def test_a_row_of_another_shape_says_why(tmp_path: Path, changes: Row, sentence: str) -> None:
    assert refused(tmp_path, PROMPT | {"input": "第一个问题"}, PROMPT | changes) == f"rows.jsonl, {sentence}"


@pytest.mark.parametrize(
    ("votes", "sentence"),
    [
        ([("r1", "r9", "1")], f"a vote of the prompt '{BEGINNING}' is not on two of its responses: r1, r9."),
        (
            [("r1", "r2", "1"), ("r2", "r1", "1")],
            f"ann votes twice on r1 and r2 of the prompt '{BEGINNING}'; keep one vote.",
        ),
    ],
)
def test_votes_are_on_two_responses_of_the_prompt_each_once(
    tmp_path: Path, votes: list[tuple[str, str, str]], sentence: str
) -> None:
    row = PROMPT | {"votes": [dict(zip(VOTE, ("ann", *vote), strict=True)) for vote in votes]}
    assert refused(tmp_path, row) == f"rows.jsonl: {sentence}"


@pytest.mark.parametrize(
    ("annotation", "sentence"),
    [
        (["r1", "r9", "1"], f"an annotation names the response r9, which the prompt '{BEGINNING}' does not have."),
        ([" r2", "r2", "1"], f"an annotation of the prompt '{BEGINNING}' compares the response r2 with itself."),
    ],
)
def test_annotations_of_other_responses_say_which(tmp_path: Path, annotation: list[str], sentence: str) -> None:
    assert refused(tmp_path, PROMPT | {"annotations": [annotation]}).endswith(sentence)


def test_what_nothing_can_be_learned_from_is_dropped_and_counted() -> None:
    rows: list[Row] = [
        PROMPT | {"input": "一", "responses": RESPONSES[:1], "annotations": []},
        PROMPT | {"input": "二", "annotations": []},
        PROMPT | {"input": "三", "annotations": [["r1", "r2", "s"], ["r2", "r3", "s"]]},
        PROMPT | {"input": "四", "annotations": [["r1", "r2", "1"], ["r2", "r3", "1"], ["r3", "r1", "1"]]},
        PROMPT | {"input": "五"},
        PROMPT | {"input": "六", "responses": [], "annotations": []},
    ]
    kept, dropped = resolve_rows(rows)
    assert [row["input"] for row in kept] == ["五"]
    assert dropped.schema == DROPPED
    assert dropped.rows() == [
        ("一", ONE_RESPONSE, 1, 0),
        ("二", NO_ANNOTATION, 3, 0),
        ("三", ALL_EQUAL, 3, 2),
        ("四", ALL_EQUAL, 3, 3),
        ("六", ONE_RESPONSE, 0, 0),
    ]
    nothing, none_dropped = resolve_rows([])
    assert (nothing, none_dropped.rows(), none_dropped.schema) == ([], [], DROPPED)


NAMES = st.lists(st.sampled_from("abcdef"), min_size=2, max_size=6, unique=True)
# Whatever a JSON string can carry into UTF-8: separators, quotes and line ends in particular.
CONTENT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\r\u2028\x85'), max_size=20)


@st.composite
def prompts(draw: st.DrawFn, number: int) -> Row:
    names = draw(NAMES)
    pair = st.sampled_from(list(combinations(names, 2))).flatmap(st.permutations)
    annotation = st.tuples(pair, st.sampled_from("12s")).map(lambda drawn: [*drawn[0], drawn[1]])
    return {
        "input": f"{number}{draw(CONTENT)}",
        "responses": [{"id": name, "content": draw(CONTENT)} for name in names],
        "annotations": draw(st.lists(annotation, max_size=12)),
    }


ROWS = st.integers(0, 4).flatmap(lambda count: st.tuples(*(prompts(number) for number in range(count))))


@given(ROWS, st.data())
def test_the_order_of_rows_responses_and_annotations_changes_nothing(
    rows: tuple[Row, ...], data: st.DataObject
) -> None:
    changed = [
        row | {name: data.draw(st.permutations(row[name])) for name in ("responses", "annotations")}
        for row in data.draw(st.permutations(rows))
    ]
    kept, dropped = resolve_rows(rows)
    kept_after, dropped_after = resolve_rows(changed)
    found = ("rank", "order", "counts")
    assert {row["input"]: [row[name] for name in found] for row in kept} == {
        row["input"]: [row[name] for name in found] for row in kept_after
    }
    assert dropped.sort("input").equals(dropped_after.sort("input"))
    assert len(kept) + dropped.height == len(rows)


def test_a_response_that_nobody_compared_has_no_rank() -> None:
    [row], _ = resolve_rows([PROMPT | {"annotations": [["r3", "r1", "1"]]}])
    assert row["rank"] == {"r1": 2, "r3": 1}
    assert ranked_pairs(row) == [("r3", "r1")]


@given(ROWS.filter(bool))
def test_any_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, rows: tuple[Row, ...]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write_jsonl(rows, path)
    assert read_rankings(path) == list(rows)
    assert path.read_bytes().count(b"\n") == len(rows)
