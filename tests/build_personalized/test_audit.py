"""The audit's figures on pairs whose figures are known, and its limits."""

from typing import Any

import polars as pl
import pytest
from build_personalized.audit import audit, check
from build_personalized.sources import drops_frame
from pluralbench_release import AuditFailed, PairLimits


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
    ("two words", "and twos!"),  # 2 and 2, of as many characters; none and none
)


def figures(pairs: pl.DataFrame = PAIRS, questions: int = 5, word_limit: int = 4) -> dict[str, Any]:
    dropped = [("beer", "answers", "chosen: refused", "q9"), ("beer", "source", "deleted user", "q8")]
    return audit(pairs, drops_frame([*dropped, dropped[0]]), questions=questions, word_limit=word_limit)


def test_figures_of_known_pairs() -> None:
    result = figures()
    assert (result["questions"], result["pairs"]) == (5, 4)
    assert result["pairs_by_config"] == {"beer": 3, "coffee": 1}
    assert result["length"] == {"chosen_mean": 3.0, "rejected_mean": 2.0, "mean_gap": 1.0}
    assert (result["short"], result["over_limit"]) == (8, 1)
    assert result["overlap"] == {"chosen_mean": 0.375, "rejected_mean": 0.25, "mean_gap": 0.125}
    for name in ("longer", "more_overlap"):
        assert {key: result[name][key] for key in ("wins", "losses", "ties")} == {"wins": 2, "losses": 1, "ties": 1}
        assert result[name]["share_of_decided"] == pytest.approx(2 / 3, abs=1e-4)
        assert result[name]["interval"] == pytest.approx([0.2077, 0.9385], abs=1e-4)
    assert result["profile_posts"] == {"min": 1, "median": 2.5, "max": 4}
    assert result["aspects_per_question"] == 2.5
    assert result["drops"] == [
        {"config": "beer", "step": "answers", "reason": "chosen: refused", "count": 2},
        {"config": "beer", "step": "source", "reason": "deleted user", "count": 1},
    ]


@pytest.mark.parametrize(
    ("name", "kept", "broken", "message"),
    [
        ("max_chosen_longer", 0.67, 0.66, "0.667"),
        ("max_mean_length_gap", 1.0, 0.9, "1"),
        ("max_chosen_overlap", 0.67, 0.66, "0.667"),
        ("max_overlap_gap", 0.125, 0.12, "0.125"),
        ("max_drop_share", 0.2, 0.19, "0.2"),
        ("max_near_duplicates", 0, None, "0"),
    ],
)
def test_a_limit_is_kept_or_named(name: str, kept: float, broken: float | None, message: str) -> None:
    result = figures()
    check(result, PairLimits.model_validate({name: kept}))
    if broken is not None:
        with pytest.raises(AuditFailed, match=rf"{name} = {broken:g} \(found {message}\)") as caught:
            check(result, PairLimits.model_validate({name: broken}))
        assert caught.value.exit_status == 1
