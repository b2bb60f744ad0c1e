"""Agreement of annotators: known cases, the sample's unreliable annotator, and what no order may change."""

import json
from collections.abc import Sequence

import polars as pl
from build_chinese.annotation.annotations import MARKS, mark_agreement, read_annotations, read_checks
from build_chinese.annotation.tasks import read_tasks
from chinese_prompts import SAMPLE, sample_prompts
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
