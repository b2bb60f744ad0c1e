"""Put a release on the Hub, where its sources allow it."""

import hashlib
from pathlib import Path

from pluralbench_runs import one_line, redacted

from pluralbench_release.checksums import read_sums, release_files, sums_text
from pluralbench_release.citation import as_published
from pluralbench_release.errors import ReleaseError
from pluralbench_release.manifest import CARD, SUMS, Manifest, read_manifest
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_release.verify import verify


def check_publishable(manifest: Manifest) -> None:
    """Raise `ReleaseError`, with the clause, for a release that a source does not allow to be passed on."""
    for source in manifest.sources:
        if source.redistribution is not None:
            raise ReleaseError(
                f"{manifest.name} may not be published, because of {source.name}: {source.redistribution.rstrip('.')}."
            )


def push_to_hub(directory: Path, repository: str, *, private: bool = False, version_tag: bool = False) -> str:
    """Put the release in `directory` into the Hub's dataset `repository` (ORG/NAME) and return the commit's address.

    The card names the repository from then on, there and in `directory`, and `SHA256SUMS` has the digest of that card.
    The messages of the commit and of the tag have the release digest.

    private: make the dataset a private one, where it is not there yet. version_tag: tag the commit with the release's
    version, such as v0.1.0.

    Raises `ReleaseError` for a release that may not be published, that does not verify (so also for one with a secret
    of this environment in it, or with files that are not of the release), or that the Hub does not take.
    """
    if not HUB_REPOSITORY.fullmatch(repository):
        raise ReleaseError(f"{repository!r} is no name of a dataset on the Hub, which is ORG/NAME.")
    manifest = read_manifest(directory)
    check_publishable(manifest)
    problems = verify(directory)
    if problems:
        raise ReleaseError(f"{directory} does not verify, so it is not published: {problems[0]}")
    files = release_files(manifest)
    card = as_published((directory / CARD).read_text(encoding="utf-8"), repository).encode()
    recorded = {**read_sums(directory, files).digests, CARD: hashlib.sha256(card).hexdigest()}
    made = {CARD: card, SUMS: sums_text(recorded).encode()}
    about = f"Release digest: {hashlib.sha256(made[SUMS]).hexdigest()}"
    # Imported late: it reads its settings from the environment.
    from huggingface_hub import CommitOperationAdd, HfApi  # noqa: PLC0415

    hub, title = HfApi(), f"{manifest.name} {manifest.version}"
    try:
        hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        commit = hub.create_commit(
            repository,
            [CommitOperationAdd(path, made.get(path, directory / path)) for path in (*files, SUMS)],
            repo_type="dataset",
            commit_message=title,
            commit_description=about,
        )
        if version_tag:
            hub.create_tag(
                repository,
                tag=f"v{manifest.version}",
                tag_message=f"{title}\n\n{about}",
                revision=commit.oid,
                repo_type="dataset",
            )
    except Exception as error:  # noqa: BLE001 - clients raise what the libraries under them raise
        said = one_line(redacted(str(error)), 300)
        raise ReleaseError(
            f"The Hub did not take {directory} as {repository}: {said}. Log in with `hf auth login` as somebody who "
            "may write there, and run the same command again."
        ) from None
    for path, content in made.items():
        (directory / path).write_bytes(content)
    return str(commit.commit_url)
