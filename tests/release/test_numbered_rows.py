"""Rows that are numbered, call keys in lists, and tables beside the data: what a release of M-RewardBench adds."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pluralbench_release import ReleaseError, content_digest, diff, verify
from pluralbench_runs import Json, canonical_json
from releases import key_of, without_calls

CODE = "spa_Latn"
SPANISH = f"data/{CODE}/test.parquet"
TEXTS = ["Sí, «claro».", "مرحبا", "我喜欢喝“龙井”茶。", "🍵 \u202etext\r\n"]
RECORDS = {
    "dropped": pl.DataFrame({"id": [3, 10], "language": [CODE] * 2, "reason": ["good 中文", None]}),
    "none_of_it": pl.DataFrame(schema={"id": pl.Int64, "reason": pl.String}),
}
NUMBERS = (2, 10, 1, 33, 4)


def rows_of(*ids: int, **changes: Any) -> pl.DataFrame:
    """Rows of `MULTILINGUAL_PAIRS` with these ids and changes."""
    rows = [
        {
            "id": row_id,
            "language": CODE,
            "prompt": f"¿{TEXTS[row_id % 4]}?",
            "chosen": f"Sí: {TEXTS[row_id % 4]}",
            "rejected": f"No: {TEXTS[row_id % 4]}",
            "chosen_model": "m1",
            "rejected_model": "m2",
            "source": "donotanswer",
            "category": "Safety",
            "translator": "by hand",
            "prompt_calls": [key_of(f"prompt {row_id}")],
            "chosen_calls": [key_of(f"chosen {row_id}"), key_of(f"more {row_id}")],
            "rejected_calls": [],
        }
        | changes
        for row_id in ids
    ]
    types = {name: pl.List(pl.String) if name.endswith("_calls") else pl.String for name in rows[0]}
    return pl.DataFrame(rows, schema=types | {"id": pl.Int64})


@pytest.fixture
def numbered(release: Callable[..., Path]) -> Callable[..., Path]:
    """A release of these rows."""

    def make(name: str, rows: pl.DataFrame) -> Path:
        return release(name, rows, configs=(CODE,), schema="MultilingualPairs", records=RECORDS)

    return make


@pytest.fixture
def directory(numbered: Callable[..., Path]) -> Path:
    return numbered("release", rows_of(*NUMBERS))


@given(
    st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=8, unique=True),
    st.randoms(use_true_random=False),
)
@example([2, 10, 1], None)
def test_the_digest_is_of_the_rows_by_the_size_of_their_numbers(ids: list[int], draws: Any) -> None:
    rows = [{"id": row_id, "text": TEXTS[row_id % 4]} for row_id in ids]
    in_order: list[Json] = [{"id": row_id, "text": TEXTS[row_id % 4]} for row_id in sorted(ids)]
    expected = hashlib.sha256(canonical_json(in_order)).hexdigest()
    assert content_digest(pl.DataFrame(rows)) == expected
    if draws is not None:
        draws.shuffle(rows)
    assert content_digest(pl.DataFrame(rows)) == expected


def test_numbers_and_strings_are_other_rows() -> None:
    numbers, strings = pl.DataFrame({"id": [2, 10]}), pl.DataFrame({"id": ["2", "10"]})
    assert content_digest(numbers) == hashlib.sha256(b'[{"id":2},{"id":10}]').hexdigest()
    assert content_digest(strings) == hashlib.sha256(b'[{"id":"10"},{"id":"2"}]').hexdigest()


def test_differences_are_listed_by_number(numbered: Callable[..., Path]) -> None:
    a = numbered("a", rows_of(1, *range(2, 12)))
    b = numbered("b", pl.concat([rows_of(1), rows_of(2, 10, chosen="new"), rows_of(100, 20, 3)]))
    [found] = diff(a, b)
    assert found.added == ["20", "100"]
    assert found.removed == ["4", "5", "6", "7", "8", "9", "11"]
    assert found.changed == {"chosen": ["2", "10"]}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_is_changed_or_gone_is_named(directory: Path, name: str) -> None:
    path = directory / f"provenance/{name}.parquet"
    pl.DataFrame({"id": [3], "reason": ["another"]}).write_parquet(path)
    assert verify(directory) == [f"provenance/{name}.parquet does not match SHA256SUMS and the manifest."]
    path.unlink()
    assert verify(directory) == [f"provenance/{name}.parquet is missing."]


@pytest.mark.parametrize(
    ("names", "problems"),
    [
        ([], []),
        (["prompt 10"], [f"{SPANISH}: `prompt_calls` of id 10 names a call that is not in the ledger (1 in total)."]),
        (
            ["more 33", "chosen 2", "more 2"],
            [f"{SPANISH}: `chosen_calls` of id 2 names a call that is not in the ledger (3 in total)."],
        ),
        (
            ["prompt 4", "more 1"],
            [
                f"{SPANISH}: `prompt_calls` of id 4 names a call that is not in the ledger (1 in total).",
                f"{SPANISH}: `chosen_calls` of id 1 names a call that is not in the ledger (1 in total).",
            ],
        ),
    ],
)
def test_every_key_in_a_list_is_looked_for_in_the_ledger(
    directory: Path, names: list[str], problems: list[str]
) -> None:
    without_calls(*names)(directory)
    assert verify(directory) == problems


@pytest.mark.parametrize("number", [2**53 + 1, -(2**60)])
def test_a_number_beyond_2_to_the_53_is_refused(number: int) -> None:
    with pytest.raises(ReleaseError, match="'b'"):
        content_digest(pl.DataFrame({"id": ["a", "b"], "n": [[1], [number]]}))


VALUES: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]] = {
    "text": (pl.String(), st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
    "flag": (pl.Boolean(), st.none() | st.booleans()),
    "small": (pl.UInt8(), st.none() | st.integers(0, 255)),
    "number": (pl.Int64(), st.none() | st.integers(-(2**53) + 1, 2**53 - 1)),
    "share": (pl.Float64(), st.none() | st.floats(allow_nan=False, allow_infinity=False)),
}


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 2) -> tuple[pl.DataType, st.SearchStrategy[Any]]:
    """A type of polars that JSON carries, and values of it."""
    kind = draw(st.sampled_from([*VALUES, "list", "struct"] if depth else [*VALUES]))
    if kind == "list":
        inner, values = draw(typed_values(depth - 1))
        return pl.List(inner), st.none() | st.lists(values, max_size=3)
    if kind == "struct":
        names = draw(st.lists(st.sampled_from(["z", "a", "B", "é", "\U0001f375", "\ufb33"]), min_size=1, unique=True))
        fields = {name: draw(typed_values(depth - 1)) for name in names}
        values = st.fixed_dictionaries({name: field[1] for name, field in fields.items()})
        return pl.Struct({name: field[0] for name, field in fields.items()}), st.none() | values
    return VALUES[kind]


@given(st.data())
def test_rows_of_any_type_are_written_as_canonical_json_has_them(data: st.DataObject) -> None:
    kind, values = data.draw(typed_values())
    rows = [{"id": f"{number}", "value": data.draw(values)} for number in range(data.draw(st.integers(1, 4)))]
    frame = pl.DataFrame(rows, {"id": pl.String, "value": kind})
    assert content_digest(frame) == hashlib.sha256(canonical_json(frame.to_dicts())).hexdigest()
