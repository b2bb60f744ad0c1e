"""LaMP-QA as local files: its splits and licenses, and what is wrong with a file, said where."""

from pathlib import Path
from typing import Any

import pytest
from build_personalized.recipe import SourceTable
from build_personalized.sources import LoadedQuestions, load
from pluralbench_release.errors import SourceError
from pluralbench_schemas import TableError
from written_tables import write

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


def read(directory: Path, **settings: Any) -> LoadedQuestions:
    return load(SourceTable(locations=[f"lamp-qa:{directory}"], **settings), directory)


def refused(directory: Path, **settings: Any) -> str:
    with pytest.raises((SourceError, TableError)) as caught:
        read(directory, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_limit_is_for_each_config(tmp_path: Path) -> None:
    for config in ("A", "B"):
        write(tmp_path / f"{config}.jsonl", [row(number) for number in range(5)])
    loaded = read(tmp_path, limit=2)
    assert loaded.questions["id"].to_list() == ["q0", "q1"] * 2
    assert loaded.sources[0].rows == 4


@pytest.mark.parametrize("column", ["id", "question", "category", "narrative", "rubric_aspects", "profile"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    write(tmp_path / "Art.jsonl", [{name: value for name, value in row().items() if name != column}])
    assert f"Art.jsonl has no column `{column}`; LaMP-QA rows have " in refused(tmp_path)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"id": "q1"}, ["row 1 (id 'q1')", "`id` must be unique"]),
        (
            {"rubric_aspects": [{"aspect": "a", "evidence": "I keep wasps", "reason": ""}]},
            [
                "row 2",
                "must quote",
                '; if evidence is paraphrased, say so in a recipe (`source.evidence="paraphrased"`).',
            ],
        ),
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
    ("card", "recipe", "license"),
    [
        ("---\nlicense: cc-by-4.0\n---\nA card.\n", "mit", "cc-by-4.0"),
        ("---\nlanguage: en\n---\n", "mit", "mit"),
        ("A card without YAML.\n", "mit", "mit"),
        (None, "mit", "mit"),
        (None, None, "unknown"),
    ],
)
def test_the_license_is_the_cards_then_the_recipes(
    tmp_path: Path, card: str | None, recipe: str | None, license: str
) -> None:
    write(tmp_path / "Art.jsonl", [row()])
    if card is not None:
        (tmp_path / "README.md").write_text(card, encoding="utf-8")
    assert read(tmp_path, license=recipe).sources[0].license == license
