"""Extract rubric aspects from a narrative whose source has none.

The model points at numbered sentences, so an aspect's evidence is quoted word for word by construction. Words that the
person quotes are not among these sentences: they are not evidence of what the person wants.
"""

import re
from typing import Any

import polars as pl
from pluralbench_calls import InvalidAnswer, Request, after_thinking, ask_until_valid
from pydantic import BaseModel, ValidationError

from build_personalized.llm import Llm
from build_personalized.prompts import aspects_messages
from build_personalized.sentences import LETTER, own_sentences
from build_personalized.sources.loaded import drops_frame

STEP = "aspects"
NO_NARRATIVE = "no narrative to extract aspects from"
TITLE_WORDS = 12
NUMBERING = re.compile(r"^\d+[.)]\s*")


class _Aspect(BaseModel):
    sentence: int
    aspect: str
    reason: str


class _Aspects(BaseModel):
    aspects: list[_Aspect]


def add_aspects(questions: pl.DataFrame, llm: Llm) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`questions` with `rubric_aspects` where they had none; those for which none could be had are drops."""
    recipe = llm.recipe
    sentences = {
        (row["config"], row["id"]): own_sentences(row["narrative"], recipe.source.language)
        for row in questions.iter_rows(named=True)
        if not row["rubric_aspects"]
    }
    speaking = [row for row in questions.iter_rows(named=True) if sentences.get((row["config"], row["id"]))]

    def request(row: dict[str, Any], attempt: int) -> Request:
        numbered = sentences[row["config"], row["id"]]
        return llm.request(
            aspects_messages(row["question"], numbered, recipe.max_aspects),
            recipe.llm.aspects_max_tokens,
            label=f"aspects of {row['id']}",
            attempt=attempt,
            schema=_schema(len(numbered), recipe.max_aspects),
        )

    def parse(row: dict[str, Any], text: str) -> list[dict[str, str]]:
        return parse_aspects(text, sentences[row["config"], row["id"]], recipe.max_aspects)

    settled = ask_until_valid(
        speaking, request, parse, llm.ledger, llm.backend, attempts=recipe.attempts, limits=llm.limits, label=STEP
    )
    results = {(row["config"], row["id"]): result for row, result in zip(speaking, settled, strict=True)}
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
    text = after_thinking(text)
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
