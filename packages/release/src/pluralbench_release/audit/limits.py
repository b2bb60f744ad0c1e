"""Limits of a recipe for the audit figures of its pairs."""

import math
from collections.abc import Mapping
from typing import Any

from pluralbench_runs import RecipeError

from pluralbench_release.errors import AuditFailed
from pluralbench_release.recipe import PairLimits


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


def _larger_share(wins: Mapping[str, Any]) -> float:
    """The larger share among wins and losses; one half if all pairs are tied."""
    decided: int = wins["wins"] + wins["losses"]
    share: float = wins["wins"] / decided if decided else 0.5
    return max(share, 1 - share)
