"""Pairs of a better and a worse translation: which two of each source, and which sources are drawn."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.rated import RATED, SCALES, RatedTranslations, read
from build_multilingual.recipe import RatedTable, Scale
from build_multilingual.translation_pairs import CANDIDATES, LEVELS, PAIRS, TEMPLATES, candidates, draw
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release import Source
from pluralbench_release.errors import SourceError

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "multilingual"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real rated translations are not at {SHARED}")

LIKERT = SCALES["score"]
SWAPPED = Scale(better="higher", easy=0.5, hard=0.25)
LETTERS = "甲乙丙丁戊己庚"

Scores = Mapping[str, Sequence[float]]  # of the translations of each source, by its text

likert = st.integers(4, 24).map(lambda quarters: quarters / 4)
scores_of_sources = st.dictionaries(
    st.text("甲乙丙丁戊 {}🔑", min_size=1, max_size=8), st.lists(likert, min_size=1, max_size=7), min_size=1, max_size=8
)


def frame(scores: Scores, direction: str = "zh-en", sign: int = 1) -> pl.DataFrame:
    """Translation n of a source is `SOURCE n`, of the system `sn`."""
    rows = [
        (direction, source, f"s{number}", f"{source} {number}", score, sign * score)
        for source, theirs in scores.items()
        for number, score in enumerate(theirs)
    ]
    return pl.DataFrame(rows, schema=RATED, orient="row")


def rated(
    scores: Scores, scale: Scale = LIKERT, *, score: str = "score", location: str = "rated.jsonl", **more: Any
) -> RatedTranslations:
    rows = frame(scores, **more)
    source = Source(name="Rated", location=location, digest="", rows=rows.height, license="unknown", attribution="")
    return RatedTranslations(rows, scale, score, source, {})


def drawn(*tables: RatedTranslations, per_level: int = 100, seed: int = 42) -> pl.DataFrame:
    return draw(tables, per_level=per_level, seed=seed)


def scores_of(pairs: pl.DataFrame) -> list[tuple[float, float]]:
    return pairs.select("chosen_score", "rejected_score").rows()


def pair_of(scores: Sequence[float], level: str, scale: Scale = LIKERT) -> tuple[float, float] | None:
    """The scores of the pair that one source with these scores gives."""
    return next(iter(scores_of(candidates(frame({"甲": scores}), scale, level))), None)


@given(scores_of_sources, st.sampled_from([LIKERT, SWAPPED]))
def test_easy_is_the_best_against_the_worst(scores: Scores, scale: Scale) -> None:
    pairs = candidates(frame(scores), scale, "easy")
    assert pairs.schema == CANDIDATES
    result = {row["source"]: row for row in pairs.iter_rows(named=True)}
    assert result.keys() == {source for source, theirs in scores.items() if max(theirs) - min(theirs) >= scale.easy}
    for source, row in result.items():
        assert (row["chosen_score"], row["rejected_score"]) == (max(scores[source]), min(scores[source]))


@given(scores_of_sources, st.sampled_from([LIKERT, SWAPPED]))
def test_hard_is_the_closest_allowed_pair_of_the_middle(scores: Scores, scale: Scale) -> None:
    result = {row["source"]: row for row in candidates(frame(scores), scale, "hard").iter_rows(named=True)}
    for source, theirs in scores.items():
        middle = sorted(theirs)[1:-1]
        allowed = [b - a for a, b in combinations(middle, 2) if b - a >= scale.hard]
        if len(theirs) == 2:
            assert (source in result) == (scale.hard <= max(theirs) - min(theirs) < scale.easy)
        elif not allowed:
            assert source not in result
        else:
            row = result[source]
            assert row["chosen_score"] - row["rejected_score"] == min(allowed)
            assert {row["chosen_score"], row["rejected_score"]} <= set(middle)


def test_the_swapped_least_differences() -> None:
    # The paper's: 0.25 for easy and 0.50 for hard, by which a close pair of the middle is passed over.
    middle = [6.0, 4.5, 4.25, 3.5, 1.0]
    assert pair_of(middle, "hard") == (4.25, 3.5)
    assert pair_of(middle, "hard", SWAPPED) == (4.5, 4.25)
    close = [4.75, 4.5, 4.5, 4.5, 4.25]
    assert pair_of(close, "hard") is None
    assert pair_of(close, "hard", SWAPPED) is None
    assert pair_of([4.5, 4.5, 4.5, 4.5, 4.25], "easy") == (4.5, 4.25)
    assert pair_of([4.5, 4.5, 4.5, 4.5, 4.25], "easy", SWAPPED) is None


def test_of_equally_close_pairs_the_better_is_hard() -> None:
    assert pair_of([6.0, 5.0, 4.0, 3.0, 1.0], "hard") == (5.0, 4.0)


def test_two_translations_are_hard_when_they_are_close_and_easy_when_not() -> None:
    hter = Scale(better="higher", easy=0.4, hard=0.15)
    for difference, easy, hard in [(0.1, False, False), (0.15, False, True), (0.39, False, True), (0.4, True, False)]:
        pairs = [pair_of([1.0, 1.0 + difference], level, hter) for level in LEVELS]
        assert [pair is not None for pair in pairs] == [easy, hard]
    assert pair_of([1.0, 2.0, 3.0], "hard") is None  # the middle of three is one
    assert pair_of([1.0], "easy") is None


def test_a_difference_is_what_it_is_in_decimals() -> None:
    assert 2.3 - 1.3 < 1
    assert pair_of([9.0, 2.3, 1.3, 0.0], "hard", Scale(better="higher", easy=5, hard=1)) == (2.3, 1.3)


@given(st.permutations([4.0, 4.0, 4.0, 2.0, 2.0]), st.randoms())
def test_ties_do_not_depend_on_the_order_of_rows(scores: list[float], random: Any) -> None:
    rows = frame({"甲": scores})
    order = list(range(rows.height))
    random.shuffle(order)
    for level in LEVELS:
        assert candidates(rows[order], LIKERT, level).equals(candidates(rows, LIKERT, level))


def many(count: int, start: int = 0) -> dict[str, list[float]]:
    """Sources that all have a pair of each level."""
    return {f"{LETTERS[n % 7]}{n}": [6.0, 5.0 - n % 3 / 4, 3.0, 2.0, 1.5] for n in range(start, start + count)}


def test_the_row_of_a_drawn_pair() -> None:
    tables = [rated(many(3)), rated({"A {brace}": [5.0, 1.0, 3.0, 4.0]}, direction="en-de")]
    result = drawn(*tables, per_level=1)
    assert result.schema == PAIRS
    assert result.select("id", "subset").rows() == [
        (0, "translation-en-de-easy"),
        (1, "translation-en-de-hard"),
        (2, "translation-zh-en-easy"),
        (3, "translation-zh-en-hard"),
    ]
    easy = result.row(0, named=True)
    prompt = TEMPLATES[easy["template"]]
    assert easy == {
        "id": 0,
        "prompt": prompt.format(source_language="English", target_language="German", source="A {brace}"),
        "chosen": "A {brace} 0",
        "rejected": "A {brace} 1",
        "source": "A {brace}",
        "subset": "translation-en-de-easy",
        "template": easy["template"],
        "chosen_system": "s0",
        "rejected_system": "s1",
        "chosen_score": 5.0,
        "rejected_score": 1.0,
    }
    assert result.row(1, named=True)["chosen"] == "A {brace} 3"


def test_a_draw_is_without_replacement_and_the_same_each_time() -> None:
    table = rated(many(60))
    result = drawn(table, per_level=40)
    assert result["id"].to_list() == list(range(80))
    assert not result.select("source", "subset").is_duplicated().any()
    assert result.equals(drawn(table, per_level=40))
    shuffled = RatedTranslations(
        table.frame.sample(fraction=1, shuffle=True, seed=1), table.scale, "score", table.source, {}
    )
    assert result.equals(drawn(shuffled, per_level=40))
    other = drawn(table, per_level=40, seed=43)
    assert set(result["source"]) != set(other["source"])
    assert result["template"].to_list() != other["template"].to_list()
    easy, hard = result.partition_by("subset", maintain_order=True)
    assert set(easy["source"]) != set(hard["source"])  # each level has a draw of its own
    elsewhere = drawn(rated(many(60), direction="en-zh"), per_level=40)  # and each direction
    assert set(easy["source"]) != set(elsewhere["source"].head(40))


@given(st.integers(1, 10), st.integers(0, 2**32), st.sets(st.integers(0, 300), min_size=1, max_size=5))
def test_adding_a_source_changes_no_other_draw(per_level: int, seed: int, new: set[int]) -> None:
    before = many(20, start=400)
    added = {source: scores for number in new for source, scores in many(1, start=number).items()}
    old, now = (
        drawn(rated(scores), per_level=per_level, seed=seed).drop("id") for scores in (before, {**added, **before})
    )
    for level in LEVELS:
        rows = {row["source"]: row for row in old.filter(pl.col("subset").str.ends_with(level)).to_dicts()}
        kept = now.filter(pl.col("subset").str.ends_with(level), ~pl.col("source").is_in(list(added))).to_dicts()
        assert all(rows[row["source"]] == row for row in kept)  # nobody came in but the new ones
        assert len(kept) >= per_level - len(new)
        assert [row["source"] for row in kept] == [
            source for source in rows if source in {row["source"] for row in kept}
        ]


def test_a_source_of_two_tables_has_the_translations_of_both() -> None:
    # `甲 0` is in both, with the mean of 6.0 and 5.0, which leaves `甲 2` the best.
    tables = [rated({"甲": [6.0, 1.0]}), rated({"甲": [5.0, 1.5, 5.75, 3.0, 4.0]})]
    result = drawn(*tables, per_level=1)
    assert scores_of(result) == [(5.75, 1.25), (4.0, 3.0)]


def test_tables_of_one_direction_have_one_score_and_scale() -> None:
    first, other = (rated(many(3), location=name) for name in ("a.jsonl", "b.jsonl"))
    by_another = rated(many(3), SCALES["da_mean"], score="da_mean", location="b.jsonl")
    with pytest.raises(SourceError) as caught:
        drawn(first, by_another, per_level=1)
    assert str(caught.value) == (
        "zh-en is rated in a.jsonl and in b.jsonl, by `score` and by `da_mean`; remove one table, or set the "
        "same `score`."
    )
    with pytest.raises(SourceError) as caught:
        drawn(first, rated(many(3), SWAPPED, location="b.jsonl"), per_level=1)
    assert str(caught.value) == (
        "zh-en is rated in a.jsonl and in b.jsonl, with different scales; set the same `scale`."
    )
    assert drawn(first, other, rated(many(3), SWAPPED, direction="en-zh"), per_level=1).height == 4


def test_too_few_pairs_are_counted() -> None:
    scores = many(3) | {"乙": [3.0, 3.0, 3.0, 3.0, 3.0], "丙": [6.0, 3.0, 3.0, 3.0, 1.0]}
    with pytest.raises(SourceError) as caught:
        drawn(rated(scores))
    assert str(caught.value) == (
        "zh-en easy: only 4 of 100 pairs are available (5 sources; least difference: 0.25); lower "
        "`translation.per_level=...`, or `easy` in `scale=...`."
    )
    with pytest.raises(SourceError) as caught:
        drawn(rated(scores), per_level=4)
    assert str(caught.value) == (
        "zh-en hard: only 3 of 4 pairs are available (5 sources; least difference: 0.5); lower "
        "`translation.per_level=...`, or `hard` in `scale=...`."
    )
    with pytest.raises(SourceError) as caught:
        drawn(rated({"甲": [0.0, -0.5]}, SCALES["hter"], sign=-1), per_level=1)
    assert str(caught.value) == (
        "zh-en hard: only 0 of 1 pairs are available (1 sources; least difference: 0.15, and less than 0.4); lower "
        "`translation.per_level=...`, or `hard` in `scale=...`."
    )


# How many sources have a pair, for which the least differences of each scale were chosen.
REAL = {
    "wmt21_ted_mqm_en-de_5way": (159, 149),
    "wmt21_ted_mqm_zh-en_5way": (229, 188),
    "mlqe_pe_en-de_dev": (156, 315),
    "mlqe_pe_en-zh_dev": (324, 189),
}


@needs_shared
@pytest.mark.parametrize(("name", "counts"), REAL.items())
def test_real_ratings_give_a_hundred_pairs_a_level(name: str, counts: tuple[int, int]) -> None:
    table = read(RatedTable(location=str(SHARED / f"{name}.jsonl")))
    assert tuple(candidates(table.frame, table.scale, level).height for level in LEVELS) == counts
    result = drawn(table)
    assert result.group_by("subset", maintain_order=True).len()["len"].to_list() == [100, 100]
    assert (result["chosen_score"] < result["rejected_score"]).all()  # penalties, both
    assert (result["chosen"] != result["rejected"]).all()
    assert result.select(pl.all_horizontal(pl.col("chosen", "rejected", "source").str.len_chars() > 0).all()).item()
    gaps = [(rejected - chosen) for chosen, rejected in scores_of(result)]
    assert min(gaps[:100]) >= table.scale.easy
    assert min(gaps[100:]) >= table.scale.hard - 1e-9


@given(st.lists(likert, min_size=4, max_size=7))
def test_hard_has_neither_the_best_nor_the_worst_translation(scores: list[float]) -> None:
    hard = candidates(frame({"甲": scores}), SWAPPED, "hard").to_dicts()
    either = Scale(better="higher", easy=1e-6, hard=1e-6)  # so that easy has a pair wherever two differ
    easy = candidates(frame({"甲": scores}), either, "easy").to_dicts()
    for row in hard:
        assert not {row["chosen"], row["rejected"]} & {easy[0]["chosen"], easy[0]["rejected"]}
