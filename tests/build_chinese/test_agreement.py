"""Agreement of annotators: known cases, the sample's unreliable annotator, and what no order may change."""

import json
import math
from collections.abc import Sequence

import polars as pl
import pytest
from build_chinese.agreement import agreement, share_of
from build_chinese.annotations import CHECKS, MARKS, read, read_checks
from build_chinese.tasks import read_tasks
from chinese_prompts import SAMPLE, sample_prompts
from hypothesis import given, settings
from hypothesis import strategies as st

Judged = tuple[str, str, str, str, str]
"""prompt, annotator, first, second, mark"""


def marks_of(rows: Sequence[Judged]) -> pl.DataFrame:
    """Each judgement in a task of its own."""
    return pl.DataFrame(
        [(prompt, f"{prompt}-t{number}", *rest) for number, (prompt, *rest) in enumerate(rows)],
        schema=MARKS,
        orient="row",
    )


def sample() -> tuple[pl.DataFrame, pl.DataFrame]:
    tasks = read_tasks(SAMPLE / "annotations.jsonl", sample_prompts())
    return read([SAMPLE / "annotations.jsonl"], tasks).marks, read_checks(SAMPLE / "checks.jsonl", tasks)


def test_the_samples_unreliable_annotator_shows() -> None:
    found = agreement(*sample())
    people = found["annotators"]
    assert list(people) == [f"ann-{number}" for number in range(1, 8)]
    assert people["ann-6"]["checks_right"] == share_of(2, 6)
    right = {name: figures["checks_right"]["share"] for name, figures in people.items()}
    assert {name for name, share in right.items() if share is not None and share < 0.8} == {"ann-6"}
    with_others = {name: figures["agreeing"]["share"] for name, figures in people.items()}
    assert min(with_others, key=with_others.__getitem__) == "ann-6"
    # Of each prompt the five neighbours in the ring are marked twice.
    assert found["pairs"] | {"low": None, "high": None} == {
        "units": 200,
        "compared": 200,
        "agreeing": 183,
        "share": 0.915,
        "low": None,
        "high": None,
        "opposite": 0.045,
    }
    assert 0.83 < found["pairs"]["low"] < 0.915 < found["pairs"]["high"] < 0.98
    assert sum(figures["tasks"] for figures in people.values()) == 200
    assert sum(figures["marks"] for figures in people.values()) == 600
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_alpha_is_what_it_is_by_hand() -> None:
    # Two annotators on four pairs: values (1, 1), (-1, -1), (0, 0), (1, -1).
    rows: list[Judged] = [
        ("p", "x", "a", "b", "1"),
        ("p", "y", "a", "b", "1"),
        ("p", "x", "a", "c", "2"),
        ("p", "y", "c", "a", "1"),  # the same, shown the other way round
        ("p", "x", "a", "d", "s"),
        ("p", "y", "d", "a", "s"),
        ("q", "x", "a", "b", "1"),
        ("q", "y", "a", "b", "2"),
    ]
    found = agreement(marks_of(rows))
    # Coincidences: 2 of 8 values differ; n(1) = 3, n(-1) = 3, n(0) = 2, so 42 of 56 ordered pairs differ by chance.
    assert found["alpha"]["nominal"] == pytest.approx(1 - (2 / 8) / (42 / 56))
    # Squared distances: 2 * 4 seen; by chance 2 * 3 * 3 * 4 between ends, 2 * (3 + 3) * 2 * 1 to the middle.
    assert found["alpha"]["interval"] == pytest.approx(1 - (8 / 8) / ((72 + 24) / 56))
    assert found["alpha"]["ordinal"] < 1
    assert found["pairs"]["units"] == found["pairs"]["compared"] == 4
    assert (found["pairs"]["agreeing"], found["pairs"]["share"], found["pairs"]["opposite"]) == (3, 0.75, 0.25)
    assert (found["pairs"]["low"], found["pairs"]["high"]) == (0, 1)  # one prompt agrees, one does not
    assert found["annotators"]["y"]["agreeing"] == share_of(3, 4)
    assert found["annotators"]["y"]["first_preferred"] == share_of(2, 3)
    assert "checks_right" not in found["annotators"]["y"]


def test_nothing_to_compare() -> None:
    nothing = {"units": 0, "compared": 0, "agreeing": 0, "share": None, "low": None, "high": None, "opposite": None}
    none = {"nominal": None, "ordinal": None, "interval": None}
    found = agreement(marks_of([]))
    assert found == {"pairs": nothing, "alpha": none, "annotators": {}}
    # The same person twice, and a second one on another prompt's pair of the same ids.
    found = agreement(marks_of([("p", "x", "a", "b", "1"), ("p", "x", "b", "a", "1"), ("q", "y", "a", "b", "1")]))
    assert (found["pairs"], found["alpha"]) == (nothing, none)
    assert found["annotators"]["x"]["agreeing"] == share_of(0, 0)
    # All say the same, so there is nothing that chance could have mixed up.
    found = agreement(marks_of([("p", "x", "a", "b", "1"), ("p", "y", "a", "b", "1")]))
    assert (found["pairs"]["share"], found["alpha"]) == (1.0, none)
    same = [(prompt, name, "a", "b", "1") for prompt in "pqr" for name in "xy"]
    assert (agreement(marks_of(same))["pairs"]["low"], agreement(marks_of(same))["pairs"]["high"]) == (1.0, 1.0)


def test_three_annotators_make_three_pairs_and_the_first_of_ones_own_marks_counts() -> None:
    rows: list[Judged] = [
        ("p", name, "a", "b", mark) for name, mark in (("x", "1"), ("y", "1"), ("z", "s"), ("x", "2"))
    ]
    found = agreement(marks_of(rows))
    assert (found["pairs"]["compared"], found["pairs"]["agreeing"], found["pairs"]["opposite"]) == (3, 1, 0)
    assert found["annotators"]["x"]["agreeing"] == share_of(1, 2)
    assert found["annotators"]["z"]["agreeing"] == share_of(0, 2)
    assert found["annotators"]["x"]["marks"] == 2


def test_checks_are_those_of_the_task_only() -> None:
    marks = marks_of([("p", "x", "a", "b", "1"), ("p", "y", "a", "b", "2"), ("p", "y", "a", "c", "2")])
    checks = pl.DataFrame([("p-t0", "a", "b", "1"), ("p-t2", "a", "c", "1")], schema=CHECKS, orient="row")
    people = agreement(marks, checks)["annotators"]
    assert people["x"]["checks_right"] == share_of(1, 1)
    assert people["y"]["checks_right"] == share_of(0, 1)


@pytest.mark.parametrize(("count", "of"), [(0, 5), (2, 6), (5, 5), (183, 200)])
def test_wilsons_interval(count: int, of: int) -> None:
    z, share = 1.959963984540054, count / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    found = share_of(count, of)
    assert found["share"] == share
    assert found["low"] == pytest.approx((middle - half) / (1 + z * z / of), abs=1e-12)
    assert found["high"] == pytest.approx((middle + half) / (1 + z * z / of), abs=1e-12)


pairs = st.sampled_from([("a", "b"), ("a", "c"), ("b", "c")])
judgements = st.lists(
    st.tuples(st.sampled_from("pq"), st.sampled_from("xyz"), pairs, st.sampled_from("12s")),
    min_size=2,
    max_size=20,
    unique_by=lambda row: row[:3],
)


@given(judgements, st.data())
@settings(max_examples=30)
def test_neither_rows_nor_places_change_agreement(
    drawn: list[tuple[str, str, tuple[str, str], str]], data: st.DataObject
) -> None:
    rows: list[Judged] = [(prompt, name, *pair, mark) for prompt, name, pair, mark in drawn]
    turned: list[Judged] = [
        (prompt, name, second, first, {"1": "2", "2": "1", "s": "s"}[mark]) if data.draw(st.booleans()) else row
        for row in data.draw(st.permutations(rows))
        for prompt, name, first, second, mark in [row]
    ]
    usual, other = agreement(marks_of(rows)), agreement(marks_of(turned))
    assert (usual["pairs"], usual["alpha"]) == (other["pairs"], other["alpha"])
    for name, figures in usual["annotators"].items():
        assert figures["agreeing"] == other["annotators"][name]["agreeing"]
