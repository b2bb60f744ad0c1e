"""Find texts in a stream of other texts: equal after normalizing, near-duplicates, and shared n-grams of words.

Texts are compared as their words: in Unicode form NFKC and lower case, without punctuation, joined by one space. A word
is a run of letters, digits and marks; in scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each
character is one. n-grams are compared as 64-bit hashes: two different ones among 40 million and 10 million are equal
with a probability of about 2e-5. Near-duplicates are candidates of MinHash that exact Jaccard similarity confirms.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_release.similarity import UNSPACED, near_texts

Kind = Literal["equal", "near", "ngram"]
KINDS: tuple[Kind, ...] = ("equal", "near", "ngram")
"""Ways in which a text is in another: equal, a near-duplicate that is not equal, with a shared n-gram."""
NGRAM = 13  # words of a shared n-gram
NEAR = 0.8  # Jaccard similarity from which texts are near-duplicates
SHINGLE = 3  # words of the n-grams that Jaccard similarity compares
BANDS = (25, 5)  # bands and rows of MinHash; 99.99% of the pairs at the similarity 0.8 are candidates
MAX_CHECKED = 1000  # candidates of a text that are checked; instances of a template can have many more
WORD = rf"{UNSPACED}|[\w--{UNSPACED}]+"
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no word of an n-gram loses bits
MAX_TABLE_BITS = 28
UNSEEN = -1
EXCERPT = 200  # characters of an excerpt
MATCHES = pl.Schema(
    {"text": pl.Int64(), "kind": pl.String(), "place": pl.Int64(), "overlap": pl.Float64(), "excerpt": pl.String()}
)
"""Columns of `TextIndex.matches`."""

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


class NormalizedTexts(NamedTuple):
    """Texts as words joined by one space, hashes of the words of all texts, and the number of words of each."""

    texts: pl.Series
    words: Hashes
    sizes: Places


def normalize(texts: pl.Series) -> NormalizedTexts:
    """Split texts into words; see the module."""
    # Lower case can undo the normal form of a few Greek and Turkish letters.
    words = texts.str.normalize("NFKC").str.to_lowercase().str.normalize("NFKC").str.extract_all(WORD)
    # A text without words is an empty list, which must not become a word.
    flat = words.explode(empty_as_null=False)
    return NormalizedTexts(words.list.join(" "), flat.hash().to_numpy(), words.list.len().cast(pl.Int64).to_numpy())


class NGrams(NamedTuple):
    """Hash of each n-gram, text after text, the number of its text, and that of its first word over all texts."""

    hashes: Hashes
    text: Places
    word: Places


def ngrams(normalized: NormalizedTexts, n: int) -> NGrams:
    """Return the n-grams of n words of each text; a text with fewer words has none."""
    words, sizes = normalized.words, normalized.sizes
    ends = np.repeat(np.cumsum(sizes), sizes)
    starts = np.flatnonzero(np.arange(len(words)) + n <= ends)
    hashes = np.zeros(len(words), np.uint64)
    factor = np.uint64(1)
    with np.errstate(over="ignore"):  # the hash is modulo 2**64
        for place in range(min(n, len(words))):
            hashes[: len(words) - place] += words[place:] * factor
            factor *= BASE
    return NGrams(hashes[starts], np.repeat(np.arange(len(sizes)), sizes)[starts], starts)


class _Lookup:
    """A set of hashes, and the number of each; a table of their first bits rejects most others quickly."""

    def __init__(self, hashes: Hashes) -> None:
        self.values, numbers = np.unique(hashes, return_inverse=True)
        self.numbers = numbers.astype(np.int32 if len(self.values) < 2**31 else np.int64)
        bits = min(MAX_TABLE_BITS, 4 + len(self.values).bit_length())
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, bool)
        self._table[self.values >> self._shift] = True

    def find(self, hashes: Hashes) -> tuple[Places, Places]:
        """Return the positions of hashes that are in the set, and their numbers in it."""
        positions = np.flatnonzero(self._table[hashes >> self._shift])
        if not len(positions):
            return positions, positions
        numbers = np.minimum(np.searchsorted(self.values, hashes[positions]), len(self.values) - 1)
        present = self.values[numbers] == hashes[positions]
        return positions[present], numbers[present]


class TextIndex:
    """Texts, and the first place in a stream of other texts that has each of them and each of their n-grams."""

    def __init__(self, texts: Sequence[str], *, ngram: int = NGRAM) -> None:
        """Index texts by their words and by n-grams of `ngram` words."""
        self._normalized = normalize(pl.Series(texts, dtype=pl.String))
        self._ngram = ngram
        self.sizes = self._normalized.sizes
        self._texts = _Lookup(self._normalized.texts.hash().to_numpy())
        self._grams = _Lookup(ngrams(self._normalized, ngram).hashes)
        self._shingles = _Lookup(ngrams(self._normalized, SHINGLE).hashes)
        self._text_places = np.full(len(self._texts.values), UNSEEN)
        self._gram_places = np.full(len(self._grams.values), UNSEEN)
        self._candidates: dict[str, int] = {}

    def scan(self, texts: pl.Series, places: Places) -> None:
        """Look for the indexed texts in further texts, whose places are numbers that ascend over all calls."""
        normalized = normalize(texts)
        _note(self._text_places, *self._texts.find(normalized.texts.hash().to_numpy()), places)
        grams = ngrams(normalized, self._ngram)
        _note(self._gram_places, *self._grams.find(grams.hashes), places[grams.text])
        near = np.array(_mostly_in(self._shingles, normalized), np.int64)
        for text, place in zip(normalized.texts.gather(near), places[near].tolist(), strict=True):
            self._candidates.setdefault(text, place)

    def matches(self, *, seed: int = 0) -> pl.DataFrame:
        """Return what was in the stream: a row for each text and kind.

        `text` is the number of the text, `place` the first place that has it, or for n-grams the first of its longest
        shared passage. `overlap` is 1 for equal texts, the Jaccard similarity of near-duplicates, or the share of the
        text's words that are in shared n-grams. `excerpt` is the beginning of the shared words. `seed` is that of
        MinHash.
        """
        rows = [*self._equal(), *self._near(seed), *self._shared()]
        return pl.DataFrame(rows, MATCHES, orient="row").sort("text", "kind")

    def _equal(self) -> Iterator[tuple[int, Kind, int, float, str]]:
        places = self._text_places[self._texts.numbers]
        for text in np.flatnonzero((places != UNSEEN) & (self.sizes > 0)).tolist():
            yield text, "equal", int(places[text]), 1.0, self._normalized.texts[text][:EXCERPT]

    def _near(self, seed: int) -> Iterator[tuple[int, Kind, int, float, str]]:
        others = list(self._candidates)
        if not others:
            return
        shingles = _Lookup(ngrams(normalize(pl.Series(others)), SHINGLE).hashes)
        equal = self._text_places[self._texts.numbers] != UNSEEN
        numbers = [number for number in _mostly_in(shingles, self._normalized) if not equal[number]]
        texts = [self._normalized.texts[number] for number in numbers]
        for number, text, matches in zip(
            numbers, texts, near_texts(texts, others, bands=BANDS, seed=seed), strict=True
        ):
            own = _shingles(text)
            for match in matches[:MAX_CHECKED]:
                similarity = jaccard(own, _shingles(others[match]))
                if similarity >= NEAR:
                    yield number, "near", self._candidates[others[match]], similarity, text[:EXCERPT]
                    break

    def _shared(self) -> Iterator[tuple[int, Kind, int, float, str]]:
        grams = ngrams(self._normalized, self._ngram)
        places = self._gram_places[self._grams.numbers]
        shared = places != UNSEEN
        words, of_text, places = grams.word[shared], grams.text[shared], places[shared]
        starts = np.cumsum(self.sizes) - self.sizes
        bounds = np.flatnonzero(np.diff(of_text, prepend=UNSEEN, append=UNSEEN))
        for low, high in pairwise(bounds.tolist()):
            text = int(of_text[low])
            own = words[low:high] - starts[text]
            # n-grams that overlap or touch are one passage.
            breaks = [0, *(np.flatnonzero(np.diff(own) > self._ngram) + 1).tolist(), len(own)]
            passages = [(int(own[last - 1]) + self._ngram - int(own[first]), first) for first, last in pairwise(breaks)]
            size, first = max(passages, key=lambda passage: passage[0])
            begin = int(own[first])
            excerpt = " ".join(self._normalized.texts[text].split(" ")[begin : begin + size])[:EXCERPT]
            covered = sum(size for size, _ in passages) / int(self.sizes[text])
            yield text, "ngram", int(places[low + first]), covered, excerpt


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets; 0 if both are empty."""
    both = len(first | second)
    return len(first & second) / both if both else 0.0


@lru_cache(8192)  # many texts can be candidates of the same ones, such as instances of a template
def _shingles(text: str) -> frozenset[str]:
    words = text.split(" ")
    return frozenset(" ".join(words[place : place + SHINGLE]) for place in range(len(words) - SHINGLE + 1))


def _note(first: Places, positions: Places, numbers: Places, places: Places) -> None:
    """Note the first place of each number that has none."""
    new = first[numbers] == UNSEEN
    # Of several assignments to one number the last one counts.
    first[numbers[new][::-1]] = places[positions[new]][::-1]


def _mostly_in(shingles: _Lookup, normalized: NormalizedTexts) -> list[int]:
    """Return the texts that can have a near-duplicate: so many of their distinct shingles are among these."""
    own = ngrams(normalized, SHINGLE)
    present = np.zeros(len(own.hashes), bool)
    present[shingles.find(own.hashes)[0]] = True
    frame = pl.DataFrame({"text": own.text, "hash": own.hashes, "present": present})
    shares = frame.unique(["text", "hash"]).group_by("text").agg(pl.col("present").mean())
    return shares.filter(pl.col("present") >= NEAR).sort("text")["text"].to_list()
