"""Chosen and rejected answers: one prompt with the aspects expected, one with the aspects to keep out."""

import re
from typing import Any

import polars as pl
from pluralbench_calls import (
    Backend,
    CannedBackend,
    InvalidAnswer,
    Ledger,
    ParsedReply,
    Request,
    ask_until_valid,
    chat_backend,
    chat_request,
    strip_thinking,
)

from build_personalized.prompts import PROMPT_VERSION, Side, answer_messages
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.screening import screen
from build_personalized.sources import SAMPLE
from build_personalized.sources.loaded import drops_frame

STEP = "answers"
IDENTICAL = "identical answers"
NOT_OF_THE_SAMPLE = "hand-written answers are only for the sample's own questions; choose a model with --llm"
# How chat models decline: "I" (or a language model) cannot do what answering is. People write "I can't help thinking",
# "I can't do that either" and "I can't provide enough praise" too, so the words after it decide.
REFUSAL = re.compile(
    r"\bas an? (ai|(large )?language model)\b|"
    r"\bi(['’]m| am)? ?(cannot|can not|can['’]t|won['’]t be able to|won['’]t|unable to|not able to) "
    r"(assist|comply|fulfil|help (you|with)|answer (this|that|your|the )|do that[.!]*$|"
    r"provide (?!enough\b))",
    re.IGNORECASE | re.MULTILINE,
)
BEGINNING = 160  # characters
SIDES: tuple[Side, ...] = ("chosen", "rejected")


def backend_of(recipe: PersonalizedRecipe) -> Backend:
    """Who answers for the recipe's model."""
    if recipe.llm.provider == "hand-written":
        return CannedBackend(_written, NOT_OF_THE_SAMPLE)
    return chat_backend(recipe.llm, recipe.connection)


def add_answers(
    questions: pl.DataFrame, recipe: PersonalizedRecipe, ledger: Ledger, backend: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs from questions with aspects; questions for which no valid answer could be had are drops.

    An answer over the word limit, empty, refused, equal to the other side, or one that the recipe's screening takes
    for none is asked for again.
    """
    rows, dropped = questions.to_dicts(), []
    for side in SIDES:
        results = _ask(rows, side, recipe, ledger, backend)
        asked = list(zip(rows, results, strict=True))
        dropped += [(row["config"], STEP, f"{side}: {one.reason}", row["id"]) for row, one in asked if not one.value]
        rows = [
            row
            | {side: one.value, f"{side}_call": one.answer.key, "models": [*row.get("models", []), one.answer.model]}
            for row, one in asked
            if one.value
        ]
    pairs = [
        row | {"generator": ", ".join(dict.fromkeys(row["models"])), "prompt_version": PROMPT_VERSION} for row in rows
    ]
    columns = (*SIDES, "generator", "prompt_version", "chosen_call", "rejected_call")
    schema = pl.Schema(questions.schema | dict.fromkeys(columns, pl.String))
    return pl.DataFrame(pairs, schema=schema), drops_frame(dropped)


def _ask(
    rows: list[dict[str, Any]], side: Side, recipe: PersonalizedRecipe, ledger: Ledger, backend: Backend
) -> list[ParsedReply[str]]:
    def request(row: dict[str, Any], attempt: int) -> Request:
        aspects = [aspect["aspect"] for aspect in row["rubric_aspects"]]
        posts = row["profile"][: recipe.profile_size]
        return chat_request(
            recipe.llm,
            answer_messages(row["question"], posts, aspects, side, recipe.word_limit),
            seed=recipe.seed,
            label=_label(side, row["id"]),
            attempt=attempt,
        )

    def parse(row: dict[str, Any], text: str) -> str:
        answer = parse_answer(text, recipe.word_limit)
        screen(answer, recipe.screening, recipe.word_limit, recipe.source.language)
        if answer == row.get("chosen"):
            raise InvalidAnswer(IDENTICAL)
        return answer

    return ask_until_valid(
        rows,
        request,
        parse,
        ledger,
        backend,
        attempts=recipe.attempts,
        limits=recipe.connection.limits(),
        label=f"{side} answers",
    )


def parse_answer(text: str, word_limit: int) -> str:
    """The answer in a reply: what stands behind a model's thinking. Raises `InvalidAnswer`."""
    answer = strip_thinking(text).strip()
    if not answer:
        raise InvalidAnswer("empty answer")
    if REFUSAL.search(answer, 0, BEGINNING):
        raise InvalidAnswer("refused")
    if len(answer.split()) > word_limit:
        raise InvalidAnswer(f"over {word_limit} words")
    return answer


def _label(side: str, row_id: str) -> str:
    """What a call for an answer is called, in the ledger and in messages."""
    return f"{side} answer for {row_id}"


def _written() -> dict[str, str]:
    """The answers that were written for the sample, by what the call for one is called."""
    rows = pl.concat(pl.read_ndjson(path.read_bytes()) for path in sorted((SAMPLE / "answers").glob("*.jsonl")))
    return {_label(side, row["id"]): row[side] for row in rows.to_dicts() for side in SIDES}
