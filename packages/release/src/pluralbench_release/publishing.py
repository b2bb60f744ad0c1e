"""Publish a release on the Hub as a version, with one commit and one tag."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from pluralbench_runs import atomic_write

from pluralbench_release.card import as_published, merge_cards
from pluralbench_release.checksums import checksums_text, read_checksums, release_files
from pluralbench_release.commits import (
    Head,
    Remote,
    address,
    commit,
    commit_with_retry,
    open_remote,
    put_tag,
    tags_of,
    text_at,
)
from pluralbench_release.diff import diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import IGNORED
from pluralbench_release.manifest import (
    CARD,
    CHANGELOG,
    MANIFEST,
    SUMS,
    Manifest,
    manifest_text,
    parse_manifest,
    read_manifest,
)
from pluralbench_release.tables import release_at
from pluralbench_release.verify import verify
from pluralbench_release.versions import (
    Version,
    change_lines,
    change_size,
    first_lines,
    latest,
    parse_tag,
    parse_version,
    with_entry,
)

CHANGES = {"major": "rows were removed or changed", "minor": "rows were added", "patch": "no rows changed"}


@dataclass(frozen=True)
class Published:
    """A published version of a release, with its address, release digest, changes, and the version `before` it.

    `new`: this call published it. `other_files` of the repository belong to no release.
    """

    repository: str
    version: Version
    address: str
    digest: str
    new: bool
    changes: list[str] = field(default_factory=list)
    before: Version | None = None
    other_files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Prepared:
    """A release as it is published, with the contents of the files that publishing changes."""

    manifest: Manifest
    changed_files: dict[str, bytes]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.changed_files[SUMS]).hexdigest()


def check_publishable(manifest: Manifest) -> None:
    """Raise `ReleaseError` with the clause of a source that forbids redistribution."""
    for source in manifest.sources:
        if source.redistribution is not None:
            raise ReleaseError(
                f"{manifest.name} may not be published, because of {source.name}: {source.redistribution.rstrip('.')}."
            )


def publish(
    directory: Path, repository: str, *, tag: str | None = None, private: bool = False, create: bool = False
) -> Published:
    """Publish a release as a version of a dataset on the Hub, with one commit and one tag.

    The card gets the repository and the version, `CHANGELOG.md` the changes, and `SHA256SUMS` their digests, on the Hub
    and in `directory`. The messages of commit and tag contain the release digest. Handwritten text on the card is kept
    (`merge_cards`). Files of the older version that this one lacks are deleted. A repeated call resumes an interrupted
    one, and publishes nothing if the release is already published.

    Args:
        directory: Release directory.
        repository: ORG/NAME.
        tag: Version such as v1.2.0. Default: derived from the changes since the last version: major for removed or
            changed rows, minor for added rows, else patch; for the first version the release's own.
        private: Create the dataset as a private one.
        create: Create the dataset if it does not exist.

    Raises:
        ReleaseError: A source forbids redistribution; the release does not verify, contains a secret of this
            environment or foreign files; the tag belongs to another release or is too low for the changes; or the Hub
            answers with an error.
    """
    wanted = None if tag is None else parse_tag(tag)
    manifest = read_manifest(directory)
    check_publishable(manifest)
    problems = verify(directory)
    if problems:
        raise ReleaseError(f"{directory} does not verify: {problems[0]}")
    remote = open_remote(repository, create=create, private=private)
    tags = tags_of(remote)
    last = latest(tags)
    existing = wanted if wanted is not None and wanted.tag in tags else last
    if existing is not None:
        same = _as_published(directory, remote, existing)
        if same is not None and wanted in {None, existing}:
            _write_back(directory, same)
            return Published(repository, existing, address(remote, existing.tag), same.digest, new=False)
        if wanted == existing:
            raise ReleaseError(
                f"{repository} has the tag {existing.tag} of another release (digest {_digest_at(remote, existing)}), "
                "and tags never move; leave out `tag=...` to get the next version."
            )
    version, changes = _plan_version(directory, remote, manifest, wanted, last)
    return _publish(directory, remote, version, last, changes)


def _plan_version(
    directory: Path, remote: Remote, manifest: Manifest, wanted: Version | None, last: Version | None
) -> tuple[Version, list[str]]:
    """The version and its changelog."""
    if last is None:
        version = wanted or parse_version(manifest.version)
        if version is None:
            raise ReleaseError(
                f"{directory} has the version {manifest.version!r}, which is not three numbers; set `tag=...`, such as "
                "v1.0.0."
            )
        return version, first_lines(manifest)
    with release_at(f"{remote.name}@{last.tag}") as old:
        differences = diff(old, directory)
    change = change_size(differences)
    least = last.after(change)
    if wanted is not None and wanted < least:
        raise ReleaseError(
            f"{wanted.tag} is too low for {remote.name}: since {last.tag}, {CHANGES[change]}, which "
            f"requires {least.tag}; leave out `tag=...`, or choose a higher one."
        )
    return wanted or least, change_lines(differences, last)


def _publish(
    directory: Path, remote: Remote, version: Version, before: Version | None, changes: list[str]
) -> Published:
    published = None if before is None else text_at(remote, before.tag, CARD)
    sent: dict[str, tuple[_Prepared, list[str]]] = {}

    def send(head: Head) -> str:
        changelog = with_entry(text_at(remote, head.commit, CHANGELOG), version, changes)
        prepared = _prepare(directory, remote, version, text_at(remote, head.commit, CARD), published, changelog)
        files = {
            path: prepared.changed_files.get(path, directory / path)
            for path in (*release_files(prepared.manifest), SUMS)
        }
        others = {path for path in head.files - files.keys() if path not in IGNORED}
        text = text_at(remote, head.commit, MANIFEST)
        old = None if text is None else parse_manifest(text, f"{MANIFEST} of {remote.name}")
        deleted = set() if old is None else others & {*release_files(old), SUMS}
        commit_id = commit(
            remote, head.commit, files, deleted=deleted, title=_title(prepared), description=_description(prepared)
        )
        sent[commit_id] = prepared, sorted(others - deleted)
        return commit_id

    commit_id = commit_with_retry(send, remote)
    prepared, other_files = sent[commit_id]
    put_tag(remote, version.tag, commit_id, f"{_title(prepared)}\n\n{_description(prepared)}")
    url = address(remote, version.tag)
    _write_back(directory, prepared)
    return Published(remote.name, version, url, prepared.digest, True, changes, before, other_files)


def _prepare(
    directory: Path, remote: Remote, version: Version, current: str | None, published: str | None, changelog: str
) -> _Prepared:
    """Prepare the files of a version, from the `current` card on the Hub and that of the last version."""
    card = as_published((directory / CARD).read_text(encoding="utf-8"), remote.name, str(version))
    changed = {CARD: merge_cards(card, current, published).encode(), CHANGELOG: changelog.encode()}
    old = read_manifest(directory)
    provenance = old.provenance | {CHANGELOG: hashlib.sha256(changed[CHANGELOG]).hexdigest()}
    manifest = old.model_copy(update={"version": str(version), "provenance": provenance})
    changed[MANIFEST] = manifest_text(manifest).encode()
    digests, _ = read_checksums(directory, release_files(old))
    digests |= {path: hashlib.sha256(content).hexdigest() for path, content in changed.items()}
    return _Prepared(manifest, changed | {SUMS: checksums_text(digests).encode()})


def _as_published(directory: Path, remote: Remote, version: Version) -> _Prepared | None:
    """The prepared files of an already published version; None if that is another release."""
    card, changelog = text_at(remote, version.tag, CARD), text_at(remote, version.tag, CHANGELOG)
    if card is None or changelog is None:
        return None
    prepared = _prepare(directory, remote, version, card, card, changelog)
    return prepared if prepared.digest == _digest_at(remote, version) else None


def _digest_at(remote: Remote, version: Version) -> str:
    return hashlib.sha256((text_at(remote, version.tag, SUMS) or "").encode()).hexdigest()


def _title(prepared: _Prepared) -> str:
    return f"{prepared.manifest.name} {prepared.manifest.version}"


def _description(prepared: _Prepared) -> str:
    return f"Release digest: {prepared.digest}"


def _write_back(directory: Path, prepared: _Prepared) -> None:
    """Write the published files to the directory, the list of digests last so that an interruption shows."""
    for path, content in prepared.changed_files.items():
        with atomic_write(directory / path) as file:
            file.write_bytes(content)
