"""Extract rubric aspects from narratives, for sources that have no aspects.

The model refers to numbered sentences, so an aspect's evidence is always a verbatim quotation. Text that the person
quotes is not among the sentences: it is no evidence of what the person wants.
"""

import re
from typing import Any

import polars as pl
from pluralbench_calls import Backend, InvalidAnswer, Ledger, Request, ask_until_valid, chat_request, strip_thinking
from pydantic import BaseModel, ValidationError

from build_personalized.prompts import aspects_messages
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.screening import LETTER, own_sentences
from build_personalized.sources.loaded import drops_frame

STEP = "aspects"
NO_NARRATIVE = "no narrative to extract aspects from"
TITLE_WORDS = 12
NUMBERING = re.compile(r"^\d+[.)]\s*")

NumberedSentences = tuple[tuple[str, str], list[str]]
"""Config and id of a question, and the sentences of its narrative."""


class _Aspect(BaseModel):
    sentence: int
    aspect: str
    reason: str


class _Aspects(BaseModel):
    aspects: list[_Aspect]


def add_aspects(
    questions: pl.DataFrame, recipe: PersonalizedRecipe, ledger: Ledger, backend: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fill in `rubric_aspects` for questions (columns of `sources.loaded.QUESTIONS`) that have none.

    Returns:
        The questions with aspects, and the dropped questions: those without a narrative or a valid reply.
    """
    sentences = {
        (row["config"], row["id"]): own_sentences(row["narrative"], recipe.source.language)
        for row in questions.iter_rows(named=True)
        if not row["rubric_aspects"]
    }
    narratives = [(key, numbered) for key, numbered in sentences.items() if numbered]
    question_texts = dict(zip(questions.select("config", "id").iter_rows(), questions["question"], strict=True))

    def request(item: NumberedSentences, attempt: int) -> Request:
        key, numbered = item
        return chat_request(
            recipe.llm,
            aspects_messages(question_texts[key], numbered, recipe.max_aspects),
            seed=recipe.seed,
            label=f"aspects of {key[1]}",
            attempt=attempt,
            max_tokens=recipe.llm.aspects_max_tokens,
            schema=_schema(len(numbered), recipe.max_aspects),
        )

    def parse(item: NumberedSentences, text: str) -> list[dict[str, str]]:
        return parse_aspects(text, item[1], recipe.max_aspects)

    limits = recipe.connection.limits()
    parsed = ask_until_valid(
        narratives, request, parse, ledger, backend, attempts=recipe.attempts, limits=limits, label=STEP
    )
    replies = {key: reply for (key, _), reply in zip(narratives, parsed, strict=True)}
    aspects, dropped = [], []
    for row in questions.iter_rows(named=True):
        reply = replies.get((row["config"], row["id"]))
        rubric = row["rubric_aspects"] or (reply.value if reply else None) or []
        if not rubric:
            dropped.append((row["config"], STEP, reply.reason if reply else NO_NARRATIVE, row["id"]))
        aspects.append(rubric)
    filled = questions.with_columns(pl.Series("rubric_aspects", aspects, dtype=questions.schema["rubric_aspects"]))
    return filled.filter(pl.col("rubric_aspects").list.len() > 0), drops_frame(dropped)


def parse_aspects(text: str, sentences: list[str], max_aspects: int) -> list[dict[str, str]]:
    """Parse at most `max_aspects` aspects from the model's JSON, with the numbered sentences as evidence.

    The JSON object may be in a code fence or follow a remark; anything else is invalid.

    Raises:
        InvalidAnswer: The reply is not the requested JSON, or an aspect has no usable title or sentence.
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
    item = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    aspects = {"type": "array", "minItems": 1, "maxItems": max_aspects, "items": item}
    schema = {
        "type": "object",
        "properties": {"aspects": aspects},
        "required": ["aspects"],
        "additionalProperties": False,
    }
    return {"name": "rubric_aspects", "schema": schema}
