"""Prompts and responses in training sets of every common shape."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.data.training_texts import table_texts, text_columns
from pluralbench.errors import DataError
from pluralbench_release import read_tables
from written_tables import write

TURN = st.text(st.characters(codec="ascii", exclude_characters=":"), min_size=1).map(str.strip).filter(bool)


def texts(*rows: dict[str, Any], columns: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The prompts and responses of rows."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    read = table_texts(frame, text_columns(frame, columns, "t"), "t")
    return {part: read.filter(pl.col("part") == part)["text"].to_list() for part in ("prompt", "response")}


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


TALK = [message("system", "s"), message("user", "u1"), message("assistant", "a1"), message("user", "u2")]
TALK_TEXTS = {"prompt": ["u1", "u2", "u1\n\na1\n\nu2"], "response": ["a1"]}
ENDED = {"prompt": TALK_TEXTS["prompt"], "response": ["a1", "a2"]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"prompt": "p", "chosen": "c", "rejected": "r"}, {"prompt": ["p"], "response": ["c", "r"]}),
        ({"question": "p", "response_A": "a", "response_12": "b"}, {"prompt": ["p"], "response": ["a", "b"]}),
        ({"prompt": "p", "chosen": {"llm": "m", "answer": "c"}}, {"prompt": ["p"], "response": ["c"]}),
        ({"prompt": "p", "chosen": ["c1", "c2"], "rejected": ["r"]}, {"prompt": ["p"], "response": ["c1", "c2", "r"]}),
        (
            {"instruction": "i", "input": "n", "output": "o", "system": "s"},
            {"prompt": ["i", "n", "i\n\nn"], "response": ["o"]},
        ),
        ({"instruction": "i", "input": "", "output": "o"}, {"prompt": ["i"], "response": ["o"]}),
        ({"messages": TALK}, TALK_TEXTS),
        ({"messages": [*TALK, message("assistant", "a2")]}, ENDED),
        ({"messages": json.dumps([*TALK, message("assistant", "a2")])}, ENDED),
        (
            {"messages": [{"role": role, "content": [{"type": "text", "text": role[0]}]} for role in ("user", "gpt")]},
            {"prompt": ["u"], "response": ["g"]},
        ),
        (
            {"conversations": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}]},
            {"prompt": ["u"], "response": ["a"]},
        ),
        (
            {"chosen": [message("user", "u"), message("assistant", "c")], "rejected": "\n\nHuman: u\n\nAssistant: r"},
            {"prompt": ["u"], "response": ["c", "r"]},
        ),
        ({"chosen": "\n\nHuman: u1\n\nAssistant: a1\n\nHuman: u2\n\nAssistant: a2"}, ENDED),
        ({"context": TALK, "response1": "x"}, {"prompt": TALK_TEXTS["prompt"], "response": ["a1", "x"]}),
        ({"text": "no roles"}, {"prompt": ["no roles"], "response": ["no roles"]}),
        ({"prompt": "Human: be kind", "chosen": None}, {"prompt": ["Human: be kind"], "response": []}),
        ({"prompt": '{"json": "but no message"}', "id": 3}, {"prompt": ['{"json": "but no message"}'], "response": []}),
    ],
)
def test_a_row_has_these_prompts_and_responses(row: dict[str, Any], expected: dict[str, list[str]]) -> None:
    assert texts(row) == expected


@given(st.lists(st.tuples(TURN, TURN), min_size=1, max_size=4))
def test_a_transcript_gives_its_turns(turns: list[tuple[str, str]]) -> None:
    text = "".join(f"\n\nHuman: {user}\n\nAssistant: {reply}" for user, reply in turns)
    users, replies = (list(dict.fromkeys(own)) for own in zip(*turns, strict=True))
    read = texts({"chosen": text})
    assert read["response"] == replies
    assert read["prompt"][: len(users)] == users


def test_named_columns_replace_the_known_names() -> None:
    row = {"prompt": "p", "body": "b", "reply": "r", "thread": [message("user", "u")]}
    read = texts(row, columns=("prompt=body", "response=reply", "conversation=thread"))
    assert read == {"prompt": ["b", "u"], "response": ["r"]}


def test_rows_and_columns_are_those_of_the_table() -> None:
    frame = pl.DataFrame({"prompt": ["p", "p"], "chosen": ["c", None], "rejected": ["c", "r"]})
    read = table_texts(frame, text_columns(frame, (), "t"), "t", first_row=10)
    assert read.rows() == [
        (10, "prompt", "prompt", "p"),
        (10, "chosen", "response", "c"),
        (11, "prompt", "prompt", "p"),
        (11, "rejected", "response", "r"),
    ]


def test_messages_with_different_keys_come_from_a_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"messages": [message("user", "u") | {"id": 1}, message("assistant", "a")]},
        {"messages": [{"content": "b", "role": "assistant"}]},
    ]
    frame = read_tables(str(write(tmp_path / "m.jsonl", rows))).frames["m"]
    read = table_texts(frame, text_columns(frame, (), "t"), "t")
    assert read["text"].to_list() == ["u", "a", "b"]


@pytest.mark.parametrize(
    ("row", "columns", "message"),
    [
        (
            {"body": "b", "n": 1},
            (),
            "t has no known column of prompts, responses or conversations; it has body, n: name one with "
            '`columns=["prompt=COLUMN"]`, or the field response or conversation.',
        ),
        ({"body": "b"}, ("prompt=text",), "t has no column `text`; it has body."),
        (
            {"body": "b"},
            ("prompts=body",),
            "`columns=['prompts=body']` does not have the form FIELD=COLUMN with FIELD one of prompt, response, "
            "conversation.",
        ),
        (
            {"prompt": 3},
            (),
            "t: `prompt` of row 0 (from 0) is int '3', which is neither a text nor messages; name the columns to read "
            'with `columns=["prompt=COLUMN"]`.',
        ),
    ],
)
def test_other_tables_are_refused(row: dict[str, Any], columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError) as caught:
        texts(row, columns=columns)
    assert str(caught.value) == message
