"""Digests of values and named random streams."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import Json, canonical_json, digest, stream

SAFE = 2**53 - 1
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


def reversed_keys(value: Json) -> Json:
    """The same value with the keys of each object inserted the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_the_order_of_keys_does_not_matter(value: Json) -> None:
    assert digest(reversed_keys(value)) == digest(value)


@given(VALUES)
def test_canonical_json_reads_back_as_the_value(value: Json) -> None:
    # JSON has one kind of number, so integers are compared as floats.
    assert json.loads(canonical_json(value), parse_int=float) == value


@given(st.lists(st.text(), min_size=2, max_size=4, unique=True))
def test_different_lists_have_different_digests(names: list[str]) -> None:
    assert digest(names) != digest(names[:-1])
    assert digest(names) != digest(["".join(names)])


def test_the_form_and_the_digest_are_pinned() -> None:
    value: Json = {"ב": 1.0, "a": [True, None, "中\n"], "": -0.0, "A": 1e21}
    assert canonical_json(value) == '{"":0,"A":1e+21,"a":[true,null,"中\\n"],"ב":1}'.encode()
    assert digest({"b": 1, "a": "é"}) == "aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [{"deep": math.nan}], 2**53, "\ud800"])
def test_what_json_cannot_carry_is_refused(value: Json) -> None:
    with pytest.raises(ValueError, match=r"not representable|safe integer|UTF-8"):
        digest(value)


def test_a_stream_depends_on_its_names_alone() -> None:
    few = {name: stream(42, "position", name).random() for name in ("q1", "q2")}
    many = {name: stream(42, "position", name).random() for name in ("q0", "q2", "q1.5", "q1")}
    assert {name: many[name] for name in few} == few
    assert len(set(many.values())) == 4


def test_seed_purpose_and_kind_of_name_each_make_another_stream() -> None:
    streams = [stream(1, "a", "1"), stream(2, "a", "1"), stream(1, "b", "1"), stream(1, "a", 1), stream(1, "a1")]
    assert len({generator.random() for generator in streams}) == 5


def test_draws_are_pinned() -> None:
    assert stream(42, "position", "中文").sample(range(1000), 3) == [923, 178, 360]


@given(st.integers(0, SAFE), st.lists(st.text(st.characters(codec="utf-8")) | st.integers(0, SAFE), max_size=3))
def test_a_stream_gives_the_same_draws_again(seed: int, names: list[str | int]) -> None:
    assert [stream(seed, *names).random() for _ in range(2)] == [stream(seed, *names).random()] * 2
