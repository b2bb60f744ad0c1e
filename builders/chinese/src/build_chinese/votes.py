"""A judge model's votes on pairs of responses (CHEEMS, section 4.2): each two of a prompt, in a drawn order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl
from pluralbench_calls import (
    Backend,
    ChatModel,
    Ledger,
    Limits,
    Request,
    ask_until_valid,
    chat_request,
    parse_verdict,
)
from pluralbench_runs import stream

from build_chinese.judge_prompts import SYSTEM, USER
from build_chinese.preferences import Mark
from build_chinese.rankings import Row
from build_chinese.taxonomy import Taxonomy

VOTES = pl.Schema(
    {
        "prompt": pl.String,
        "first": pl.String,
        "second": pl.String,
        "mark": pl.String,
        "reason": pl.String,
        "call": pl.String,
    }
)
"""A vote: the responses as the judge saw them, "1", "2" or "s", or null with the reason why there is none."""

MARK_OF: dict[str, Mark] = {"A": "1", "B": "2", "C": "s"}


@dataclass(frozen=True)
class Judging:
    """A judge in use. attempts: how often a vote is asked for until it can be read."""

    model: ChatModel
    backend: Backend
    limits: Limits
    attempts: int
    seed: int


@dataclass(frozen=True)
class Ballot:
    """What a vote is asked for."""

    prompt: str
    first: str
    second: str
    messages: list[dict[str, str]]


def vote_label(prompt: str, first: str, second: str) -> str:
    """What the call for a vote is called, in the ledger and in messages."""
    return f"vote on {prompt}: {first} or {second}"


def votes(rows: Sequence[Row], taxonomy: Taxonomy, judging: Judging, ledger: Ledger) -> pl.DataFrame:
    """A vote on each two responses of each prompt (`VOTES`), known ones from the ledger.

    rows: with `id`, `input`, `category` and `responses`. Which of the two comes first is drawn by the seed and the ids
    alone, so neither another prompt nor the order of the responses changes it.
    """
    ballots = [ballot for row in rows for ballot in _ballots(row, taxonomy, judging.seed)]

    def request(ballot: Ballot, attempt: int) -> Request:
        label = vote_label(ballot.prompt, ballot.first, ballot.second)
        return chat_request(judging.model, ballot.messages, seed=judging.seed, label=label, attempt=attempt)

    settled = ask_until_valid(
        ballots,
        request,
        lambda _, reply: MARK_OF[parse_verdict(reply)],
        ledger,
        judging.backend,
        attempts=judging.attempts,
        limits=judging.limits,
        label="votes",
    )
    found = [
        (ballot.prompt, ballot.first, ballot.second, result.value, result.reason or None, result.answer.key)
        for ballot, result in zip(ballots, settled, strict=True)
    ]
    return pl.DataFrame(found, schema=VOTES, orient="row")


def _ballots(row: Row, taxonomy: Taxonomy, seed: int) -> Iterable[Ballot]:
    content: dict[str, Any] = {response["id"]: response["content"] for response in row["responses"]}
    criteria = taxonomy.criteria(row["category"][0])
    for pair in combinations(sorted(content), 2):
        first, second = pair if stream(seed, "order", row["id"], *pair).random() < 0.5 else reversed(pair)
        asked = USER.format(criteria=criteria, question=row["input"], answer_a=content[first], answer_b=content[second])
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]
        yield Ballot(row["id"], first, second, messages)
