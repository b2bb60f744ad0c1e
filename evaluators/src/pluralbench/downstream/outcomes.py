"""What a judge makes of candidates: by rubric aspects, as a rating, or against another answer of the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Ledger
from pluralbench_calls.chat import ChatModel, ConnectionConfig
from pluralbench_rewards import Comparison, Group, RubricCase, mean_score, overlap, score_aspects
from pluralbench_rewards.judge import PROMPTS, Judge
from pluralbench_rewards.rubric import PROMPTS as RUBRIC_PROMPTS
from pluralbench_runs import digest, rng_for

from pluralbench.config import JudgeConfig, OutcomeConfig
from pluralbench.downstream.candidates import Thread
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.results.downstream import OUTCOMES

OVERLAP = "rubric-overlap"
SCALES = {
    "rubric": "mean over the rubric aspects of 0 (not covered), 1 (somewhat) or 2 (very well): from 0 to 2",
    OVERLAP: "mean over the rubric aspects of twice the share of their words that the answer has: from 0 to 2; it "
    "counts words and is no measure of quality",
    "rating": "from 1 (not at all) to 10 (it could not be better)",
    "win": "1 where it is judged better than another sample of the policy, else -1: from -1 to 1",
}
"""What the values of a measure mean, as a sentence's end."""

Aspects = Mapping[tuple[str, str], Sequence[str]]
"""Titles of rubric aspects by config and id."""


class JudgedCandidate(NamedTuple):
    """A candidate to be judged. against: what it is compared with, for the measure "win"."""

    thread: Thread
    sample: int
    text: str
    against: str | None = None


class OutcomeJudge(NamedTuple):
    """Who judges outcomes. judge: None where words are counted."""

    outcome: OutcomeConfig
    judge: Judge | None

    @property
    def chat(self) -> ChatModel | None:
        """The model that is asked."""
        return None if self.judge is None else self.judge.model

    @property
    def scale(self) -> str:
        """What its values mean."""
        return SCALES[self.outcome.measure if self.judge is not None else OVERLAP]

    @property
    def prompts_digest(self) -> str | None:
        """SHA-256 of its prompts; None where words are counted."""
        if self.judge is None:
            return None
        return digest(dict(RUBRIC_PROMPTS if self.outcome.measure == "rubric" else PROMPTS))

    def values(
        self, answered: Sequence[JudgedCandidate], aspects: Aspects, ledger: Ledger, *, seed: int
    ) -> pl.DataFrame:
        """The outcome of each candidate (`OUTCOMES`). ledger: of its calls. seed: of the order of a comparison.

        Raises a `CallsError` where the judge cannot be asked.
        """
        if self.judge is None:
            values = [_value_of(overlap(case)) for case in _cases(answered, aspects)]
        else:
            judge = replace(self.judge, ledger=ledger)
            if self.outcome.measure == "rubric":
                values = [_value_of(one.value, one.reason) for one in score_aspects(judge, _cases(answered, aspects))]
            else:
                values = (_rated if self.outcome.measure == "rating" else _compared)(judge, answered, seed)
        rows = [
            {"config": one.thread.config, "id": one.thread.id, "turn": one.thread.turn, "history": one.thread.history}
            | {"sample": one.sample}
            | found
            for one, found in zip(answered, values, strict=True)
        ]
        return pl.DataFrame(rows, schema=OUTCOMES)


def _value_of(scores: list[float] | None, reason: str = "") -> dict[str, Any]:
    return {"reason": reason} if scores is None else {"value": mean_score(scores), "scores": scores}


def _cases(answered: Sequence[JudgedCandidate], aspects: Aspects) -> list[RubricCase]:
    return [
        RubricCase(
            one.thread.group.id,
            conversation_text(one.thread.group),
            one.text,
            aspects[one.thread.config, one.thread.id],
        )
        for one in answered
    ]


def _rated(judge: Judge, answered: Sequence[JudgedCandidate], _: int) -> list[dict[str, Any]]:
    groups = [Group(one.thread.group.id, one.thread.group.prompt, [one.text]) for one in answered]
    told = ["\n".join(one.thread.group.context) for one in answered]
    return [{"value": one.value, "reason": one.reason or None} for [one] in judge.rate(groups, told)]


def _compared(judge: Judge, answered: Sequence[JudgedCandidate], seed: int) -> list[dict[str, Any]]:
    # Whether the judge sees the candidate first.
    firsts = [rng_for(seed, "order", *one.thread.key, one.sample).random() < 0.5 for one in answered]
    comparisons = [
        Comparison(
            one.thread.group.id,
            one.thread.group.prompt,
            one.text if first else str(one.against),
            str(one.against) if first else one.text,
            "\n".join(one.thread.group.context),
        )
        for one, first in zip(answered, firsts, strict=True)
    ]
    return [
        {"reason": one.reason} if one.value is None else {"value": 1.0 if (one.value == "A") == first else -1.0}
        for one, first in zip(judge.compare(comparisons), firsts, strict=True)
    ]


def conversation_text(group: Group) -> str:
    """The conversation up to the answer, without what is said about the person: the aspects stand for that."""
    if len(group.prompt) == 1:
        return group.prompt[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in group.prompt)


def outcome_judge(outcome: OutcomeConfig, connection: ConnectionConfig | None) -> OutcomeJudge | None:
    """Who judges; None where nobody is to. Raises `RecipeError`, `CallsError` and `EvaluationError`."""
    if outcome.judge is None:
        return None
    if outcome.judge == OVERLAP:
        if outcome.measure != "rubric":
            raise EvaluationError(f"{OVERLAP} counts words of rubric aspects; give no --measure {outcome.measure}.")
        return OutcomeJudge(outcome, None)
    judging = JudgeConfig(max_tokens=outcome.max_tokens)
    chat, reached = judge_chat_model(outcome.judge, judging, connection, seeded=False)
    # Its ledger is that of the candidates, which `values` is given.
    return OutcomeJudge(outcome, Judge(chat, reached, Path("ledger.sqlite"), attempts=outcome.attempts))


def aspect_titles(items: pl.DataFrame) -> dict[tuple[str, str], list[str]]:
    """The titles of the rubric aspects of each item, by config and id. Raises `DataError` where one has none."""
    found = {}
    for config, item_id, aspects in items.select("config", "id", "aspects").iter_rows():
        if not aspects:
            raise DataError(
                f"The item of id {item_id} has no rubric aspects to judge by; choose --measure rating or win."
            )
        found[config, item_id] = [aspect["aspect"] for aspect in aspects]
    return found
