"""Limits that a recipe may set to the figures of its pairs, and whether a release keeps to them."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import RecipeError
from pluralbench_tables import read_json

from pluralbench_release.errors import AuditFailed, ReleaseError
from pluralbench_release.files import existing
from pluralbench_release.manifest import STATISTICS, Manifest
from pluralbench_release.recipe import PairLimits

FIGURES = ("longer", "length", "near_duplicates")
"""What the figures of pairs (`pair_figures`) have, wherever a builder put them."""


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


def check_audit(directory: Path, manifest: Manifest) -> None:
    """Raise `AuditFailed` where the recorded figures of a release break a limit of its recipe's `[audit]`.

    A build holds its own figures to these limits; here whoever has the release does. Limits of which no figures of
    pairs are recorded, as that to what was dropped, are left to the build.
    """
    asked = manifest.recipe.get("audit", {})
    limits = {name: asked[name] for name in PairLimits.model_fields if name in asked}
    if not limits:
        return
    for place, figures in _figures(read_json(existing(directory, STATISTICS), ReleaseError), ""):
        found = limited(figures)
        known = PairLimits(**{name: value for name, value in limits.items() if name in found})
        check_limits(found, known, f"The audit of {manifest.name}{place}")


def _figures(value: object, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The figures of pairs in statistics, and where they stand there."""
    if isinstance(value, Mapping):
        if all(isinstance(value.get(name), Mapping) for name in FIGURES):
            yield place, value
        for key, inner in value.items():
            yield from _figures(inner, f"{place} {key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _figures(inner, f"{place} {number + 1}")


def _away(wins: Mapping[str, Any]) -> float:
    """The share of decided pairs that the scorer gets right, or wrong where that is more; one half where none is."""
    decided: int = wins["wins"] + wins["losses"]
    share: float = wins["wins"] / decided if decided else 0.5
    return max(share, 1 - share)
