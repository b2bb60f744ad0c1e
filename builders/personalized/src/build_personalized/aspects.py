"""Extract rubric aspects from a narrative whose source has none.

The model points at numbered sentences, so an aspect's evidence is quoted word for word by construction. Words that the
person quotes are not among these sentences: they are not evidence of what the person wants.
"""

import re
from typing import Any

import polars as pl
from pluralbench_calls import Backend, InvalidAnswer, Ledger, Request, ask_until_valid, chat_request, strip_thinking
from pydantic import BaseModel, ValidationError

from build_personalized.prompts import aspects_messages
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sentences import LETTER, own_sentences
from build_personalized.sources.loaded import drops_frame

STEP = "aspects"
NO_NARRATIVE = "no narrative to extract aspects from"
TITLE_WORDS = 12
NUMBERING = re.compile(r"^\d+[.)]\s*")

Numbered = tuple[tuple[str, str], list[str]]
"""The config and the id of a question, and the sentences of its narrative."""


class _Aspect(BaseModel):
    sentence: int
    aspect: str
    reason: str


class _Aspects(BaseModel):
    aspects: list[_Aspect]


def add_aspects(
    questions: pl.DataFrame, recipe: PersonalizedRecipe, ledger: Ledger, backend: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`questions` with `rubric_aspects` where they had none; those for which none could be had are drops."""
    sentences = {
        (row["config"], row["id"]): own_sentences(row["narrative"], recipe.source.language)
        for row in questions.iter_rows(named=True)
        if not row["rubric_aspects"]
    }
    speaking = [(key, numbered) for key, numbered in sentences.items() if numbered]
    asked = dict(zip(questions.select("config", "id").iter_rows(), questions["question"], strict=True))

    def request(item: Numbered, attempt: int) -> Request:
        key, numbered = item
        return chat_request(
            recipe.llm,
            aspects_messages(asked[key], numbered, recipe.max_aspects),
            seed=recipe.seed,
            label=f"aspects of {key[1]}",
            attempt=attempt,
            max_tokens=recipe.llm.aspects_max_tokens,
            schema=_schema(len(numbered), recipe.max_aspects),
        )

    def parse(item: Numbered, text: str) -> list[dict[str, str]]:
        return parse_aspects(text, item[1], recipe.max_aspects)

    limits = recipe.connection.limits()
    settled = ask_until_valid(
        speaking, request, parse, ledger, backend, attempts=recipe.attempts, limits=limits, label=STEP
    )
    results = {key: result for (key, _), result in zip(speaking, settled, strict=True)}
    aspects, dropped = [], []
    for row in questions.iter_rows(named=True):
        result = results.get((row["config"], row["id"]))
        found = row["rubric_aspects"] or (result.value if result else None) or []
        if not found:
            dropped.append((row["config"], STEP, result.reason if result else NO_NARRATIVE, row["id"]))
        aspects.append(found)
    filled = questions.with_columns(pl.Series("rubric_aspects", aspects, dtype=questions.schema["rubric_aspects"]))
    return filled.filter(pl.col("rubric_aspects").list.len() > 0), drops_frame(dropped)


def parse_aspects(text: str, sentences: list[str], max_aspects: int) -> list[dict[str, str]]:
    """Aspects with their evidence from the model's JSON. Raises `InvalidAnswer`.

    The object may stand in a code fence or behind a remark; nothing else about it is guessed.
    """
    text = strip_thinking(text)
    start, end = text.find("{"), text.rfind("}")
    try:
        parsed = _Aspects.model_validate_json(text[start : end + 1]).aspects
    except ValidationError:
        raise InvalidAnswer("aspects are not the JSON asked for") from None
    if not parsed:
        raise InvalidAnswer("no aspects named")
    aspects = {}
    for item in parsed[:max_aspects]:
        title = NUMBERING.sub("", " ".join(item.aspect.split()))
        if not 1 <= item.sentence <= len(sentences):
            raise InvalidAnswer("an aspect names a sentence that is not there")
        if not LETTER.search(title) or len(title.split()) > TITLE_WORDS:
            raise InvalidAnswer("an aspect has no usable title")
        if title.lower() not in aspects:
            evidence = sentences[item.sentence - 1]
            aspects[title.lower()] = {"aspect": title, "evidence": evidence, "reason": " ".join(item.reason.split())}
    return list(aspects.values())


def _schema(sentences: int, max_aspects: int) -> dict[str, Any]:
    properties = {
        "sentence": {"type": "integer", "minimum": 1, "maximum": sentences},
        "aspect": {"type": "string", "minLength": 3, "maxLength": 60},
        "reason": {"type": "string", "minLength": 3, "maxLength": 160},
    }
    item = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    aspects = {"type": "array", "minItems": 1, "maxItems": max_aspects, "items": item}
    schema = {
        "type": "object",
        "properties": {"aspects": aspects},
        "required": ["aspects"],
        "additionalProperties": False,
    }
    return {"name": "rubric_aspects", "schema": schema}
