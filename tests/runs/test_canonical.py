"""Digests of values and named random streams."""

import math
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
import rfc8785
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


@pytest.mark.heavy
@given(ANY)
@settings(max_examples=300)
def test_the_form_is_that_of_rfc_8785(value: Json) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


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


def test_seed_purpose_and_kind_of_name_each_make_another_stream() -> None:
    streams = [rng_for(1, "a", "1"), rng_for(2, "a", "1"), rng_for(1, "b", "1"), rng_for(1, "a", 1), rng_for(1, "a1")]
    assert len({generator.random() for generator in streams}) == 5
