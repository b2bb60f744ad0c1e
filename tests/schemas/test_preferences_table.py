"""The table of preferences with users: every rule, and the sentence that names it."""

from typing import Any

import polars as pl
import pytest
from pluralbench_schemas import MESSAGE, POST, PersonalizedPreferences, TableError, validate

KEY = "0123456789abcdef" * 4
NESTED = {"prompt": pl.List(MESSAGE), "profile": pl.List(POST)}
ROW: dict[str, Any] = {
    "id": "a-1",
    "user_id": "a",
    "prompt": [{"role": "user", "content": "Which tea?"}],
    "chosen": "Green.",
    "rejected": "Any.",
    "profile": [{"id": "a-2", "category": None, "text": "When to harvest?"}],
    "persona": "Grows tea.",
    "persona_call": KEY,
    "source_id": "a-1",
    "chosen_source": None,
    "rejected_source": "x",
    "original_split": None,
}


def frame(**changes: Any) -> pl.DataFrame:
    rows = [ROW, ROW | {"id": "a-2"} | changes]
    return pl.DataFrame(rows, schema={name: NESTED.get(name, pl.String) for name in ROW})


def test_rows_that_keep_the_rules_come_back() -> None:
    turns = [{"role": role, "content": "said"} for role in ("system", "user", "assistant", "user")]
    kept: list[dict[str, Any]] = [{}, {"prompt": turns}, {"profile": []}, {"persona": None, "persona_call": None}]
    for changes in kept:
        validate(frame(**changes), PersonalizedPreferences, file="x.parquet")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "a-1"}, "column `id` must be unique"),
        ({"user_id": " "}, "column `user_id` must have text"),
        ({"user_id": None}, "column `user_id` must not be missing"),
        ({"source_id": None}, "column `source_id` must not be missing"),
        ({"persona": "\n"}, "column `persona` must have text"),
        ({"prompt": [{"role": "human", "content": "x"}]}, "of the role system, user or assistant"),
        ({"prompt": [{"role": "user", "content": " "}]}, "`prompt` must have text in each message"),
        ({"prompt": [{"role": "user", "content": None}]}, "`prompt` must have text in each message"),
        ({"prompt": []}, "`prompt` must end with a message of the user"),
        ({"prompt": [{"role": "assistant", "content": "x"}]}, "`prompt` must end with a message of the user"),
        ({"rejected": "Green."}, "`rejected` must differ from `chosen`"),
        ({"profile": [{"id": "p", "category": None, "text": ""}]}, "must have an id and a text in each post"),
        (
            {"profile": [{"id": "a-1", "category": None, "text": "x"}]},
            "`profile` must not hold the row's own question, the post of its `source_id`",
        ),
        ({"persona_call": "k"}, "`persona_call` must be the key of a recorded call, 64 hexadecimal digits"),
        ({"persona": None}, "`persona` must be there where `persona_call` is, and nowhere else"),
    ],
)
def test_a_broken_rule_is_named_with_its_row(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError) as caught:
        validate(frame(**changes), PersonalizedPreferences, file="x.parquet")
    assert said in str(caught.value)
    assert "row" in str(caught.value)
