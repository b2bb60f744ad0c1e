"""The audit's figures on pairs whose figures are known, and its limits."""

from math import sqrt
from typing import Any

import polars as pl
import pytest
from build_personalized.audit import audit, check
from build_personalized.card import figures_tables
from build_personalized.errors import AuditFailed
from build_personalized.sources import drops_frame
from pluralbench_audit import PairLimits


def frame(*answers: tuple[str, str], title: str = "Low price") -> pl.DataFrame:
    """Pairs of (chosen, rejected) with one aspect each; the n-th has n posts and a question of its own."""
    rows = [
        {
            "config": "beer" if number < 4 else "coffee",
            "question": f"{number} " * 5,
            "narrative": "one two",
            "rubric_aspects": [{"aspect": title, "evidence": "", "reason": ""}] * number,
            "profile": [{"id": "p", "category": "c", "text": "t"}] * number,
            "chosen": chosen,
            "rejected": rejected,
        }
        for number, (chosen, rejected) in enumerate(answers, start=1)
    ]
    return pl.DataFrame(rows)


PAIRS = frame(
    ("a low PRICE, it is", "buy one"),  # 5 and 2 words; both words of the title and none
    ("beans", "price them low"),  # 1 and 3; none and both
    ("low rice is good", "nice"),  # 4 and 1; one and none
    ("two words", "and two"),  # 2 and 2; none and none
)


def wilson(wins: int, decided: int) -> list[float]:
    z, share = 1.959964, wins / decided
    middle = (share + z * z / (2 * decided)) / (1 + z * z / decided)
    half = z / (1 + z * z / decided) * sqrt(share * (1 - share) / decided + z * z / (4 * decided**2))
    return [middle - half, middle + half]


def figures(pairs: pl.DataFrame = PAIRS, questions: int = 5, word_limit: int = 4) -> dict[str, Any]:
    dropped = [("beer", "answers", "chosen: refused", "q9"), ("beer", "source", "deleted user", "q8")]
    return audit(pairs, drops_frame([*dropped, dropped[0]]), questions=questions, word_limit=word_limit)


def test_figures_of_known_pairs() -> None:
    found = figures()
    assert (found["questions"], found["pairs"]) == (5, 4)
    assert found["pairs_by_config"] == {"beer": 3, "coffee": 1}
    assert found["length"] == {"chosen_mean": 3.0, "rejected_mean": 2.0, "mean_gap": 1.0}
    assert (found["short"], found["over_limit"]) == (8, 1)
    assert found["overlap"] == {"chosen_mean": 0.375, "rejected_mean": 0.25, "mean_gap": 0.125}
    for name in ("longer", "more_overlap"):
        assert {key: found[name][key] for key in ("wins", "losses", "ties")} == {"wins": 2, "losses": 1, "ties": 1}
        assert found[name]["share_of_decided"] == pytest.approx(2 / 3, abs=1e-4)
        assert found[name]["interval"] == pytest.approx(wilson(2, 3), abs=1e-4)
    assert found["profile_posts"] == {"min": 1, "median": 2.5, "max": 4}
    assert found["aspects_per_question"] == 2.5
    assert found["drops"] == [
        {"config": "beer", "step": "answers", "reason": "chosen: refused", "count": 2},
        {"config": "beer", "step": "source", "reason": "deleted user", "count": 1},
    ]


def test_ties_alone_decide_nothing() -> None:
    found = figures(frame(("one two", "three four"), ("five", "six")))
    for name in ("longer", "more_overlap"):
        assert found[name] == {"wins": 0, "losses": 0, "ties": 2, "share_of_decided": None, "interval": [0.0, 1.0]}
    assert "undecided, 2 tied" in figures_tables(found)["Audit"]["value"].to_list()


def test_titles_of_stop_words_overlap_with_nothing() -> None:
    found = figures(frame(("to be or not", "that is it"), title="To be, or not to be"))
    assert found["overlap"] == {"chosen_mean": 0.0, "rejected_mean": 0.0, "mean_gap": 0.0}


LONG = "many words that stand in this order and no other so that three of them in a row are a mark of this text alone"


def test_near_duplicates_of_questions_answers_and_sides_are_counted_apart() -> None:
    pairs = frame((LONG, LONG + " indeed"), (LONG, "no"), ("a b", "b a"))
    assert figures(pairs)["near_duplicates"] == {"questions": 0, "chosen": 1, "sides": 2}
    same = pairs.with_columns(question=pl.lit("Which one of them is it?"))
    assert figures(same)["near_duplicates"]["questions"] == 3


@pytest.mark.parametrize(
    ("name", "kept", "broken", "said"),
    [
        ("max_chosen_longer", 0.67, 0.66, "0.667"),
        ("max_mean_length_gap", 1.0, 0.9, "1"),
        ("max_chosen_overlap", 0.67, 0.66, "0.667"),
        ("max_overlap_gap", 0.125, 0.12, "0.125"),
        ("max_drop_share", 0.2, 0.19, "0.2"),
        ("max_near_duplicates", 0, None, "0"),
    ],
)
def test_a_limit_is_kept_or_named(name: str, kept: float, broken: float | None, said: str) -> None:
    found = figures()
    check(found, PairLimits.model_validate({name: kept}))
    if broken is not None:
        with pytest.raises(AuditFailed, match=rf"{name} = {broken:g} \(found {said}\)") as caught:
            check(found, PairLimits.model_validate({name: broken}))
        assert caught.value.exit_status == 1


def test_every_broken_limit_is_named_in_both_directions() -> None:
    shorter = frame(("a", "a low price"), ("a", "b low price"), (LONG, LONG), (LONG, LONG))
    limits = PairLimits(
        max_chosen_longer=0.9,
        max_mean_length_gap=0.1,
        max_chosen_overlap=0.9,
        max_overlap_gap=0.1,
        max_drop_share=0.1,
        max_near_duplicates=0,
    )
    with pytest.raises(AuditFailed) as caught:
        check(figures(shorter), limits)
    for name in PairLimits.model_fields:
        assert f"{name} = " in str(caught.value)
    check(figures(shorter), PairLimits())


@pytest.mark.parametrize(("pairs", "questions", "share"), [(19, 20, 0.05), (7, 10, 0.3)])
def test_a_share_at_its_limit_is_kept(pairs: int, questions: int, share: float) -> None:
    check(figures() | {"pairs": pairs, "questions": questions}, PairLimits(max_drop_share=share))
