"""Third-person labels: the majority and its certainty, agreement by draws, and what is refused."""

import random
import statistics
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench.data.verdict_tables import check_verdicts, read_verdicts
from pluralbench.errors import DataError
from pluralbench.metrics.third_person import check_labels, compare_with_people, read_labels
from written_verdicts import LABELS, Rows, verdicts, written


def labels(rows: Rows) -> pl.DataFrame:
    same = {"row": 0, "annotator": "p1", "answer": "A", "certainty": 80}
    return check_labels(pl.DataFrame([same | row for row in rows], infer_schema_length=None, strict=False), "l.csv")


def annotated(answers: dict[int, str], certainty: int = 80) -> pl.DataFrame:
    """Labels of items by the letters of each one's annotators."""
    return labels(
        [
            {"row": row, "annotator": f"p{place}", "answer": answer, "certainty": certainty}
            for row, letters in answers.items()
            for place, answer in enumerate(letters)
        ]
    )


def compared(rows: Rows, people: pl.DataFrame, **options: Any) -> dict[str, Any]:
    (found,) = compare_with_people(check_verdicts(verdicts(rows)), people, **options)
    return found


def test_the_majority_is_a_judge_on_the_same_items(tmp_path: Path) -> None:
    found = compare_with_people(read_verdicts(written(tmp_path)), read_labels(written(tmp_path, LABELS, "labels.csv")))
    assert [(one["task"], one["judge"], one["persona_variables"]) for one in found] == [
        ("drinks", "ada-1", "all"),
        ("drinks", "ben-2", "all"),
        ("drinks", "ada-1", "none"),
    ]
    first = found[0]
    assert (first["items"], first["not_judged"], first["other_truth"], first["annotators"]) == (3, 1, 0, 3)
    assert first["no_majority"] == 1
    majority, single = first["majority"], first["single_labels"]
    # Item 0 with a mean of 85 and no certainty of the third; 1 with 75, of the two that agree; 3 of one; 2 is a draw.
    assert {cell["certainty"]: (cell["n"], cell["correct"]) for cell in majority["by_certainty"]} == {
        85.0: (1, 1),
        75.0: (1, 1),
        60.0: (1, 1),
    }
    assert (majority["n"], majority["correct"], majority["invalid"]) == (3, 3, 0)
    assert (majority["high"], majority["low"]) == ({"correct": 1, "total": 1}, {"correct": 2, "total": 2})
    assert (single["n"], single["correct"], single["invalid"], single["without_certainty"]) == (10, 7, 1, 1)
    assert (first["verdicts"]["n"], first["verdicts"]["correct"]) == (3, 3)
    assert first["agrees"] == {"items": 3, "of": 3}
    assert first["difference"] == 0.0


def test_items_go_together_by_id_or_by_row_alone() -> None:
    rows: Rows = [{"id": f"item-{number}", "answer": "AB"[number % 2]} for number in range(4)]
    by_id = check_labels(
        pl.DataFrame({"id": ["item-1", "item-2"], "annotator": "p", "answer": ["A", "A"], "certainty": [80, 90]})
    )
    found = compared(rows, by_id)
    assert (found["items"], found["verdicts"]["correct"], found["majority"]["correct"]) == (2, 1, 2)
    assert compared(rows, annotated({1: "A", 2: "A"}))["items"] == 2
    with pytest.raises(DataError, match="name items by `id`, but the verdicts have no `id`; give the labels `task`"):
        compare_with_people(check_verdicts(verdicts([{}])), by_id)
    two = check_verdicts(verdicts([{}, {"task": "letters"}]))
    with pytest.raises(DataError, match=r"have no `task`, but the verdicts are of several tasks \(drinks, letters"):
        compare_with_people(two, annotated({0: "A"}))


def test_items_with_another_truth_are_other_items() -> None:
    people = labels([{"row": 0, "truth": "A"}, {"row": 1, "truth": "B"}])
    found = compared([{}, {}], people)
    assert (found["items"], found["other_truth"], found["not_judged"]) == (1, 1, 0)


def test_a_tie_is_an_answer_of_people_where_it_is_one_of_judges() -> None:
    tie = compared([{"truth": "C"}, {}], annotated({0: "CC", 1: "CA"}))
    assert (tie["majority"]["correct"], tie["no_majority"], tie["single_labels"]["invalid"]) == (1, 1, 0)
    no_tie = compared([{}, {}], annotated({0: "CC", 1: "CA"}))
    assert (no_tie["majority"]["correct"], no_tie["no_majority"]) == (1, 1)


def test_two_annotators_who_disagree_are_no_wrong_answer() -> None:
    found = compared([{}, {}, {"answer": "B"}], annotated({0: "AA", 1: "AB", 2: "AB"}))
    assert (found["no_majority"], found["items"]) == (2, 1)
    assert (found["majority"]["accuracy"], found["verdicts"]["accuracy"], found["difference"]) == (1.0, 1.0, 0.0)
    assert (found["single_labels"]["n"], found["single_labels"]["correct"]) == (6, 4)


def test_where_no_item_has_a_majority_there_is_nothing_to_compare() -> None:
    found = compared([{}, {}], annotated({0: "AB", 1: "BA"}))
    assert (found["no_majority"], found["items"], found["agrees"]) == (2, 0, {"items": 0, "of": 0})
    assert found["majority"] is found["verdicts"] is found["difference"] is None
    assert found["single_labels"]["correct"] == 2


def test_agreement_is_of_draws_without_replacement() -> None:
    rows: Rows = [{} for _ in range(40)]
    alike = compared(rows, annotated(dict.fromkeys(range(40), "AAA")))["agreement"]
    sure = {"mean": 1.0, "sd": 0.0, "size": 30}
    assert alike == {"between_annotators": sure, "with_truth": sure}
    # Of three labels two are drawn, so that one pair in three agrees; of 30 items of 40, without replacement.
    mixed = compared(rows, annotated(dict.fromkeys(range(40), "AAB")))["agreement"]
    assert mixed["between_annotators"]["mean"] == pytest.approx(1 / 3)
    assert mixed["between_annotators"]["sd"] == pytest.approx((1 / 3 * 2 / 3 / 30) ** 0.5)
    assert mixed["with_truth"]["mean"] == pytest.approx(2 / 3)
    few = compared(rows, annotated({row: "AB" if row else "AA" for row in range(5)}))["agreement"]
    assert few["between_annotators"] == {"mean": pytest.approx(0.2), "sd": pytest.approx(0.0), "size": 5}, "all five"
    assert compared(rows, annotated({0: "A", 1: "B"}))["agreement"]["between_annotators"] is None
    nobody = compared(rows, annotated({0: "xx", 1: "xx"}))["agreement"]
    assert nobody["between_annotators"]["mean"] == 0.0, "no answers are no agreement"


def test_agreement_is_the_mean_and_spread_of_simulated_draws() -> None:
    """Items of 2 to 4 annotators, drawn again and again as the paper does."""
    draw = random.Random(1)
    items = {row: "".join(draw.choices("ABx", (5, 3, 1), k=draw.randint(2, 4))) for row in range(50)}
    found = compared([{} for _ in range(50)], annotated(items))["agreement"]["between_annotators"]
    shares = []
    for _ in range(4000):
        pairs = [draw.sample(items[row], 2) for row in draw.sample(sorted(items), 30)]
        shares.append(statistics.fmean(one == other != "x" for one, other in pairs))
    assert found["mean"] == pytest.approx(statistics.fmean(shares), abs=0.006)
    assert found["sd"] == pytest.approx(statistics.stdev(shares), abs=0.004)


def test_draws_have_the_spread_of_the_papers_labels() -> None:
    """536 of 899 labels right, as in its Table 7: mean .597 and sd .087, which the text calls agreement of two."""
    letters = ["A"] * 536 + ["B"] * 363
    items = {row: "".join(letters[row::300]) for row in range(300)}
    with_truth = compared([{} for _ in range(300)], annotated(items))["agreement"]["with_truth"]
    assert with_truth["mean"] == pytest.approx(0.597, abs=0.006)
    assert with_truth["sd"] == pytest.approx(0.087, abs=0.005)


@pytest.mark.heavy
@given(st.dictionaries(st.integers(0, 9), st.text("ABx", min_size=1, max_size=4), min_size=1, max_size=4), st.randoms())
@settings(max_examples=15)
def test_the_order_of_the_labels_does_not_matter(items: dict[int, str], draw: Any) -> None:
    people = annotated(items)
    places = list(range(people.height))
    draw.shuffle(places)
    rows: Rows = [{} for _ in range(10)]
    found = compared(rows, people)
    raw = people.drop("unusable")[places]
    assert compared(rows, check_labels(raw)) == found
    for row, letters in items.items():
        votes = sorted(((letters.count(letter), letter) for letter in "AB"), reverse=True)
        clear = votes[0][0] > votes[1][0]
        one = compared(rows, annotated({row: letters}))
        assert (one["items"], one["no_majority"]) == (int(clear), int(not clear))
        if clear:
            assert (one["majority"]["correct"], one["majority"]["invalid"]) == (int(votes[0][1] == "A"), 0)


def test_what_is_no_table_of_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_labels(written(tmp_path, LABELS.replace("annotator", "worker"), "l.csv"))
    assert str(error.value).endswith(
        "l.csv has no column `annotator`; it has task, row, worker, answer, certainty; required: row, annotator, "
        "answer, certainty."
    )
    with pytest.raises(DataError, match=r"^l.csv: row 3 of the table is the second label of p1 for the item 4; keep "):
        labels([{"row": 4}, {"row": 4, "annotator": "p2"}, {"row": 4, "answer": "B"}])
    with pytest.raises(DataError, match=r"^l.csv: row 2 of the table has no `annotator`; add one"):
        labels([{"annotator": "p1"}, {"annotator": " "}])
    with pytest.raises(DataError, match=r"^No labeled item has a verdict; items are matched by row"):
        compared([{}], annotated({7: "A"}))
