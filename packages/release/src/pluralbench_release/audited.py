"""Whether a release keeps to the limits that its recipe sets to what a scorer could cheat on."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluralbench_tables import read_json

from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing
from pluralbench_release.manifest import STATISTICS, Manifest

FIGURES = ("longer", "length", "near_duplicates")
"""What the figures of pairs (`pluralbench_release.audit.pair_figures`) have, wherever a builder put them."""


def check_audit(directory: Path, manifest: Manifest) -> None:
    """Raise `pluralbench_release.audit.AuditFailed` where recorded figures break a limit of the recipe's `[audit]`.

    A build holds its own figures to these limits; here whoever has the release does. Limits of which no figures of
    pairs are recorded, as that to what was dropped, are left to the build.
    """
    from pluralbench_release.audit import PairLimits, check_limits, limited  # noqa: PLC0415 - imports what it computes with

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
