"""Figures of pairs whose figures are known, and the limits that a recipe may set to them."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_release import AuditFailed, PairLimits
from pluralbench_release.audit import check_audits, check_limits, limit_values, pair_figures, wins, wins_text
from pluralbench_runs import RecipeError

CHOSEN = ["a low PRICE, it is", "beans", "low rice is good", "two words"]
REJECTED = ["buy one", "price them low", "nice", "and twos!"]
SAID = ["Low price"] * 4


def wilson(won: int, decided: int) -> list[float]:
    z, share = 1.959964, won / decided
    middle = (share + z * z / (2 * decided)) / (1 + z * z / decided)
    half = z / (1 + z * z / decided) * sqrt(share * (1 - share) / decided + z * z / (4 * decided**2))
    return [middle - half, middle + half]


@pytest.mark.smoke
def test_figures_of_known_pairs() -> None:
    found = pair_figures(CHOSEN, REJECTED, SAID)
    assert found["pairs"] == 4
    assert found["length"] == {"chosen_mean": 3.0, "rejected_mean": 2.0, "mean_gap": 1.0}
    assert found["overlap"] == {"chosen_mean": 0.375, "rejected_mean": 0.25, "mean_gap": 0.125}
    for name in ("longer", "more_overlap"):
        assert {key: found[name][key] for key in ("wins", "losses", "ties")} == {"wins": 2, "losses": 1, "ties": 1}
        assert found[name]["share_of_decided"] == 0.6667
        assert found[name]["interval"] == pytest.approx(wilson(2, 3), abs=1e-4)
    assert found["near_duplicates"] == {"chosen": 0, "sides": 0}


def test_the_longer_text_has_more_characters_whatever_its_words() -> None:
    found = pair_figures(["I do as I am"], ["Unquestionably!"])
    assert (found["longer"]["losses"], found["length"]["mean_gap"]) == (1, 4.0)


def test_length_may_be_in_characters_and_nothing_need_be_said() -> None:
    found = pair_figures(["我喜欢喝茶"], ["一 二 三"], length=len)
    assert (found["longer"]["ties"], found["length"]["mean_gap"]) == (1, 0.0)
    assert not {"overlap", "more_overlap"} & found.keys()


def test_near_duplicates_of_sides_and_of_other_owners() -> None:
    found = pair_figures(["a b c d", "A B  C D", "x"], ["d c b a", "no", "y"], owners=["an", "an", "bo"])
    assert found["near_duplicates"] == {"chosen": 0, "sides": 1}
    assert pair_figures(["a b", "A  B"], ["x", "y"], owners=["an", "bo"])["near_duplicates"]["chosen"] == 1


def test_wins_in_words() -> None:
    assert wins_text(wins([1] * 186 + [0] * 62 + [1], [0] * 186 + [1] * 63)) == (
        "186 of 248 (75%, 95 % interval 69% to 80%), 1 tied"
    )
    assert wins_text(wins([1], [1])) == "undecided, 1 tied"
    assert wins([1], [1])["share_of_decided"] is None


def test_every_broken_limit_is_named_whatever_its_direction() -> None:
    limits = PairLimits(
        max_chosen_longer=0.6,
        max_mean_length_gap=0.5,
        max_chosen_overlap=0.6,
        max_overlap_gap=0.1,
        max_drop_share=0.5,
        max_near_duplicates=0,
    )
    for sides in ((CHOSEN, REJECTED), (REJECTED, CHOSEN)):
        found = limit_values(pair_figures(*sides, SAID)) | {"max_drop_share": 0.75, "max_near_duplicates": 1}
        with pytest.raises(AuditFailed) as caught:
            check_limits(found, limits, "The audit of tea")
        assert str(caught.value) == (
            "The audit of tea fails: max_chosen_longer = 0.6 (found 0.667), max_mean_length_gap = 0.5 (found 1), "
            "max_chosen_overlap = 0.6 (found 0.667), max_overlap_gap = 0.1 (found 0.125), "
            "max_drop_share = 0.5 (found 0.75), max_near_duplicates = 0 (found 1); fix the recipe or its [audit] "
            "limits and rerun it; recorded calls are kept."
        )
        assert caught.value.exit_status == 1
        check_limits(found, PairLimits())


def test_the_first_set_of_pairs_that_breaks_a_limit_is_named() -> None:
    even, longer = pair_figures(["a"], ["b"]), pair_figures(["a b"], ["a"])
    limits = PairLimits(max_chosen_longer=0.6, max_drop_share=0.5)
    check_audits({"tea": even}, limits, max_drop_share=0.5)
    with pytest.raises(AuditFailed, match=r"The audit of beer fails: max_chosen_longer = 0.6 \(found 1\);"):
        check_audits({"tea": even, "beer": longer}, limits, max_drop_share=0.5)
    with pytest.raises(AuditFailed, match=r"The audit of tea fails: max_drop_share = 0.5 \(found 0.7\);"):
        check_audits({"tea": even, "beer": longer}, limits, max_drop_share=0.7)


def test_a_limit_of_what_there_is_no_figure_of_is_refused() -> None:
    with pytest.raises(RecipeError, match="The audit has no figure for the limit `max_drop_share`; remove it from"):
        check_limits(limit_values(pair_figures(["a"], ["b"])), PairLimits(max_drop_share=0))


@settings(max_examples=25)
@given(won=st.integers(0, 30), lost=st.integers(0, 30), ties=st.integers(0, 3))
def test_intervals_are_wilsons(won: int, lost: int, ties: int) -> None:
    found = wins([2] * won + [1] * (lost + ties), [1] * won + [2] * lost + [1] * ties)
    assert (found["wins"], found["losses"], found["ties"]) == (won, lost, ties)
    assert found["interval"] == pytest.approx(wilson(won, won + lost) if won + lost else [0.0, 1.0], abs=1e-4)


@given(st.integers(1, 40), st.integers(0, 40))
def test_a_share_at_its_limit_is_kept(won: int, lost: int) -> None:
    share = max(won, lost) / (won + lost)
    found = limit_values(pair_figures(["a b"] * won + ["a"] * lost, ["a"] * won + ["a b"] * lost))
    check_limits(found, PairLimits(max_chosen_longer=share))
