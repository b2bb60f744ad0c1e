"""Texts in other texts: equal after normalizing, shared n-grams, near-duplicates; each against brute force."""

import random
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.data.overlap import NEAR, SHINGLE, TextIndex, jaccard, ngrams, normalize

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
WORDS = st.lists(st.sampled_from(["a", "b", "c", "dé", "7"]), max_size=14)
SEPARATORS = (" ", ", ", "\n\n", " — ", "! ")


def words_of(text: str) -> list[str]:
    [normalized] = normalize(pl.Series([text])).texts
    return str(normalized).split()


def grams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[place : place + n]) for place in range(len(words) - n + 1)}


def matches(texts: Sequence[str], stream: Sequence[str], *, ngram: int = 13, batch: int = 2) -> pl.DataFrame:
    """What `TextIndex` finds in a stream that comes in batches."""
    index = TextIndex(texts, ngram=ngram)
    for first in range(0, len(stream), batch):
        part = stream[first : first + batch]
        index.scan(pl.Series(part, dtype=pl.String), np.arange(first, first + len(part)))
    return index.matches()


def places(frame: pl.DataFrame, kind: str) -> dict[int, int]:
    return dict(frame.filter(pl.col("kind") == kind).select("text", "place").iter_rows())


def disguised(words: Sequence[str], seed: int) -> str:
    """The same words with other case, punctuation and white space."""
    draw = random.Random(seed)
    cased = [word.upper() if draw.random() < 0.3 else word for word in words]
    return draw.choice(SEPARATORS).join(cased) + draw.choice(["", ".", " ?\n"])


@given(TEXT)
def test_normalizing_twice_changes_nothing(text: str) -> None:
    once = " ".join(words_of(text))
    assert " ".join(words_of(once)) == once


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What's\n\nTHIS?!", ["what", "s", "this"]),
        ("ﬁne  x² — 3.5", ["fine", "x2", "3", "5"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("你好world 再见", ["你", "好", "world", "再", "见"]),
        ("?!", []),
        ("", []),
    ],
)
def test_words_are_split_without_case_and_punctuation(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.heavy
@given(st.lists(WORDS, min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 99))
def test_a_planted_text_is_found_at_its_first_place(others: list[list[str]], where: int, seed: int) -> None:
    planted = ["planted", *others[0], "text"]
    stream = [" ".join(words) for words in others]
    where = min(where, len(stream))
    stream[where:where] = [disguised(planted, seed), " ".join(planted)]
    found = matches([" ".join(planted), "never there"], stream)
    assert places(found, "equal") == {0: where}
    assert found.filter(pl.col("kind") == "equal")["overlap"].to_list() == [1.0]


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5), st.integers(1, 5))
def test_an_ngram_is_shared_iff_brute_force_finds_it(
    texts: list[list[str]], stream: list[list[str]], ngram: int
) -> None:
    found = matches([" ".join(words) for words in texts], [" ".join(words) for words in stream], ngram=ngram)
    shared = set().union(*(grams(words, ngram) for words in stream))
    expected = {number for number, words in enumerate(texts) if grams(words, ngram) & shared}
    assert set(places(found, "ngram")) == expected
    for number, place, overlap, excerpt in (
        found.filter(pl.col("kind") == "ngram").select("text", "place", "overlap", "excerpt").iter_rows()
    ):
        covered = {
            place + inside
            for place in range(len(texts[number]) - ngram + 1)
            if tuple(texts[number][place : place + ngram]) in shared
            for inside in range(ngram)
        }
        assert overlap == pytest.approx(len(covered) / len(texts[number]))
        first = tuple(str(excerpt).split()[:ngram])
        assert first in grams(stream[place], ngram)
        assert not any(first in grams(words, ngram) for words in stream[:place])


@pytest.mark.heavy
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=6))
def test_near_duplicates_are_exactly_those_of_brute_force(texts: list[list[str]], stream: list[list[str]]) -> None:
    found = matches([" ".join(words) for words in texts], [" ".join(words) for words in stream])
    near = places(found, "near")
    for number, words in enumerate(texts):
        own = frozenset(" ".join(gram) for gram in grams(words, SHINGLE))
        similar = [
            place
            for place, other in enumerate(stream)
            if jaccard(own, frozenset(" ".join(gram) for gram in grams(other, SHINGLE))) >= NEAR
        ]
        if number in near:
            assert near[number] in similar
            assert words not in stream
        else:
            assert not similar or words in stream


def test_most_texts_with_a_changed_word_are_near_duplicates() -> None:
    draw = random.Random(0)
    texts = [[draw.choice("abcdefghijklmnopqrstuvwxyz") * draw.randint(1, 5) for _ in range(60)] for _ in range(200)]
    changed = [[*words[:30], "changed", *words[31:]] for words in texts]
    found = matches([" ".join(words) for words in texts], [" ".join(words) for words in changed], batch=50)
    assert places(found, "near") == {number: number for number in range(200)}
    assert found.filter(pl.col("kind") == "near")["overlap"].min() == pytest.approx(55 / 61, abs=0.02)


def test_a_text_with_fewer_words_has_no_ngrams() -> None:
    assert ngrams(normalize(pl.Series(["a b", "", "a b c"])), 3).text.tolist() == [2]


def test_empty_texts_are_in_nothing() -> None:
    assert matches(["", "?"], ["", "!", "a"]).is_empty()
    assert matches([], ["a"]).is_empty()
    assert matches(["a"], []).is_empty()
