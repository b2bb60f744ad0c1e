"""Generate chosen and rejected answers: one prompt asks to cover the aspects, the other to leave them out."""

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
    answer_text,
    ask_until_valid,
    chat_backend,
    chat_request,
)
from pluralbench_calls.chat import check_endpoint

from build_personalized.prompts import PROMPT_VERSION, Side, answer_messages
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.screening import screen
from build_personalized.sources import SAMPLE
from build_personalized.sources.loaded import drops_frame

STEP = "answers"
IDENTICAL = "identical answers"
SAMPLE_ONLY = "hand-written answers exist only for the questions of the sample; choose a model with `llm=...`"
# Refusals of chat models. People also write "I can't help thinking", "I can't do that either" and "I can't provide
# enough praise", so the words after "can't" decide.
# Fixed words begin here, which spelling rules leave alone.
REFUSAL = re.compile(
    r"\bas an? (ai|(large )?language model)\b|"
    r"\bi(['’]m| am)? ?(cannot|can not|can['’]t|won['’]t be able to|won['’]t|unable to|not able to) "
    r"(assist|comply|fulfil|help (you|with)|answer (this|that|your|the )|do that[.!]*$|"
    r"provide (?!enough\b))",
    re.IGNORECASE | re.MULTILINE,
)
# Fixed words end here.
REFUSAL_SPAN = 160  # characters at the beginning of an answer that are searched for a refusal
SIDES: tuple[Side, ...] = ("chosen", "rejected")


def answer_backend(recipe: PersonalizedRecipe, ledger: Ledger) -> Backend:
    """Return the backend that serves the recipe's model.

    Raises:
        CallsError: The endpoint cannot be reached, or the key is missing: noticed before profiles are ranked.
    """
    if recipe.llm.provider == "hand-written":
        return CannedBackend(_sample_answers, SAMPLE_ONLY)
    check_endpoint(recipe.llm, recipe.connection, ledger)
    return chat_backend(recipe.llm, recipe.connection)


def add_answers(
    questions: pl.DataFrame, recipe: PersonalizedRecipe, ledger: Ledger, backend: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Generate both answers to each question.

    An invalid answer is requested again: one that is empty, refused, over the word limit, equal to the other side or
    rejected by the recipe's screening.

    Returns:
        The pairs, and the dropped questions: those without a valid answer after all attempts.
    """
    rows, dropped = questions.to_dicts(), []
    for side in SIDES:
        replies = list(zip(rows, _request_answers(rows, side, recipe, ledger, backend), strict=True))
        dropped += [
            (row["config"], STEP, f"{side}: {reply.reason}", row["id"]) for row, reply in replies if not reply.value
        ]
        rows = [
            row
            | {
                side: reply.value,
                f"{side}_call": reply.answer.key,
                "models": [*row.get("models", []), reply.answer.model],
            }
            for row, reply in replies
            if reply.value
        ]
    pairs = [
        row | {"generator": ", ".join(dict.fromkeys(row["models"])), "prompt_version": PROMPT_VERSION} for row in rows
    ]
    columns = (*SIDES, "generator", "prompt_version", "chosen_call", "rejected_call")
    schema = pl.Schema(questions.schema | dict.fromkeys(columns, pl.String))
    return pl.DataFrame(pairs, schema=schema), drops_frame(dropped)


def _request_answers(
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
    """Return the answer in a reply, without the model's thinking.

    Raises:
        InvalidAnswer: The answer is empty, a refusal or over the word limit.
    """
    answer = answer_text(text)
    if REFUSAL.search(answer, 0, REFUSAL_SPAN):
        raise InvalidAnswer("refused")
    if len(answer.split()) > word_limit:
        raise InvalidAnswer(f"over {word_limit} words")
    return answer


def _label(side: str, row_id: str) -> str:
    return f"{side} answer for {row_id}"


def _sample_answers() -> dict[str, str]:
    """Hand-written answers of the sample, by the label of their call."""
    rows = pl.concat(pl.read_ndjson(path.read_bytes()) for path in sorted((SAMPLE / "answers").glob("*.jsonl")))
    return {_label(side, row["id"]): row[side] for row in rows.to_dicts() for side in SIDES}
