"""Which texts count as the same, as nearly the same, and what of one another repeats."""

import re

import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.similarity import (
    BANDS,
    NEAR,
    PERMUTATIONS,
    content_words,
    near_duplicates,
    near_texts,
    nearly_equal,
    normalized,
    overlaps,
    split_words,
)

LONG = "many words that stand in this order and no other so that three of them in a row are a mark of this text alone"
CHINESE = "请问在北京的冬天应该怎样照顾一只年老的猫才能让它过得舒服一些"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How  do I\tstart?\n", "how do i start?"),
        ("ＡＢＣ　１２", "abc 12"),
        ("ﬁne", "FINE"),
        ("Stra\u00dfe", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_form_white_space_and_case_make_no_difference(one: str, other: str) -> None:
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        ([], 0),
        (["one text"], 0),
        ([LONG, "Another text altogether, with not a word in common."], 0),
        ([LONG, LONG], 1),
        ([LONG, LONG.upper().replace(" ", "\n"), LONG], 3),
        ([LONG, LONG + " indeed"], 1),
        ([LONG, LONG, LONG + " indeed", LONG + " indeed"], 6),
        ([LONG, " ".join(reversed(LONG.split()))], 0),
        (["yes", "yes", "no"], 1),
        (["", ""], 1),
        (["שלום לכולם מכאן ומשם", "שלום לכולם מכאן ומשם", "大家好"], 1),
        ([CHINESE, CHINESE + "吗", CHINESE[::-1]], 1),
    ],
)
def test_near_duplicates(texts: list[str], count: int) -> None:
    assert near_duplicates(texts) == count


@pytest.mark.parametrize(
    ("owners", "count"), [("abcd", 6), ("aabb", 4), ("abab", 4), ("aaab", 3), ("aaaa", 0)], ids=str
)
def test_near_duplicates_of_one_owner_do_not_count(owners: str, count: int) -> None:
    assert near_duplicates([LONG, LONG, LONG + " indeed", LONG + " indeed"], list(owners)) == count


def test_both_sides_are_alike_whatever_the_order_of_their_words() -> None:
    assert nearly_equal("take the train to Cork", "to Cork take the train")
    assert not nearly_equal("take the train to Cork", "a large coffee with milk")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("To be, or not to be", set()),
        ("A low PRICE, in Cork!", {"low", "price", "cork"}),
        ("Ａge 42", {"age", "42"}),
        ("我喜欢tea", {"我喜", "喜欢", "tea"}),
        ("猫", {"猫"}),
    ],
)
def test_words_that_say_something(text: str, words: set[str]) -> None:
    assert content_words(normalized(text)) == words


def test_overlap_is_the_share_of_what_is_said_that_a_text_repeats() -> None:
    references = ["Cork, Ireland; 34", "Cork", "", "喜欢喝茶"]
    texts = ["I moved to cork at 34.", "Corky", "anything", "他喜欢茶"]
    shares = overlaps(split_words(references + texts), range(4), range(4, 8), range(4))
    assert shares == [pytest.approx([2 / 3, 0, 0, 1 / 3]), [1, 1, 0, 1]]


@pytest.mark.parametrize(
    ("texts", "others", "found"),
    [
        ([], [LONG], []),
        ([LONG], [], [[]]),
        ([LONG + " indeed", "tea"], ["coffee", LONG, LONG.upper()], [[1, 2], []]),
        (["", "tea"], ["", " ", "Tea"], [[], [2]]),
        ([CHINESE + "吗"], [CHINESE, CHINESE[::-1]], [[0]]),
    ],
)
def test_texts_that_are_near_others_are_named(texts: list[str], others: list[str], found: list[list[int]]) -> None:
    assert near_texts(texts, others) == found


WORDS = st.lists(st.sampled_from(["tea", "Tea", "coffee", "水", "お茶", "ชา", "ﬁne", "42", "\u3000"]), max_size=8)


@given(st.text())
def test_what_is_normalised_stays_as_it_is(text: str) -> None:
    once = normalized(text)
    assert normalized(f" {once}\n") == normalized(once)
    assert once == " ".join(once.split())


def test_a_hundred_thousand_copies_are_compared_as_one() -> None:
    assert near_duplicates(["Tea"] * 100_000) == 100_000 * 99_999 // 2


@given(WORDS, WORDS, st.randoms())
def test_near_duplicates_depend_on_no_order(some: list[str], more: list[str], random: object) -> None:
    texts = [*some, " ".join(some), " ".join(more)]
    assert near_duplicates(texts) == near_duplicates(texts[::-1])


@given(WORDS)
def test_a_text_repeats_all_of_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert overlaps(split_words([text]), range(1), range(1)) == [[float(bool(content_words(normalized(text))))]]


@given(st.lists(st.sampled_from([LONG, LONG + " indeed", LONG + " yes", CHINESE, "tea", "tea leaves"]), max_size=6))
def test_the_pairs_that_are_named_are_those_that_are_counted(texts: list[str]) -> None:
    named = {(place, other) for place, places in enumerate(near_texts(texts, texts)) for other in places}
    assert {(place, place) for place in range(len(texts))} <= named
    assert sum(one < other for one, other in named) == near_duplicates(texts)


@given(st.lists(st.text(st.sampled_from("ab 猫犬\n"), max_size=24), max_size=12))
def test_near_texts_are_those_of_datasketch(texts: list[str]) -> None:
    words = [" ".join(re.sub("([猫犬])", r" \1 ", text).split()).split() for text in texts]
    shingles = [{" ".join(own[start : start + 3]) for start in range(max(len(own) - 2, 1))} for own in words]
    index = MinHashLSH(num_perm=PERMUTATIONS, params=BANDS)
    sketches = []
    for number, own in enumerate(shingles):
        sketches.append(MinHash(PERMUTATIONS))
        sketches[-1].update_batch([shingle.encode() for shingle in own])
        index.insert(number, sketches[-1])
    found = [sorted(index.query(sketch)) if own else [] for sketch, own in zip(sketches, words, strict=True)]
    assert near_texts(texts, texts) == found


def test_bands_are_the_best_of_datasketch() -> None:
    index = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
    assert (index.b, index.r) == BANDS
