"""What whoever changes a release can do, so that its own lists of digests agree with the change."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANIFEST = "provenance/manifest.json"
SUMS = "SHA256SUMS"


def sum_again(directory: Path) -> None:
    """Let `SHA256SUMS` have the digests of the files that it names as they lie there now."""
    path = directory / SUMS
    lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {name: directory / name for _, name in lines if (directory / name).is_file()}
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in found.items()}
    path.write_text("".join(f"{digests.get(name, digest)}  {name}\n" for digest, name in lines), encoding="utf-8")


def edit_manifest(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest's values, and what `SHA256SUMS` says of it."""
    path = directory / MANIFEST
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    sum_again(directory)


def record_again(directory: Path, *paths: str) -> None:
    """Let the manifest's `provenance` have the digests of these files as they lie there now."""
    digests = {path: hashlib.sha256((directory / path).read_bytes()).hexdigest() for path in paths}
    edit_manifest(directory, lambda values: values["provenance"].update(digests))
