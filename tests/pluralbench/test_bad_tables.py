"""Tables that are not of a benchmark's shape: one sentence that names the place, and nothing half-read."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import BenchmarkError, DataError, find_benchmark
from pluralbench_release import TablesError
from pluralbench_runs import UserError
from verbs import load_items
from written_tables import write

Rows = list[dict[str, Any]]
RANKING: dict[str, Any] = {"id": "r1", "prompt": "?", "responses": ["a", "b"], "rank": [1, 2]}


def refused(path: Path | str, *parts: str, benchmark: str = "pairs", **options: Any) -> str:
    columns = options.pop("columns", ())
    with pytest.raises(UserError) as caught:
        load_items(find_benchmark(benchmark, columns), str(path), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for part in parts:
        assert part in message, message
    return message


def test_ids_that_come_twice_are_named(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(9)
    rows[3]["id"], rows[5]["id"] = "q0", "q1"
    refused(write(tmp_path / "p.jsonl", rows), "p.jsonl has 2 ids more than once (q0, q1)", "--column id=#")
    clashing = [row | {"id": ident} for row, ident in zip(rows, (1, "1"), strict=False)]
    refused(write(tmp_path / "q.jsonl", clashing), "1 ids more than once (1)")


def test_the_same_id_in_two_configs_is_no_clash(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    for config in ("fr", "zh"):
        write(tmp_path / "d" / f"{config}.jsonl", pairs(3))
    assert load_items(find_benchmark("pairs"), str(tmp_path / "d")).frame.height == 6


@pytest.mark.parametrize("missing", ["prompt", "chosen", "rejected"])
def test_a_missing_column_is_named_beside_those_there_are(
    pairs: Callable[..., Rows], tmp_path: Path, missing: str
) -> None:
    rows = [{key: value for key, value in row.items() if key != missing} for row in pairs(2, extra="x")]
    left = ", ".join(rows[0])
    refused(write(tmp_path / "p.csv", rows), f"has no column `{missing}`; it has {left}", f"--column {missing}=COLUMN")


@pytest.mark.parametrize("what", ["prompt", "chosen"])
def test_a_needed_column_by_another_name_is_refused_when_it_is_not_there(
    pairs: Callable[..., Rows], tmp_path: Path, what: str
) -> None:
    path = write(tmp_path / "p.jsonl", pairs(2))
    refused(path, "has no column `nope`; it has id, prompt, chosen, rejected", columns=[f"{what}=nope"])


@pytest.mark.parametrize("what", ["id", "subset", "cluster", "system"])
def test_an_optional_column_that_was_named_is_refused_when_it_is_not_there(
    pairs: Callable[..., Rows], tmp_path: Path, what: str
) -> None:
    path = write(tmp_path / "p.jsonl", pairs(2))
    refused(path, "has no column `nope`; it has id, prompt, chosen, rejected", columns=[f"{what}=nope"])


@pytest.mark.parametrize("change", ["prompt", "prompts=x", "=x", "prompt=", "x"])
def test_a_change_of_columns_that_is_none_is_named(change: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        find_benchmark("pairs", [change])
    assert f"--column {change!r} is not of the form WHAT=COLUMN, with WHAT one of id, prompt" in str(caught.value)


def test_an_unknown_benchmark_is_named_beside_those_there_are() -> None:
    with pytest.raises(BenchmarkError, match=r"no benchmark 'beer'; choose personalized, multilingual, reward-bench"):
        find_benchmark("beer")
    with pytest.raises(BenchmarkError, match=re.escape("There is no benchmark file nowhere.toml.")):
        find_benchmark("nowhere.toml")


def test_an_unknown_config_or_split_is_named(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    write(tmp_path / "d" / "fr.jsonl", pairs(2))
    refused(tmp_path / "d", "has no config 'de'; it has fr", configs=["de"])
    write(tmp_path / "e" / "fr" / "train.jsonl", pairs(2))
    refused(tmp_path / "e", "has no split 'test'; it has train")


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv", "p.parquet"])
def test_an_empty_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    refused(tmp_path / name, name)
    (tmp_path / name).write_bytes(b"")
    refused(tmp_path / name, name)


def test_a_table_without_rows_has_no_items(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,prompt,chosen,rejected\n", encoding="utf-8")
    refused(tmp_path / "p.csv", "has no items")


def test_a_file_of_another_kind_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "p.xlsx").write_bytes(b"PK")
    with pytest.raises(TablesError, match="no table that can be read"):
        load_items(find_benchmark("pairs"), str(tmp_path / "p.xlsx"))


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"rank": [1]}, ["2 responses have 1 ranks"]),
        ({"rank": {"0": 1}}, ["r1"]),
        ({"rank": [1, None]}, ["r1"]),
        ({"rank": "first"}, ["r1"]),
        ({"rank": [1, "x"]}, ["r1"]),
        ({"responses": [{"id": "a", "content": "x"}, {"id": "a", "content": "y"}]}, ["two responses share an id"]),
        ({"responses": [{"id": "a"}, {"id": "b"}]}, ["r1"]),
        ({"responses": 7}, ["r1"]),
        ({"id": None}, ["a row without an id (row 1)"]),
        ({"prompt": 7}, ["7 is no text"]),
        ({"prompt": [{"content": "no role"}]}, ["r1"]),
    ],
)
def test_a_row_of_another_shape_is_named_by_its_id(tmp_path: Path, change: dict[str, Any], parts: list[str]) -> None:
    path = write(tmp_path / "r.jsonl", [RANKING | change])
    refused(path, str(path), *parts, benchmark="rankings")


def test_ranks_that_are_no_whole_numbers_are_refused(tmp_path: Path) -> None:
    refused(write(tmp_path / "r.jsonl", [RANKING | {"rank": [1.2, 1.7]}]), "r1", benchmark="rankings")


def test_a_response_of_no_messages_is_refused(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    turns = [{"role": "assistant", "content": "x"}]
    rows = [row | {"chosen": turns} for row in pairs(2)] + [pairs(3)[2] | {"chosen": []}]
    refused(write(tmp_path / "p.jsonl", rows), "q2")


def test_a_prompt_of_no_messages_is_refused(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "x"}]
    rows = [row | {"prompt": turns} for row in pairs(2)] + [pairs(3)[2] | {"prompt": []}]
    refused(write(tmp_path / "p.jsonl", rows), "q2")


@pytest.mark.parametrize("value", [[{"id": "1", "text": ["x"]}], 7])
def test_a_profile_that_is_none_is_refused(people: Callable[..., Rows], tmp_path: Path, value: object) -> None:
    rows = [row | {"profile": value} for row in people(2)]
    refused(write(tmp_path / "p.jsonl", rows), "p0-0", benchmark="personalized")


def test_empty_texts_are_named_left_out_or_kept(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(10)
    rows[2]["chosen"], rows[4]["rejected"], rows[7]["prompt"] = "", " \n", ""
    path = write(tmp_path / "p.jsonl", rows)
    refused(path, "has 3 items with an empty prompt or response (ids q2, q4, q7)", "--on-empty drop or keep")
    dropped = load_items(find_benchmark("pairs"), str(path), on_empty="drop")
    assert dropped.empty == ["q2", "q4", "q7"]
    assert dropped.frame["id"].to_list() == ["q0", "q1", "q3", "q5", "q6", "q8", "q9"]
    kept = load_items(find_benchmark("pairs"), str(path), on_empty="keep")
    assert (kept.frame.height, kept.empty) == (10, dropped.empty)
    assert (kept.on_empty, dropped.on_empty) == ("keep", "drop")
    with pytest.raises(DataError, match="has no items"):
        load_items(find_benchmark("pairs"), str(write(tmp_path / "e.jsonl", rows[2:3])), on_empty="drop")
