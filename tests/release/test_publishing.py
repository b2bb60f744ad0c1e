"""Publishing: what may not be published, and the versions of a release on a Hub that answers as the Hub does."""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from live_hub import Fault, Hub, point_clients
from pluralbench_release import (
    RECIPE,
    Version,
    publish,
    read_manifest,
    release_at,
    release_digest,
    verify,
)
from pluralbench_release.card import as_published
from releases import edit_manifest, files_of, record_again, sum_again

Make = Callable[..., Path]
Run = Callable[..., tuple[int, str]]
Pairs = Callable[..., pl.DataFrame]
CLAUSE = "Its owner's terms forbid it: section 3."


def published(hub: Hub, revision: str = "main") -> dict[str, bytes]:
    """The files of org/name but for the one that the Hub makes."""
    files = hub.repository("org/name").files(revision)
    return {path: content for path, content in files.items() if path != ".gitattributes"}


def test_a_source_that_forbids_it_is_named_with_its_clause_and_nobody_is_asked(
    run: Run, release: Make, hub: Hub
) -> None:
    directory = release()
    edit_manifest(directory, lambda values: values["sources"][0].update(redistribution=CLAUSE))
    sentence = f"Error: tiny may not be published, because of Source 0: {CLAUSE}\n"
    assert run("publish", directory, "org/name", "--create") == (2, sentence)
    assert hub.asked == []


def test_what_does_not_verify_is_not_published(run: Run, release: Make, hub: Hub) -> None:
    directory = release()
    (directory / "data/Art/test.parquet").unlink()
    sentence = f"Error: {directory} does not verify: data/Art/test.parquet is missing.\n"
    assert run("publish", directory, "org/name") == (2, sentence)
    assert hub.asked == []


def test_a_release_is_sent_whole_and_tagged(run: Run, release: Make, hub: Hub) -> None:
    directory = release()
    before = release_digest(directory)
    (directory / ".gitattributes").write_text("*.parquet filter=lfs", encoding="utf-8")  # what a clone of it has
    status, output = run("publish", directory, "org/name", "--private", "--create")
    assert status == 0, output
    digest = release_digest(directory)
    assert digest != before
    assert output.splitlines() == [
        f"{directory} is published as v0.1.0: {hub.url}/datasets/org/name/tree/v0.1.0",
        "- The first published version: 6 rows in 2 tables.",
        f"Release digest: {digest}",
    ]
    (directory / ".gitattributes").unlink()
    assert published(hub, "v0.1.0") == files_of(directory)
    assert verify(directory, digest=digest) == []
    repository = hub.repository("org/name")
    assert repository.private
    (_, title, about, _), _ = repository.messages()
    assert (title, about) == ("tiny 0.1.0", f"Release digest: {digest}")
    assert repository.tag_messages["v0.1.0"] == f"tiny 0.1.0\n\nRelease digest: {digest}"
    card = published(hub)["README.md"].decode()
    assert 'load_dataset("org/name", "Art", split="test")' in card
    assert (
        r"  howpublished = {\url{https://huggingface.co/datasets/org/name}, built with pluralbench-release 0." in card
    )
    changelog = published(hub)["CHANGELOG.md"].decode()
    assert changelog == "# Changelog\n\n## 0.1.0\n\n- The first published version: 6 rows in 2 tables.\n"
    assert f"{hashlib.sha256(changelog.encode()).hexdigest()}  CHANGELOG.md\n" in published(hub)["SHA256SUMS"].decode()


def test_the_same_again_changes_nothing(run: Run, release: Make, hub: Hub) -> None:
    directory = release("first")
    publish(directory, "org/name", tag="v1.0.0", create=True)
    wrote = hub.wrote()
    again = release("again/first")  # built anew, it says nothing of where it is published
    for words in ((), ("--tag", "v1.0.0")):
        status, output = run("publish", again, "org/name", *words)
        assert (status, output.splitlines()[0]) == (
            0,
            f"{again} is already published as v1.0.0: {hub.url}/datasets/org/name/tree/v1.0.0",
        )
        assert files_of(again) == files_of(directory)
    assert hub.wrote() == wrote


@pytest.mark.heavy
def test_versions_follow_from_what_changed(run: Run, release: Make, pairs: Pairs, hub: Hub) -> None:
    publish(release("a", pairs("q1", "q2"), pairs("x")), "org/name", tag="v1.0.0", create=True)
    more = publish(release("b", pairs("q1", "q2", "q3"), pairs("x")), "org/name")
    assert (more.version, more.before) == (Version(1, 1, 0), Version(1, 0, 0))
    assert more.changes == ["`Art/test`: 1 row added (`q3`)."]
    other = publish(release("c", pairs("q1", "q2", "q3"), pairs("x"), title="Another"), "org/name")
    assert (other.version, len(other.changes)) == (Version(1, 1, 1), 1)
    # A table less: its file goes in the same commit.
    directory = release("d", pairs("q1", "q2", "q3", rejected="Other.").filter(pl.col("id") != "q2"))
    status, output = run("publish", directory, "org/name")
    assert (status, output.splitlines()[1:3]) == (
        0,
        [
            "- `Art/test`: 1 row removed (`q2`), `rejected` changed in 2 rows (`q1`, `q3`).",
            "- `no/test`: 1 row removed (`x`).",
        ],
    )
    assert published(hub, "v2.0.0") == files_of(directory)
    assert "data/no/test.parquet" in published(hub, "v1.1.1")
    assert [line for line in published(hub)["CHANGELOG.md"].decode().splitlines() if line.startswith("#")] == [
        "# Changelog",
        *(f"## {version}" for version in ("2.0.0", "1.1.1", "1.1.0", "1.0.0")),
    ]
    card = published(hub)["README.md"].decode()
    assert "\nVersion 2.0.0, 2 rows, built by" in card
    assert "  note = {Version 2.0.0},\n" in card
    assert read_manifest(directory).version == "2.0.0"


def test_a_tag_below_what_changed_and_one_of_another_release_are_refused(
    run: Run, release: Make, pairs: Pairs, hub: Hub
) -> None:
    publish(release("a", pairs("q1", "q2")), "org/name", tag="v1.0.0", create=True)
    wrote, digest = hub.wrote(), hashlib.sha256(published(hub)["SHA256SUMS"]).hexdigest()
    fewer = release("b", pairs("q1"))
    before = files_of(fewer)
    assert run("publish", fewer, "org/name", "--tag", "v1.4.0") == (
        2,
        "Error: v1.4.0 is too low for org/name: since v1.0.0, rows were removed or changed, which requires v2.0.0; "
        "leave out `--tag`, or choose a higher one.\n",
    )
    assert run("publish", fewer, "org/name", "--tag", "v1.0.0") == (
        2,
        f"Error: org/name has the tag v1.0.0 of another release (digest {digest}), and tags never move; leave out "
        "`--tag` to get the next version.\n",
    )
    assert (hub.wrote(), files_of(fewer)) == (wrote, before)
    assert publish(fewer, "org/name", tag="v3.0.0").version == Version(3, 0, 0)


def test_what_is_written_by_hand_stays(release: Make, pairs: Pairs, hub: Hub) -> None:
    directory = release("a", pairs("q1"))
    publish(directory, "org/name", tag="v1.0.0", create=True)
    repository = hub.repository("org/name")
    card = published(hub)["README.md"].decode()
    edited = card.replace("pretty_name:", "thumbnail: https://example.org/a.png\npretty_name:", 1)
    edited = edited.replace("tags:\n", "tags:\n- tea\n", 1)
    edited = edited.replace("## Columns", "## Thanks\n\nTo all.\n\n```python\n## no heading\n```\n\n## Columns", 1)
    files = {"README.md": edited.encode(), "photo.png": b"\x89PNG", "LICENSE": b"Mine"}
    repository.commit(files, message="By hand")
    done = publish(release("b", pairs("q1", "q2")), "org/name")
    assert (done.version.tag, done.other_files) == ("v1.1.0", ["LICENSE", "photo.png"])
    merged = published(hub)["README.md"].decode()
    assert merged.count("thumbnail: https://example.org/a.png\n") == merged.count("- tea\n") == 1
    above, _, below = merged.partition("<!-- Written by hand.")
    assert "## Thanks" not in above
    assert below.endswith("-->\n\n## Thanks\n\nTo all.\n\n```python\n## no heading\n```\n")
    assert "Version 1.1.0, 2 rows" in above
    # What is edited below the line, too, also where the folder has the older text.
    hand = merged.replace("To all.", "To all of you.")
    repository.commit({"README.md": hand.encode()}, message="By hand again")
    third = release("c", pairs("q1", "q2", "q3"))
    publish(third, "org/name")
    assert published(hub)["README.md"].decode().endswith("-->\n\n" + hand.partition("-->\n\n")[2])
    assert verify(third) == []
    assert (published(hub)["photo.png"], published(hub)["LICENSE"]) == (b"\x89PNG", b"Mine")


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_a_stale_parent_is_taken_up_again_once(run: Run, release: Make, pairs: Pairs, hub: Hub, times: int) -> None:
    publish(release("a", pairs("q1")), "org/name", tag="v1.0.0", create=True)
    repository = hub.repository("org/name")

    def somebody() -> None:
        card = published(hub)["README.md"].decode()
        repository.commit({"README.md": (card + f"\n## Note {len(card)}\n\nMine.\n").encode()}, message="Mine")

    hub.faults.append(Fault("POST", "/commit/", first=somebody, times=times))
    directory = release("b", pairs("q1", "q2"))
    before = files_of(directory)
    status, output = run("publish", directory, "org/name")
    if times == 1:
        assert (status, published(hub, "v1.1.0")) == (0, files_of(directory)), output
        assert published(hub)["README.md"].decode().count("\n## Note ") == 1
    else:
        assert (status, output) == (
            2,
            "Error: Another commit to org/name arrived during the upload, so nothing was changed; rerun the same "
            "command to resume.\n",
        )
        assert files_of(directory) == before
        assert [*repository.tags] == ["v1.0.0"]


CASES = {
    "the answer to the commit is lost": Fault("POST", "/commit/", status=0, after=True),
    "the tag fails": Fault("POST", "/tag/", status=500),
    "the upload is refused": Fault("PUT", "/lfs/", status=403, times=9),
}


@pytest.mark.parametrize("what", CASES)
def test_what_was_interrupted_is_finished_by_the_same_command(
    run: Run, release: Make, pairs: Pairs, hub: Hub, what: str
) -> None:
    publish(release("a", pairs("q1")), "org/name", tag="v1.0.0", create=True)
    hub.faults.append(CASES[what])
    directory = release("b", pairs("q1", "q2"))
    status, output = run("publish", directory, "org/name")
    assert (status, output.count("\n")) == (2, 1), output
    assert output.startswith("Error: The request to the Hub for org/name failed: ")
    assert output.endswith(
        "and rerun the same command.\n" if "refused" in what else "rerun the same command to resume.\n"
    )
    hub.faults.clear()
    status, output = run("publish", directory, "org/name")
    assert status == 0, output
    repository = hub.repository("org/name")
    assert [*repository.tags] == ["v1.0.0", "v1.1.0"]
    assert len(repository.messages()) == 3
    assert published(hub, "v1.1.0") == files_of(directory)
    assert verify(directory) == []


@pytest.mark.parametrize(
    ("token", "create", "parts"),
    [
        (None, True, ["No token to write to org/name on the Hub: set HF_TOKEN, or log in with `hf auth login`"]),
        ("hf_nobody_knows_this_one", True, ["Invalid credentials", "hf auth login"]),
        ("hf_reads_what_is_public_0123456789", True, ["the rights to create a dataset", "hf auth login"]),
        ("hf_writes_for_org_0123456789", False, ["The dataset org/name does not exist on the Hub, or", "`--create`."]),
    ],
)
def test_who_may_not_is_told_so(
    run: Run,
    release: Make,
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
    create: bool,
    parts: list[str],
) -> None:
    point_clients(monkeypatch, hub, tmp_path / "home", token)
    status, output = run("publish", release(), "org/name", *["--create"][: int(create)])
    assert (status, output.count("\n")) == (2, 1), output
    for part in parts:
        assert part in output
    assert token is None or token not in output
    assert hub.repositories == {}


@pytest.mark.parametrize("status", [400, pytest.param(500, marks=pytest.mark.heavy)])
def test_the_token_that_a_server_repeats_is_not_printed(
    run: Run, release: Make, hub: Hub, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "Not with {authorization}, " + "x" * 250 + " {authorization}."
    hub.faults.append(Fault("POST", "/commit/", status=status, says=says, times=9))
    directory = release()
    done = run("publish", directory, "org/name", "--create")
    point_clients(monkeypatch, hub, tmp_path / "home", None)  # then it is in the file of the login
    hub.tokens["hf_somebody_else"] = {"org"}
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/token").write_text("hf_somebody_else\n", encoding="utf-8")
    for code, output in (done, run("publish", directory, "org/name")):
        assert (code, output.count("\n"), "Not with Bearer [key], x" in output) == (2, 1, True), output
        assert "hf_" not in output


def test_a_secret_in_a_release_is_told_and_not_published(
    run: Run, release: Make, pairs: Pairs, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, expected = "sk-0123456789 and more", "contains a key, token or password of this environment; do not share"
    directory = release("leaky", pairs("q1", profile=[{"id": "p", "category": None, "text": f"It is {key * 9}!"}]))
    assert key.encode() not in (directory / "data/Art/test.parquet").read_bytes() or verify(directory) == []
    monkeypatch.setenv("TINY_API_KEY", key)
    [problem] = verify(directory)
    assert problem.startswith(f"data/Art/test.parquet {expected}")
    status, output = run("publish", directory, "org/name", "--create")
    assert (status, expected in output, key in output, hub.asked) == (2, True, False, [])
    monkeypatch.delenv("TINY_API_KEY")
    assert verify(directory) == []
    monkeypatch.setenv("MY_LLM", key)  # a name that says nothing, but the recipe names it
    assert verify(directory) == []
    path = directory / RECIPE
    path.write_text(path.read_text(encoding="utf-8") + '[llm]\napi_key_env = "MY_LLM"\n', encoding="utf-8")
    record_again(directory, RECIPE)
    edit_manifest(directory, lambda values: values["recipe"].update(llm={"api_key_env": "MY_LLM"}))
    assert verify(directory) == [problem]


@pytest.mark.heavy
def test_releases_on_the_hub_are_verified_and_compared(run: Run, release: Make, pairs: Pairs, hub: Hub) -> None:
    old, new = release("a", pairs("q1", "q2")), release("b", pairs("q1", "q3"))
    digests = [publish(one, "org/name", create=True).digest for one in (old, new)]
    hub.repository("org/name").commit({"notes.txt": b"not of it"}, message="More")
    assert run("verify", "org/name@v0.1.0") == (
        0,
        f"org/name@v0.1.0: 2 rows in 1 table match the manifest.\nRelease digest: {digests[0]}\n",
    )
    assert run("verify", "org/name", "--digest", digests[1])[0] == 0
    status, output = run("verify", "org/name@v1.0.0", "--digest", digests[0])
    assert (status, output) == (1, f"The release digest is {digests[1]}, but {digests[0]} was expected.\n")
    for a, b in (("org/name@v0.1.0", new), (old, "org/name@v1.0.0"), ("org/name@v0.1.0", "org/name")):
        status, output = run("diff", a, b)
        assert (status, "1 added" in output, "1 removed" in output, "q3" in output) == (
            1,
            True,
            True,
            True,
        ), output
    assert run("diff", "org/name@v1.0.0", new)[0] == 0
    with release_at("org/name@v0.1.0") as folder:
        assert files_of(folder) == published(hub, "v0.1.0")
    _, output = run("verify", "org/name@v9")
    assert output == "Error: org/name on the Hub has no revision 'v9'; it has the tags v0.1.0, v1.0.0.\n"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("org/name@v9.0.0", "org/name on the Hub has no revision 'v9.0.0'."),
        ("org/other@v1.0.0", "org/other is neither a local directory nor a dataset on the Hub that you may read; fix"),
        ("org/plain", "org/plain is not a release: it has no provenance/manifest.json."),
        ("nothing", "nothing is not a release: it has no provenance/manifest.json."),
    ],
)
def test_what_is_no_release_on_the_hub_is_told(run: Run, hub: Hub, place: str, sentence: str) -> None:
    hub.create("org/name")
    hub.create("org/plain")
    for words in (("verify", place), ("diff", place, place), ("rebuild", place)):
        status, output = run(*words)
        assert (status, output.startswith(f"Error: {sentence}")) == (2, True), output


def test_what_is_published_is_written_to_the_folder_by_the_same_command(
    run: Run, release: Make, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    directory = release()
    with monkeypatch.context() as patch:
        patch.setattr("pluralbench_release.publishing.atomic_write", full)
        status, said = run("publish", directory, "org/name", "--create")
    assert (status != 0, "The disk is full" in said) == (True, True), said
    assert run("publish", directory, "org/name")[0] == 0
    assert published(hub) == files_of(directory)


@pytest.mark.heavy
def test_a_hub_that_is_busy_is_asked_again(release: Make, hub: Hub) -> None:
    hub.faults += [Fault("POST", "/preupload/", status=429), Fault("PUT", "/lfs/", status=500)]
    assert publish(release(), "org/name", create=True).new
    assert sum(" 429" in one or " 500" in one for one in hub.asked) == 2


@pytest.mark.parametrize(
    ("token", "words", "part"),
    [
        ("hf_reads_what_is_public_0123456789", [], "You have no right to write to org/name"),
        (
            "hf_writes_for_org_0123456789",
            ["--private", "--create"],
            "Error: org/name is a public dataset on the Hub, and `--private` applies to new ones; leave it out, or "
            "choose another name.\n",
        ),
    ],
)
def test_what_is_there_is_left_to_its_owner_and_public(
    run: Run,
    release: Make,
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    words: list[str],
    part: str,
) -> None:
    hub.create("org/name")
    point_clients(monkeypatch, hub, tmp_path / "home", token)
    status, said = run("publish", release(), "org/name", *words)
    assert (status, said.count("\n"), part in said) == (2, 1, True), said
    assert ("hf auth login" in said) is not bool(words)


def test_a_damaged_release_on_the_hub_is_told(run: Run, release: Make, hub: Hub) -> None:
    directory = release()
    publish(directory, "org/name", create=True)
    card = published(hub)["README.md"]
    hub.repository("org/name").commit({"README.md": card + b"\nMore.\n"}, deleted=["data/no/test.parquet"])
    assert run("verify", "org/name") == (
        1,
        "data/no/test.parquet is missing.\nREADME.md does not match SHA256SUMS.\n",
    )


def test_a_card_is_published_again_elsewhere_and_may_have_been_edited(release: Make) -> None:
    card = (release() / "README.md").read_text(encoding="utf-8")
    again = as_published(as_published(card, "old/name", "1.0.0"), "org/name", "2.0.0")
    assert again == as_published(card, "org/name", "2.0.0") != card
    assert "\nVersion 2.0.0, 6 rows in 2 tables, built by" in again
    assert as_published("Mine alone.", "org/name", "1.0.0") == "Mine alone."


def test_a_card_edited_in_the_folder_is_a_patch(release: Make, hub: Hub) -> None:
    directory = release()
    publish(directory, "org/name", create=True)
    path = directory / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("A summary.", "Our summary."), encoding="utf-8")
    sum_again(directory)
    assert publish(directory, "org/name").version == Version(0, 1, 1)
