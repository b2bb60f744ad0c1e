"""Audits of pairs of texts for shortcuts that a scorer could use: length, leaks and repetition."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_runs import RecipeError

from pluralbench_release.errors import AuditFailed
from pluralbench_release.figures import text_table
from pluralbench_release.recipe import PairLimits
from pluralbench_release.similarity import count_near, nearly_equal, overlaps, select_texts, split_words


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
        owners: Owner of each chosen text, such as a user; two texts of one owner are not near-duplicates. Default: each
            text has its own.
        length: Length of a text for the means: in words or, for scripts without spaces, in characters.

    Returns:
        `pairs`, `length` and, with references, `overlap` (the mean share of the reference that a side repeats), each
        with `chosen_mean`, `rejected_mean` and `mean_gap`; `longer` and `more_overlap`, the wins of scorers that prefer
        the text with more characters or overlap (see `wins`); and `near_duplicates` of `chosen` texts and of `sides`.
    """
    count = len(chosen)
    words = split_words([*chosen, *rejected, *(references or ())])
    lengths = [length(text) for text in chosen], [length(text) for text in rejected]
    figures: dict[str, Any] = {
        "pairs": count,
        "length": means(*lengths),
        "longer": wins(*([len(text) for text in side] for side in (chosen, rejected))),
        "near_duplicates": {
            "chosen": count_near(select_texts(words, range(count)), owners),
            "sides": sum(map(nearly_equal, chosen, rejected)),
        },
    }
    if references is not None:
        places = range(len(references))
        sides = overlaps(
            words, range(2 * count, 2 * count + len(references)), places, range(count, count + len(places))
        )
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
    """Compute the value that each limit bounds from the result of `pair_figures`. Each bounds both directions."""
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
    """Check audit values by name of the limit (see `limit_values`) against the limits of a recipe.

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
    """Check results of `pair_figures`, by the name of their set, against the limits of a recipe.

    `others` are values of further limits, equal for all sets.

    Raises:
        AuditFailed: A set exceeds limits; the message names all limits of the first such set.
    """
    for name, figures in audits.items():
        check_limits(limit_values(figures) | others, limits, f"The audit of {name}")


def surface_table(
    names: Sequence[str], audits: Iterable[tuple[Sequence[str], Mapping[str, Any]]], reference: str
) -> pl.DataFrame:
    """Format how often the scorers win that prefer the longer text, or the one that repeats more of the reference.

    `audits` has the values of the first columns, whose `names` are given, and the result of `pair_figures`.
    """
    rows = [(*place, wins_text(figures["longer"]), wins_text(figures["more_overlap"])) for place, figures in audits]
    return text_table([*names, "more characters", f"more of the {reference}"], rows)


def _larger_share(wins: Mapping[str, Any]) -> float:
    decided: int = wins["wins"] + wins["losses"]
    share: float = wins["wins"] / decided if decided else 0.5
    return max(share, 1 - share)
