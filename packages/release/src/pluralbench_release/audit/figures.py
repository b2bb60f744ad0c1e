"""Surface figures of valid pairs, which show whether a reward model could win without reading.

Two trivial scorers run over the pairs: one prefers the longer text, one the text that repeats more words of the rubric
or persona. Both should be right in about half of the pairs.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from pluralbench_measures.agreement import share_of

from pluralbench_release.audit.texts import near_duplicates, nearly_equal, overlaps


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
