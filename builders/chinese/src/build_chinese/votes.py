"""A judge model's votes on all pairs of a prompt's responses, in random order (CHEEMS, section 4.2)."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Backend, Ledger, Limits, Request, ask_until_valid, chat_request, parse_verdict
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for
from pluralbench_tables import read_jsonl

from build_chinese.rankings import Mark, Row
from build_chinese.recipe import JudgeTable
from build_chinese.source import FOLDER, JUDGE_PROMPTS, Taxonomy

VOTES = pl.Schema(dict.fromkeys(("prompt", "first", "second", "mark", "reason", "call"), pl.String))
"""A vote: the responses in the order that the judge saw; `mark` is "1", "2" or "s", or null with a `reason`."""

NO_RECORDED_VOTE = (
    "votes are recorded only for the sample's prompts and its seed; choose another judge with `judge=...`"
)
MARK_OF: dict[str, Mark] = {"A": "1", "B": "2", "C": "s"}


class Ballot(NamedTuple):
    """Two responses to one prompt, in the order that the judge sees, and the messages to the judge."""

    prompt: str
    first: str
    second: str
    messages: list[dict[str, str]]


def vote_label(prompt: str, first: str, second: str) -> str:
    """Make the label of the call for a vote, for the ledger and error messages."""
    return f"vote on {prompt}: {first} or {second}"


def votes(
    rows: Sequence[Row],
    taxonomy: Taxonomy,
    judge: JudgeTable,
    backend: Backend,
    ledger: Ledger,
    *,
    limits: Limits,
    seed: int,
) -> pl.DataFrame:
    """Let the judge vote on every pair of responses of each prompt. Recorded votes are reused.

    Which of the two comes first depends only on the seed and the ids, so more prompts or another order of responses do
    not change it.

    Returns:
        Columns of `VOTES`.
    """
    ballots = [
        ballot for row in rows for ballot in _ballots(row, taxonomy, JUDGE_PROMPTS["replies"][judge.reply], seed)
    ]

    def request(ballot: Ballot, attempt: int) -> Request:
        schema = JUDGE_PROMPTS["verdict"] if judge.reply == "structured" else None
        return chat_request(
            judge, ballot.messages, seed=seed, label=vote_label(*ballot[:3]), attempt=attempt, schema=schema
        )

    settled = ask_until_valid(
        ballots,
        request,
        lambda _, reply: MARK_OF[parse_verdict(reply)],
        ledger,
        backend,
        attempts=judge.attempts,
        limits=limits,
        label="votes",
    )
    cast = [
        (*ballot[:3], result.value, result.reason or None, result.answer.key)
        for ballot, result in zip(ballots, settled, strict=True)
    ]
    return pl.DataFrame(cast, schema=VOTES, orient="row")


def recorded_votes() -> dict[str, str]:
    """Return the replies of the sample's judge by `vote_label`."""
    rows = read_jsonl(FOLDER / "votes.jsonl", SourceError)
    return {vote_label(row["prompt"], row["first"], row["second"]): row["reply"] for row in rows}


def _ballots(row: Row, taxonomy: Taxonomy, how: str, seed: int) -> Iterable[Ballot]:
    content: dict[str, Any] = {response["id"]: response["content"] for response in row["responses"]}
    criteria = taxonomy.criteria(row["category"][0])
    for pair in combinations(sorted(content), 2):
        first, second = pair if rng_for(seed, "order", row["id"], *pair).random() < 0.5 else reversed(pair)
        texts = {"question": row["input"], "answer_a": content[first], "answer_b": content[second]}
        messages = [
            {"role": "system", "content": JUDGE_PROMPTS["system"].format(how=how)},
            {"role": "user", "content": JUDGE_PROMPTS["user"].format(criteria=criteria, **texts)},
        ]
        yield Ballot(row["id"], first, second, messages)
