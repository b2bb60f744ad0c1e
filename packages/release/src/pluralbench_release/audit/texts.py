"""Which texts are the same, nearly the same, or repeat each other's words, in any script."""

import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha1
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasketch import MinHash

NEAR = 0.8  # similarity from which two texts count as nearly the same
SHINGLE_WORDS = 3
PERMUTATIONS = 128
WORD = re.compile(r"\w+")
# Thai to Lao, Burmese, Khmer, kana and Han: scripts that write no blanks between words.
UNSPACED = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
RUN = re.compile(f"{UNSPACED}+")
CHARACTER_OR_WORD = re.compile(rf"{UNSPACED}|[^\s{UNSPACED[1:-1]}]+")


def normalized(text: str) -> str:
    """A text without what makes no difference to a reader: its form in Unicode (NFKC), white space, and case."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def content_words(text: str) -> set[str]:
    """The words of a normalised text but for English stop words; of scripts without blanks, pairs of characters."""
    text = normalized(text)
    runs = RUN.findall(text)
    words = set(WORD.findall(RUN.sub(" ", text) if runs else text)) - _stop_words()
    return words.union(run[start : start + 2] for run in runs for start in range(max(len(run) - 1, 1)))


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.tokenization import STOPWORDS_EN  # noqa: PLC0415 - half a second that other commands save

    return frozenset(STOPWORDS_EN)


def overlap(said: str, text: str) -> float:
    """The share of the content words of `said` that `text` repeats, 0 where there are none."""
    return overlaps(said, text)[0]


def overlaps(said: str, *texts: str) -> list[float]:
    """`overlap` of each of `texts`."""
    words = content_words(said)
    return [len(words & content_words(text)) / len(words) if words else 0.0 for text in texts]


def alike(first: str, second: str) -> bool:
    """Whether two texts are nearly the same, whatever the order of their words (rapidfuzz, `token_sort_ratio`)."""
    from rapidfuzz.fuzz import token_sort_ratio  # noqa: PLC0415 - most commands need none of it

    # The cutoff only ends the search early: what is below it counts as 0.
    return token_sort_ratio(first, second, score_cutoff=100 * NEAR) / 100 >= NEAR


def near_duplicates(texts: Sequence[str], owners: Sequence[str] | None = None) -> int:
    """How many pairs of `texts` share some four fifths of their three-word sequences (MinHash, fixed seed).

    owners: of each text; pairs of one owner's texts do not count.
    """
    from datasketch import MinHashLSH  # noqa: PLC0415 - a second that every other command saves

    # Equal texts are compared as one, so that many copies of one text take no longer than one.
    groups: dict[frozenset[str], Counter[str]] = {}
    for number, text in enumerate(texts):
        owner = str(number) if owners is None else owners[number]
        groups.setdefault(_shingles(text), Counter())[owner] += 1
    index = MinHashLSH(num_perm=PERMUTATIONS, params=_bands())
    counts = list(groups.values())
    found = sum(_pairs(count.total()) - sum(map(_pairs, count.values())) for count in counts)
    for number, sketch in enumerate(_sketches(groups)):
        found += sum(_apart(counts[int(other)], counts[number]) for other in index.query(sketch))
        index.insert(str(number), sketch)
    return found


def near_texts(texts: Sequence[str], others: Sequence[str]) -> list[list[int]]:
    """For each of `texts` the places in `others` of those that are nearly the same, as `near_duplicates` counts them.

    A text in which there is no word is like none.
    """
    from datasketch import MinHashLSH  # noqa: PLC0415 - a second that every other command saves

    index = MinHashLSH(num_perm=PERMUTATIONS, params=_bands())
    with index.insertion_session() as session:
        for place, sketch in _worded(others):
            session.insert(place, sketch)
    found: list[list[int]] = [[] for _ in texts]
    for place, sketch in _worded(texts):
        found[place] = sorted(index.query(sketch))
    return found


def _worded(texts: Sequence[str]) -> Iterator[tuple[int, "MinHash"]]:
    """The place and the sketch of each text that has a word."""
    shingles = {place: found for place, text in enumerate(texts) if (found := _shingles(text)) != {""}}
    return zip(shingles, _sketches(shingles.values()), strict=True)


def _sketches(texts: Iterable[frozenset[str]]) -> Iterator["MinHash"]:
    """The sketch of each text, of which the shingles are given."""
    from datasketch import MinHash  # noqa: PLC0415 - as above

    # What the library's own hash function gives; a call of it for each shingle would take as long as all the rest.
    sketches: Iterator[MinHash] = MinHash.generator(map(_hashes, texts), num_perm=PERMUTATIONS, seed=1, hashfunc=int)
    return sketches


@cache
def _bands() -> tuple[int, int]:
    """The bands, and the rows of each, that tell texts of the similarity `NEAR`; to find them takes a while."""
    from datasketch import MinHashLSH  # noqa: PLC0415 - as above

    index = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
    return index.b, index.r


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _apart(first: Counter[str], second: Counter[str]) -> int:
    """How many pairs of a text of each group have two owners."""
    same = sum(count * second[owner] for owner, count in first.items())
    return first.total() * second.total() - same


def _hashes(shingles: Iterable[str]) -> list[int]:
    """The first four bytes of each SHA-1 as a number, which is `datasketch.hashfunc.sha1_hash32`."""
    starts = [sha1(shingle.encode()).digest()[:4] for shingle in shingles]  # noqa: S324 - nothing is kept secret by it
    return [number for (number,) in struct.iter_unpack("<I", b"".join(starts))]


def _shingles(text: str) -> frozenset[str]:
    # Each character of a script without blanks is taken for a word.
    words = CHARACTER_OR_WORD.findall(normalized(text))
    if len(words) <= SHINGLE_WORDS:
        return frozenset([" ".join(words)])
    return frozenset(map(" ".join, zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False)))
