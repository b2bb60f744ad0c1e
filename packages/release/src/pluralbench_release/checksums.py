"""`SHA256SUMS`: the SHA-256 of every other file of a release, in the format of `sha256sum -c`.

`SHA256SUMS` covers the manifest too and can be checked without this package. Its own SHA-256 is the *release digest*,
which identifies every byte of the release.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pluralbench_runs import file_digest, write_text

from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing_file, read_text
from pluralbench_release.manifest import CARD, MANIFEST, SUMS, Manifest

LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
HEX = re.compile(r"[0-9a-f]{64}")


def release_files(manifest: Manifest) -> list[str]:
    """List the paths of a release's files without `SHA256SUMS`, sorted by code point."""
    return sorted((CARD, MANIFEST, *manifest.provenance, *(table.path for table in manifest.tables)))


def checksums_text(digests: Mapping[str, str]) -> str:
    """Format `SHA256SUMS` from digests by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def write_checksums(directory: Path, manifest: Manifest) -> None:
    """Write `SHA256SUMS` for the files of a release directory."""
    digests = {path: file_digest(existing_file(directory, path)) for path in release_files(manifest)}
    write_text(directory / SUMS, checksums_text(digests))


def release_digest(directory: Path) -> str:
    """Compute the release digest: the SHA-256 of `SHA256SUMS`, 64 hexadecimal digits.

    It identifies the files only if `verify` reports no problems.

    Raises:
        ReleaseError: The release has no `SHA256SUMS`.
    """
    try:
        return file_digest(existing_file(directory, SUMS))
    except ReleaseError:
        raise ReleaseError(f"{directory} has no {SUMS}, so it has no release digest.") from None


def read_checksums(directory: Path, files: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Read `SHA256SUMS`, which must list `files`: digests by path, and one sentence for each problem."""
    if not (directory / SUMS).exists():
        return {}, [f"{SUMS} is missing, so the manifest and the card are unprotected; rebuild the release to add it."]
    try:
        text = read_text(existing_file(directory, SUMS))
    except ReleaseError as error:
        return {}, [str(error)]
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    digests = {line[2]: line[1] for line in lines if line is not None}
    problems = [
        f"{SUMS} lists {path}, which does not belong to this release." for path in sorted(digests.keys() - set(files))
    ]
    problems += [f"{SUMS} does not list {path}." for path in files if path not in digests]
    if not problems and checksums_text(digests) != text:
        problems.append(f"{SUMS} is not in the format of `sha256sum`: one line per file, sorted by path.")
    return digests, problems


def pin_problems(directory: Path, digest: str) -> list[str]:
    """Compare the release digest with an expected one; one sentence if they differ.

    Raises:
        ReleaseError: `digest` is not a SHA-256.
    """
    if not HEX.fullmatch(digest):
        raise ReleaseError(f"`digest=...` must be 64 hexadecimal digits, the SHA-256 of {SUMS}; it is {digest!r}.")
    if not (directory / SUMS).is_file():
        return []  # `read_checksums` reports it
    actual = release_digest(directory)
    return [] if actual == digest else [f"The release digest is {actual}, but {digest} was expected."]
