"""Publishing: refused with the clause, and otherwise what a Hub on loopback is sent."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import command
from pluralbench_release import ReleaseError, check_publishable, push_to_hub, read_manifest, verify
from pluralbench_release.citation import as_published
from pluralbench_release.manifest import MANIFEST
from writable_hub import OID, WritableHub, taking

Make = Callable[..., Path]
Run = Callable[..., tuple[int, str]]
CLAUSE = "Its owner's terms forbid it: section 3."


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    """The Hub of this process, and by its `environment` that of another."""
    with taking() as server:
        # What the client took from the environment when it was imported.
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.environment["HF_ENDPOINT"])
        monkeypatch.setenv("HF_TOKEN", server.environment["HF_TOKEN"])
        yield server


def forbid(directory: Path) -> None:
    """Let the release's source say that it may not be passed on."""
    path = directory / MANIFEST
    values = json.loads(path.read_text(encoding="utf-8"))
    values["sources"][0]["redistribution"] = CLAUSE
    path.write_text(json.dumps(values), encoding="utf-8")


def test_a_source_that_says_nothing_may_be_published(release: Make) -> None:
    manifest = read_manifest(release())
    assert [source.redistribution for source in manifest.sources] == [None]
    check_publishable(manifest)


def test_a_manifest_from_before_the_field_is_read(release: Make) -> None:
    directory = release()
    path = directory / MANIFEST
    values = json.loads(path.read_text(encoding="utf-8"))
    del values["sources"][0]["redistribution"]
    path.write_text(json.dumps(values), encoding="utf-8")
    assert verify(directory) == []
    check_publishable(read_manifest(directory))


def test_a_source_that_forbids_it_is_named_with_its_clause(release: Make) -> None:
    directory = release()
    forbid(directory)
    with pytest.raises(
        ReleaseError, match=r"tiny may not be published, because of Source 0: Its owner's .*section 3\.$"
    ):
        check_publishable(read_manifest(directory))
    with pytest.raises(ReleaseError, match="section 3"):
        push_to_hub(directory, "org/name")


def test_the_command_refuses_it_and_asks_nobody(run: Run, release: Make, hub: WritableHub) -> None:
    directory = release()
    forbid(directory)
    sentence = f"Error: tiny may not be published, because of Source 0: {CLAUSE}\n"
    assert run("publish", directory, "org/name") == (2, sentence)
    assert hub.asked == []


@pytest.mark.parametrize("name", ["name", "org/name/more", "org/", "https://huggingface.co/org/name"])
def test_a_name_that_is_none_is_refused(release: Make, name: str) -> None:
    with pytest.raises(ReleaseError, match="is no name of a dataset on the Hub, which is ORG/NAME"):
        push_to_hub(release(), name)


def test_what_does_not_verify_is_not_published(run: Run, release: Make, hub: WritableHub) -> None:
    directory = release()
    (directory / "data/Art/test.parquet").unlink()
    sentence = f"Error: {directory} does not verify, so it is not published: data/Art/test.parquet is missing.\n"
    assert run("publish", directory, "org/name") == (2, sentence)
    assert hub.asked == []


def test_a_release_is_sent_whole_and_tagged(release: Make, hub: WritableHub) -> None:
    directory = release()
    (directory / "notes.txt").write_text("mine", encoding="utf-8")
    words = ("publish", directory, "org/name", "--private", "--version-tag")
    done = command("pluralbench-release", *words, env=hub.environment)
    assert done.returncode == 0, done.stderr
    assert f"/datasets/org/name/commit/{OID}" in done.stdout
    [made] = hub.bodies("/api/repos/create")
    assert (made["name"], made["organization"], made["type"]) == ("name", "org", "dataset")
    assert made.get("private", made.get("visibility") == "private")
    [[header, *files]] = hub.bodies("/api/datasets/org/name/commit/main")
    assert header["value"]["summary"] == "tiny 0.1.0"
    sent = {file["value"]["path"]: base64.b64decode(file["value"]["content"]) for file in files}
    (directory / "notes.txt").unlink()
    assert sent == {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
    card = sent["README.md"].decode()
    assert 'load_dataset("org/name", "Art", split="test")' in card
    assert (
        r"  howpublished = {\url{https://huggingface.co/datasets/org/name}, built with pluralbench-release 0." in card
    )
    assert verify(directory) == []
    [tag] = hub.bodies(f"/api/datasets/org/name/tag/{OID}")
    assert tag["tag"] == "v0.1.0"


def test_what_the_hub_does_not_take_is_one_sentence(run: Run, release: Make, hub: WritableHub, tmp_path: Path) -> None:
    hub.refuse = 403
    status, said = run("publish", release(), "org/name")
    assert (status, said.count("\n")) == (2, 1), said
    for part in ("Error: The Hub did not take", "as org/name", "hf auth login"):
        assert part in said
    assert hub.bodies("/tag/") == []
    assert 'load_dataset("release", "Art"' in (tmp_path / "release/README.md").read_text(encoding="utf-8")


def test_a_card_is_published_again_elsewhere_and_may_have_been_edited(release: Make) -> None:
    card = (release() / "README.md").read_text(encoding="utf-8")
    assert as_published(as_published(card, "old/name"), "org/name") == as_published(card, "org/name") != card
    assert as_published("Mine alone.", "org/name") == "Mine alone."
