"""Publishing: refused with the clause, and otherwise what a Hub on loopback is sent."""

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from commands import command
from pluralbench_release import (
    RECIPE,
    ReleaseError,
    check_publishable,
    push_to_hub,
    read_manifest,
    release_digest,
    verify,
)
from pluralbench_release.citation import as_published
from releases import edit_manifest, record_again
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
    edit_manifest(directory, lambda values: values["sources"][0].update(redistribution=CLAUSE))


def test_a_source_that_says_nothing_may_be_published(release: Make) -> None:
    manifest = read_manifest(release())
    assert [source.redistribution for source in manifest.sources] == [None]
    check_publishable(manifest)


def test_a_manifest_from_before_the_field_is_read(release: Make) -> None:
    directory = release()
    edit_manifest(directory, lambda values: values["sources"][0].pop("redistribution"))
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
    before = release_digest(directory)
    (directory / ".gitattributes").write_text("*.parquet filter=lfs", encoding="utf-8")  # what a clone of it has
    words = ("publish", directory, "org/name", "--private", "--version-tag")
    done = command("pluralbench-release", *words, env=hub.environment)
    assert done.returncode == 0, done.stderr
    assert f"/datasets/org/name/commit/{OID}" in done.stdout
    [made] = hub.bodies("/api/repos/create")
    assert (made["name"], made["organization"], made["type"]) == ("name", "org", "dataset")
    assert made.get("private", made.get("visibility") == "private")
    [[header, *files]] = hub.bodies("/api/datasets/org/name/commit/main")
    digest = release_digest(directory)
    assert f"Release digest: {digest}\n" in done.stdout
    assert (header["value"]["summary"], header["value"]["description"]) == ("tiny 0.1.0", f"Release digest: {digest}")
    sent = {file["value"]["path"]: base64.b64decode(file["value"]["content"]) for file in files}
    (directory / ".gitattributes").unlink()
    assert sent == {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
    card = sent["README.md"].decode()
    assert 'load_dataset("org/name", "Art", split="test")' in card
    assert (
        r"  howpublished = {\url{https://huggingface.co/datasets/org/name}, built with pluralbench-release 0." in card
    )
    assert verify(directory, digest=digest) == []
    assert digest == hashlib.sha256(sent["SHA256SUMS"]).hexdigest() != before
    [tag] = hub.bodies(f"/api/datasets/org/name/tag/{OID}")
    assert (tag["tag"], tag["message"]) == ("v0.1.0", f"tiny 0.1.0\n\nRelease digest: {digest}")


@pytest.mark.parametrize("status", [400, 500])
def test_the_token_that_a_server_repeats_is_not_printed(
    run: Run, release: Make, hub: WritableHub, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.refuse = status
    hub.says = "Not with {authorization}, " + "x" * 250 + " {authorization}."
    directory = release()
    done = run("publish", directory, "org/name")
    monkeypatch.delenv("HF_TOKEN")  # then it is in the file of the login
    (tmp_path / "token").write_text("hf_somebody_else\n", encoding="utf-8")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    for code, said in (done, run("publish", directory, "org/name")):
        assert (code, said.count("\n"), "Not with Bearer [key], x" in said) == (2, 1, True), said
        assert "hf_" not in said


def test_a_secret_in_a_release_is_told_and_not_published(
    run: Run, release: Make, pairs: Callable[..., pl.DataFrame], hub: WritableHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, told = "sk-0123456789 and more", "holds a key, token or password of this environment; the release is not to"
    directory = release("leaky", pairs("q1", profile=[{"id": "p", "category": None, "text": f"It is {key * 9}!"}]))
    assert key.encode() not in (directory / "data/Art/test.parquet").read_bytes() or verify(directory) == []
    monkeypatch.setenv("TINY_API_KEY", key)
    [problem] = verify(directory)
    assert problem.startswith(f"data/Art/test.parquet {told}")
    status, said = run("publish", directory, "org/name")
    assert (status, told in said, key in said, hub.asked) == (2, True, False, [])
    monkeypatch.delenv("TINY_API_KEY")
    assert verify(directory) == []
    monkeypatch.setenv("MY_LLM", key)  # a name that says nothing, but the recipe names it
    assert verify(directory) == []
    path = directory / RECIPE
    path.write_text(path.read_text(encoding="utf-8") + '[llm]\napi_key_env = "MY_LLM"\n', encoding="utf-8")
    record_again(directory, RECIPE)
    edit_manifest(directory, lambda values: values["recipe"].update(llm={"api_key_env": "MY_LLM"}))
    assert verify(directory) == [problem]


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
