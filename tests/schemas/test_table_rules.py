"""Every rule of every schema says file, row, id, column, value and rule of the first failure."""

from typing import Any

import polars as pl
import pytest
from pluralbench_schemas import (
    MULTILINGUAL_PAIRS,
    PERSONALIZED_PAIRS,
    PERSONALIZED_QUESTIONS,
    RANKED_RESPONSES,
    SCHEMAS,
    TRANSLATION_PAIRS,
    VERBATIM_PERSONALIZED_PAIRS,
    VERBATIM_PERSONALIZED_QUESTIONS,
    Schema,
    TableError,
    validate,
)

Values = dict[str, Any]
FILE = "data/Art/test.parquet"
KEY = "0123456789abcdef" * 4


def aspect(title: str | None, evidence: str | None = None) -> Values:
    return {"aspect": title, "evidence": evidence, "reason": None}


def post(post_id: str | None, text: str | None) -> Values:
    return {"id": post_id, "category": None, "text": text}


def ranks(*places: tuple[str, int]) -> list[Values]:
    return [{"id": name, "rank": rank} for name, rank in places]


def vote(annotator: str, first: str, second: str, mark: str) -> Values:
    return {"annotator": annotator, "first": first, "second": second, "vote": mark}


def chat_message(role: str, content: str | None = "chat_message") -> Values:
    return {"role": role, "content": content}


AGE: Values = {"variable": "age", "value": "41", "number": 41.0, "sentence": "They are 41.", "sets": ["least-code"]}
FAITH: Values = {"variable": "religion", "value": None, "number": None, "sentence": None, "sets": []}
PERSONALIZED: Values = {
    "question": "Which tea?",
    "category": "Art_and_Entertainment",
    "narrative": "I grow tea.",
    "rubric_aspects": [aspect("growing", "I grow tea")],
    "profile": [post("p1", "My first harvest")],
    "chosen": "Green.",
    "rejected": "Any.",
    "generator": "model",
    "prompt_version": "1",
    "chosen_call": KEY,
    "rejected_call": KEY,
}
RESPONSES = [{"id": name, "content": f"回答{name}", "model": ""} for name in "abc"]
QUESTIONS = ["PersonalizedQuestions", "VerbatimPersonalizedQuestions"]
PAIRS = ["PersonalizedPairs", "VerbatimPersonalizedPairs"]
VERBATIM = ["VerbatimPersonalizedQuestions", "VerbatimPersonalizedPairs"]
ROWS: dict[str, Values] = {
    **dict.fromkeys([*QUESTIONS, *PAIRS], PERSONALIZED),
    "MultilingualPairs": {
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
    "RankedResponses": {
        "input": "用一句话介绍杭州。",
        "sys_prompt": None,
        "responses": RESPONSES,
        "annotations": [["a", "b", "1"], ["c", "b", "2"], ["a", "c", "s"]],
        "rank": ranks(("a", 1), ("b", 2), ("c", 2)),
        "order": [["a", "b"], ["a", "c"]],
        "category": ["知识", "人文地理"],
        "judgements": 3,
        "conflicts": 1,
        "annotated_by": "people",
        "votes": [vote("annotator-1", "a", "b", "1"), vote("annotator-2", "b", "a", "s")],
        "vote_calls": [],
        "reward_calls": [KEY],
    },
    "PersonaItems": {
        "task": "prism",
        "kind": "preference",
        "user": "user1",
        "persona": [AGE, FAITH],
        "context": "What is tea?",
        "option_a": "A leaf.",
        "option_b": "A drink.",
        "truth": "A",
        "origin_a": "one model",
        "origin_b": "another",
        "gap": 12.0,
        "rank_calls": [],
    },
    "PersonalizedPreferences": {
        "user_id": "a",
        "prompt": [chat_message("user", "Which tea?")],
        "chosen": [chat_message("assistant", "Green.")],
        "rejected": [chat_message("assistant", "Any.")],
        "profile": [post("a-2", "When to harvest?")],
        "persona": "Grows tea.",
        "persona_call": KEY,
        "source_id": "a-1",
        "chosen_source": None,
        "rejected_source": "x",
        "original_split": None,
    },
    "RankedPairs": {
        "prompt": [chat_message("user", "喝什么茶？")],
        "chosen": [chat_message("assistant", "绿茶。")],
        "rejected": [chat_message("assistant", "随便。")],
        "prompt_id": "q",
        "chosen_id": "a",
        "rejected_id": "b",
        "annotated_by": "people",
        "votes": [{"annotator": "annotator-1", "vote": "chosen"}, {"annotator": "annotator-2", "vote": "tie"}],
    },
}
NUMBERED = {"MultilingualPairs", "TranslationPairs"}
every = pytest.mark.parametrize("name", SCHEMAS)
TYPES = {name: schema.columns for name, schema in SCHEMAS.items()}
REQUIRED = [(name, column) for name, types in TYPES.items() for column in types if column not in SCHEMAS[name].nullable]


def ids_of(name: str, count: int) -> list[Any]:
    return [number if name in NUMBERED else f"q{number}" for number in range(1, count + 1)]


def frame_of(name: str, *ids: Any) -> pl.DataFrame:
    """Rows that keep to the schema of this name."""
    types = TYPES[name]
    rows = [{"id": row_id} | {column: ROWS[name][column] for column in types if column != "id"} for row_id in ids]
    return pl.DataFrame(rows, schema=types)


def changed(name: str, **values: Any) -> pl.DataFrame:
    """Three rows that keep to the schema, but for these values in the second."""
    frame = frame_of(name, *ids_of(name, 3))
    for column, value in values.items():
        cells = frame[column].to_list()
        cells[1] = value
        frame = frame.with_columns(pl.Series(column, cells, dtype=frame.schema[column]))
    return frame


def error(frame: pl.DataFrame, name: str, **options: Any) -> TableError:
    with pytest.raises(TableError) as caught:
        validate(frame, SCHEMAS[name], file=FILE, **options)
    return caught.value


@pytest.mark.smoke
@every
def test_rows_that_keep_the_rules_come_back(name: str) -> None:
    schema = SCHEMAS[name]
    frame = frame_of(name, *ids_of(name, 2))
    assert validate(frame, schema, file="x.parquet", rows=2) is frame
    backwards = frame.select(reversed(frame.columns))
    assert validate(backwards, schema, file="x.parquet") is backwards


KEPT: list[tuple[str, Values]] = [
    ("MultilingualPairs", {"rejected": "", "prompt_calls": [], "chosen_calls": []}),
    ("TranslationPairs", {"source": "(a|b) .* \\", "prompt": "Say: (a|b) .* \\"}),
    ("RankedResponses", {"sys_prompt": "回答要简短。", "category": ["知识"], "annotations": [], "order": []}),
    ("RankedResponses", {"judgements": 0, "conflicts": 0, "votes": []}),
    ("PersonaItems", {"truth": "tie", "gap": None, "context": "", "persona": [], "option_a": "[[B]] 90"}),
    ("PersonalizedPreferences", {"prompt": [chat_message(role) for role in ("system", "user", "assistant", "user")]}),
    ("PersonalizedPreferences", {"profile": [], "persona": None, "persona_call": None}),
]


@pytest.mark.parametrize(("name", "values"), KEPT)
def test_what_may_be_empty_or_out_of_the_ordinary(name: str, values: Values) -> None:
    frame = changed(name, **values)
    assert validate(frame, SCHEMAS[name], file=FILE) is frame


TEXT = "must have text"
POSTS = "must have an id and a text in each post"
TITLES = "must have a title in each aspect"
QUOTES = "must quote each `evidence` from `narrative`"
NO_KEY = "must be the key of a recorded call, 64 hexadecimal digits"
NO_KEYS = "must be keys of calls, 64 hexadecimal digits"
NO_SUBSET = "must be of the form translation-SRC-TGT-easy or -hard"
DIFFERENT = "must differ from `chosen`"
ANNOTATED = "must be [id, id, mark] of two of the responses"
RANKED = "must rank responses from 1 without a gap, not all alike"
ORDERED = "must be [better, worse] of two of the responses"
VOTER = "must name the annotator of each vote"
VOTED = "must be on two of the responses, each annotator's once"
SEVERAL = "must be two or more, each with an id of its own"
MESSAGES = "must have text in each message, of the role system, user or assistant"
RENDERED = "must have each variable once, with a sentence exactly if it has a value"
RULES: list[tuple[list[str], str, Any, str]] = [
    *(([*QUESTIONS, *PAIRS], "question", value, TEXT) for value in ("", " \u00a0\n")),
    ([*QUESTIONS, *PAIRS], "profile", [], "must have at least one post"),
    *(
        ([*QUESTIONS, *PAIRS], "profile", [value], POSTS)
        for value in (None, post("p1", " "), post("", "t"), post(None, "中文"))
    ),
    *(([*QUESTIONS, *PAIRS], "rubric_aspects", [aspect(title)], TITLES) for title in (" ", None)),
    *((PAIRS, column, "", TEXT) for column in ("chosen", "rejected", "generator", "prompt_version")),
    *(
        (PAIRS, column, value, NO_KEY)
        for column in ("chosen_call", "rejected_call")
        for value in ("", KEY.upper(), KEY[1:], KEY + "\n")
    ),
    (PAIRS, "rubric_aspects", [], "must have at least one aspect"),
    (PAIRS, "rejected", "Green.", DIFFERENT),
    (VERBATIM, "rubric_aspects", [aspect("a", "I grow tea"), aspect("b", "nowhere")], QUOTES),
    *((["MultilingualPairs"], column, " ", TEXT) for column in ("prompt", "source", "category", "translator")),
    (["MultilingualPairs"], "language", "deu_Latn", "must be the same in all rows"),
    (["MultilingualPairs"], "rejected", "Sí.", DIFFERENT),
    *(
        (["MultilingualPairs"], column, value, NO_KEYS)
        for column in ("prompt_calls", "chosen_calls", "rejected_calls")
        for value in (["x"], [KEY, KEY[1:]], [KEY, None])
    ),
    *((["TranslationPairs"], column, "", TEXT) for column in ("chosen", "rejected")),
    (["TranslationPairs"], "source", " ", TEXT),
    (["TranslationPairs"], "prompt", "Tea?", "must contain the sentence in `source`"),
    (["TranslationPairs"], "rejected", "¿Té?", DIFFERENT),
    (["TranslationPairs"], "template", -1, "must not be negative"),
    *(
        (["TranslationPairs"], "subset", value, NO_SUBSET)
        for value in (
            "translation-en-es",
            "maple-en-es-easy",
            "translation-en-es-hard\n",
        )
    ),
    (["TranslationPairs"], "chosen_score", float("nan"), "must not be missing"),
    (["RankedResponses"], "input", " ", TEXT),
    (["RankedResponses"], "responses", [RESPONSES[0], *RESPONSES], SEVERAL),
    *(
        (["RankedResponses"], "annotations", [value], ANNOTATED)
        for value in ([], ["a", "b"], ["a", "b", "g"], ["a", "a", "1"], ["a", "x", "1"])
    ),
    *(
        (["RankedResponses"], "rank", value, RANKED)
        for value in (
            ranks(("a", 1), ("b", 1)),
            ranks(("a", 1), ("b", 3)),
            ranks(("a", 1), ("a", 2)),
            [],
        )
    ),
    *((["RankedResponses"], "order", [value], ORDERED) for value in ([], ["a", "x"], ["a", "b", "c"])),
    *((["RankedResponses"], "category", value, "must name a main category") for value in ([], ["知识", " "])),
    *(
        (["RankedResponses"], "votes", value, error)
        for value, error in (
            ([vote(" ", "a", "b", "1")], VOTER),
            ([vote("x", "a", "b", "3")], "must have the mark 1, 2 or s in each vote"),
            ([vote("x", "a", "a", "1")], VOTED),
            ([vote("x", "a", "y", "1")], VOTED),
            ([vote("x", "a", "b", "1"), vote("x", "b", "a", "2")], VOTED),
        )
    ),
    (["RankedPairs"], "votes", [{"annotator": "", "vote": "tie"}], VOTER),
    (["RankedPairs"], "votes", [{"annotator": "x", "vote": "A"}], "must be chosen, rejected or tie in each vote"),
    (["RankedResponses"], "conflicts", 4, "must be no more than `judgements`"),
    (["RankedResponses"], "vote_calls", ["abc"], NO_KEYS),
    (["PersonaItems"], "task", "opinion_qa", "must be the same in all rows"),
    *((["PersonaItems"], column, " ", TEXT) for column in ("option_a", "user", "origin_b")),
    (["PersonaItems"], "option_b", "A leaf.", "must differ from `option_a`"),
    (["PersonaItems"], "kind", "taste", "must be one of preference, opinion, authorship"),
    (["PersonaItems"], "truth", "C", "must be one of A, B, tie"),
    *(
        (["PersonaItems"], "persona", value, RENDERED)
        for value in ([AGE, AGE], [AGE | {"value": None}], [FAITH | {"value": "None"}])
    ),
    (["PersonaItems"], "rank_calls", ["abc"], NO_KEYS),
    *((["PersonalizedPreferences"], column, "\n", TEXT) for column in ("user_id", "persona")),
    *(
        (["PersonalizedPreferences"], "prompt", [value, chat_message("user")], MESSAGES)
        for value in (chat_message("human"), chat_message("user", " "), chat_message("user", None))
    ),
    (["PersonalizedPreferences"], "prompt", [chat_message("assistant")], "must end with a message of the user"),
    (["PersonalizedPreferences"], "prompt", [], "must end with a message of the user"),
    (["PersonalizedPreferences"], "rejected", [chat_message("assistant", "Green.")], DIFFERENT),
    *(
        ([name], "chosen", value, "must be one message of the assistant")
        for name in ("PersonalizedPreferences", "RankedPairs")
        for value in ([], [chat_message("user", "x")], [chat_message("assistant", "x")] * 2)
    ),
    (["RankedPairs"], "rejected", [chat_message("assistant", " ")], MESSAGES),
    *((["RankedPairs"], column, " ", TEXT) for column in ("prompt_id", "chosen_id", "rejected_id", "annotated_by")),
    (["PersonalizedPreferences"], "profile", [post("p", "")], POSTS),
    (
        ["PersonalizedPreferences"],
        "profile",
        [post("a-1", "x")],
        "must not contain the row's own question (`source_id`)",
    ),
    (["PersonalizedPreferences"], "persona_call", "k", NO_KEY),
    (["PersonalizedPreferences"], "persona", None, "must be present exactly if `persona_call` is"),
]


@pytest.mark.parametrize(
    ("name", "column", "value", "rule"),
    [
        pytest.param(name, column, value, rule, marks=[] if name == names[0] else pytest.mark.heavy)
        for names, column, value, rule in RULES
        for name in names
    ],
)
def test_a_broken_rule_is_named_where_it_is_broken(name: str, column: str, value: Any, rule: str) -> None:
    found = error(changed(name, **{column: value}), name)
    assert str(found).startswith(f"{FILE}, row 2 (id {ids_of(name, 2)[1]!r}): column `{column}` {rule}, got ")
    assert found.failures == 1


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        (
            "VerbatimPersonalizedPairs",
            {"rubric_aspects": [aspect("a", "I grow tea"), aspect("b", "nowhere")]},
            f"row 2 (id 'q2'): column `rubric_aspects` {QUOTES}, got "
            '[{"aspect": "a", "evidence": "I grow tea", "reason": null}, {"aspect": "b", "evi….',
        ),
        ("MultilingualPairs", {"id": -1}, "row 2 (id -1): column `id` must not be negative, got -1."),
        (
            "MultilingualPairs",
            {"language": "es"},
            'row 2 (id 2): column `language` must be a language of `languages.toml`, got "es" (2 failures in all).',
        ),
    ],
)
def test_the_whole_sentence(name: str, values: Values, sentence: str) -> None:
    assert str(error(changed(name, **values), name)) == f"{FILE}, {sentence}"


@pytest.mark.parametrize(("name", "column"), REQUIRED)
def test_a_value_that_is_missing_is_named(name: str, column: str) -> None:
    row_id = None if column == "id" else ids_of(name, 2)[1]
    assert str(error(changed(name, **{column: None}), name)).startswith(
        f"{FILE}, row 2 (id {row_id!r}): column `{column}` must not be missing, got null"
    )


@every
def test_a_column_that_is_missing_or_of_another_type_is_named(name: str) -> None:
    frame = frame_of(name, *ids_of(name, 1))
    column = frame.columns[-1]
    assert str(error(frame.drop(column), name)).startswith(f"{FILE}: column `{column}` is missing")
    other = frame.with_columns(pl.lit([1], dtype=pl.List(pl.Int64)).alias(column))
    message = str(error(other, name))
    assert message.startswith(f"{FILE}: column `{column}` must be {frame.schema[column]}, not List(Int64)")


@every
def test_what_pandera_would_pass_and_a_column_more_are_refused(name: str) -> None:
    frame = frame_of(name, *ids_of(name, 1))
    assert str(error(frame.with_columns(score=1.0), name)) == f"{FILE}: column `score` is not part of this table."
    with pytest.raises(TypeError, match=r"^validate takes an eager frame, not LazyFrame$"):
        validate(frame.lazy(), SCHEMAS[name], file="x.parquet")  # type: ignore[arg-type]
    for options in ({}, {"rows": 0}):
        assert str(error(frame.clear(), name, **options)) == f"{FILE} has no rows."
    assert str(error(frame, name, rows=1200)) == f"{FILE} has 1 rows; expected 1,200."


@every
def test_ids_are_unique_and_every_failure_is_counted(name: str) -> None:
    one, two, three = ids_of(name, 3)
    found = error(frame_of(name, one, two, three, two), name)
    shown = f'"{two}"' if isinstance(two, str) else two
    assert str(found) == (f"{FILE}, row 2 (id {two!r}): column `id` must be unique, got {shown} (2 failures in all).")
    assert found.failures == 2


def test_the_first_row_is_named_and_the_others_are_counted() -> None:
    broken = frame_of("PersonalizedPairs", *ids_of("PersonalizedPairs", 2000)).with_columns(
        chosen=pl.when(pl.int_range(pl.len()) >= 800).then(None).otherwise("chosen"),
        question=pl.when(pl.int_range(pl.len()) == 1500).then(None).otherwise("question"),
    )
    found = error(broken, "PersonalizedPairs")
    assert (
        str(found)
        == f"{FILE}, row 801 (id 'q801'): column `chosen` must not be missing, got null (1,201 failures in all)."
    )
    assert found.failures == 1201


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        (
            MULTILINGUAL_PAIRS,
            "id language prompt chosen rejected chosen_model rejected_model source category",
        ),
        (TRANSLATION_PAIRS, "id prompt chosen rejected source subset"),
        (PERSONALIZED_QUESTIONS, "id question category narrative rubric_aspects profile"),
        (PERSONALIZED_PAIRS, "id question category narrative rubric_aspects profile chosen rejected"),
        (VERBATIM_PERSONALIZED_PAIRS, "id question category narrative rubric_aspects profile chosen rejected"),
        (VERBATIM_PERSONALIZED_QUESTIONS, "id question category narrative rubric_aspects profile"),
        (RANKED_RESPONSES, "id input sys_prompt responses annotations rank order category"),
    ],
)
def test_the_columns_are_the_published_ones_first(schema: Schema, first: str) -> None:
    names = first.split()
    assert list(schema.columns)[: len(names)] == names
