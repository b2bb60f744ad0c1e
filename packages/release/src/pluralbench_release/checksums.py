"""`SHA256SUMS`: the SHA-256 of every other file of a release, as `sha256sum -c` reads it, and the release's own digest.

A manifest cannot vouch for itself, and anybody may check these without this package. The SHA-256 of `SHA256SUMS` is the
*release digest*: whoever knows it knows every byte of the release.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pluralbench_runs import file_digest, write_text

from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import existing, existing_digest, text_of
from pluralbench_release.manifest import CARD, MANIFEST, SUMS, Manifest

LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
HEX = re.compile(r"[0-9a-f]{64}")
OLDER = (
    f"{SUMS} is missing, so nothing vouches for the manifest and the card: the release was made before there was one, "
    "or somebody took it away. `pluralbench-release rebuild DIR --out NEW` makes a release that has it."
)


def release_files(manifest: Manifest) -> list[str]:
    """The paths of the files of a release but for `SHA256SUMS`, sorted by code point."""
    return sorted((CARD, MANIFEST, *manifest.provenance, *(table.path for table in manifest.tables)))


def checksums_text(digests: Mapping[str, str]) -> str:
    """The text of `SHA256SUMS` for digests by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def write_checksums(directory: Path, manifest: Manifest) -> None:
    """Write `SHA256SUMS` for the files that lie in `directory`."""
    digests = {path: existing_digest(directory, path) for path in release_files(manifest)}
    write_text(directory / SUMS, checksums_text(digests))


def release_digest(directory: Path) -> str:
    """The release digest: SHA-256 of `SHA256SUMS`, 64 hexadecimal digits. It holds what `verify` says holds.

    Raises `ReleaseError` for a release without that file.
    """
    try:
        return file_digest(existing(directory, SUMS))
    except ReleaseError:
        raise ReleaseError(f"{directory} has no {SUMS}, so it has no release digest.") from None


def read_checksums(directory: Path, files: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What `SHA256SUMS` says: digests by path, and a sentence for each thing that is wrong with it.

    files: the paths that it has to name.
    """
    if not (directory / SUMS).exists():
        return {}, [OLDER]
    try:
        text = text_of(existing(directory, SUMS))
    except ReleaseError as error:
        return {}, [str(error)]
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    digests = {line[2]: line[1] for line in found if line is not None}
    problems = [f"{SUMS} names {path}, which is not of this release." for path in sorted(digests.keys() - set(files))]
    problems += [f"{SUMS} does not name {path}." for path in files if path not in digests]
    if not problems and checksums_text(digests) != text:
        problems.append(f"{SUMS} is not what `sha256sum` writes: a line for each file, sorted by their paths.")
    return digests, problems


def pin_problems(directory: Path, digest: str) -> list[str]:
    """What is wrong where the release digest has to be `digest`.

    Raises `ReleaseError` for a `digest` that is none.
    """
    if not HEX.fullmatch(digest):
        raise ReleaseError(f"`digest` is 64 hexadecimal digits, the SHA-256 of a release's {SUMS}; it is {digest!r}.")
    if not (directory / SUMS).is_file():
        return []  # which is a problem already
    found = release_digest(directory)
    return [] if found == digest else [f"The release digest is {found}, and {digest} is asked for."]
