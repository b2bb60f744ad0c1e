"""`SHA256SUMS`, the digest of a release, and that `verify` tells every byte and everything that is not a plain file."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_release import LEDGER, ReleaseError, rebuild_of, release_digest, verify
from releases import edit_manifest, files_of, sum_again

Make = Callable[..., Path]
Run = Callable[..., tuple[int, str]]
ART = "data/Art/test.parquet"
LINK = "is a link; replace it with the file itself."


def problems(directory: Path) -> list[str]:
    """What `verify` says, be it in one sentence instead of many."""
    try:
        return verify(directory)
    except ReleaseError as error:
        return [str(error)]


def test_sha256sum_checks_a_release_and_its_digest_is_of_every_byte(release: Make) -> None:
    directory = release()
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=directory, check=False)
    assert checked.returncode == 0
    lines = (directory / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert [line.split("  ")[1] for line in lines] == sorted(files_of(directory).keys() - {"SHA256SUMS"})
    assert release_digest(directory) == hashlib.sha256((directory / "SHA256SUMS").read_bytes()).hexdigest()
    assert release_digest(directory) == release_digest(release("other/release"))


@pytest.mark.heavy
def test_every_changed_byte_is_told(release: Make) -> None:
    directory = release()
    known = files_of(directory)

    @settings(max_examples=20)
    @given(st.data())
    def expected(data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(known)))
        place = data.draw(st.integers(0, len(known[path]) - 1))
        old, rest = known[path][place : place + 1], known[path][place + 1 :]
        new = data.draw(st.binary(max_size=2).filter(lambda new: new + rest != old + rest))
        (directory / path).write_bytes(known[path][:place] + new + rest)
        message = problems(directory)
        (directory / path).write_bytes(known[path])
        assert message
        assert all("\n" not in problem for problem in message)

    expected()
    assert verify(directory) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lambda text: text.upper(), "SHA256SUMS does not list README.md."),
        (lambda text: text.replace("\n", "\r\n"), "SHA256SUMS is not in the format of `sha256sum`: "),
        (
            lambda text: "".join(sorted(text.splitlines(keepends=True))),
            "SHA256SUMS is not in the format of `sha256sum`: ",
        ),
        (lambda text: text + f"{'0' * 64}  ../x\n", "SHA256SUMS lists ../x, which does not belong to this release."),
        (lambda text: "", "SHA256SUMS does not list README.md."),
    ],
)
def test_a_list_of_another_form_is_told(release: Make, text: Callable[[str], str], expected: str) -> None:
    path = release() / "SHA256SUMS"
    path.write_bytes(text(path.read_text(encoding="utf-8")).encode())
    assert verify(path.parent)[0].startswith(expected)


def test_a_release_from_before_the_list_is_told_so(run: Run, release: Make) -> None:
    directory = release()
    (directory / "SHA256SUMS").unlink()
    sentence = "SHA256SUMS is missing, so the manifest and the card are unprotected; rebuild the release to add it."
    assert run("verify", directory) == (1, f"{sentence}\n")
    assert verify(directory, digest="0" * 64) == [sentence]
    with pytest.raises(ReleaseError, match="has no SHA256SUMS, so it has no release digest"):
        release_digest(directory)


@pytest.mark.parametrize(
    "path", ["README.md", ART, "SHA256SUMS", LEDGER, "provenance/manifest.json", "data", "data/Art"]
)
def test_a_link_in_the_place_of_a_file_or_folder_is_refused(release: Make, tmp_path: Path, path: str) -> None:
    directory = release()
    (directory / path).rename(tmp_path / "elsewhere")
    (directory / path).symlink_to(tmp_path / "elsewhere")
    assert any(path in problem and "link" in problem for problem in problems(directory))
    (directory / path).unlink()
    (directory / path).symlink_to(directory / path)
    assert any(path in problem and "link" in problem for problem in problems(directory))


def test_what_git_and_the_hub_put_there_is_left_alone_but_no_link(release: Make) -> None:
    directory = release()
    for path in (".git/HEAD", ".gitattributes", ".cache/huggingface/download/README.md.metadata"):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).touch()
    assert verify(directory) == []
    (directory / ".git/config").symlink_to("/etc/passwd")
    assert verify(directory) == [f".git/config {LINK}"]
    (directory / ".git/config").unlink()
    (directory / "evil.py").touch()
    (directory / ".cache/more").touch()
    assert verify(directory) == [
        ".cache/more does not belong to this release: its manifest lacks it.",
        "evil.py does not belong to this release: its manifest lacks it.",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda values: values["tables"][0].update(config="../x"), "`tables.0.config`: the name '../x' "),
        (
            lambda values: values["tables"][0].update(path="/etc/passwd"),
            "`tables.0`: the path of Art/test is data/Art/",
        ),
        (
            lambda values: values["provenance"].update({"../x": "0" * 64}),
            "`provenance.../x.[key]`: '../x' is not a path",
        ),
        (lambda values: values["tables"][0].update(rows=-1), "`tables.0.rows`: Input should be greater than"),
    ],
)
def test_a_manifest_with_a_name_that_leads_elsewhere_is_refused(
    run: Run, release: Make, change: Callable[[dict[str, object]], object], expected: str
) -> None:
    directory = release()
    edit_manifest(directory, change)
    for words in (("verify", directory), ("diff", directory, directory), ("rebuild", directory)):
        status, message = run(*words)
        assert (status, message.count("\n")) == (2, 1), message
        assert f"manifest.json is damaged or has another format version ({expected}" in message


def test_a_ledger_that_is_not_the_recorded_one_is_not_rebuilt_from(release: Make) -> None:
    directory = release()
    edit_manifest(
        directory, lambda values: values["builder"].update(name="personalized", distribution="build-personalized")
    )
    (directory / LEDGER).write_bytes(b"PAR1")
    sum_again(directory)
    with pytest.raises(ReleaseError, match=r"(which is not installed|ledger\.parquet does not match the manifest)"):
        rebuild_of(directory)
