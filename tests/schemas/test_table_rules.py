"""Every rule of every schema says file, row, id, column, value and rule of the first failure."""

from collections.abc import Iterator
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest
from pluralbench_schemas import (
    POST,
    RUBRIC_ASPECT,
    SCHEMAS,
    PersonalizedPairs,
    PersonalizedQuestions,
    TableError,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
    validate,
)

Schema = type[pa.DataFrameModel]
QUESTIONS: list[Schema] = [PersonalizedQuestions, VerbatimPersonalizedQuestions]
PAIRS: list[Schema] = [PersonalizedPairs, VerbatimPersonalizedPairs]
VERBATIM: list[Schema] = [VerbatimPersonalizedQuestions, VerbatimPersonalizedPairs]
EVERY = QUESTIONS + PAIRS
KEY = "0123456789abcdef" * 4
NO_KEY = "must be the key of a recorded call, 64 hexadecimal digits"
# A command uses several schemas in turn, so each of these tests runs after all of them were used once.
for used in EVERY:
    used.to_schema()


def frame_of(schema: Schema, *ids: str | None) -> pl.DataFrame:
    """Rows that keep to `schema`."""
    rows = [
        {
            "id": row_id,
            "question": "Which tea?",
            "category": "Art_and_Entertainment",
            "narrative": "I grow tea.",
            "rubric_aspects": [{"aspect": "growing", "evidence": "I grow tea", "reason": None}],
            "profile": [{"id": "p1", "category": None, "text": "My first harvest"}],
            "chosen": "Green.",
            "rejected": "Any.",
            "generator": "model",
            "prompt_version": "1",
            "chosen_call": KEY,
            "rejected_call": KEY,
        }
        for row_id in ids
    ]
    nested = {"rubric_aspects": pl.List(RUBRIC_ASPECT), "profile": pl.List(POST)}
    frame = pl.DataFrame(rows, schema={name: nested.get(name, pl.String) for name in rows[0]} if rows else None)
    return frame.select(list(schema.to_schema().columns))


def changed(schema: Schema, column: str, value: object) -> pl.DataFrame:
    """Three rows that keep to `schema`, but for `value` in the second."""
    frame = frame_of(schema, "q1", "q2", "q3")
    values = frame[column].to_list()
    values[1] = value
    return frame.with_columns(pl.Series(column, values, dtype=frame.schema[column]))


def error(frame: pl.DataFrame, schema: Schema, **options: Any) -> TableError:
    with pytest.raises(TableError) as caught:
        validate(frame, schema, file="data/Art/test.parquet", **options)
    return caught.value


@pytest.mark.parametrize("schema", EVERY)
def test_rows_that_keep_the_rules_come_back(schema: Schema) -> None:
    frame = frame_of(schema, "q1", "q2")
    assert validate(frame, schema, file="x.parquet") is frame
    assert validate(frame, schema, file="x.parquet", rows=2) is frame
    backwards = frame.select(reversed(frame.columns))
    assert validate(backwards, schema, file="x.parquet") is backwards


@pytest.mark.smoke
def test_every_schema_is_found_by_its_name() -> None:
    assert {schema.__name__: schema for schema in EVERY}.items() <= SCHEMAS.items()
    assert all(name == schema.__name__ for name, schema in SCHEMAS.items())


def aspect(title: str | None, evidence: str | None = None) -> dict[str, str | None]:
    return {"aspect": title, "evidence": evidence, "reason": None}


def post(post_id: str | None, text: str | None) -> dict[str, str | None]:
    return {"id": post_id, "category": None, "text": text}


TEXT = [("", '""'), (" \u00a0\n", '" \u00a0\\n"')]
POSTS = "must have an id and a text in each post"
TITLES = "must have a title in each aspect"
QUOTES = "must quote each `evidence` from `narrative`"
RULES: list[tuple[list[Schema], str, object, str, str]] = [
    *((EVERY, "question", value, "must have text", shown) for value, shown in TEXT),
    (EVERY, "profile", [], "must have at least one post", "[]"),
    (EVERY, "profile", [None], POSTS, "[null]"),
    (EVERY, "profile", [post("p1", " ")], POSTS, '[{"id": "p1", "category": null, "text": " "}]'),
    (EVERY, "profile", [post("", "t")], POSTS, '[{"id": "", "category": null, "text": "t"}]'),
    (EVERY, "profile", [post(None, "中文")], POSTS, '[{"id": null, "category": null, "text": "中文"}]'),
    (EVERY, "rubric_aspects", [aspect(" ")], TITLES, '[{"aspect": " ", "evidence": null, "reason": null}]'),
    (EVERY, "rubric_aspects", [aspect(None)], TITLES, '[{"aspect": null, "evidence": null, "reason": null}]'),
    *(
        (PAIRS, column, value, "must have text", shown)
        for column in ("chosen", "rejected", "generator", "prompt_version")
        for value, shown in TEXT
    ),
    *(
        (PAIRS, column, value, NO_KEY, f'"{value}"')
        for column in ("chosen_call", "rejected_call")
        for value in ("", "call 7", KEY.upper(), KEY[1:], KEY + "0")
    ),
    (PAIRS, "chosen_call", KEY + "\n", NO_KEY, f'"{KEY}\\n"'),
    (PAIRS, "rubric_aspects", [], "must have at least one aspect", "[]"),
    (PAIRS, "rejected", "Green.", "must differ from `chosen`", '"Green."'),
    (VERBATIM, "narrative", "", QUOTES, '[{"aspect": "growing", "evidence": "I grow tea", "reason": null}]'),
    (
        VERBATIM,
        "rubric_aspects",
        [aspect("a", "I grow tea"), aspect("b", "nowhere")],
        QUOTES,
        '[{"aspect": "a", "evidence": "I grow tea", "reason": null}, {"aspect": "b", "evi…',
    ),
]


def cases() -> Iterator[Any]:
    for schemas, column, value, rule, shown in RULES:
        for schema in schemas:
            # The first schema that has a check keeps its name; each verbatim schema has a check of its own.
            yield pytest.param(schema, column, value, rule, shown)


@pytest.mark.parametrize(("schema", "column", "value", "rule", "shown"), list(cases()))
def test_a_broken_rule_is_named_where_it_is_broken(
    schema: Schema, column: str, value: object, rule: str, shown: str
) -> None:
    named = "rubric_aspects" if rule == QUOTES else column
    found = error(changed(schema, column, value), schema)
    assert str(found) == f"data/Art/test.parquet, row 2 (id 'q2'): column `{named}` {rule}, got {shown}."
    assert found.failures == 1


def test_an_id_must_have_text() -> None:
    assert str(error(changed(PersonalizedQuestions, "id", " "), PersonalizedQuestions)) == (
        "data/Art/test.parquet, row 2 (id ' '): column `id` must have text, got \" \"."
    )


def nullable(schema: Schema) -> Iterator[Any]:
    for column in schema.to_schema().columns:
        yield pytest.param(schema, column)


@pytest.mark.parametrize(("schema", "column"), [case for schema in EVERY for case in nullable(schema)])
def test_a_missing_value_is_named(schema: Schema, column: str) -> None:
    row_id = None if column == "id" else "q2"
    assert str(error(changed(schema, column, None), schema)).startswith(
        f"data/Art/test.parquet, row 2 (id {row_id!r}): column `{column}` must not be missing, got null"
    )


COLUMNS = [(schema, column) for schema in EVERY for column in schema.to_schema().columns]


@pytest.mark.parametrize(("schema", "column"), COLUMNS)
def test_a_missing_column_is_named_before_what_follows_from_it(schema: Schema, column: str) -> None:
    message = str(error(frame_of(schema, "q1").drop(column), schema))
    assert message.startswith(f"data/Art/test.parquet: column `{column}` must be there")


@pytest.mark.parametrize(("schema", "column"), COLUMNS)
def test_a_column_of_another_type_is_named_with_both_types(schema: Schema, column: str) -> None:
    frame = frame_of(schema, "q1")
    message = str(error(frame.with_columns(pl.lit(1.5).alias(column)), schema))
    assert message.startswith(f"data/Art/test.parquet: column `{column}` must be {frame.schema[column]}, not Float64")


@pytest.mark.parametrize("schema", EVERY)
def test_a_list_of_other_items_is_refused(schema: Schema) -> None:
    other = pl.lit(["tea"], dtype=pl.List(pl.String))
    message = str(error(frame_of(schema, "q1").with_columns(rubric_aspects=other), schema))
    assert "column `rubric_aspects` must be List(Struct({'aspect': String" in message


@pytest.mark.parametrize("schema", EVERY)
def test_a_column_more_is_refused(schema: Schema) -> None:
    message = str(error(frame_of(schema, "q1").with_columns(score=1.0), schema))
    assert message == "data/Art/test.parquet: column `score` is not part of this table."


@pytest.mark.parametrize("schema", EVERY)
def test_ids_are_unique_and_every_failure_is_counted(schema: Schema) -> None:
    found = error(frame_of(schema, "q1", "中文", "q3", "中文"), schema)
    assert str(found) == (
        "data/Art/test.parquet, row 2 (id '中文'): column `id` must be unique, got \"中文\" (2 failures in all)."
    )
    assert found.failures == 2


def test_the_first_row_is_named_and_the_others_are_counted() -> None:
    frame = frame_of(PersonalizedPairs, *(f"q{number}" for number in range(2000)))
    broken = frame.with_columns(
        chosen=pl.when(pl.int_range(pl.len()) >= 800).then(None).otherwise("chosen"),
        question=pl.when(pl.int_range(pl.len()) == 1500).then(None).otherwise("question"),
    )
    found = error(broken, PersonalizedPairs)
    assert str(found) == (
        "data/Art/test.parquet, row 801 (id 'q800'): column `chosen` must not be missing, got null "
        "(1,201 failures in all)."
    )
    assert found.failures == 1201


@pytest.mark.parametrize("schema", EVERY)
def test_what_pandera_would_pass_is_refused(schema: Schema) -> None:
    frame = frame_of(schema, "q1")
    with pytest.raises(TypeError, match=r"^validate takes an eager frame, not LazyFrame$"):
        validate(frame.lazy(), schema, file="x.parquet")  # type: ignore[arg-type]
    assert str(error(frame.clear(), schema)) == "data/Art/test.parquet has no rows."
    assert str(error(frame.clear(), schema, rows=0)) == "data/Art/test.parquet has no rows."
    assert str(error(frame, schema, rows=1200)) == "data/Art/test.parquet has 1 rows where 1,200 are expected."
