"""Compare texts: normal form, shared words, near-duplicates."""

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha1
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEAR = 0.8  # similarity from which two texts count as nearly equal
SHINGLE_WORDS = 3
BANDS = (9, 13)  # bands of MinHash and rows of a band; of up to 128 rows these err least at the similarity `NEAR`
PERMUTATIONS = 128
HALF = 32  # bits
WORD = re.compile(r"\w+")
# Thai to Lao, Burmese, Khmer, kana and Han: scripts without spaces between words.
UNSPACED = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
RUN = re.compile(f"{UNSPACED}+")
CHARACTER_OR_WORD = re.compile(rf"{UNSPACED}|[^\s{UNSPACED[1:-1]}]+")

Numbers = NDArray[np.int64]


def normalized(text: str) -> str:
    """Normalize Unicode form (NFKC), whitespace and case."""
    return " ".join(_normalized_words(text))


def _normalized_words(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).casefold().split()


class Words(NamedTuple):
    """The words of texts: the distinct ones, the place of each word among these, text after text, and words by text."""

    vocabulary: Sequence[str]
    numbers: Numbers
    sizes: Numbers


def split_words(texts: Iterable[str]) -> Words:
    """Normalize texts and split them at whitespace."""
    places = defaultdict[str, int](count().__next__)
    numbers, sizes = array("q"), array("q")
    for text in texts:
        words = _normalized_words(text)
        numbers.extend(map(places.__getitem__, words))
        sizes.append(len(words))
    return Words([*places], np.array(numbers, np.int64), np.array(sizes, np.int64))


def select_texts(words: Words, texts: Sequence[int]) -> Words:
    """Return the words of some of the texts, given by their places, in the order of all."""
    selected = np.isin(np.arange(len(words.sizes)), texts)
    return words._replace(numbers=words.numbers[np.repeat(selected, words.sizes)], sizes=words.sizes[selected])


def _split_further(words: Words, parts_of: Callable[[str], Collection[str]]) -> Words:
    """The parts of words; each distinct word is split once."""
    places = defaultdict[str, int](count().__next__)
    parts = [[places[part] for part in parts_of(word)] for word in words.vocabulary]
    counts = np.array([*map(len, parts)], np.int64)
    flat = np.array([place for own in parts for place in own], np.int64)
    sizes = counts[words.numbers]
    ends = np.append(0, np.cumsum(sizes))
    # From the place of a part among all parts of all texts to that in `flat`.
    shifts = (np.cumsum(counts) - counts)[words.numbers] - ends[:-1]
    numbers = flat[np.arange(ends[-1]) + np.repeat(shifts, sizes)]
    return Words([*places], numbers, np.diff(ends[np.append(0, np.cumsum(words.sizes))]))


def content_words(text: str) -> set[str]:
    """List the words of a normalized text without English stop words.

    In scripts without spaces, each pair of neighboring characters is a word.
    """
    runs = RUN.findall(text)
    words = set(WORD.findall(RUN.sub(" ", text) if runs else text)) - _stop_words()
    return words.union(run[start : start + 2] for run in runs for start in range(max(len(run) - 1, 1)))


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.tokenization import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def overlaps(words: Words, references: range, *sides: range) -> list[list[float]]:
    """Compute the shares of the content words of references that texts repeat; 0 for a reference without any.

    `references` and `sides` are places of texts in `words`. Returns the shares of each side.
    """
    content = _split_further(words, content_words)
    own, *others = (_distinct(select_texts(content, texts)) for texts in (references, *sides))
    totals = np.maximum(_text_counts(own, len(references)), 1)
    shared = (np.intersect1d(own, other, assume_unique=True) for other in others)
    return [(_text_counts(both, len(references)) / totals).tolist() for both in shared]


def _distinct(words: Words) -> Numbers:
    """Each text with each of its distinct words, as one number."""
    numbers = np.sort(np.repeat(np.arange(len(words.sizes)), words.sizes) << HALF | words.numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def _text_counts(distinct: Numbers, texts: int) -> Numbers:
    return np.bincount(distinct >> HALF, minlength=texts)


def nearly_equal(first: str, second: str) -> bool:
    """Check whether two texts are nearly equal, ignoring the order of words (rapidfuzz, `token_sort_ratio`)."""
    from rapidfuzz.fuzz import token_sort_ratio

    # The cutoff only ends the search early; lower ratios become 0.
    return token_sort_ratio(first, second, score_cutoff=100 * NEAR) / 100 >= NEAR


def near_duplicates(texts: Sequence[str], owners: Sequence[str] | None = None) -> int:
    """Count the pairs of texts that share about four fifths of their three-word sequences (MinHash, fixed seed).

    Pairs of texts of one owner do not count. Default: each text has its own.
    """
    return count_near(split_words(texts), owners)


def count_near(words: Words, owners: Sequence[str] | None = None) -> int:
    """Count near-duplicates as `near_duplicates` does, given the words of the texts."""
    # Equal texts are compared once.
    groups: dict[bytes, Counter[str]] = {}
    first = []
    for number, own in enumerate(np.split(words.numbers, np.cumsum(words.sizes))[:-1]):
        key = own.tobytes()
        if key not in groups:
            first.append(number)
        groups.setdefault(key, Counter())[str(number) if owners is None else owners[number]] += 1
    counts = list(groups.values())
    duplicates = sum(_pairs(owned.total()) - sum(map(_pairs, owned.values())) for owned in counts)
    keys = _band_keys(select_texts(words, first), BANDS)
    for number, matches in enumerate(_matches(keys, keys)):
        for group in (counts[other] for other in matches if other < number):
            same = sum(times * counts[number][owner] for owner, times in group.items())
            duplicates += group.total() * counts[number].total() - same
    return duplicates


def _pairs(total: int) -> int:
    return total * (total - 1) // 2


def near_texts(
    texts: Sequence[str], others: Sequence[str], *, bands: tuple[int, int] = BANDS, seed: int = 1
) -> list[list[int]]:
    """List for each text the indices of its near-duplicates in `others` (see `near_duplicates`).

    Texts without words have none. `bands` has the number of bands of MinHash and of rows per band; more bands of fewer
    rows find less similar texts too.
    """
    words = split_words(texts)
    matches = _matches(_band_keys(words, bands, seed), _band_keys(split_words(others), bands, seed))
    return [sorted(found) if size else [] for found, size in zip(matches, words.sizes, strict=True)]


def _matches(texts: Sequence[Sequence[bytes]], others: Sequence[Sequence[bytes]]) -> Iterator[set[int]]:
    """For each text, given its band keys, the numbers of the others that have one of them in the same band."""
    found = defaultdict[tuple[int, bytes], list[int]](list)
    for number, keys in enumerate(others):
        for key in enumerate(keys):
            found[key].append(number)
    for keys in texts:
        yield {number for key in enumerate(keys) for number in found.get(key, ())}


def _band_keys(words: Words, bands: tuple[int, int], seed: int = 1) -> list[list[bytes]]:
    """The MinHash of each text by band: for each row the least of its shingles' hashes under a permutation.

    The hashes and permutations are those of `datasketch.MinHash`, whose import takes longer than most audits.
    """
    hashes, starts = _shingles(words)
    rng = np.random.RandomState(seed)  # whose numbers never change
    factors = 2 * rng.randint(0, 1 << HALF - 1, PERMUTATIONS, np.uint32) + 1
    summands = rng.randint(0, 1 << HALF, PERMUTATIONS, np.uint32)
    minima = np.empty((len(starts), bands[0] * bands[1]), np.uint32)
    for row, factor, summand in zip(minima.T, factors, summands, strict=False):
        row[:] = np.minimum.reduceat(hashes * factor + summand, starts)
    keys: list[list[bytes]] = minima.view(f"V{bands[1] * minima.itemsize}").tolist()
    return keys


def _shingles(words: Words) -> tuple[NDArray[np.uint32], Numbers]:
    """The hashes of all shingles, text after text, and where each text starts. A shorter text is one shingle.

    In scripts without spaces each character is a word.
    """
    units = _split_further(words, CHARACTER_OR_WORD.findall)
    sizes = np.maximum(units.sizes, SHINGLE_WORDS)
    ends = np.cumsum(sizes)
    padded = np.full(sizes.sum(), len(units.vocabulary))
    shifts = (ends - sizes) - (np.cumsum(units.sizes) - units.sizes)
    padded[np.arange(len(units.numbers)) + np.repeat(shifts, units.sizes)] = units.numbers
    is_start = np.ones(len(padded), bool)
    for place in range(1, SHINGLE_WORDS):
        is_start[ends - place] = False
    first, second, third = (np.roll(padded, -place)[is_start] for place in range(SHINGLE_WORDS))
    # Equal shingles are hashed once.
    _, pairs = np.unique(first << HALF | second, return_inverse=True)
    _, distinct, places = np.unique(pairs << HALF | third, return_index=True, return_inverse=True)
    encoded = [*(unit.encode() for unit in units.vocabulary), b""]
    spaced = [*(b" " + unit for unit in encoded[:-1]), b""]
    columns = ((encoded, first), (spaced, second), (spaced, third))
    shingles = zip(*(map(parts.__getitem__, column[distinct].tolist()) for parts, column in columns), strict=True)
    digests = b"".join([sha1(b"".join(shingle)).digest() for shingle in shingles])  # noqa: S324 - not for security
    hashes = np.frombuffer(digests, "<u4")[::5][places]
    return _mixed(hashes), ends - sizes - (SHINGLE_WORDS - 1) * np.arange(len(ends))


def _mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Mix the bits of hashes as MurmurHash3 does at its end."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = (hashes ^ hashes >> np.uint32(shift)) * np.uint32(factor)
    return hashes
