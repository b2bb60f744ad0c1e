"""What could be wrong with pairs although each of them is valid: length, leaks, repetition, and what was dropped.

A reward model must not win by a surface feature, so two scorers that cheat are run over the pairs: one takes the
longer answer, one the answer that repeats more of the aspects' words. Both should be near one half.
"""

import math
import re
from typing import Any

import polars as pl
from bm25s.tokenization import STOPWORDS_EN
from rapidfuzz.fuzz import token_sort_ratio

from build_personalized.errors import AuditFailed
from build_personalized.recipe import AuditTable

WORD = re.compile(r"\w+")
NEAR = 0.8  # similarity from which two texts count as nearly the same
SHINGLE_WORDS = 3
SHORT = 20  # words below which an answer can hardly be both good and personal


def audit(pairs: pl.DataFrame, drops: pl.DataFrame, *, questions: int, word_limit: int) -> dict[str, Any]:
    """Figures about `pairs` (columns of `PersonalizedPairs` and `config`), JSON.

    questions: how many the sources had, drops of the source's own posts aside. Shares come with 95 % Wilson
    intervals; ties (equal length, equal overlap) are counted apart and are no wins.
    """
    words = pl.DataFrame({side: [len(text.split()) for text in pairs[side]] for side in ("chosen", "rejected")})
    overlap = overlaps(pairs)
    similar = [token_sort_ratio(row["chosen"], row["rejected"]) / 100 for row in pairs.iter_rows(named=True)]
    posts = pairs["profile"].list.len()
    return {
        "questions": questions,
        "pairs": pairs.height,
        "pairs_by_config": dict(pairs.group_by("config", maintain_order=True).len().iter_rows()),
        "drops": [
            {"config": config, "step": step, "reason": reason, "count": count}
            for config, step, reason, count in drops.group_by("config", "step", "reason", maintain_order=True)
            .len()
            .iter_rows()
        ],
        "words": {
            "chosen_mean": _rounded(words["chosen"].mean()),
            "rejected_mean": _rounded(words["rejected"].mean()),
            "mean_gap": _rounded((words["chosen"] - words["rejected"]).mean()),
            "short": sum(count < SHORT for side in ("chosen", "rejected") for count in words[side]),
            "over_limit": int(((words["chosen"] > word_limit) | (words["rejected"] > word_limit)).sum()),
        },
        "longer_answer_wins": _wins(words["chosen"], words["rejected"]),
        "aspect_overlap": {
            "chosen_mean": _rounded(overlap["chosen"].mean()),
            "rejected_mean": _rounded(overlap["rejected"].mean()),
        },
        "more_overlap_wins": _wins(overlap["chosen"], overlap["rejected"]),
        "near_duplicates": {
            "questions": near_duplicates(pairs["question"].to_list()),
            "chosen": near_duplicates(pairs["chosen"].to_list()),
            "chosen_and_rejected": sum(value >= NEAR for value in similar),
        },
        "profile_posts": {
            "min": posts.min(),
            "median": _rounded(posts.median()),
            "max": posts.max(),
        },
        "aspects_per_question": _rounded(pairs["rubric_aspects"].list.len().mean()),
    }


def check_limits(figures: dict[str, Any], limits: AuditTable) -> None:
    """Raise `AuditFailed` naming every limit that the figures break."""
    longer = figures["longer_answer_wins"]
    decided = longer["wins"] + longer["losses"]
    share = longer["wins"] / decided if decided else 0.5
    gap = figures["aspect_overlap"]["chosen_mean"] - figures["aspect_overlap"]["rejected_mean"]
    duplicates = figures["near_duplicates"]
    found = {
        "max_chosen_longer": max(share, 1 - share),
        "max_mean_length_gap": abs(figures["words"]["mean_gap"]),
        "max_overlap_gap": abs(gap),
        "max_drop_share": (figures["questions"] - figures["pairs"]) / figures["questions"],
        "max_near_duplicates": duplicates["questions"] + duplicates["chosen"],
    }
    broken = [
        f"{name} = {limit:g} (found {found[name]:.3g})"
        for name, limit in limits.model_dump(exclude_none=True).items()
        if found[name] > limit and not math.isclose(found[name], limit)
    ]
    if broken:
        raise AuditFailed(
            f"The audit fails: {', '.join(broken)}; mend the recipe or its [audit] limits and run it again, "
            "the recorded calls are kept."
        )


def overlaps(pairs: pl.DataFrame) -> pl.DataFrame:
    """Per pair, the share of the aspect titles' content words that each side repeats (`chosen`, `rejected`)."""
    rows = []
    for row in pairs.iter_rows(named=True):
        titles = _content_words(" ".join(aspect["aspect"] for aspect in row["rubric_aspects"]))
        rows.append(
            [
                len(titles & _content_words(row[side])) / len(titles) if titles else 0.0
                for side in ("chosen", "rejected")
            ]
        )
    return pl.DataFrame(rows, schema={"chosen": pl.Float64, "rejected": pl.Float64}, orient="row")


def near_duplicates(texts: list[str]) -> int:
    """How many pairs of `texts` share some four fifths of their three-word sequences (MinHash, fixed seed)."""
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - a second that every other command saves

    index = MinHashLSH(threshold=NEAR, num_perm=128)
    found = 0
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=128, seed=1)
        sketch.update_batch([shingle.encode() for shingle in _shingles(text)])
        found += len(index.query(sketch))
        index.insert(str(number), sketch)
    return found


def _shingles(text: str) -> set[str]:
    words = text.lower().split()
    if len(words) < SHINGLE_WORDS:
        return {" ".join(words)}
    return {" ".join(words[start : start + SHINGLE_WORDS]) for start in range(len(words) - SHINGLE_WORDS + 1)}


def _content_words(text: str) -> set[str]:
    return {word for word in WORD.findall(text.lower()) if word not in STOPWORDS_EN}


def _wins(chosen: pl.Series, rejected: pl.Series) -> dict[str, Any]:
    from scipy.stats import binomtest  # noqa: PLC0415 - the same

    wins, losses = int((chosen > rejected).sum()), int((chosen < rejected).sum())
    interval = [0.0, 1.0]
    if wins + losses:
        bounds = binomtest(wins, wins + losses).proportion_ci(method="wilson")
        interval = [_rounded(bounds.low), _rounded(bounds.high)]
    return {
        "wins": wins,
        "losses": losses,
        "ties": len(chosen) - wins - losses,
        "share_of_decided": _rounded(wins / (wins + losses)) if wins + losses else None,
        "interval": interval,
    }


def _rounded(value: Any) -> float:
    return round(float(value), 4)
