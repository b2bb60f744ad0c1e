"""Tables of others that are not there, not whole or not readable: the sentence for each."""

from pathlib import Path

import pytest
from pluralbench_release import TablesError, pinned, read_tables, release_at
from pluralbench_release.table_files import find_tables
from written_tables import ids, refused, write


@pytest.mark.parametrize(
    "location",
    ["", "missing", "/no/such/place", "./lamp", "../lamp", "a/b/c", "acme/pairs.jsonl", f"lamp@{'a' * 40}", "a/b\n"],
)
def test_what_is_neither_a_path_nor_a_dataset_is_said(location: str) -> None:
    sentence = f"{location} does not exist, and it is not the name of a dataset on the Hub (ORG/NAME)."
    for ask in (pinned, read_tables):
        with pytest.raises(TablesError) as caught:
            ask(location)
        assert str(caught.value) == sentence


def test_a_path_that_is_not_there_is_never_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = list[str]()

    def commit_of(repo: str, _: str | None) -> str:
        asked.append(repo)
        return "a" * 40

    monkeypatch.setattr("pluralbench_release.tables.commit_of", commit_of)
    (tmp_path / "dist" / "begun.work").mkdir(parents=True)
    sentences = {
        "dist/beer": "There is no dist/beer in the folder dist; build it, or write dist/beer@main for a dataset on the "
        "Hub.",
        "dist/begun": "dist/begun is not finished; rerun the command that builds it.",
    }
    for location, sentence in sentences.items():
        for read in (pinned, read_tables, lambda place: release_at(place).__enter__()):
            with pytest.raises(TablesError) as caught:
                read(location)
            assert str(caught.value) == sentence
    assert asked == []
    assert pinned("dist/beer@main") == f"dist/beer@{'a' * 40}"
    assert pinned("acme/beer") == f"acme/beer@{'a' * 40}"


def test_a_directory_without_tables_says_how_to_name_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert refused(tmp_path, split="dev") == (
        f"{tmp_path} holds no tables; name them CONFIG.jsonl, CONFIG_dev.jsonl or CONFIG/dev.jsonl "
        "(or .parquet, .json, .csv, .tsv)."
    )
    assert refused(tmp_path / "notes.txt") == (
        f"{tmp_path}/notes.txt is not a supported table; use .parquet, .jsonl, .json, .csv, .tsv."
    )


def test_a_split_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    for name in ("Art/train-00000-of-00001", "Art/validation", "Law/train"):
        write(tmp_path / f"{name}.parquet", ids("q1"))
    assert refused(tmp_path) == f"{tmp_path} has no split 'test'; it has train, validation."


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("Art.jsonl", "Art_test.jsonl"),
        ("Art/test.jsonl", "Art/test.parquet"),
        ("Art/test-00000-of-00001.jsonl", "Art/test.jsonl"),
    ],
)
def test_a_config_that_is_there_twice_is_refused(tmp_path: Path, first: str, last: str) -> None:
    for name in (first, last):
        write(tmp_path / name, ids("q1"))
    assert refused(tmp_path) == (
        f"{tmp_path} holds the split 'test' of the config 'Art' twice, in {first} and {last}; remove one."
    )


def test_a_part_that_is_missing_is_refused(tmp_path: Path) -> None:
    for part in (0, 2):
        write(tmp_path / "Art" / f"test-0000{part}-of-00003.jsonl", ids("q1"))
    assert refused(tmp_path) == (
        f"{tmp_path}/Art holds 2 of the 3 files that the name test-00000-of-00003.jsonl announces."
    )


def test_parts_that_do_not_fit_together_are_named(tmp_path: Path) -> None:
    first, last = (tmp_path / "Art" / f"test-{part}.parquet" for part in range(2))
    write(first, [{"id": "q1", "n": 1}])
    write(last, [{"id": "q2", "m": 1}])
    assert refused(tmp_path) == f"{last} and test-0.parquet have different columns: `m` is in only one of them."
    different = f"{first} and the other files of its split have different types: "
    write(last, [{"id": "q2", "n": [1]}])
    assert refused(tmp_path).startswith(different)
    write(last, [{"id": "q2", "n": True}])
    assert refused(tmp_path) == f"{different}`n` is Int64 and Boolean."


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (b"---\nlicense: [\n---\n", "The YAML of README.md cannot be read ("),
        (b"---\nlicense: mit\n---\ncaf\xe9\n", "README.md is not UTF-8 text (invalid continuation byte at byte 24)."),
    ],
)
def test_a_card_that_cannot_be_read_is_named(tmp_path: Path, card: bytes, message: str) -> None:
    write(tmp_path / "Art.jsonl", ids("q1"))
    (tmp_path / "README.md").write_bytes(card)
    assert refused(tmp_path).startswith(f"{tmp_path}: {message}")


def test_a_directory_of_many_files_is_not_searched_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluralbench_release.table_files.MAX_FILES", 20)
    for number in range(9):
        for folder in ("data", ".git", "data/provenance"):  # the others are not searched
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{number}.csv").write_text("a\n1\n")
    assert len(find_tables(tmp_path, "test")["default"]) == 9
    for number in range(12):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(TablesError, match=r"has more than 20 files; give the folder that has the tables\."):
        find_tables(tmp_path, "test")
