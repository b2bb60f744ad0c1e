"""Put a release on the Hub as a version: one commit, one tag, and what people wrote on its card by hand stays."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from pluralbench_runs import atomic_write

from pluralbench_release.audit.limits import check_audit
from pluralbench_release.changelog import change_lines, first_lines, with_entry
from pluralbench_release.checksums import checksums_text, read_checksums, release_files
from pluralbench_release.citation import as_published
from pluralbench_release.commits import (
    Head,
    Remote,
    address,
    commit,
    commit_twice,
    open_remote,
    put_tag,
    tags_of,
    text_at,
)
from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError
from pluralbench_release.fetching import release_at
from pluralbench_release.files import LEFT_ALONE
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
from pluralbench_release.merging import merged
from pluralbench_release.verify import verify
from pluralbench_release.versions import Version, change_of, latest, tagged, version_of


@dataclass(frozen=True)
class Published:
    """A version of a release that is on the Hub.

    address: where it is shown. digest: its release digest. new: whether this call published it. changes: what its
    changelog says of it. before: the version before it. kept: files of the repository that are not of the release.
    """

    repository: str
    version: Version
    address: str
    digest: str
    new: bool
    changes: list[str] = field(default_factory=list)
    before: Version | None = None
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Prepared:
    """A release as it is published. made: the files that are not as they lie in its directory."""

    manifest: Manifest
    made: dict[str, bytes]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.made[SUMS]).hexdigest()


def check_publishable(manifest: Manifest) -> None:
    """Raise `ReleaseError`, with the clause, for a release that a source does not allow to be passed on."""
    for source in manifest.sources:
        if source.redistribution is not None:
            raise ReleaseError(
                f"{manifest.name} may not be published, because of {source.name}: {source.redistribution.rstrip('.')}."
            )


def publish(
    directory: Path, repository: str, *, tag: str | None = None, private: bool = False, create: bool = False
) -> Published:
    """Put the release in `directory` into the Hub's dataset `repository` (ORG/NAME), one commit and one tag.

    tag: the version, such as v1.2.0. None is the one that the difference to the last published one calls for: major
    where rows went or changed, minor where rows came, else patch; at first the release's own. Where that difference is
    none, nothing is published. private: make the dataset a private one, where it is made. create: make it, where it is
    not there yet.

    The card names repository and version from then on, there and in `directory`, `CHANGELOG.md` says what changed, and
    `SHA256SUMS` has their digests; its own digest is in the messages of commit and tag. What people wrote by hand on
    the card stays (see `merging`). What the older version had and this one has not is deleted. What was interrupted is
    finished by the same call.

    Raises `ReleaseError` for a release that may not be published, that does not verify (so also for one with a secret
    of this environment in it, or with files that are not of the release), for a tag of another release or below what
    the difference calls for, and for what the Hub does not take; `AuditFailed` for one that breaks
    the limits of its audit.
    """
    asked = None if tag is None else tagged(tag)
    manifest = read_manifest(directory)
    check_publishable(manifest)
    check_audit(directory, manifest)
    problems = verify(directory)
    if problems:
        raise ReleaseError(f"{directory} does not verify, so it is not published: {problems[0]}")
    remote = open_remote(repository, create=create, private=private)
    tags = tags_of(remote)
    last = latest(tags)
    there = asked if asked is not None and asked.tag in tags else last
    if there is not None:
        same = _as_published(directory, remote, there)
        if same is not None and asked in {None, there}:
            _write_back(directory, same)
            return Published(repository, there, address(remote, there.tag), same.digest, new=False)
        if asked == there:
            raise ReleaseError(
                f"{repository} has the tag {there.tag} of another release (digest {_digest_at(remote, there)}), and a "
                "tag is never moved; leave `tag` (--tag) out, which gives the next version."
            )
    version, changes = _planned(directory, remote, manifest, asked, last)
    return _publish(directory, remote, version, last, changes)


def _planned(
    directory: Path, remote: Remote, manifest: Manifest, asked: Version | None, last: Version | None
) -> tuple[Version, list[str]]:
    """The version, and what it changes. Raises `ReleaseError` for one below what the difference calls for."""
    if last is None:
        version = asked or version_of(manifest.version)
        if version is None:
            raise ReleaseError(
                f"{directory} says that it is of version {manifest.version!r}, which is no three numbers; give `tag` "
                "(--tag), such as v1.0.0."
            )
        return version, first_lines(manifest)
    with release_at(f"{remote.name}@{last.tag}") as old:
        differences = diff(old, directory)
    least = last.after(change_of(differences))
    if asked is not None and asked < least:
        raise ReleaseError(
            f"{asked.tag} is too low for {remote.name}: the last version there is {last.tag}, and {_why(differences)} "
            f"since, which makes {least.tag}; leave `tag` (--tag) out, or give a higher one."
        )
    return asked or least, change_lines(differences, last)


def _why(differences: list[TableDiff]) -> str:
    change = change_of(differences)
    return {"major": "rows went or changed", "minor": "rows came", "patch": "the rows are the same"}[change]


def _publish(
    directory: Path, remote: Remote, version: Version, before: Version | None, changes: list[str]
) -> Published:
    published = None if before is None else text_at(remote, before.tag, CARD)
    sent: dict[str, tuple[_Prepared, list[str]]] = {}

    def send(head: Head) -> str:
        changelog = with_entry(text_at(remote, head.commit, CHANGELOG), version, changes)
        ready = _prepared(directory, remote, version, text_at(remote, head.commit, CARD), published, changelog)
        files = {path: ready.made.get(path, directory / path) for path in (*release_files(ready.manifest), SUMS)}
        others = {path for path in head.files - files.keys() if path not in LEFT_ALONE}
        gone = others & set(_files_at(remote, head))
        made = commit(remote, head.commit, files, deleted=gone, title=_title(ready), about=_about(ready))
        sent[made] = ready, sorted(others - gone)
        return made

    made = commit_twice(send, remote)
    ready, kept = sent[made]
    put_tag(remote, version.tag, made, f"{_title(ready)}\n\n{_about(ready)}")
    _write_back(directory, ready)
    where = address(remote, version.tag)
    return Published(remote.name, version, where, ready.digest, True, changes, before, kept)


def _prepared(
    directory: Path, remote: Remote, version: Version, there: str | None, published: str | None, changelog: str
) -> _Prepared:
    """A release as it is published as a version.

    there: the card on the Hub now. published: that of the last version. changelog: the text of its file.
    """
    card = as_published((directory / CARD).read_text(encoding="utf-8"), remote.name, str(version))
    made = {CARD: merged(card, there, published).encode(), CHANGELOG: changelog.encode()}
    old = read_manifest(directory)
    provenance = old.provenance | {CHANGELOG: hashlib.sha256(made[CHANGELOG]).hexdigest()}
    manifest = old.model_copy(update={"version": str(version), "provenance": provenance})
    made[MANIFEST] = manifest_text(manifest).encode()
    digests, _ = read_checksums(directory, release_files(old))
    digests |= {path: hashlib.sha256(content).hexdigest() for path, content in made.items()}
    return _Prepared(manifest, made | {SUMS: checksums_text(digests).encode()})


def _as_published(directory: Path, remote: Remote, version: Version) -> _Prepared | None:
    """The release as it would be on the Hub as a version that is there, if it is that very release."""
    card, changelog = text_at(remote, version.tag, CARD), text_at(remote, version.tag, CHANGELOG)
    if card is None or changelog is None:
        return None
    ready = _prepared(directory, remote, version, card, card, changelog)
    return ready if ready.digest == _digest_at(remote, version) else None


def _digest_at(remote: Remote, version: Version) -> str:
    """The release digest of a version that is on the Hub."""
    return hashlib.sha256((text_at(remote, version.tag, SUMS) or "").encode()).hexdigest()


def _files_at(remote: Remote, head: Head) -> list[str]:
    """The files of the release that the main branch holds; none where it holds none."""
    text = text_at(remote, head.commit, MANIFEST)
    return [] if text is None else [*release_files(parse_manifest(text, f"{MANIFEST} of {remote.name}")), SUMS]


def _title(ready: _Prepared) -> str:
    return f"{ready.manifest.name} {ready.manifest.version}"


def _about(ready: _Prepared) -> str:
    return f"Release digest: {ready.digest}"


def _write_back(directory: Path, ready: _Prepared) -> None:
    """Let the directory be what is on the Hub; its list of digests last, as an interruption shows there."""
    for path, content in ready.made.items():
        with atomic_write(directory / path) as new:
            new.write_bytes(content)
