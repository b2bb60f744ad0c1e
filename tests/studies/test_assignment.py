"""Who gets which item: fair shares, several annotators an item, hidden check items, and what cannot be given out."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_studies import ASSIGNED, StudyError, assign, draw

FIVE = [f"a{number}" for number in range(5)]


def items(*groups: int) -> pl.DataFrame:
    """Items g0-0, g0-1, ... in groups of these sizes."""
    rows = [(f"g{group}-{place}", f"g{group}") for group, size in enumerate(groups) for place in range(size)]
    return pl.DataFrame(rows, schema={"item": pl.String, "group": pl.String}, orient="row")


def loads(assigned: pl.DataFrame, annotators: Sequence[str]) -> list[int]:
    counts = Counter(assigned["annotator"])
    return [counts[name] for name in annotators]


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=10),
    st.integers(3, 9),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.integers(0, 5),
)
@settings(max_examples=80)
def test_shares_are_fair(groups: list[int], people: int, each: int, overlap: float, seed: int) -> None:
    annotators = [f"a{number}" for number in range(people)]
    frame = items(*groups)
    overlap = overlap if each < people else 0
    found = assign(frame, annotators, seed=seed, annotators_per_item=each, overlap=overlap)
    assert found.schema == ASSIGNED
    assert found["item"].unique(maintain_order=True).to_list() == frame["item"].to_list()
    assert not found.select("item", "annotator").is_duplicated().any()
    assert set(found.filter(kind="first").group_by("item").len()["len"]) == {each}
    assert found.filter(kind="overlap").height == round(overlap * frame.height)
    assert max(loads(found, annotators)) - min(loads(found, annotators)) <= 1
    # Of a group nobody gets two while somebody has none.
    for own in found.join(frame, on="item").partition_by("group"):
        assert max(loads(own, annotators)) - min(loads(own, annotators)) <= 1


@given(st.permutations(range(6)), st.permutations(FIVE), st.integers(0, 3))
@settings(max_examples=20)
def test_the_order_of_groups_and_annotators_changes_nothing(order: list[int], annotators: list[str], seed: int) -> None:
    frame = items(3, 1, 4, 2, 5, 3)
    mixed = pl.concat(frame.filter(group=f"g{number}") for number in order)
    named: dict[str, Any] = {"seed": seed, "overlap": 0.3, "checks": ["g0-0", "g4-2", "g5-1"], "check_share": 0.2}
    usual, other = assign(frame, FIVE, **named), assign(mixed, annotators, **named)
    assert other["item"].unique(maintain_order=True).to_list() == mixed["item"].to_list()
    assert other.sort("item", "annotator").equals(usual.sort("item", "annotator"))


def test_check_items_go_to_those_who_have_not_had_them() -> None:
    frame, checks = items(*[5] * 8), ["g1-0", "g3-4", "g7-2"]
    found = assign(frame, FIVE, seed=1, checks=checks, check_share=0.2)
    again = found.filter(kind="check")
    assert again.height == 8
    assert set(again["item"]) <= set(checks)
    assert not found.select("item", "annotator").is_duplicated().any()
    assert max(loads(found, FIVE)) - min(loads(found, FIVE)) <= 1
    # All there are: three for each, less the one annotator who has it anyway.
    assert assign(frame, FIVE, seed=1, checks=checks, check_share=12 / 40).filter(kind="check").height == 12
    assert assign(frame, FIVE, seed=1, checks=checks, check_share=0).filter(kind="check").is_empty()


@pytest.mark.parametrize(
    ("frame", "annotators", "more", "message"),
    [
        (items(), FIVE, {}, "There are no items to assign."),
        (items(1), ["ann", "Ann"], {}, "The annotator 'ann' is named 2 times; name each one once."),
        (items(1), [*FIVE, "../x"], {}, "The annotator '../x' cannot be a file name; use letters and digits, and "
         ". _ @ + - after the first."),
        (items(1), ["consensus"], {}, "No annotator can be named consensus: that name stands for the result of a "
         "discussion."),
        (items(1), ["a"], {"overlap": 0.1}, "An item needs 2 annotators, and there is 1; name more, or assign items to "
         "fewer."),
        (items(2), FIVE, {"checks": ["g0-0", "g9-1"]}, "The check item g9-1 is not one of the items; name items that "
         "are assigned."),
        (items(5, 5), FIVE, {"checks": ["g0-0"], "check_share": 0.5}, "5 check items are needed, and 1 known answers "
         "make 4 for these annotators; add known answers, or lower `check_share=...` to 0.400."),
    ],
)  # fmt: skip
def test_what_cannot_be_given_out(
    frame: pl.DataFrame, annotators: list[str], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(StudyError) as caught:
        assign(frame, annotators, seed=1, **more)
    assert (str(caught.value), caught.value.exit_status) == (message, 2)


def test_more_ids_change_no_other_draw() -> None:
    ids = [f"i{number}" for number in range(50)]
    small, large = draw(ids[:30], 10, 1, "review"), draw(ids, 50, 1, "review")
    assert [one for one in large if one in small] == small
    assert draw(ids, 5, 1, "review") == large[:5]
    assert draw(ids, 50, 1, "overlap") != large != draw(ids, 50, 2, "review")


def test_the_seed_draws_and_no_annotator_is_tied_to_another() -> None:
    frame = pl.DataFrame({"item": [f"i{number}" for number in range(60)]})  # without groups
    first, again, other = (assign(frame, FIVE, seed=seed, annotators_per_item=2) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    met = first.join(first, on="item").filter(pl.col("annotator") != pl.col("annotator_right"))
    assert met.select("annotator", "annotator_right").unique().height == 5 * 4
