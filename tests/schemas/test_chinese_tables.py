"""What a table of ranked responses must be."""

from typing import Any

import polars as pl
import pytest
from pluralbench_schemas import RANKED_RESPONSES, RankedResponses, TableError, validate

ROW: dict[str, Any] = {
    "id": "p1",
    "input": "用一句话介绍杭州。",
    "sys_prompt": None,
    "responses": [{"id": name, "content": f"回答{name}", "model": ""} for name in "abc"],
    "annotations": [["a", "b", "1"], ["c", "b", "2"], ["a", "c", "s"]],
    "rank": [{"id": "a", "rank": 1}, {"id": "b", "rank": 2}, {"id": "c", "rank": 2}],
    "order": [["a", "b"], ["a", "c"]],
    "category": ["知识", "人文地理"],
    "judgements": 3,
    "conflicts": 1,
    "annotated_by": "people",
    "vote_calls": [],
    "reward_calls": ["0" * 64],
}


def checked(**changes: object) -> None:
    """Validate a second row that differs from a good one in `changes`."""
    rows = [ROW, ROW | {"id": "p2"} | changes]
    validate(pl.DataFrame(rows, schema=RANKED_RESPONSES), RankedResponses, file="rows.parquet")


def test_good_rows() -> None:
    checked()
    checked(sys_prompt="回答要简短。", category=["知识"], annotations=[], order=[], judgements=0, conflicts=0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"input": " "}, "`input` must have text"),
        ({"responses": ROW["responses"][:1], "annotations": [], "order": []}, "must be two or more"),
        ({"responses": [ROW["responses"][0]] * 3}, "each with an id of its own"),
        ({"annotations": [["a", "b"]]}, r"must be \[id, id, mark\]"),
        ({"annotations": [["a", "b", "g"]]}, r"must be \[id, id, mark\]"),
        ({"annotations": [["a", "a", "1"]]}, r"must be \[id, id, mark\]"),
        ({"annotations": [["a", "x", "1"]]}, "of two of the responses"),
        ({"rank": [{"id": "a", "rank": 1}, {"id": "b", "rank": 1}]}, "not all alike"),
        ({"rank": [{"id": "a", "rank": 1}, {"id": "b", "rank": 3}]}, "without a gap"),
        ({"rank": [{"id": "a", "rank": 0}, {"id": "b", "rank": 1}]}, "from 1"),
        ({"rank": [{"id": "a", "rank": 1}, {"id": "x", "rank": 2}]}, "must rank responses"),
        ({"rank": [{"id": "a", "rank": 1}, {"id": "a", "rank": 2}]}, "must rank responses"),
        ({"rank": []}, "must rank responses"),
        ({"order": [["a", "x"]]}, r"must be \[better, worse\]"),
        ({"order": [["a", "b", "c"]]}, r"must be \[better, worse\]"),
        ({"category": []}, "must name a main category"),
        ({"category": ["知识", " "]}, "must name a main category"),
        ({"conflicts": 4}, "no more than `judgements`"),
        ({"vote_calls": ["abc"]}, "64 hexadecimal digits"),
        ({"id": "p1"}, "`id`"),
    ],
)
def test_what_is_no_ranking(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError, match=said):
        checked(**changes)


def test_null_where_something_has_to_stand() -> None:
    for name in ("responses", "annotations", "rank", "order", "category", "judgements"):
        with pytest.raises(TableError, match=name):
            checked(**{name: None})
