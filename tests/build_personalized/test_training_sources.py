"""Preferences from tables: corpora as published, and anybody's."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.training.recipe import TrainingSource
from build_personalized.training.sources import Preferences, load
from pluralbench_release.errors import SourceError
from training_tables import published
from written_tables import write

OWN: dict[str, Any] = {"user": "ana", "prompt": "Which tea?", "chosen": "Green.", "rejected": "Any."}


def read(location: str, **settings: Any) -> Preferences:
    return load(TrainingSource(locations=[location], **settings), 42, Path())


def reasons(result: Preferences) -> list[str]:
    return result.drops["reason"].to_list()


def table(folder: Path, rows: Sequence[dict[str, Any]]) -> str:
    return f"table:{write(folder / 'mine.jsonl', rows)}"


@pytest.mark.parametrize("kind", ["arena", "prism"])
def test_a_corpus_is_read_as_it_is_published(tmp_path: Path, kind: str) -> None:
    rows = [published(0, "ana", split="test"), published(1, "ana"), published(2, "bo", split="val"), published(3, "bo")]
    pl.DataFrame(rows).write_parquet(tmp_path / "train.parquet")
    result = read(f"{kind}:{tmp_path}")
    assert set(result.pairs["config"]) == {kind}
    assert result.pairs.select("user_id", "source_id", "original_split").rows() == [
        ("ana", "conversation 1", "train"),
        ("bo", "conversation 3", "train"),
        ("bo", "conversation 2", "val"),
        ("ana", "conversation 0", "test"),
    ]
    assert result.pairs["prompt"][0].to_list() == [{"role": "user", "content": "Question 1 of ana?"}]
    assert result.pairs["chosen"][0] == "Good answer 1."
    assert "SynthesizeMe" in result.sources[0].attribution


def test_only_the_first_question_of_a_conversation_is_a_post(tmp_path: Path) -> None:
    later = [
        {"role": "user", "content": "Question 0 of ana?"},
        {"role": "assistant", "content": "Good answer 0."},
        {"role": "user", "content": "Thanks, the first one was much better. And now?"},
    ]
    rows = [published(0, "ana"), published(1, "ana", conversation_id="conversation 0", context=later)]
    pl.DataFrame(rows).write_parquet(tmp_path / "train.parquet")
    result = read(f"arena:{tmp_path}")
    assert result.pairs.height == 2
    assert [post["text"] for post in result.posts["post"]] == ["Question 0 of ana?"]


def test_any_table_with_its_columns_named(tmp_path: Path) -> None:
    rows = [
        {"who": 7, "asked": "Second?", "best": "a", "rejected": "b", "id": "x", "when": 10, "tags": [1, "a", [2]]},
        {"who": 7, "asked": "First?", "best": "a", "rejected": "b", "id": "y", "when": 9},
    ]
    names = {"user": "who", "prompt": "asked", "chosen": "best", "order": "when"}
    result = read(table(tmp_path, rows), columns=names)
    assert result.pairs.select("config", "id", "user_id", "source_id").rows() == [
        ("mine", "y", "7", "y"),
        ("mine", "x", "7", "x"),
    ]
    assert result.sources[0].license == "unknown"


def test_what_is_no_pair_is_left_out_and_counted(tmp_path: Path) -> None:
    answered = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    asked = [{"role": "user", "content": "x"}]
    rows = [
        OWN | {"prompt": asked} | change
        for change in (
            {},
            {"user": None},
            {"user": " "},
            {"chosen": ""},
            {"prompt": answered},
            {"rejected": "Green."},
            {"prompt": asked},
        )
    ]
    result = read(table(tmp_path, rows))
    assert result.pairs.height == 1
    assert reasons(result) == [
        "no user",
        "no user",
        "empty text",
        "prompt does not end with the user",
        "identical answers",
        "given before",
    ]


def test_a_release_can_be_the_source_of_another(tmp_path: Path) -> None:
    result = read(table(tmp_path, [OWN | {"chosen": [{"role": "assistant", "content": "Green."}]}]))
    assert result.pairs["chosen"].to_list() == ["Green."]


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([OWN | {"chosen": [{"role": "assistant", "content": "x"}] * 2}], {}, "row 1: `chosen` is neither a text nor"),
        ([{"who": "a"} | OWN], {"columns": {"user": "whom"}}, "has no column `whom`; it has who, user, prompt, chosen"),
        ([OWN | {"id": "x"}, OWN | {"id": "x", "chosen": "Black."}], {}, "has the id 'x' more than once"),
        ([OWN | {"order": 1}, OWN | {"order": None}], {}, "the column `order` has rows without a value"),
        (
            [OWN | {"prompt": [{"role": "human", "content": "x"}]}],
            {},
            "row 1: `prompt` has a message with the role 'human'; the roles are system, user, assistant",
        ),
    ],
)
def test_a_table_of_another_shape_is_named(
    tmp_path: Path, rows: list[dict[str, Any]], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        read(table(tmp_path, rows), **settings)
    assert message in str(caught.value)
    assert "mine" in str(caught.value)


@pytest.mark.parametrize(
    ("locations", "message"),
    [
        (["nowhere"], "Unknown source 'nowhere': give `sample`, `arena`, `prism`"),
        (["mine.csv"], "did you mean `table:mine.csv`?"),
        (["sample", "sample"], "The source sample is given twice."),
    ],
)
def test_a_source_that_is_none_is_named(locations: list[str], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load(TrainingSource(locations=locations), 42, Path())
    assert message in str(caught.value)


def test_sources_that_share_a_user_or_a_config_are_refused(tmp_path: Path) -> None:
    tables = []
    for folder, user in (("a", "ana"), ("b", "bo")):
        (tmp_path / folder).mkdir()
        tables.append(table(tmp_path / folder, [OWN | {"user": user}]))
    with pytest.raises(SourceError, match="Two sources have the config 'mine'; rename one of their files"):
        load(TrainingSource(locations=tables), 42, Path())
    other = write(tmp_path / "other.jsonl", [OWN])
    with pytest.raises(SourceError, match="The user 'ana' is in mine and other, but a user id must be in one config"):
        load(TrainingSource(locations=[tables[0], f"table:{other}"]), 42, Path())


def test_the_sample_has_people_with_tastes_that_length_does_not_tell() -> None:
    result = read("sample")
    assert result.drops.is_empty()
    counts = result.pairs.group_by("user_id").len()["len"].to_list()
    assert (len(counts) >= 12, set(counts)) == (True, {5})
    words = [[len(row[side].split()) for side in ("chosen", "rejected")] for row in result.pairs.iter_rows(named=True)]
    assert max(max(pair) for pair in words) <= 60
    longer, shorter = sum(a > b for a, b in words), sum(a < b for a, b in words)
    assert 0.4 < longer / (longer + shorter) < 0.6
    assert abs(sum(a - b for a, b in words)) / len(words) < 2
    personas = Path(load.__code__.co_filename).parents[1] / "sample/personas.jsonl"
    written = [json.loads(line)["user"] for line in personas.read_text(encoding="utf-8").splitlines()]
    assert set(written) == set(result.pairs["user_id"])
