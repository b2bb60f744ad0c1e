"""Agreement of people, and the one answer that several come to."""

import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.agreement import share_of
from pluralbench_studies import ANSWERS, agreement, consensus, consensus_counts

Row = tuple[str, str, str]
"""item, annotator, answer"""


def answers(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame([(item, name, "good", answer) for item, name, answer in rows], schema=ANSWERS, orient="row")


@pytest.mark.smoke
def test_agreement_by_hand() -> None:
    # Four items by two annotators: (3, 3), (1, 1), (2, 2), (3, 1).
    rows = [(f"i{place}", name, answer) for place, pair in enumerate(("33", "11", "22", "31"))
            for name, answer in zip("xy", pair, strict=True)]  # fmt: skip
    found = agreement(answers(*rows), "123")
    counts = {"units": 4, "compared": 4, "agreeing": 3, "share": 0.75}
    assert {name: found["pairs"][name] for name in counts} == counts
    assert 0 <= found["pairs"]["low"] < 0.75 < found["pairs"]["high"] <= 1
    # Coincidences: 2 of 8 answers differ; of 56 ordered pairs 42 differ by chance, with squared distances 96 in all.
    assert found["alpha"]["nominal"] == pytest.approx(1 - (2 / 8) / (42 / 56))
    assert found["alpha"]["interval"] == pytest.approx(1 - (8 / 8) / (96 / 56))
    assert found["annotators"] == {"x": share_of(3, 4), "y": share_of(3, 4)}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_nothing_to_compare() -> None:
    none = {"nominal": None, "ordinal": None, "interval": None}
    nothing = {"units": 0, "compared": 0, "agreeing": 0, "share": None, "low": None, "high": None}
    assert agreement(answers(), "12") == {"pairs": nothing, "alpha": none, "annotators": {}}
    # The same person twice, another item, and what a discussion came to.
    found = agreement(answers(("i", "x", "1"), ("i", "x", "2"), ("j", "y", "1"), ("i", "consensus", "1")), "12")
    assert (found["pairs"], found["alpha"]) == (nothing, none)
    assert found["annotators"] == {"x": share_of(0, 0), "y": share_of(0, 0)}


rows = st.lists(
    st.tuples(st.sampled_from("ijk"), st.sampled_from("xyz"), st.sampled_from("123")),
    min_size=1,
    max_size=9,
    unique_by=lambda row: row[:2],
)


@pytest.mark.heavy
@given(rows, st.data())
@settings(max_examples=40)
def test_the_order_of_rows_changes_nothing(drawn: list[Row], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(drawn))
    assert agreement(answers(*mixed), "123") == agreement(answers(*drawn), "123")
    usual, other = consensus(answers(*drawn)).sort("item"), consensus(answers(*mixed)).sort("item")
    assert usual.equals(other)
    # Everything is either one answer or open, and what annotators differ on is open or what most of them said.
    assert usual["answer"].is_null().to_list() == (usual["by"] == "open").to_list()
    assert usual["by"].is_in(["open", "majority"]).to_list() == (~usual["agreed"]).to_list()


def test_several_answers_become_one() -> None:
    given_ = answers(
        *(("alone", "x", "1"), ("same", "x", "2"), ("same", "y", "2"), ("open", "x", "1"), ("open", "y", "2")),
        *(("known", "x", "1"), ("known", "y", "2"), ("talked", "x", "1"), ("talked", "y", "2"), ("talked", "z", "2")),
        *(("third", "x", "1"), ("third", "y", "2"), ("third", "z", "2")),
        *(("talked", "consensus", "3"), ("revised", "x", "1"), ("revised", "y", "1"), ("revised", "consensus", "2")),
    )
    right = pl.DataFrame(
        {"item": ["known", "talked", "same"], "question": "good", "answer": ["2", "1", "1"]}, schema_overrides={}
    )
    found = consensus(given_, right)
    assert found.drop("question").rows() == [
        ("alone", 1, True, "one annotator", "1"),
        ("same", 2, True, "agreement", "2"),  # a known answer settles only what annotators differ on
        ("open", 2, False, "open", None),
        ("known", 2, False, "known answer", "2"),
        ("talked", 3, False, "discussion", "3"),
        ("third", 3, False, "majority", "2"),
        ("revised", 2, True, "discussion", "2"),
    ]
    assert consensus_counts(found) == {
        "double_marked": 6,
        "agreed": share_of(2, 6),
        "differed": 4,
        "discussion": 1,
        "known answer": 1,
        "majority": 1,
        "open": 1,
    }
    assert consensus(given_).filter(by="open")["item"].to_list() == ["open", "known"]


def test_three_annotators_make_three_pairs_and_the_first_of_ones_own_answers_counts() -> None:
    found = agreement(answers(("i", "x", "1"), ("i", "y", "1"), ("i", "z", "2"), ("i", "x", "2")), "12")
    assert (found["pairs"]["units"], found["pairs"]["compared"], found["pairs"]["agreeing"]) == (1, 3, 1)
    assert (found["pairs"]["low"], found["pairs"]["high"]) == (None, None)  # of one item
    assert found["annotators"]["x"] == share_of(1, 2)
