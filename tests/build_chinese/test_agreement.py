"""Agreement of annotators: known cases, the sample's unreliable annotator, and what no order may change."""

import json
from collections.abc import Sequence

import krippendorff
import polars as pl
import pytest
from build_chinese.annotation.annotations import MARKS, mark_agreement, read_annotations, read_checks
from build_chinese.annotation.tasks import read_tasks
from chinese_prompts import SAMPLE, sample_prompts
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.agreement import share_of

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
    return read_annotations([SAMPLE / "annotations.jsonl"], tasks).marks, read_checks(SAMPLE / "checks.jsonl", tasks)


def test_the_samples_unreliable_annotator_shows() -> None:
    found = mark_agreement(*sample())
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


def test_a_pair_shown_the_other_way_round_is_the_same_pair() -> None:
    rows: list[Judged] = [
        ("p", "x", "a", "b", "1"),
        ("p", "y", "b", "a", "2"),
        ("p", "x", "a", "c", "2"),
        ("p", "y", "a", "c", "1"),
        ("q", "x", "a", "d", "s"),
        ("q", "y", "d", "a", "s"),
        ("q", "y", "d", "a", "1"),  # of one's own marks the first counts
    ]
    found = mark_agreement(marks_of(rows))
    assert (found["pairs"]["compared"], found["pairs"]["agreeing"], found["pairs"]["opposite"]) == (3, 2, 1 / 3)
    assert found["annotators"]["y"] == {
        "tasks": 4,
        "marks": 4,
        "agreeing": share_of(2, 3),
        "first_preferred": share_of(2, 3),
    }
    assert found == mark_agreement(marks_of([*rows, ("p", "consensus", "a", "c", "1")]))
    assert mark_agreement(marks_of([]))["pairs"]["opposite"] is None


def test_checks_are_those_of_the_task_only() -> None:
    marks = marks_of([("p", "x", "a", "b", "1"), ("p", "y", "a", "b", "2"), ("p", "y", "a", "c", "2")])
    known = [("p", "p-t0", "consensus", "a", "b", "1"), ("p", "p-t2", "consensus", "a", "c", "1")]
    checks = pl.DataFrame(known, schema=MARKS, orient="row")
    people = mark_agreement(marks, checks)["annotators"]
    assert people["x"]["checks_right"] == share_of(1, 1)
    assert people["y"]["checks_right"] == share_of(0, 1)


pairs = st.sampled_from([("a", "b"), ("a", "c"), ("b", "c")])


judgements = st.lists(
    st.tuples(st.sampled_from("pq"), st.sampled_from("xyz"), pairs, st.sampled_from("12s")),
    min_size=2,
    max_size=20,
    unique_by=lambda row: row[:3],
)


def test_alpha_takes_each_pair_both_ways() -> None:
    # One row for each annotator: (better, better), (better, same), (worse, better), and the same seen from the other.
    rows = [("p", who, "a", other, mark) for other, two in zip("bcd", ("11", "1s", "21"), strict=True)
            for who, mark in zip("xy", two, strict=True)]  # fmt: skip
    ratings = [[1, 1, -1, -1, -1, 1], [1, 0, 1, -1, 0, -1]]
    found = mark_agreement(marks_of(rows))["alpha"]
    for level, alpha in found.items():
        library = krippendorff.alpha(reliability_data=ratings, value_domain=[-1, 0, 1], level_of_measurement=level)
        assert alpha == pytest.approx(library, abs=1e-12)
    # By hand: 8 of 12 marks differ from their other; n(1) = n(-1) = 5 and n(0) = 2, so 90 of 132 ordered pairs do.
    assert found["nominal"] == pytest.approx(1 - (8 / 12) / (90 / 132))


@given(judgements, st.data())
@settings(max_examples=20)
def test_neither_rows_nor_places_nor_names_change_agreement(
    drawn: list[tuple[str, str, tuple[str, str], str]], data: st.DataObject
) -> None:
    rows: list[Judged] = [(prompt, name, *pair, mark) for prompt, name, pair, mark in drawn]
    ids = dict(zip("abc", data.draw(st.permutations("abc")), strict=True))
    turned: list[Judged] = [
        (prompt, name, ids[second], ids[first], {"1": "2", "2": "1", "s": "s"}[mark])
        if data.draw(st.booleans())
        else (prompt, name, ids[first], ids[second], mark)
        for prompt, name, first, second, mark in data.draw(st.permutations(rows))
    ]
    usual, other = mark_agreement(marks_of(rows)), mark_agreement(marks_of(turned))
    assert (usual["pairs"], usual["alpha"]) == (other["pairs"], other["alpha"])
    for name, figures in usual["annotators"].items():
        assert figures["agreeing"] == other["annotators"][name]["agreeing"]
