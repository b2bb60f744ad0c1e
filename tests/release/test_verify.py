"""Whatever is damaged in a release, `verify` says what and where."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from pluralbench_release import LEDGER, RECIPE, ReleaseError, release_digest, verify
from pluralbench_release.manifest import MANIFEST, ROW_DIGESTS, STATISTICS
from releases import Damage, cell, edit_manifest, ledger, record_again, sum_again, table, without_calls

Make = Callable[..., Path]
Run = Callable[..., tuple[int, str]]
ART = "data/Art/test.parquet"
DIFFERS = f"{ART}: the content differs from its digest"


def rows(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Damage:
    """Change the rows of the first table."""
    return table(ART, change)


def card(old: str, new: str) -> Damage:
    """Replace `old` in the card, or all of it."""

    def edit(directory: Path) -> None:
        text = (directory / "README.md").read_text(encoding="utf-8")
        assert old in text
        (directory / "README.md").write_text(text.replace(old, new, 1) if old else new, encoding="utf-8")

    return edit


def manifest(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Edit the manifest."""
    return lambda directory: edit_manifest(directory, change)


def tasks(change: Callable[[list[dict[str, str]]], object] | str) -> Damage:
    """Change the tasks of `eval.yaml`, or the whole file, and what the manifest says of it."""

    def edit(directory: Path) -> None:
        path = directory / "eval.yaml"
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(change, str):
            change(values["tasks"])
        path.write_text(change if isinstance(change, str) else yaml.safe_dump(values), encoding="utf-8")
        record_again(directory, "eval.yaml")

    return edit


def overwrite(name: str, content: bytes) -> Damage:
    return lambda directory: (directory / name).write_bytes(content)


def remove(name: str) -> Damage:
    return lambda directory: (directory / name).unlink()


DAMAGE: dict[str, tuple[Damage, list[str]]] = {
    "a cell": (cell(ART, "chosen", "new", "q2"), [f"{DIFFERS}, first in the row with id 'q2', which is changed."]),
    "a missing value": (
        cell(ART, "rejected", None, "q3"),
        [
            f"{ART}, row 3 (id 'q3'): column `rejected` must not be missing, got null.",
            f"{DIFFERS}, first in the row with id 'q3', which is changed.",
        ],
    ),
    "a removed row": (
        rows(lambda frame: frame.filter(pl.col("id") != "q2")),
        [f"{ART} has 3 rows; expected 4.", f"{DIFFERS}, first in the row with id 'q2', which is missing."],
    ),
    "an added row": (
        rows(lambda frame: pl.concat([frame, frame[:1].with_columns(id=pl.lit("א1"))])),
        [f"{ART} has 5 rows; expected 4.", f"{DIFFERS}, first in the row with id 'א1', which is new."],
    ),
    "an id twice": (
        rows(lambda frame: pl.concat([frame[:3], frame[1:2]])),
        [
            f"{ART}, row 2 (id 'q2'): column `id` must be unique, got \"q2\" (2 failures in all).",
            f"{DIFFERS}, first in the row with id 'q2', which occurs more than once.",
        ],
    ),
    "a renamed column": (
        rows(lambda frame: frame.rename({"generator": "model"}).drop("prompt_version")),
        [
            f"{ART}: column `model` is not part of this table (3 failures in all).",
            f"{DIFFERS}, first in the row with id 'q1', which is changed.",
        ],
    ),
    "no ids": (rows(lambda frame: frame.drop("id")), [f"{ART} has rows without an `id`."]),
    "dates": (
        rows(lambda frame: frame.with_columns(category=pl.date(2020, 1, 1))),
        [
            f"{ART}: The row with id 'q1' has a value that JSON cannot represent (unsupported type: "
            "<class 'datetime.date'>)."
        ],
    ),
    "no Parquet": (overwrite(ART, b"garbage"), [f"{ART} cannot be read as Parquet."]),
    "a missing file": (remove(ART), [f"{ART} is missing."]),
    "a file more": (
        overwrite("data/Art/notes.txt", b""),
        ["data/Art/notes.txt does not belong to this release: its manifest lacks it."],
    ),
    "a config renamed on the card": (
        card("config_name: Art", "config_name: Arts"),
        ["The card's `configs:` and the manifest differ in Art/test, Arts/test."],
    ),
    "a card without configs": (
        card("", "---\nlicense: mit\n---\n"),
        ["The card's `configs:` and the manifest differ in Art/test, no/test."],
    ),
    **{
        f"tasks: {name}": (tasks(change), [f"The tasks of eval.yaml and the manifest differ in {name}."])
        for name, change in {
            "Arts": lambda listed: listed[1].update(id="Arts"),
            "no": lambda listed: listed[2].update(split="train"),
            "overall": lambda listed: listed.pop(0),
        }.items()
    },
    "no tasks": (tasks("a: 1"), ["eval.yaml cannot be read (KeyError('tasks'))."]),
    "a ledger of something else": (ledger(lambda frame: frame.drop("key")), [f"{LEDGER} is not a ledger."]),
    "a call that was lost": (
        without_calls("chosen q3", "chosen q2"),
        [f"{ART}: `chosen_call` of id 'q2' names a call that is not in the ledger (2 in total)."],
    ),
    "another count of rows": (
        manifest(lambda values: values["tables"][0].update(rows=1200)),
        [f"{ART} has 4 rows; expected 1,200."],
    ),
    "another digest": (
        manifest(lambda values: values["tables"][0].update(digest="0" * 64)),
        [f"{DIFFERS}, although all rows match provenance/row_digests.parquet."],
    ),
    "another schema": (
        manifest(lambda values: values["tables"][0].update(table_schema="Chess")),
        [f"{ART}: the schema 'Chess' is unknown to this version."],
    ),
    "another recipe": (
        overwrite(RECIPE, b'name = "tiny"\nseed = 2\n'),
        [f"{RECIPE} does not match the manifest."],
    ),
    **{f"no {path}": (remove(path), [f"{path} is missing."]) for path in (RECIPE, STATISTICS, ROW_DIGESTS)},
    "another recipe in the manifest": (
        manifest(lambda values: values["recipe"].update(seed=43)),
        ["provenance/recipe.toml and the recipe in the manifest differ."],
    ),
    "a table less in the manifest": (
        manifest(lambda values: values["tables"].pop()),
        [
            "data/no/test.parquet does not belong to this release: its manifest lacks it.",
            "SHA256SUMS lists data/no/test.parquet, which does not belong to this release.",
            "The card's `configs:` and the manifest differ in no/test.",
            "The tasks of eval.yaml and the manifest differ in no.",
        ],
    ),
    "a file of provenance less in the manifest": (
        manifest(lambda values: values["provenance"].pop("provenance/statistics.json")),
        [
            "provenance/statistics.json does not belong to this release: its manifest lacks it.",
            "SHA256SUMS lists provenance/statistics.json, which does not belong to this release.",
            "provenance/statistics.json has no digest in the manifest.",
        ],
    ),
    "a file of provenance more in the manifest": (
        manifest(lambda values: values["provenance"].update({"provenance/more.json": "0" * 64})),
        ["provenance/more.json is missing.", "SHA256SUMS does not list provenance/more.json."],
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_damaged_is_named(release: Make, name: str) -> None:
    damage, problems = DAMAGE[name]
    directory = release()
    digest = release_digest(directory)
    damage(directory)
    sum_again(directory)
    assert verify(directory) == problems
    if release_digest(directory) != digest:  # what is missing or lies beside it changes no digest
        sentence = f"The release digest is {release_digest(directory)}, but {digest} was expected."
        assert verify(directory, digest=digest) == [sentence, *problems]


def test_a_card_that_is_gone_or_no_card_is_said(release: Make) -> None:
    directory = release()
    overwrite("README.md", b"---\n- a list\n---\n")(directory)
    sum_again(directory)
    assert verify(directory) == ["The YAML of README.md cannot be read (repo card metadata block should be a dict)."]
    remove("README.md")(directory)
    assert verify(directory) == ["README.md is missing."]


@pytest.mark.parametrize(
    "write_again",
    [
        rows(lambda frame: frame),
        rows(lambda frame: frame.reverse().select(reversed(frame.columns))),
        lambda directory: pq.write_table(pq.read_table(directory / ART), directory / ART, compression="gzip"),
    ],
)
def test_the_same_content_in_other_bytes_is_called_that(release: Make, write_again: Damage) -> None:
    directory = release()
    before = (directory / ART).read_bytes()
    write_again(directory)
    assert (directory / ART).read_bytes() != before
    sentence = f"{ART} has the recorded content, but its bytes do not match {{}}."
    assert verify(directory) == [sentence.format("SHA256SUMS and the manifest")]
    sum_again(directory)
    assert verify(directory) == [sentence.format("the manifest")]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (remove(MANIFEST), r"DIR is not a release: it has no provenance/manifest\.json\.$"),
        (overwrite(MANIFEST, b"{"), r"manifest\.json is damaged or has another format version \(Invalid JSON: .*\)\.$"),
        (overwrite(MANIFEST, b"\xff"), r"manifest\.json is not UTF-8 text \(invalid start byte at byte 0\)\.$"),
        (
            manifest(lambda values: values.update(format=2)),
            r"has another format version \(`format`: Input should be 1\)\.$",
        ),
    ],
)
def test_what_is_no_release_is_an_error(release: Make, damage: Damage, sentence: str) -> None:
    directory = release("DIR")
    damage(directory)
    with pytest.raises(ReleaseError, match=sentence):
        verify(directory)


def test_the_command_says_what_holds_and_what_does_not(run: Run, release: Make) -> None:
    directory = release("日本語:beer:release")
    digest = release_digest(directory)
    held = f"{directory}: 6 rows in 2 tables match the manifest.\nRelease digest: {digest}\n"
    assert run("verify", directory) == run("verify", directory, "--digest", digest) == (0, held)
    pinned = f"The release digest is {digest}, but {'0' * 64} was expected.\n"
    assert run("verify", directory, "--digest", "0" * 64) == (1, pinned)
    none = "Error: `--digest` must be 64 hexadecimal digits, the SHA-256 of SHA256SUMS; it is 'v0.1.0'.\n"
    assert run("verify", directory, "--digest", "v0.1.0") == (2, none)
    cell(ART, "chosen", "new", "q2")(directory)
    overwrite("data/[red]中文.txt", b"")(directory)
    assert run("verify", directory) == (
        1,
        "data/[red]中文.txt does not belong to this release: its manifest lacks it.\n"
        f"{DIFFERS}, first in the row with id 'q2', which is changed.\n",
    )
