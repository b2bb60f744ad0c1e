"""LaMP-QA as local files: three formats, three ways to name them, and what is wrong with a file, said where."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.errors import SourceError
from build_personalized.recipe import SourceTable
from build_personalized.sources import Loaded, load
from build_personalized.sources.loaded import QUESTIONS
from pluralbench_schemas import TableError

NARRATIVE = "I keep bees. Sugar is dear. דבש 蜂蜜 🍯"


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question": "What do bees eat in winter? 冬天呢？",
        "category": "bees",
        "narrative": NARRATIVE,
        "rubric_aspects": [{"aspect": "Cost", "evidence": "sugar is\ndear", "reason": "A small purse."}],
        "profile": [{"id": f"p{number}", "category": "bees", "text": "שלום, a post"}],
    } | changes


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pl.DataFrame(rows).write_parquet(path)
        case ".jsonl":
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        case ".json":
            path.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def read(directory: Path, **settings: Any) -> Loaded:
    return load(SourceTable(locations=[f"lamp-qa:{directory}"], **settings), directory)


def refused(directory: Path, **settings: Any) -> str:
    with pytest.raises((SourceError, TableError)) as caught:
        read(directory, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
@pytest.mark.parametrize("name", ["{}", "{}_test", "{}/test", "data/{}/test-00000-of-00001"])
def test_three_formats_under_each_name(tmp_path: Path, suffix: str, name: str) -> None:
    for config in ("Art_and_Entertainment", "Society_and_Culture"):
        write(tmp_path / f"{name.format(config)}{suffix}", [row(1, more="left out"), row(2)])
    loaded = read(tmp_path)
    assert loaded.questions["config"].to_list() == ["Art_and_Entertainment"] * 2 + ["Society_and_Culture"] * 2
    assert loaded.questions["id"].to_list() == ["q1", "q2"] * 2
    assert loaded.questions.row(1, named=True) == row(2) | {"config": "Art_and_Entertainment"}
    assert loaded.questions.schema == QUESTIONS
    assert [(source.name, source.location, source.rows) for source in loaded.sources] == [("LaMP-QA", tmp_path.name, 4)]


def test_what_is_read_has_the_same_digest_in_each_format(tmp_path: Path) -> None:
    for suffix in (".json", ".jsonl", ".parquet"):
        write(tmp_path / suffix[1:] / f"Art{suffix}", [row(1), row(2)])
    write(tmp_path / "changed" / "Art.json", [row(1), row(2, category="wasps")])
    digests = [read(tmp_path / name).sources[0].digest for name in ("json", "jsonl", "parquet", "changed")]
    assert len({*digests[:3]}) == 1
    assert digests[3] not in digests[:3]


def test_files_of_one_config_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / "Art" / f"test-{part}.jsonl", [row(2 * part), row(2 * part + 1)])
    assert read(tmp_path).questions["id"].to_list() == [f"q{number}" for number in range(6)]
    assert read(tmp_path, limit=3).questions["id"].to_list() == ["q0", "q1", "q2"]


def test_the_limit_is_for_each_config(tmp_path: Path) -> None:
    for config in ("A", "B"):
        write(tmp_path / f"{config}.jsonl", [row(number) for number in range(5)])
    loaded = read(tmp_path, limit=2)
    assert loaded.questions["id"].to_list() == ["q0", "q1"] * 2
    assert loaded.sources[0].rows == 4


def test_another_split_and_other_names_of_configs(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / "Art" / f"{split}.jsonl", [row(question=split)])
    assert read(tmp_path).questions["question"].to_list() == ["test"]
    loaded = read(tmp_path, split="train", config_names={"Art": "Art_and_Entertainment"})
    assert loaded.questions.select("config", "question").rows() == [("Art_and_Entertainment", "train")]


def test_files_of_another_split_beside_ours_are_left_alone(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        write(tmp_path / f"Art_{split}.jsonl", [row(question=split)])
    for split in ("test", "validation", "train"):
        assert read(tmp_path, split=split).questions.select("config", "question").rows() == [("Art", split)]


@pytest.mark.parametrize("column", ["id", "question", "category", "narrative", "rubric_aspects", "profile"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    write(tmp_path / "Art.jsonl", [{name: value for name, value in row().items() if name != column}])
    assert f"Art.jsonl has no column `{column}`; LaMP-QA rows have " in refused(tmp_path)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    write(tmp_path / "Art.jsonl", [row(1), row(2)])
    with (tmp_path / "Art.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"id": "q3", \n')
    assert "Art.jsonl, line 4: this is not JSON" in refused(tmp_path)
    (tmp_path / "Art.jsonl").rename(tmp_path / "Art.json")
    assert "Art.json, line 4: this is not JSON" in refused(tmp_path)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b"])
def test_separators_inside_a_text_end_no_line(tmp_path: Path, separator: str) -> None:
    (tmp_path / "Art.jsonl").write_bytes(
        "\r\n".join(
            json.dumps(row(number, question=f"one{separator}two"), ensure_ascii=False) for number in (1, 2)
        ).encode()
    )
    assert read(tmp_path).questions["question"].to_list() == [f"one{separator}two"] * 2


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"id": "q1"}, ["row 1 (id 'q1')", "`id` must be unique"]),
        ({"profile": []}, ["row 2 (id 'q2')", "`profile` must have at least one post"]),
        ({"profile": [{"id": "p", "category": "c", "text": " "}]}, ["row 2", "an id and a text in each post"]),
        ({"question": ""}, ["row 2", "`question` must have text"]),
        ({"question": None}, ["row 2", "`question` must not be missing"]),
        ({"rubric_aspects": [{"aspect": "", "evidence": "", "reason": ""}]}, ["row 2", "a title in each aspect"]),
        ({"rubric_aspects": [{"aspect": "a", "evidence": "I keep wasps", "reason": ""}]}, ["row 2", "must quote"]),
    ],
)
def test_a_row_that_breaks_the_schema_is_named(tmp_path: Path, changes: dict[str, Any], parts: list[str]) -> None:
    write(tmp_path / "Art.jsonl", [row(1), row(2, **changes)])
    message = refused(tmp_path)
    for part in [str(tmp_path), "(Art)", *parts]:
        assert part in message


def test_paraphrased_evidence_is_not_looked_for_in_the_narrative(tmp_path: Path) -> None:
    write(tmp_path / "Art.jsonl", [row(rubric_aspects=[{"aspect": "a", "evidence": "Bees are kept", "reason": ""}])])
    assert read(tmp_path, evidence="paraphrased").questions.height == 1


def test_other_orders_of_fields_and_missing_reasons_are_taken(tmp_path: Path) -> None:
    aspects = [{"evidence": "I keep bees.", "more": 1, "aspect": "Bees"}]
    write(tmp_path / "Art.jsonl", [row(rubric_aspects=aspects)])
    expected = [{"aspect": "Bees", "evidence": "I keep bees.", "reason": None}]
    assert read(tmp_path).questions["rubric_aspects"].to_list() == [expected]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Art.parquet", b"PAR1"),
        ("Art.jsonl", '{"id": "é"}'.encode("latin-1")),
        ("Art.jsonl", b"[1, 2]\n"),
        ("Art.json", b'"text"'),
        ("Art.json", b"5"),
        ("Art.json", b"[]"),
        ("Art.jsonl", b""),
    ],
)
def test_files_of_another_shape_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path / name) in refused(tmp_path)


def test_half_a_character_is_named(tmp_path: Path) -> None:
    (tmp_path / "Art.jsonl").write_text(json.dumps(row(question="\ud800")), encoding="utf-8")
    assert "Art.jsonl" in refused(tmp_path)


def test_a_directory_without_files_says_how_to_name_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert "holds no tables: name them CONFIG.jsonl, CONFIG_test.jsonl" in refused(tmp_path)


@pytest.mark.parametrize(
    ("card", "recipe", "licence"),
    [
        ("---\nlicense: cc-by-4.0\n---\nA card.\n", "mit", "cc-by-4.0"),
        ("---\nlanguage: en\n---\n", "mit", "mit"),
        ("A card without YAML.\n", "mit", "mit"),
        (None, "mit", "mit"),
        (None, None, "unknown"),
    ],
)
def test_the_licence_is_the_cards_then_the_recipes(
    tmp_path: Path, card: str | None, recipe: str | None, licence: str
) -> None:
    write(tmp_path / "Art.jsonl", [row()])
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")
    assert read(tmp_path, licence=recipe).sources[0].licence == licence


@pytest.mark.parametrize("card", [b"---\nlicense: [\n---\n", b"---\nlicense: mit\n---\ncaf\xe9\n"])
def test_a_card_that_cannot_be_read_is_named(tmp_path: Path, card: bytes) -> None:
    write(tmp_path / "Art.jsonl", [row()])
    (tmp_path / "README.md").write_bytes(card)
    assert "README.md" in refused(tmp_path)


def test_the_order_of_columns_is_fixed() -> None:
    assert list(QUESTIONS) == ["config", "id", "question", "category", "narrative", "rubric_aspects", "profile"]
