"""Digests of values and named random streams."""

import math
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_runs import Json, RecipeError, canonical_json, digest, rng_for

SAFE = 2**53 - 1


class Kind(Enum):
    """No text, and nothing that JSON knows."""

    ONE = 1


ANY_TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('\x00\x08\x1f"\\/\x7f\u2028\ue000\uffff\U00010000'))
NUMBERS = (
    st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e21, 1e-7, -0.0])
)
ANY: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(ANY_TEXT, inner, max_size=5)
        | st.dictionaries(st.text("ab\x7f", max_size=3), inner, max_size=5)
    ),
    max_leaves=16,
)
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def by_the_letter(value: Json) -> str:
    """RFC 8785 written down from its text: sections 3.2.2.2 (strings), 3.2.2.3 (numbers) and 3.2.3 (sorting)."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_of(value)
    if isinstance(value, str):
        return '"' + "".join(ESCAPES.get(sign, sign if sign >= " " else f"\\u{ord(sign):04x}") for sign in value) + '"'
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: list(memoryview(key.encode("utf-16-be")).cast("B")))
        return "{" + ",".join(f"{by_the_letter(key)}:{by_the_letter(value[key])}" for key in keys) + "}"
    return "[" + ",".join(map(by_the_letter, value)) + "]"


def number_of(value: float) -> str:
    """`Number::toString` of ECMA-262: s, k and n are its names. Python's `repr` has the same shortest digits."""
    if value == 0:
        return "0"
    sign, parts, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    s = "".join(map(str, parts))
    k, n = len(s), len(s) + exponent
    if k <= n <= 21:
        found = s + "0" * (n - k)
    elif 0 < n <= 21:
        found = f"{s[:n]}.{s[n:]}"
    elif -6 < n <= 0:
        found = f"0.{'0' * -n}{s}"
    else:
        found = f"{s[0]}{'.' if k > 1 else ''}{s[1:]}e{'+' if n > 0 else '-'}{abs(n - 1)}"
    return "-" * sign + found


@given(ANY)
@settings(max_examples=300)
def test_the_form_is_that_of_rfc_8785(value: Json) -> None:
    assert canonical_json(value).decode() == by_the_letter(value)


def test_the_form_and_the_digest_are_pinned() -> None:
    value: Json = {"ב": 1.0, "a": [True, None, "中\n"], "": -0.0, "A": 1e21}
    assert canonical_json(value) == '{"":0,"A":1e+21,"a":[true,null,"中\\n"],"ב":1}'.encode()
    assert digest({"b": 1, "a": "é"}) == "aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [{"deep": math.nan}], 2**53, -(2**53), "\ud800"])
def test_what_json_cannot_carry_is_refused(value: Json) -> None:
    with pytest.raises((ValueError, RecipeError), match=r"not representable|safe integer|UTF-8"):
        digest(value)


@pytest.mark.parametrize(
    "value",
    [date(2026, 1, 1), [UUID(int=1)], {"a": {1}}, {1: "a"}, {"a": b"b"}, (Decimal(1),), {"a": Kind.ONE}],
    ids=repr,
)
def test_what_json_has_no_word_for_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"unsupported type|keys must be strings"):
        canonical_json(value)


def test_a_stream_depends_on_its_names_alone() -> None:
    few = {name: rng_for(42, "position", name).random() for name in ("q1", "q2")}
    many = {name: rng_for(42, "position", name).random() for name in ("q0", "q2", "q1.5", "q1")}
    assert {name: many[name] for name in few} == few
    assert len(set(many.values())) == 4


def test_draws_are_pinned() -> None:
    assert rng_for(42, "position", "中文").sample(range(1000), 3) == [923, 178, 360]
