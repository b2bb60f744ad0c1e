"""Tables of others, read from local directories and files: where they may lie, their order and their types."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release import read_tables
from written_tables import SUFFIXES, Row, ids, refused, write


def read(location: Path, split: str = "test", configs: Sequence[str] | None = None) -> dict[str, list[str]]:
    """The ids of each config."""
    tables = read_tables(str(location), split=split, configs=configs)
    assert tables.revision is None
    assert tables.location == str(location)
    assert tables.frames.keys() == tables.paths.keys()
    return {config: frame["id"].to_list() for config, frame in tables.frames.items()}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "name",
    [
        "{}",
        "{}_test",
        "{}_test-00000-of-00001",
        "{}/test",
        "data/{}/test",
        "data/{}/test-00000-of-00001",
        "data/{}/test-00000-of-00001-6ef3991c06080e14",
        "deep/er/{}/test_0",
    ],
)
def test_each_format_under_each_name(tmp_path: Path, suffix: str, name: str) -> None:
    rows = ids("q3", "q1", "q2", "q9", "q4")
    for config in ("Art", "中文 عربي"):
        write(tmp_path / f"{name.format(config)}{suffix}", rows)
    tables = read_tables(str(tmp_path))
    assert list(tables.frames) == ["Art", "中文 عربي"]
    assert [frame.rows(named=True) for frame in tables.frames.values()] == [rows, rows]
    assert tables.paths == {config: str(tmp_path / f"{name.format(config)}{suffix}") for config in tables.frames}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("folder", ["", "data"])
def test_files_without_a_config_are_the_config_default(tmp_path: Path, suffix: str, folder: str) -> None:
    for split in ("train", "validation", "test"):
        for part in range(2):
            write(tmp_path / folder / f"{split}-0000{part}-of-00002{suffix}", ids(f"{split}{part}"))
    assert read(tmp_path) == {"default": ["test0", "test1"]}
    assert read(tmp_path, split="train") == {"default": ["train0", "train1"]}
    assert read_tables(str(tmp_path)).paths == {"default": str(tmp_path / folder / f"test*{suffix}")}
    write(tmp_path / "one" / f"test{suffix}", ids("q1"))
    assert read(tmp_path / "one") == {"default": ["q1"]}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_a_config_of_its_own_name(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"pairs.v1{suffix}", ids("q2", "q1"))
    (tmp_path / "README.md").write_text("---\nlicense: [\n---\n", encoding="utf-8")
    assert read(path) == read(path, split="dev", configs=["pairs.v1"]) == {"pairs.v1": ["q2", "q1"]}
    assert read_tables(str(path)).paths == {"pairs.v1": str(path)}
    assert read_tables(str(path)).license is None


def test_other_splits_are_left_alone(tmp_path: Path) -> None:
    for name in ("Art_train", "Art_test", "Art_validation", "Law/test", "Law/test_hard", "Law/train-00000-of-00001"):
        write(tmp_path / f"{name}.jsonl", ids(name))
    assert read(tmp_path) == {"Art": ["Art_test"], "Law": ["Law/test"]}
    assert read(tmp_path, split="train") == {"Art": ["Art_train"], "Law": ["Law/train-00000-of-00001"]}
    assert read(tmp_path, split="test_hard", configs=["Law"]) == {"Law": ["Law/test_hard"]}


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv"])
def test_all_splits_are_read_one_after_the_other(tmp_path: Path, suffix: str) -> None:
    for name in ("test", "train", "dev", "validation"):
        rows: list[Row] = [{"id": name, "n": 1}] if name == "train" else ids(name)
        write(tmp_path / "data" / f"{name}-00000-of-00001{suffix}", rows)
    order = ["train", "validation", "test", "dev"]
    tables = read_tables(str(tmp_path), split="all")
    assert tables.frames["default"]["id"].to_list() == order
    assert tables.frames["default"]["n"].null_count() == 3
    assert tables.paths == {"default": str(tmp_path / "data" / f"*{suffix}")}
    write(tmp_path / "own" / f"all{suffix}", ids("alone"))
    write(tmp_path / "own" / f"train{suffix}", ids("no"))
    assert read(tmp_path / "own", split="all") == {"default": ["alone"]}, "a split of that very name"


def test_only_the_configs_that_are_asked_for_are_read(tmp_path: Path) -> None:
    for config in ("Art", "Law", "Sea"):
        write(tmp_path / config / "test.jsonl", ids(config))
    (tmp_path / "Sea/test.jsonl").write_text("no JSON", encoding="utf-8")
    write(tmp_path / "New/train.jsonl", ids("new"))
    assert read(tmp_path, configs=["Law", "Art"]) == {"Art": ["Art"], "Law": ["Law"]}
    assert read(tmp_path, configs=[]) == {}
    assert (
        refused(tmp_path, configs=["art"])
        == f"{tmp_path} has no config 'art'; did you mean `Art`? it has Art, Law, Sea."
    )
    assert refused(tmp_path, configs=["New"]) == f"The config 'New' of {tmp_path} has no split 'test'; it has train."
    assert refused(tmp_path / "Art/test.jsonl", configs=["Art"]).endswith("has no config 'Art'; it has test.")


def test_csv_has_strings_and_nulls(tmp_path: Path) -> None:
    (tmp_path / "Art.csv").write_bytes('id,n,é\r\n007,1.50,\r\n008,,""\r\n'.encode())
    frame = read_tables(str(tmp_path)).frames["Art"]
    assert frame.rows(named=True) == [{"id": "007", "n": "1.50", "é": None}, {"id": "008", "n": None, "é": ""}]


def test_types_of_json_are_kept_and_missing_keys_are_null(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"id": "q1", "n": 1, "f": 1.5, "b": True, "l": [{"a": "x"}], "s": {"a": {"c": [1]}, "b": None}},
        {"id": "q2", "n": 2, "f": 1, "more": "x", "l": [{"a": "y", "b": 1}, {"b": 2}], "s": {"b": "é", "a": None}},
    ]
    frame = read_tables(str(write(tmp_path / "Art.jsonl", rows))).frames["Art"]
    assert frame.schema == {
        "id": pl.String,
        "n": pl.Int64,
        "f": pl.Float64,
        "b": pl.Boolean,
        "l": pl.List(pl.Struct({"a": pl.String, "b": pl.Int64})),
        "s": pl.Struct({"a": pl.Struct({"c": pl.List(pl.Int64)}), "b": pl.String}),
        "more": pl.String,
    }
    assert frame["b"].to_list() == [True, None]
    assert frame["more"].to_list() == [None, "x"]


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_mappings_with_other_keys_in_each_row_stay_small(tmp_path: Path, suffix: str) -> None:
    ranks = [{f"模型{number}": 2, f"m{number} 🍵": 1.5} for number in range(200)]
    rows: list[Row] = [
        {"id": str(number), "rank": rank, "deep": {"by": rank}, "same": {"a": number}}
        for number, rank in enumerate(ranks)
    ]
    for part in range(2):
        write(tmp_path / "Art" / f"test-{part}{suffix}", rows[100 * part : 100 * (part + 1)])
    frame = read_tables(str(tmp_path)).frames["Art"]
    same = pl.Struct({"a": pl.Int64})
    assert frame.schema == {"id": pl.String, "rank": pl.String, "deep": pl.String, "same": same}
    assert frame["rank"][7] == '{"m7 🍵":1.5,"模型7":2}'
    assert [json.loads(text) for text in frame["rank"]] == ranks
    assert [json.loads(text)["by"] for text in frame["deep"]] == ranks


@pytest.mark.parametrize(
    ("card", "license"),
    [
        ("---\nlicense: cc-by-4.0\n---\n", "cc-by-4.0"),
        ("---\nlicense: [mit, cc-by-4.0]\n---\n", "mit, cc-by-4.0"),
        ("---\nlicense: [mit, other]\nlicense_name: cc-by-sa-2.5\n---\n", "mit, cc-by-sa-2.5"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlanguage: zh\n---\n", None),
        ("A card.\n", None),
        (None, None),
    ],
)
def test_the_license_is_the_cards(tmp_path: Path, card: str | None, license: str | None) -> None:
    write(tmp_path / "Art.jsonl", ids("q1"))
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")
    assert read_tables(str(tmp_path)).license == license


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parts_are_put_together_in_the_order_of_their_names(tmp_path: Path, suffix: str) -> None:
    for part in (11, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10):
        rows: list[Row] = [{"id": f"q{part}", "n": part}, {"n": part, "id": f"r{part}"}]
        write(tmp_path / "Art" / f"test-{part:05}-of-00012{suffix}", rows if part % 2 else rows[::-1])
    expected = [name for part in range(12) for name in ([f"q{part}", f"r{part}"][:: 1 if part % 2 else -1])]
    assert read(tmp_path) == {"Art": expected}


@given(data=st.data())
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_come_back_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    text = st.text(st.characters(codec="utf-8"))
    rows = data.draw(st.lists(st.fixed_dictionaries({"id": text, "تقييم": text, "b": text}), min_size=1, max_size=8))
    path = tmp_path_factory.mktemp("rows") / f"Art{suffix}"
    write(path, rows)
    found = read_tables(str(path))
    assert found.frames["Art"].rows(named=True) == rows
