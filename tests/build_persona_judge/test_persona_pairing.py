"""Pairs and items: exact numbers, ties, draws that no order of rows changes, and never a person against themselves."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from build_persona_judge.pairing import (
    Essay,
    Pair,
    Post,
    Response,
    Wave,
    make_items,
    pair_by_answer,
    pair_by_author,
    pair_by_score,
    pair_by_similarity,
    sample_pairs,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError
from pluralbench_schemas import PERSONA_ITEMS, validate

SCORES = st.integers(1, 100)
SEEDS = st.integers(0, 50)
PERSONA = [{"variable": "age", "value": "30", "number": 30.0, "sentence": "They are 30.", "sets": []}]


def responses(scored: list[list[int]]) -> list[Response]:
    """Interaction n + 1 with a response for each of the nth scores."""
    return [
        Response(f"int{n}", n, f"user{n % 3}", f"Question {n}?", f"model{m}", f"Answer {n}.{m}", score)
        for n, scores in enumerate(scored, start=1)
        for m, score in enumerate(scores)
    ]


def essays(scores: dict[tuple[str, str], tuple[float, float]]) -> list[Essay]:
    return [Essay(a, f"News {a}.", u, f"Essay {a} {u}.", *pair) for (a, u), pair in scores.items()]


ESSAYS = st.dictionaries(
    st.tuples(st.sampled_from(["1", "2", "3"]), st.sampled_from("pqrstu")),
    st.tuples(st.integers(1, 7).map(float), st.integers(1, 7).map(float)),
    min_size=4,
).map(essays)
POSTS = st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from(["q1", "q2", "q3"])), min_size=2).map(
    lambda found: [Post(f"{u}{q}", u, q, f"{u} on {q}") for u, q in sorted(found)]
)


@given(scored=st.lists(st.lists(SCORES, min_size=1, max_size=4), min_size=1, max_size=12), seed=SEEDS, gap=SCORES)
def test_the_highest_score_is_the_persons_own(scored: list[list[int]], seed: int, gap: int) -> None:
    """D1: a tie has the responses of its own question; the code showed those of the row before."""
    pairs, left_out = pair_by_score(responses(scored), size=None, tie_gap=gap, seed=seed)
    assert len(pairs) == sum(len(scores) > 1 for scores in scored)
    assert len(pairs) + len(left_out) == len(scored)
    for pair in pairs:
        number, scores = pair.id.removeprefix("int"), scored[int(pair.id[3:]) - 1]
        own, other = (int(text.removeprefix(f"Answer {number}.")) for text in (pair.own, pair.other))
        assert pair.context == f"Question {number}?"
        assert (own != other, scores[own]) == (True, max(scores))
        assert pair.gap == scores[own] - scores[other]
        assert pair.tie == (pair.gap <= gap)


@given(scored=st.lists(st.tuples(SCORES, SCORES).map(list), max_size=15), seed=SEEDS, size=st.integers(1, 9))
def test_prism_stops_at_the_exact_number_and_keeps_the_ties_on_the_way(
    scored: list[list[int]], seed: int, size: int
) -> None:
    untied = [abs(a - b) > 10 for a, b in scored]
    if sum(untied) < size:
        with pytest.raises(
            SourceError, match=f"has only {sum(untied)} pairs that are not ties, fewer than `size={size}`"
        ):
            pair_by_score(responses(scored), size=size, tie_gap=10, seed=seed)
        return
    pairs, _ = pair_by_score(responses(scored), size=size, tie_gap=10, seed=seed)
    assert [pair.tie for pair in pairs].count(False) == size
    assert not pairs[-1].tie
    assert [pair.id for pair in pairs] == [f"int{n}" for n in range(1, len(pairs) + 1)]


@pytest.mark.parametrize(("gap", "tie"), [(9, True), (10, True), (11, False)])
def test_a_gap_of_ten_is_a_tie(gap: int, tie: bool) -> None:
    """D1: the paper ties at 10 or less; its code below 10, which `tie_gap = 9` gives for whole scores."""
    [pair] = pair_by_score(responses([[50 + gap, 50]]), size=None, tie_gap=10, seed=1)[0]
    assert (pair.tie, pair.gap) == (tie, gap)


def test_the_same_response_twice_is_no_pair() -> None:
    same = [replace(response, text="Yes.") for response in responses([[90, 10]])]
    pairs, left_out = pair_by_score(same, size=None, tie_gap=10, seed=1)
    assert (pairs, left_out) == ([], [("interaction", "int1", "fewer than two responses are left")])


def survey(names: range, questions: int = 3) -> list[Wave]:
    asked = {f"q{n}": (f"Question {n}?", (f"yes {n}", f"no {n}")) for n in range(questions)}
    answers = {
        key: {f"W1 {name}": options[name % 2] for name in names if (name + n) % 3}
        for n, (key, (_, options)) in enumerate(asked.items())
    }
    return [Wave("W1", asked, answers)]


@given(people=st.integers(6, 60), wanted=st.integers(1, 12), seed=SEEDS)
def test_of_a_wave_exactly_so_many_respondents_answer_one_question(people: int, wanted: int, seed: int) -> None:
    waves = survey(range(people))
    most = max(len(answers) for answers in waves[0].answers.values())
    assume(wanted <= most)
    pairs = pair_by_answer(waves, respondents=wanted, seed=seed)
    assert len({pair.user for pair in pairs}) == len(pairs) == wanted
    assert len({pair.context for pair in pairs}) == 1
    for pair in pairs:
        key = pair.id.partition("-")[0]
        assert pair.own == waves[0].answers[key][f"W1 {pair.user}"]
        assert {pair.own, pair.other} == set(waves[0].questions[key][1])


def test_too_few_respondents_are_named() -> None:
    with pytest.raises(SourceError, match=r"No question of W1 .* has 200 respondents \(at most 20\); lower"):
        pair_by_answer(survey(range(30)), respondents=200, seed=1)


@given(written=ESSAYS, seed=SEEDS, each=st.integers(1, 6), share=st.sampled_from([0.0, 0.2, 0.5]))
def test_essays_are_paired_within_an_article(written: list[Essay], seed: int, each: int, share: float) -> None:
    pairs = pair_by_author(written, pairs_per_article=each, size=None, tie_gap=2, tie_share=share, seed=seed)
    texts = {essay.text: essay for essay in written}
    possible: dict[str, int] = {}
    for n, one in enumerate(written):
        for two in written[n + 1 :]:
            far = min(abs(one.empathy - two.empathy), abs(one.distress - two.distress)) >= 2
            possible[one.article] = possible.get(one.article, 0) + (one.article == two.article and far)
    kept: dict[str, int] = dict.fromkeys(possible, 0)
    for pair in pairs:
        own, other = texts[pair.own], texts[pair.other]
        assert (own.user, own.article) == (pair.user, other.article)
        assert own.user != other.user
        gaps = abs(own.empathy - other.empathy), abs(own.distress - other.distress)
        assert pair.tie == (gaps[0] < 2 or gaps[1] < 2)
        kept[own.article] = kept.get(own.article, 0) + (not pair.tie)
    assert kept == {article: min(each, count) for article, count in possible.items()}
    assert sum(pair.tie for pair in pairs) <= share * len(pairs) + 1e-9
    assert len({frozenset((pair.own, pair.other)) for pair in pairs}) == len(pairs)


def test_a_gap_of_two_is_no_tie_though_floats_say_so() -> None:
    """D3. 5.667 - 3.667 is a little less than 2 in floating point."""
    one, two = essays({("1", "p"): (5.667, 1.0), ("1", "q"): (3.667, 7.0)})
    [pair] = pair_by_author([one, two], pairs_per_article=5, size=None, tie_gap=2, tie_share=0.2, seed=1)
    assert (pair.tie, pair.gap) == (False, 2.0)
    assert pair_by_author([one, two], pairs_per_article=5, size=None, tie_gap=3, tie_share=0.0, seed=1) == []


def test_as_many_ties_as_the_share_allows() -> None:
    written = essays({("1", str(n)): (float(n), float(n)) for n in range(30)})
    pairs = pair_by_author(written, pairs_per_article=40, size=20, tie_gap=2, tie_share=0.2, seed=1)
    assert [pair.tie for pair in pairs].count(True) == 5
    with pytest.raises(
        SourceError, match="empathic_conversations has only 40 pairs that are not ties, fewer than `size=41`"
    ):
        pair_by_author(written, pairs_per_article=40, size=41, tie_gap=2, tie_share=0.2, seed=1)


def alike(posts: list[Post], score: Callable[[str, str], float]) -> dict[str, tuple[dict[str, float], str]]:
    users = sorted({post.user for post in posts})
    return {user: ({other: score(user, other) for other in users}, "0" * 64) for user in users}


@given(posts=POSTS, seed=SEEDS, salt=st.integers(0, 5))
def test_the_other_post_is_never_the_persons_own_nor_on_the_same_question(
    posts: list[Post], seed: int, salt: int
) -> None:
    """D2: and it is by the nearest of those who have one."""

    def score(user: str, other: str) -> float:
        return (ord(user) * 7 + ord(other) * 3 + salt) % 5

    pairs, left_out = pair_by_similarity(posts, alike(posts, score), size=None, seed=seed)
    assert len(pairs) + len(left_out) == len(posts)
    by_option = {post.option: post for post in posts}
    for pair in pairs:
        own, other = by_option[pair.own], by_option[pair.other]
        assert (own.user, own.id) == (pair.user, pair.id)
        assert own.user != other.user
        assert own.question != other.question
        able = {post.user for post in posts if post.user != own.user and post.question != own.question}
        assert score(own.user, other.user) == max(score(own.user, user) for user in able)
    for _, row_id, _ in left_out:
        lost = next(post for post in posts if post.id == row_id)
        assert all(post.user == lost.user or post.question == lost.question for post in posts)


@given(data=st.data(), seed=SEEDS)
def test_no_order_of_rows_changes_a_pair(data: st.DataObject, seed: int) -> None:
    scored = responses([[90, 10, 40], [50, 50, 50], [1, 99], [70, 60, 20, 70]])
    written = essays({(a, u): (float(ord(u) % 7), float(ord(a) + ord(u)) % 5) for a in "12" for u in "pqrstu"})
    posts = [Post(f"{u}{q}", u, q, f"{u} on {q}") for u in "abc" for q in ("q1", "q2")]
    [wave] = survey(range(20))

    def made(shuffle: Callable[[list[Any]], list[Any]]) -> list[object]:
        turned: dict[str, dict[str, str]] = {
            key: dict(shuffle([*answers.items()])) for key, answers in shuffle([*wave.answers.items()])
        }
        return [
            pair_by_score(shuffle(scored), size=2, tie_gap=10, seed=seed),
            pair_by_author(shuffle(written), pairs_per_article=3, size=4, tie_gap=2, tie_share=0.2, seed=seed),
            pair_by_similarity(shuffle(posts), alike(posts, lambda a, b: 1.0), size=4, seed=seed),
            pair_by_answer([replace(wave, answers=turned)], respondents=4, seed=seed),
        ]

    assert made(lambda rows: data.draw(st.permutations(rows))) == made(list)


def pairs_of(count: int) -> list[Pair]:
    return [Pair(f"p{n}", f"u{n % 7}", "", f"own {n}", f"other {n}", "a", "b", tie=n % 5 == 0) for n in range(count)]


@given(count=st.integers(1, 40), size=st.integers(1, 40), seed=SEEDS)
def test_exactly_so_many_are_drawn_and_no_tie_counts(count: int, size: int, seed: int) -> None:
    pairs = pairs_of(count)
    untied = sum(not pair.tie for pair in pairs)
    if untied < size:
        with pytest.raises(SourceError, match="lower it"):
            sample_pairs(pairs, size, seed, "task")
    else:
        found = sample_pairs(pairs, size, seed, "task")
        assert sum(not pair.tie for pair in found) == size
        assert [pair for pair in found if pair.tie] == [pair for pair in pairs if pair.tie]


@pytest.mark.parametrize("seed", range(5))
def test_about_half_of_the_truths_are_a_and_each_is_where_its_option_is(seed: int) -> None:
    pairs = pairs_of(500)
    frame = validate(
        make_items("task", "opinion", pairs, {f"u{n}": PERSONA for n in range(7)}, seed), PERSONA_ITEMS, file="items"
    )
    truths = frame["truth"].to_list()
    assert truths.count("tie") == 100
    assert 160 < truths.count("A") < 240  # 200 expected; 4 standard deviations are 40
    for pair, row in zip(pairs, frame.iter_rows(named=True), strict=True):
        if row["truth"] != "tie":
            assert row[f"option_{row['truth'].lower()}"] == pair.own
            assert row[f"origin_{row['truth'].lower()}"] == "a"


def test_placement_depends_on_seed_task_and_id_alone() -> None:
    pairs, personas = pairs_of(60), {f"u{n}": PERSONA for n in range(7)}
    whole = dict(make_items("task", "opinion", pairs, personas, 1).select("id", "option_a").iter_rows())
    part = dict(make_items("task", "opinion", pairs[30:], personas, 1).select("id", "option_a").iter_rows())
    assert part.items() <= whole.items()
    others = [
        make_items(task, "opinion", pairs, personas, seed)["option_a"].to_list()
        for task, seed in (("t", 1), ("task", 2))
    ]
    for one, two in pairwise([list(whole.values()), *others]):
        assert one != two
