"""Chosen and rejected answers: one prompt with the aspects expected, one with the aspects to keep out."""

import re
from typing import Any

import polars as pl
from pluralbench_calls import InvalidAnswer, Request, Settled, after_thinking, ask_until_valid

from build_personalized.llm import Llm, answer_label
from build_personalized.prompts import PROMPT_VERSION, Side, answer_messages
from build_personalized.screening import screen
from build_personalized.sources.loaded import drops_frame

STEP = "answers"
IDENTICAL = "identical answers"
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


def add_answers(questions: pl.DataFrame, llm: Llm) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs from questions with aspects; questions for which no valid answer could be had are drops.

    An answer over the word limit, empty, refused, equal to the other side, or one that the recipe's screening takes
    for none is asked for again.
    """
    rows = list(questions.iter_rows(named=True))
    chosen = _ask(rows, "chosen", llm, [None] * len(rows))
    going_on = [(row, result) for row, result in zip(rows, chosen, strict=True) if result.value]
    rejected = _ask([row for row, _ in going_on], "rejected", llm, [result.value for _, result in going_on])
    pairs = [
        row
        | {
            "chosen": first.value,
            "rejected": second.value,
            "generator": ", ".join(dict.fromkeys([first.answer.model, second.answer.model])),
            "prompt_version": PROMPT_VERSION,
            "chosen_call": first.answer.key,
            "rejected_call": second.answer.key,
        }
        for (row, first), second in zip(going_on, rejected, strict=True)
        if second.value
    ]
    dropped = [
        (row["config"], STEP, f"{side}: {result.reason}", row["id"])
        for side, asked, results in (("chosen", rows, chosen), ("rejected", [row for row, _ in going_on], rejected))
        for row, result in zip(asked, results, strict=True)
        if not result.value
    ]
    columns = ("chosen", "rejected", "generator", "prompt_version", "chosen_call", "rejected_call")
    schema = pl.Schema(questions.schema | dict.fromkeys(columns, pl.String))
    return pl.DataFrame(pairs, schema=schema), drops_frame(dropped)


def _ask(rows: list[dict[str, Any]], side: Side, llm: Llm, others: list[str | None]) -> list[Settled[str]]:
    recipe = llm.recipe

    def request(item: tuple[dict[str, Any], str | None], attempt: int) -> Request:
        row = item[0]
        aspects = [aspect["aspect"] for aspect in row["rubric_aspects"]]
        posts = row["profile"][: recipe.profile_size]
        return llm.request(
            answer_messages(row["question"], posts, aspects, side, recipe.word_limit),
            recipe.llm.max_tokens,
            label=answer_label(side, row["id"]),
            attempt=attempt,
        )

    def parse(item: tuple[dict[str, Any], str | None], text: str) -> str:
        answer = parse_answer(text, recipe.word_limit)
        screen(answer, recipe.screening, recipe.word_limit, recipe.source.language)
        if answer == item[1]:
            raise InvalidAnswer(IDENTICAL)
        return answer

    return ask_until_valid(
        list(zip(rows, others, strict=True)),
        request,
        parse,
        llm.ledger,
        llm.backend,
        attempts=recipe.attempts,
        limits=llm.limits,
        label=f"{side} answers",
    )


def parse_answer(text: str, word_limit: int) -> str:
    """The answer in a reply: what stands behind a model's thinking. Raises `InvalidAnswer`."""
    answer = after_thinking(text).strip()
    if not answer:
        raise InvalidAnswer("empty answer")
    if REFUSAL.search(answer, 0, BEGINNING):
        raise InvalidAnswer("refused")
    if len(answer.split()) > word_limit:
        raise InvalidAnswer(f"over {word_limit} words")
    return answer
