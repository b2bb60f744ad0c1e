"""Audits of pairs of texts for shortcuts that a scorer could use: length, leaks and repetition."""

import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha1
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_runs import RecipeError

from pluralbench_release.errors import AuditFailed
from pluralbench_release.figures import text_table
from pluralbench_release.recipe import PairLimits

if TYPE_CHECKING:
    from datasketch import MinHash

NEAR = 0.8  # similarity from which two texts count as nearly equal
SHINGLE_WORDS = 3
PERMUTATIONS = 128
WORD = re.compile(r"\w+")
# Thai to Lao, Burmese, Khmer, kana and Han: scripts without spaces between words.
UNSPACED = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
RUN = re.compile(f"{UNSPACED}+")
CHARACTER_OR_WORD = re.compile(rf"{UNSPACED}|[^\s{UNSPACED[1:-1]}]+")


def word_count(text: str) -> int:
    """Count the words of a text, separated by whitespace."""
    return len(text.split())


def pair_figures(
    chosen: Sequence[str],
    rejected: Sequence[str],
    references: Sequence[str] | None = None,
    *,
    owners: Sequence[str] | None = None,
    length: Callable[[str], int] = word_count,
) -> dict[str, Any]:
    """Compute the surface figures of one or more pairs, as JSON values.

    Args:
        chosen: Chosen text of each pair.
        rejected: Rejected text of each pair.
        references: Text of each pair that a leak would repeat, such as the titles of a rubric or the values of a
            persona. Default: no figures of overlap.
        owners: Owner of each chosen text, such as a user; two texts of one owner are not near-duplicates. Default:
            each text has its own.
        length: Length of a text for the means: in words or, for scripts without spaces, in characters.

    Returns:
        - `pairs`: the number of pairs.
        - `length`: `chosen_mean`, `rejected_mean` and `mean_gap`.
        - `longer`: wins of the scorer that prefers the text with more characters (see `wins`).
        - `overlap`: `chosen_mean`, `rejected_mean` and `mean_gap` of the share of the reference that a side repeats.
        - `more_overlap`: wins of the scorer that prefers the side that repeats more.
        - `near_duplicates`: pairs of `chosen` texts, and pairs whose two `sides` are nearly equal.
    """
    lengths = [length(text) for text in chosen], [length(text) for text in rejected]
    figures: dict[str, Any] = {
        "pairs": len(chosen),
        "length": means(*lengths),
        "longer": wins(*([len(text) for text in side] for side in (chosen, rejected))),
        "near_duplicates": {
            "chosen": near_duplicates(chosen, owners),
            "sides": sum(map(nearly_equal, chosen, rejected)),
        },
    }
    if references is not None:
        shares = list(map(overlaps, references, chosen, rejected))
        sides = [first for first, _ in shares], [second for _, second in shares]
        figures |= {"overlap": means(*sides), "more_overlap": wins(*sides)}
    return figures


def means(chosen: Sequence[float], rejected: Sequence[float]) -> dict[str, float]:
    """Average each side and the difference between them, rounded to four decimals."""
    return {
        "chosen_mean": round(fmean(chosen), 4),
        "rejected_mean": round(fmean(rejected), 4),
        "mean_gap": round(fmean(a - b for a, b in zip(chosen, rejected, strict=True)), 4),
    }


def wins(chosen: Sequence[float], rejected: Sequence[float]) -> dict[str, Any]:
    """Count how often the chosen side has the larger value.

    Returns:
        `wins`, `losses`, `ties`, `share_of_decided` (wins among wins and losses; None without any) and `interval`, the
        95 % Wilson interval of that share.
    """
    won = sum(a > b for a, b in zip(chosen, rejected, strict=True))
    lost = sum(a < b for a, b in zip(chosen, rejected, strict=True))
    wilson = share_of(won, won + lost)
    share, low, high = wilson["share"], wilson["low"], wilson["high"]
    return {
        "wins": won,
        "losses": lost,
        "ties": len(chosen) - won - lost,
        "share_of_decided": None if share is None else round(share, 4),
        "interval": [0.0 if low is None else round(low, 4), 1.0 if high is None else round(high, 4)],
    }


def wins_text(counts: dict[str, Any]) -> str:
    """Format the result of `wins` for a table: "186 of 248 (75 %, 95 % interval 69 % to 80 %), 3 tied"."""
    ties = f", {counts['ties']} tied" if counts["ties"] else ""
    decided = counts["wins"] + counts["losses"]
    if not decided:
        return f"undecided{ties}"
    low, high = counts["interval"]
    share = counts["share_of_decided"]
    return f"{counts['wins']} of {decided} ({share:.0%}, 95 % interval {low:.0%} to {high:.0%}){ties}"


def limit_values(figures: Mapping[str, Any]) -> dict[str, float]:
    """Compute the value that each limit bounds from the result of `pair_figures`.

    Shares and gaps are limited in both directions.
    """
    values = {
        "max_chosen_longer": _larger_share(figures["longer"]),
        "max_mean_length_gap": abs(figures["length"]["mean_gap"]),
        "max_near_duplicates": figures["near_duplicates"]["chosen"],
    }
    if "overlap" in figures:
        overlap = figures["overlap"]
        values["max_chosen_overlap"] = _larger_share(figures["more_overlap"])
        values["max_overlap_gap"] = abs(overlap["chosen_mean"] - overlap["rejected_mean"])
    return values


def check_limits(values: Mapping[str, float], limits: PairLimits, what: str = "The audit") -> None:
    """Check audit values against the limits of a recipe.

    Args:
        values: Values by name of the limit (see `limit_values`).
        limits: The limits.
        what: Subject of the error message.

    Raises:
        AuditFailed: At least one limit is exceeded; the message names all of them.
        RecipeError: A limit has no value, such as a limit of drops where no drops are counted.
    """
    settings = limits.model_dump(exclude_none=True)
    for name in settings.keys() - values.keys():
        raise RecipeError(f"{what} has no figure for the limit `{name}`; remove it from [audit].")
    broken = [
        f"{name} = {limit:g} (found {values[name]:.3g})"
        for name, limit in settings.items()
        if values[name] > limit and not math.isclose(values[name], limit)
    ]
    if broken:
        raise AuditFailed(
            f"{what} fails: {', '.join(broken)}; fix the recipe or its [audit] limits and rerun it; recorded calls are "
            "kept."
        )


def check_audits(audits: Mapping[str, Mapping[str, Any]], limits: PairLimits, **others: float) -> None:
    """Check the figures of several sets of pairs against the limits of a recipe.

    Args:
        audits: Results of `pair_figures`, by the name of the set.
        limits: The limits.
        others: Values of further limits, equal for all sets.

    Raises:
        AuditFailed: A set exceeds limits; the message names all limits of the first such set.
    """
    for name, figures in audits.items():
        check_limits(limit_values(figures) | others, limits, f"The audit of {name}")


def surface_table(
    names: Sequence[str], audits: Iterable[tuple[Sequence[str], Mapping[str, Any]]], reference: str
) -> pl.DataFrame:
    """Format how often the scorers win that prefer the longer text, or the one that repeats more of the reference.

    Args:
        names: Names of the first columns.
        audits: Values of the first columns, and the result of `pair_figures` with references.
        reference: What a text may repeat, such as "prompt".
    """
    rows = [(*place, wins_text(figures["longer"]), wins_text(figures["more_overlap"])) for place, figures in audits]
    return text_table([*names, "more characters", f"more of the {reference}"], rows)


def _larger_share(wins: Mapping[str, Any]) -> float:
    """The larger share among wins and losses; one half if all pairs are tied."""
    decided: int = wins["wins"] + wins["losses"]
    share: float = wins["wins"] / decided if decided else 0.5
    return max(share, 1 - share)


def normalized(text: str) -> str:
    """Normalize Unicode form (NFKC), whitespace and case."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def content_words(text: str) -> set[str]:
    """List the words of the normalized text without English stop words.

    In scripts without spaces, each pair of neighboring characters is a word.
    """
    text = normalized(text)
    runs = RUN.findall(text)
    words = set(WORD.findall(RUN.sub(" ", text) if runs else text)) - _stop_words()
    return words.union(run[start : start + 2] for run in runs for start in range(max(len(run) - 1, 1)))


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.tokenization import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def overlap(reference: str, text: str) -> float:
    """Compute the share of the reference's content words that a text repeats; 0 if it has none."""
    return overlaps(reference, text)[0]


def overlaps(reference: str, *texts: str) -> list[float]:
    """Compute the `overlap` of each text."""
    words = content_words(reference)
    return [len(words & content_words(text)) / len(words) if words else 0.0 for text in texts]


def nearly_equal(first: str, second: str) -> bool:
    """Check whether two texts are nearly equal, ignoring the order of words (rapidfuzz, `token_sort_ratio`)."""
    from rapidfuzz.fuzz import token_sort_ratio

    # The cutoff only ends the search early; lower ratios become 0.
    return token_sort_ratio(first, second, score_cutoff=100 * NEAR) / 100 >= NEAR


def near_duplicates(texts: Sequence[str], owners: Sequence[str] | None = None) -> int:
    """Count the pairs of texts that share about four fifths of their three-word sequences (MinHash, fixed seed).

    Args:
        texts: The texts.
        owners: Owner of each text; pairs of one owner's texts do not count. Default: each text has its own.
    """
    from datasketch import MinHashLSH

    # Equal texts are compared once.
    groups: dict[frozenset[str], Counter[str]] = {}
    for number, text in enumerate(texts):
        owner = str(number) if owners is None else owners[number]
        groups.setdefault(_shingles(text), Counter())[owner] += 1
    index = MinHashLSH(num_perm=PERMUTATIONS, params=_bands())
    counts = list(groups.values())
    duplicates = sum(_pairs(count.total()) - sum(map(_pairs, count.values())) for count in counts)
    for number, sketch in enumerate(_sketches(groups)):
        duplicates += sum(_pairs_across_owners(counts[int(other)], counts[number]) for other in index.query(sketch))
        index.insert(str(number), sketch)
    return duplicates


def near_texts(
    texts: Sequence[str], others: Sequence[str], *, bands: tuple[int, int] | None = None, seed: int = 1
) -> list[list[int]]:
    """List for each text the indices of its near-duplicates in `others` (see `near_duplicates`).

    Texts without words have none.

    Args:
        texts: The texts.
        others: Texts to compare them with.
        bands: Number of bands and rows per band of MinHash. Default: those with the fewest errors at the similarity
            `NEAR`; more bands of fewer rows find less similar texts too.
        seed: Seed of the permutations.
    """
    from datasketch import MinHashLSH

    index = MinHashLSH(num_perm=PERMUTATIONS, params=bands or _bands())
    with index.insertion_session() as session:
        for number, sketch in _numbered_sketches(others, seed):
            session.insert(number, sketch)
    matches: list[list[int]] = [[] for _ in texts]
    for number, sketch in _numbered_sketches(texts, seed):
        matches[number] = sorted(index.query(sketch))
    return matches


def _numbered_sketches(texts: Sequence[str], seed: int) -> Iterator[tuple[int, "MinHash"]]:
    """The index and the sketch of each text that has a word."""
    by_number = {number: shingles for number, text in enumerate(texts) if (shingles := _shingles(text)) != {""}}
    return zip(by_number, _sketches(by_number.values(), seed), strict=True)


def _sketches(texts: Iterable[frozenset[str]], seed: int = 1) -> Iterator["MinHash"]:
    """The sketch of each text, given its shingles."""
    from datasketch import MinHash

    # The same hashes as by the library's own function, which takes longer than all the rest.
    sketches: Iterator[MinHash] = MinHash.generator(map(_hashes, texts), num_perm=PERMUTATIONS, seed=seed, hashfunc=int)
    return sketches


@cache
def _bands() -> tuple[int, int]:
    """The optimal bands and rows per band for the similarity `NEAR`, cached since the search is slow."""
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
    return index.b, index.r


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _pairs_across_owners(first: Counter[str], second: Counter[str]) -> int:
    """The number of pairs of one text of each group with different owners."""
    same = sum(count * second[owner] for owner, count in first.items())
    return first.total() * second.total() - same


def _hashes(shingles: Iterable[str]) -> list[int]:
    """The first four bytes of each SHA-1 as a number, as in `datasketch.hashfunc.sha1_hash32`."""
    starts = [sha1(shingle.encode()).digest()[:4] for shingle in shingles]  # noqa: S324 - not for security
    return [number for (number,) in struct.iter_unpack("<I", b"".join(starts))]


def _shingles(text: str) -> frozenset[str]:
    # In scripts without spaces each character is a word.
    words = CHARACTER_OR_WORD.findall(normalized(text))
    if len(words) <= SHINGLE_WORDS:
        return frozenset([" ".join(words)])
    return frozenset(map(" ".join, zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False)))
