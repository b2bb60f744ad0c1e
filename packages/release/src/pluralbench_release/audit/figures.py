"""What could be wrong with pairs although each of them is valid.

A reward model must not win by a surface feature, so scorers that cheat are run over the pairs: one takes the longer
text, one the text that repeats more of what the person or the rubric says. Both should be right in one half.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from pluralbench_measures.agreement import share_of

from pluralbench_release.audit.texts import alike, near_duplicates, overlaps


def word_count(text: str) -> int:
    """How many words a text has, by its blanks."""
    return len(text.split())


def pair_figures(
    chosen: Sequence[str],
    rejected: Sequence[str],
    said: Sequence[str] | None = None,
    *,
    owners: Sequence[str] | None = None,
    length: Callable[[str], int] = word_count,
) -> dict[str, Any]:
    """The surface figures of one or more pairs, JSON.

    said: for each pair what a leak would repeat, such as the titles of a rubric or the values of a persona; without it
    there are no figures of `overlap`. owners: for each pair whose chosen text it is; two of one owner are no
    near-duplicates. length: how long a text is for its mean, in words or, for scripts without blanks, in characters.

    pairs: how many. length: `chosen_mean`, `rejected_mean` and `mean_gap`. longer: wins of the scorer that takes the
    text of more characters (see `wins`), as the reference "longer" of the evaluator does. overlap: the mean share of
    what is said that each side repeats. more_overlap: wins of the scorer that takes the side that repeats more.
    near_duplicates: pairs of `chosen` texts, and pairs whose two sides (`sides`) are nearly the same.
    """
    lengths = [length(text) for text in chosen], [length(text) for text in rejected]
    figures: dict[str, Any] = {
        "pairs": len(chosen),
        "length": means(*lengths),
        "longer": wins(*([len(text) for text in side] for side in (chosen, rejected))),
        "near_duplicates": {
            "chosen": near_duplicates(chosen, owners),
            "sides": sum(map(alike, chosen, rejected)),
        },
    }
    if said is not None:
        both = list(map(overlaps, said, chosen, rejected))
        repeated = [own for own, _ in both], [other for _, other in both]
        figures |= {"overlap": means(*repeated), "more_overlap": wins(*repeated)}
    return figures


def means(chosen: Sequence[float], rejected: Sequence[float]) -> dict[str, float]:
    """The mean of each side, and the mean difference between them; all three to four decimals."""
    first, second = fmean(chosen), fmean(rejected)
    return {
        "chosen_mean": round(first, 4),
        "rejected_mean": round(second, 4),
        "mean_gap": round(fmean(one - other for one, other in zip(chosen, rejected, strict=True)), 4),
    }


def wins(chosen: Sequence[float], rejected: Sequence[float]) -> dict[str, Any]:
    """How often the chosen side has more.

    `wins`, `losses`, `ties`, which are neither; `share_of_decided`, wins among wins and losses, None where there are
    neither; and `interval`, its 95 % Wilson interval.
    """
    won = sum(one > other for one, other in zip(chosen, rejected, strict=True))
    lost = sum(one < other for one, other in zip(chosen, rejected, strict=True))
    found = share_of(won, won + lost)
    share, low, high = found["share"], found["low"], found["high"]
    return {
        "wins": won,
        "losses": lost,
        "ties": len(chosen) - won - lost,
        "share_of_decided": None if share is None else round(share, 4),
        "interval": [0.0 if low is None else round(low, 4), 1.0 if high is None else round(high, 4)],
    }


def wins_text(found: dict[str, Any]) -> str:
    """What `wins` found, for a table: "186 of 248 (75 %, 95 % interval 69 % to 80 %), 3 tied"."""
    ties = f", {found['ties']} tied" if found["ties"] else ""
    decided = found["wins"] + found["losses"]
    if not decided:
        return f"undecided{ties}"
    low, high = found["interval"]
    share = found["share_of_decided"]
    return f"{found['wins']} of {decided} ({share:.0%}, 95 % interval {low:.0%} to {high:.0%}){ties}"
