"""What the Chinese benchmark reads: the published form, merged rows, and releases of ours."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chinese_tables import RANKS, Row, published, released, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench import find_benchmark
from pluralbench.data import Items
from pluralbench.errors import DataError
from verbs import load_items
from written_tables import write

CHINESE = find_benchmark("chinese")


def loaded(path: Path, **options: Any) -> Items:
    return load_items(CHINESE, str(path), **options)


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        loaded(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).strip()


def test_the_published_form_is_read_as_it_is(tmp_path: Path) -> None:
    items = loaded(published(tmp_path / "bench"))
    assert items.frame.group_by("config").len().sort("config").rows() == [("human", 8), ("open", 8)]
    first = items.frame.filter(config="open").row(0, named=True)
    assert first["response_ids"] == [f"open0-{letter}" for letter in "abcde"]
    assert (first["rank"], first["subset"], first["id"]) == (RANKS[0], "推理", "0")
    assert first["prompt"] == [{"role": "user", "content": "第0个问题：龙井茶怎么泡才好喝？"}]
    assert items.frame["cluster"].n_unique() == 8, "both parts have the same prompts"
    assert items.source["ignored_columns"] == ["annotations"]
    one = loaded(tmp_path / "bench" / "open.jsonl")
    assert one.frame["rank"].to_list() == [RANKS[place % 4] for place in range(8)]


def test_a_release_has_the_same_items_and_training_data_stays_out(tmp_path: Path) -> None:
    theirs, ours = loaded(published(tmp_path / "bench")), loaded(released(tmp_path / "release"))
    same = ["config", "subset", "prompt", "response_ids", "responses", "rank", "digest"]
    assert ours.frame.select(same).equals(theirs.frame.select(same))
    assert ours.frame["id"].to_list() == [f"{config}-{place}" for config in ("human", "open") for place in range(8)]
    assert ours.source["ignored_columns"] == ["annotations", "conflicts", "order"]
    assert loaded(tmp_path / "release", configs=["open"], limit=3).frame["id"].to_list() == [
        "open-0",
        "open-1",
        "open-2",
    ]


@pytest.mark.heavy
@settings(max_examples=10)
@given(st.lists(st.integers(-3, 9), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_every_shape_of_ranks_is_the_same_ranking(
    tmp_path_factory: pytest.TempPathFactory, rank: list[int], draw: Any
) -> None:
    ids = [f"r{place}" for place in range(len(rank))]
    both = list(zip(ids, rank, strict=True))
    draw.shuffle(both)
    row = {"input": "?", "category": ["a"], "responses": [{"id": one, "content": one} for one in ids]}
    folder = tmp_path_factory.mktemp("shapes")
    for number, shape in enumerate([rank, dict(both), [{"id": one, "rank": value} for one, value in both]]):
        frame = loaded(write(folder / f"{number}.jsonl", [row | {"rank": shape}])).frame
        assert frame["rank"].to_list() == [rank]
        assert frame["response_ids"].to_list() == [ids]


def test_ranks_by_id_may_have_the_other_rows_ids_without_a_rank(tmp_path: Path) -> None:
    rows = [row | {"rank": {one["id"]: 1 for one in row["responses"]}} for row in rows_of("open", 2)]
    path = tmp_path / "open.parquet"
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    assert len(pl.read_parquet(path)["rank"].struct.fields) == 10
    assert loaded(path).frame["rank"].to_list() == [[1] * 5] * 2


def test_rows_of_one_prompt_are_one_item_with_the_columns_that_all_have(tmp_path: Path) -> None:
    whole, other = rows_of("open", 2)
    parts: list[Row] = [
        whole | {"responses": whole["responses"][:3], "sys_prompt": "简短。"},
        other,
        {"input": whole["input"], "responses": whole["responses"][2:], "category": ["else"]},
    ]
    items = loaded(write(tmp_path / "open.jsonl", parts))
    assert items.frame["response_ids"].to_list() == [[f"open{n}-{letter}" for letter in "abcde"] for n in range(2)]
    assert items.frame["rank"].to_list() == RANKS[:2]
    assert items.frame["subset"].to_list() == ["推理", "其他"], "the first row's category"
    assert [len(prompt) for prompt in items.frame["prompt"].to_list()] == [1, 1], "only one row has a system prompt"
    whole_again = loaded(write(tmp_path / "open2.jsonl", [whole, other]))
    assert items.frame["digest"].to_list() == whole_again.frame["digest"].to_list()
    assert loaded(tmp_path / "open.jsonl", limit=1).frame.height == 1


def test_a_system_prompt_is_kept_as_such(tmp_path: Path) -> None:
    first, second = rows_of("open", 2)
    prompts = loaded(write(tmp_path / "open.jsonl", [first | {"sys_prompt": "你是助手。"}, second])).frame["prompt"]
    assert [[message["role"] for message in prompt] for prompt in prompts] == [["system", "user"], ["user"]]
    assert prompts[0][0]["content"] == "你是助手。"


def test_the_merged_ranks_have_to_be_of_all_responses(tmp_path: Path) -> None:
    row = rows_of("open", 1)[0]
    more = {"input": row["input"], "responses": [{"id": "new", "content": "新"}]}
    message = refused(write(tmp_path / "open.jsonl", [row, more]))
    assert message == "does not have the benchmark's shape at id 0: the responses new have no rank."


def test_ranks_are_not_merged_twice(tmp_path: Path) -> None:
    rows = rows_of("open", 3)
    message = refused(write(tmp_path / "open.jsonl", [*rows, rows[1]]))
    assert message == ("ranks the responses to one prompt more than once (rows 2, 4); keep one of these rows.")
