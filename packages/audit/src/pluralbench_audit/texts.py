"""Which texts are the same, nearly the same, or repeat each other's words, in any script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

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
CHARACTER_OR_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\S)+")


def normalised(text: str) -> str:
    """A text without what makes no difference to a reader: its form in Unicode (NFKC), white space, and case."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def content_words(text: str) -> set[str]:
    """The words of a normalised text but for English stop words; of scripts without blanks, pairs of characters."""
    from bm25s.tokenization import STOPWORDS_EN  # noqa: PLC0415 - half a second that other commands save

    text = normalised(text)
    words = {word for word in WORD.findall(RUN.sub(" ", text)) if word not in STOPWORDS_EN}
    return words | {run[start : start + 2] for run in RUN.findall(text) for start in range(max(len(run) - 1, 1))}


def overlap(said: str, text: str) -> float:
    """The share of the content words of `said` that `text` repeats, 0 where there are none."""
    words = content_words(said)
    return len(words & content_words(text)) / len(words) if words else 0.0


def alike(first: str, second: str) -> bool:
    """Whether two texts are nearly the same, whatever the order of their words (rapidfuzz, `token_sort_ratio`)."""
    from rapidfuzz.fuzz import token_sort_ratio  # noqa: PLC0415 - most commands need none of it

    return token_sort_ratio(first, second) / 100 >= NEAR


def near_duplicates(texts: Sequence[str], owners: Sequence[str] | None = None) -> int:
    """How many pairs of `texts` share some four fifths of their three-word sequences (MinHash, fixed seed).

    owners: of each text; pairs of one owner's texts do not count.
    """
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - a second that every other command saves

    # Equal texts are compared as one, so that many copies of one text take no longer than one.
    groups: dict[frozenset[str], Counter[str]] = {}
    for number, text in enumerate(texts):
        owner = str(number) if owners is None else owners[number]
        groups.setdefault(_shingles(text), Counter())[owner] += 1
    index = MinHashLSH(num_perm=PERMUTATIONS, params=_bands())
    counts = list(groups.values())
    found = sum(_pairs(count.total()) - sum(map(_pairs, count.values())) for count in counts)
    for number, shingles in enumerate(groups):
        sketch = MinHash(num_perm=PERMUTATIONS, seed=1)
        sketch.update_batch([shingle.encode() for shingle in sorted(shingles)])
        found += sum(_apart(counts[int(other)], counts[number]) for other in index.query(sketch))
        index.insert(str(number), sketch)
    return found


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


def _shingles(text: str) -> frozenset[str]:
    # Each character of a script without blanks is taken for a word.
    words = CHARACTER_OR_WORD.findall(normalised(text))
    starts = range(max(len(words) - SHINGLE_WORDS + 1, 1))
    return frozenset(" ".join(words[start : start + SHINGLE_WORDS]) for start in starts)
