"""Users are apart, whatever their number and the shares; and the source's own splits only where they are too."""

import polars as pl
import pytest
from build_personalized.training.recipe import SplitsTable
from build_personalized.training.splits import draw_splits, split_users
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError

SHARES = st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.25, 0.25), (0.98, 0.01, 0.01), (0.1, 0.45, 0.45), (0.9, 0, 0.1)])
NAMES = ("train", "validation", "test")


def pairs(*rows: tuple[str, str | None]) -> pl.DataFrame:
    """Pairs of these users, with their splits in the source."""
    return pl.DataFrame(
        [
            {"config": "c", "id": str(number), "user_id": user, "original_split": split}
            for number, (user, split) in enumerate(rows)
        ],
        schema=dict.fromkeys(("config", "id", "user_id", "original_split"), pl.String),
    )


@given(st.sets(st.text(min_size=1), min_size=3, max_size=40), SHARES, st.integers(0, 3))
def test_every_user_is_in_one_split_and_every_split_has_a_user(
    users: set[str], shares: tuple[float, float, float], seed: int
) -> None:
    wanted = dict(zip(NAMES, shares, strict=True))
    result = draw_splits(sorted(users), wanted, seed, "c")
    assert result.keys() == users
    sizes = {split: [*result.values()].count(split) for split in NAMES}
    for split, share in wanted.items():
        assert (sizes[split] > 0) == (share > 0)
        assert abs(sizes[split] - share * len(users)) <= 2
    assert result == draw_splits(sorted(users, reverse=True), wanted, seed, "c")


def test_all_pairs_of_a_user_go_along() -> None:
    split = split_users(pairs(*[(f"user {number % 5}", None) for number in range(40)]), SplitsTable(), 42)
    assert split.group_by("user_id").agg(pl.col("split").n_unique())["split"].to_list() == [1] * 5
    assert set(split["split"]) == {*NAMES}


@pytest.mark.parametrize(
    ("users", "message"), [(2, "c has 2 users for the splits"), (1, "c has 1 user for the splits")]
)
def test_too_few_users_are_refused(users: int, message: str) -> None:
    few = pairs(*[(f"user {number}", None) for number in range(users)])
    with pytest.raises(SourceError, match=message) as caught:
        split_users(few, SplitsTable(), 42)
    assert 'all into train: `splits.shares="1/0/0"`' in str(caught.value)
    assert set(split_users(few, SplitsTable(train=1, validation=0, test=0), 42)["split"]) == {"train"}


def test_own_splits_are_taken_by_any_usual_name() -> None:
    own = pairs(("a", "train"), ("a", "train"), ("b", "val"), ("c", "test"), ("d", "dev"))
    split = split_users(own, SplitsTable(own=True), 42)
    assert split["split"].to_list() == ["train", "train", "validation", "test", "validation"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("a", "train"), ("b", "train"), ("a", "test"), ("b", "val")],
            "c: the user 'a' is in the splits train and test of the source (2 users are in several); remove "
            "`splits.own=True` to split users by the seed.",
        ),
        ([("a", "held out")], "c: the row with id '0' has the split 'held out'; `splits.own=True` accepts"),
    ],
)
def test_own_splits_that_share_a_user_or_are_none_are_refused(rows: list[tuple[str, str | None]], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        split_users(pairs(*rows), SplitsTable(own=True), 42)
    assert message in str(caught.value)


def test_other_seeds_divide_otherwise() -> None:
    users = [f"user {number}" for number in range(30)]
    shares = SplitsTable().shares
    drawn = [draw_splits(users, shares, seed, "c") for seed in range(4)]
    assert len({tuple(result[user] for user in users) for result in drawn}) == 4
