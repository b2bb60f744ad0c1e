"""Every rule of the tables of M-RewardBench says file, row, id, column, value and rule of the first failure."""

from collections.abc import Iterator
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest
from pluralbench_schemas import LANGUAGES, SCHEMAS, MultilingualPairs, TableError, TranslationPairs, validate

Schema = type[pa.DataFrameModel]
KEY = "0123456789abcdef" * 4
FILE = "data/spa_Latn/test.parquet"
NO_KEYS = "must be keys of calls, 64 hexadecimal digits"
NO_SUBSET = "must be of the form translation-SRC-TGT-easy or -hard"
ROWS: dict[str, dict[str, Any]] = {
    "MultilingualPairs": {
        "id": 1,
        "language": "spa_Latn",
        "prompt": "¿Té?",
        "chosen": "Sí.",
        "rejected": "No.",
        "chosen_model": "m1",
        "rejected_model": "m2",
        "source": "donotanswer",
        "category": "Safety",
        "translator": "general/nmt",
        "prompt_calls": [KEY],
        "chosen_calls": [KEY, KEY[::-1]],
        "rejected_calls": [],
    },
    "TranslationPairs": {
        "id": 1,
        "prompt": "In Spanish, please: Tea (green)?",
        "chosen": "¿Té?",
        "rejected": "¿Café?",
        "source": "Tea (green)?",
        "subset": "translation-en-es-easy",
        "template": 0,
        "chosen_system": "a",
        "rejected_system": "b",
        "chosen_score": 5.5,
        "rejected_score": 1.0,
    },
}
BOTH: list[Schema] = [MultilingualPairs, TranslationPairs]
# A command uses both in turn, so each of these tests runs after both were used once.
for used in BOTH:
    used.to_schema()


def frame_of(schema: Schema, *ids: int) -> pl.DataFrame:
    """Rows that keep to `schema`."""
    row = ROWS[schema.__name__]
    kinds: dict[type, Any] = {int: pl.Int64, float: pl.Float64, str: pl.String, list: pl.List(pl.String)}
    types = {name: kinds[type(value)] for name, value in row.items()}
    return pl.DataFrame([row | {"id": row_id} for row_id in ids], schema=types)


def changed(schema: Schema, **values: object) -> pl.DataFrame:
    """Three rows that keep to `schema`, but for these values in the second."""
    frame = frame_of(schema, 1, 2, 3)
    for column, value in values.items():
        cells = frame[column].to_list()
        cells[1] = value
        frame = frame.with_columns(pl.Series(column, cells, dtype=frame.schema[column]))
    return frame


def error(frame: pl.DataFrame, schema: Schema, **options: Any) -> TableError:
    with pytest.raises(TableError) as caught:
        validate(frame, schema, file=FILE, **options)
    return caught.value


@pytest.mark.parametrize("schema", BOTH)
def test_rows_that_keep_the_rules_come_back(schema: Schema) -> None:
    frame = frame_of(schema, 0, 7, 2)
    assert validate(frame, schema, file=FILE, rows=3) is frame
    backwards = frame.select(reversed(frame.columns))
    assert validate(backwards, schema, file=FILE) is backwards
    assert SCHEMAS[schema.__name__] is schema


def test_an_empty_answer_may_be_and_so_may_rows_without_calls() -> None:
    frame = changed(MultilingualPairs, rejected="", prompt_calls=[], chosen_calls=[])
    assert validate(frame, MultilingualPairs, file=FILE) is frame


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_may_be(code: str) -> None:
    frame = frame_of(MultilingualPairs, 1, 2).with_columns(language=pl.lit(code))
    assert validate(frame, MultilingualPairs, file=FILE) is frame


EMPTY = [("", '""'), (" \u00a0\n", '" \u00a0\\n"')]
RULES: list[tuple[Schema, str, object, str, str]] = [
    *(
        (MultilingualPairs, column, value, "must have text", shown)
        for column in ("prompt", "source", "category", "translator")
        for value, shown in EMPTY
    ),
    (MultilingualPairs, "language", "deu_Latn", "must be the same in all rows", '"deu_Latn"'),
    (MultilingualPairs, "rejected", "Sí.", "must differ from `chosen`", '"Sí."'),
    (MultilingualPairs, "prompt_calls", ["x"], NO_KEYS, '["x"]'),
    (MultilingualPairs, "chosen_calls", [""], NO_KEYS, '[""]'),
    (MultilingualPairs, "rejected_calls", [KEY + "\n"], NO_KEYS, f'["{KEY}\\n"]'),
    (MultilingualPairs, "rejected_calls", [KEY.upper()], NO_KEYS, f'["{KEY.upper()}"]'),
    (MultilingualPairs, "prompt_calls", [KEY, KEY[1:]], NO_KEYS, f'["{KEY}", "{KEY[1:11]}…'),
    *(
        (TranslationPairs, column, value, "must have text", shown)
        for column in ("chosen", "rejected")
        for value, shown in EMPTY
    ),
    (TranslationPairs, "prompt", "Tea?", "must hold the sentence of `source`", '"Tea?"'),
    (TranslationPairs, "rejected", "¿Té?", "must differ from `chosen`", '"¿Té?"'),
    *(
        (TranslationPairs, "subset", value, NO_SUBSET, f'"{value}"')
        for value in (
            "translation-en-es",
            "maple-en-es-easy",
            "translation-en-es-medium",
            "translation-english-es-easy",
            "Translation-en-es-easy",
            "translation-en-es-easy-1",
        )
    ),
    (TranslationPairs, "subset", "translation-en-es-hard\n", NO_SUBSET, '"translation-en-es-hard\\n"'),
    (TranslationPairs, "chosen_score", float("nan"), "must not be missing", "NaN"),
]


@pytest.mark.parametrize(("schema", "column", "value", "rule", "shown"), RULES)
def test_a_broken_rule_is_named_where_it_is_broken(
    schema: Schema, column: str, value: object, rule: str, shown: str
) -> None:
    found = error(changed(schema, **{column: value}), schema)
    assert str(found) == f"{FILE}, row 2 (id 2): column `{column}` {rule}, got {shown}."
    assert found.failures == 1


def test_a_sentence_that_is_empty_and_a_language_that_nobody_knows() -> None:
    found = error(changed(TranslationPairs, source=" "), TranslationPairs)
    assert str(found) == f'{FILE}, row 2 (id 2): column `source` must have text, got " ".'
    found = error(changed(MultilingualPairs, language="es"), MultilingualPairs)
    assert str(found) == (
        f'{FILE}, row 2 (id 2): column `language` must be a language of `languages.toml`, got "es" (2 failures in all).'
    )


@pytest.mark.parametrize(("schema", "column"), [(schema, "id") for schema in BOTH] + [(TranslationPairs, "template")])
def test_a_number_below_zero_is_refused_in_words(schema: Schema, column: str) -> None:
    message = str(error(changed(schema, **{column: -1}), schema))
    assert message.startswith(
        f"{FILE}, row 2 (id {-1 if column == 'id' else 2}): column `{column}` must not be negative"
    )


@pytest.mark.parametrize("column", ["prompt_calls", "chosen_calls", "rejected_calls"])
def test_a_missing_key_is_no_key(column: str) -> None:
    found = error(changed(MultilingualPairs, **{column: [KEY, None]}), MultilingualPairs)
    assert NO_KEYS in str(found)


@pytest.mark.parametrize("schema", BOTH)
def test_ids_are_numbers_and_unique(schema: Schema) -> None:
    found = error(frame_of(schema, 5, 7, 5), schema)
    assert str(found) == f"{FILE}, row 1 (id 5): column `id` must be unique, got 5 (2 failures in all)."
    strings = frame_of(schema, 5).with_columns(id=pl.lit("5"))
    assert str(error(strings, schema)).startswith(f"{FILE}: column `id` must be Int64, not String")


def columns() -> Iterator[Any]:
    for schema in BOTH:
        for column in ROWS[schema.__name__]:
            yield pytest.param(schema, column)


@pytest.mark.parametrize(("schema", "column"), list(columns()))
def test_what_is_missing_or_of_another_type_is_named(schema: Schema, column: str) -> None:
    row_id = None if column == "id" else 2
    assert str(error(changed(schema, **{column: None}), schema)).startswith(
        f"{FILE}, row 2 (id {row_id!r}): column `{column}` must not be missing, got null"
    )
    frame = frame_of(schema, 1)
    assert str(error(frame.drop(column), schema)).startswith(f"{FILE}: column `{column}` must be there")
    other = frame.with_columns(pl.lit([1], dtype=pl.List(pl.Int64)).alias(column))
    assert str(error(other, schema)).startswith(
        f"{FILE}: column `{column}` must be {frame.schema[column]}, not List(Int64)"
    )


@pytest.mark.parametrize("schema", BOTH)
def test_a_column_more_and_no_rows_are_refused(schema: Schema) -> None:
    frame = frame_of(schema, 1)
    assert str(error(frame.with_columns(extra=1), schema)) == f"{FILE}: column `extra` is not part of this table."
    assert str(error(frame.clear(), schema)) == f"{FILE} has no rows."
    assert str(error(frame, schema, rows=2869)) == f"{FILE} has 1 rows where 2,869 are expected."


def test_the_columns_are_the_published_ones_first() -> None:
    published = [
        "id",
        "language",
        "prompt",
        "chosen",
        "rejected",
        "chosen_model",
        "rejected_model",
        "source",
        "category",
    ]
    assert list(MultilingualPairs.to_schema().columns)[:9] == published
    published = ["id", "prompt", "chosen", "rejected", "source", "subset"]
    assert list(TranslationPairs.to_schema().columns)[:6] == published


def test_a_source_is_looked_for_by_the_letter() -> None:
    frame = changed(TranslationPairs, source="(a|b) .* \\", prompt="Say: (a|b) .* \\")
    assert validate(frame, TranslationPairs, file=FILE) is frame
    assert "must hold" in str(error(changed(TranslationPairs, source="a.b", prompt="a b"), TranslationPairs))
