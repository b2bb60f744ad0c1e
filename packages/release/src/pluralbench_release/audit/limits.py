"""Limits that a recipe may set to the figures of its pairs."""

import math
from collections.abc import Mapping
from typing import Any

from pluralbench_runs import RecipeError

from pluralbench_release.errors import AuditFailed
from pluralbench_release.recipe import PairLimits


def limited(figures: Mapping[str, Any]) -> dict[str, float]:
    """What `figures` (of `pair_figures`) have for each limit. Shares and gaps have a limit in both directions."""
    found = {
        "max_chosen_longer": _away(figures["longer"]),
        "max_mean_length_gap": abs(figures["length"]["mean_gap"]),
        "max_near_duplicates": figures["near_duplicates"]["chosen"],
    }
    if "overlap" in figures:
        overlap = figures["overlap"]
        found["max_chosen_overlap"] = _away(figures["more_overlap"])
        found["max_overlap_gap"] = abs(overlap["chosen_mean"] - overlap["rejected_mean"])
    return found


def check_limits(found: Mapping[str, float], limits: PairLimits, what: str = "The audit") -> None:
    """Raise `AuditFailed` naming every limit that is broken.

    found: by the name of the limit, see `limited`. what: whose audit it is. Raises `RecipeError` for a limit of which
    nothing is found, as that to drops where none are counted.
    """
    asked = limits.model_dump(exclude_none=True)
    for name in asked.keys() - found.keys():
        raise RecipeError(f"{what} has no figure for the limit `{name}`; take it out of [audit].")
    broken = [
        f"{name} = {limit:g} (found {found[name]:.3g})"
        for name, limit in asked.items()
        if found[name] > limit and not math.isclose(found[name], limit)
    ]
    if broken:
        raise AuditFailed(
            f"{what} fails: {', '.join(broken)}; mend the recipe or its [audit] limits and run it again, "
            "the recorded calls are kept."
        )


def _away(wins: Mapping[str, Any]) -> float:
    """The share of decided pairs that the scorer gets right, or wrong where that is more; one half where none is."""
    decided: int = wins["wins"] + wins["losses"]
    share: float = wins["wins"] / decided if decided else 0.5
    return max(share, 1 - share)
