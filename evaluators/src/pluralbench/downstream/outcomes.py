"""Judged outcomes of candidates: by rubric aspects, as a rating, or against another sample of the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Ledger
from pluralbench_calls.chat import ChatModel, ConnectionConfig, check_endpoint
from pluralbench_rewards import Group, Question, RubricCase, mean_score, overlap, score_aspects
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import PROMPTS
from pluralbench_rewards.rubric import PROMPTS as RUBRIC_PROMPTS
from pluralbench_runs import digest, rng_for

from pluralbench.config import JudgeConfig, OutcomeConfig
from pluralbench.downstream.candidates import Thread
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.judge import judge_chat_model
from pluralbench.results.downstream import OUTCOMES, THREAD_KEY

OVERLAP = "rubric-overlap"
SCALES = {
    "rubric": "mean over the rubric aspects of 0 (not covered), 1 (somewhat) or 2 (very well): from 0 to 2",
    OVERLAP: "mean over the rubric aspects of twice the share of their words that the answer contains: from 0 to 2; "
    "it counts words and does not measure quality",
    "rating": "from 1 (not at all) to 10 (it could not be better)",
    "win": "1 if it is judged better than another sample of the policy, else -1: from -1 to 1",
}
"""Scale of each measure, as the end of a sentence."""


class JudgedCandidate(NamedTuple):
    """A candidate to judge by its number and text, perhaps against the text of another sample (`win`)."""

    thread: Thread
    sample: int
    text: str
    against: str | None = None


class OutcomeJudge(NamedTuple):
    """The judge of outcomes: a model, or None if words are counted; with titles of rubric aspects by config and id."""

    outcome: OutcomeConfig
    judge: Judge | None
    aspects: Mapping[tuple[str, str], Sequence[str]]

    @property
    def chat(self) -> ChatModel | None:
        """The judge's chat model; None if words are counted."""
        return None if self.judge is None else self.judge.model

    @property
    def scale(self) -> str:
        """Scale of the values, as the end of a sentence."""
        return SCALES[self.outcome.measure if self.judge is not None else OVERLAP]

    @property
    def prompts_digest(self) -> str | None:
        """SHA-256 of the judge's prompts; None if words are counted."""
        if self.judge is None:
            return None
        return digest(dict(RUBRIC_PROMPTS if self.outcome.measure == "rubric" else PROMPTS))

    def check(self, ledger: Ledger | None = None) -> None:
        """Check that the judge can be called, before what it judges, unless the ledger has an answer of it.

        Raises:
            CallsError: The endpoint cannot be reached, or the key is missing or not accepted.
        """
        if self.judge is not None:
            check_endpoint(self.judge.model, self.judge.connection, ledger)

    def values(self, candidates: Sequence[JudgedCandidate], ledger: Ledger, *, seed: int) -> pl.DataFrame:
        """Judge candidates; a frame with the columns `OUTCOMES`, in order. The seed is of the order in comparisons.

        Raises:
            CallsError: The judge cannot be called.
        """
        if self.judge is None:
            values = [_outcome_of(overlap(case)) for case in self._cases(candidates)]
        else:
            judge = replace(self.judge, ledger=ledger)
            if self.outcome.measure == "rubric":
                values = [
                    _outcome_of(reply.value, reply.reason) for reply in score_aspects(judge, self._cases(candidates))
                ]
            else:
                values = (_rate if self.outcome.measure == "rating" else _compare)(judge, candidates, seed)
        rows = [
            dict(zip(THREAD_KEY, candidate.thread.key, strict=True)) | {"sample": candidate.sample} | value
            for candidate, value in zip(candidates, values, strict=True)
        ]
        return pl.DataFrame(rows, schema=OUTCOMES)

    def _cases(self, candidates: Sequence[JudgedCandidate]) -> list[RubricCase]:
        return [
            RubricCase(thread.group.id, conversation_text(thread.group), text, self.aspects[thread.config, thread.id])
            for thread, _, text, _ in candidates
        ]


def _outcome_of(scores: list[float] | None, reason: str = "") -> dict[str, Any]:
    return {"reason": reason} if scores is None else {"value": mean_score(scores), "scores": scores}


def _rate(judge: Judge, candidates: Sequence[JudgedCandidate], _: int) -> list[dict[str, Any]]:
    questions = [_question(thread.group, text) for thread, _, text, _ in candidates]
    return [{"value": reply.value, "reason": reply.reason or None} for [reply] in judge.rate(questions)]


def _compare(judge: Judge, candidates: Sequence[JudgedCandidate], seed: int) -> list[dict[str, Any]]:
    candidate_first = [
        rng_for(seed, "order", *candidate.thread.key, candidate.sample).random() < 0.5 for candidate in candidates
    ]
    questions = [
        _question(thread.group, *((text, str(against)) if first else (str(against), text)))
        for (thread, _, text, against), first in zip(candidates, candidate_first, strict=True)
    ]
    return [
        {"reason": reply.reason} if reply.value is None else {"value": 1.0 if (reply.value == "A") == first else -1.0}
        for reply, first in zip(judge.compare(questions), candidate_first, strict=True)
    ]


def _question(group: Group, *responses: str) -> Question:
    return Question(group.id, group.prompt, responses, "\n".join(group.context))


def conversation_text(group: Group) -> str:
    """Return the conversation up to the answer as text, without user context, which the rubric aspects replace."""
    if len(group.prompt) == 1:
        return group.prompt[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in group.prompt)


def outcome_judge(
    outcome: OutcomeConfig, connection: ConnectionConfig | None, items: pl.DataFrame
) -> OutcomeJudge | None:
    """Resolve the judge of outcomes of some items; None if `outcome` names none.

    Raises:
        RecipeError: The judge's name and connection describe no valid chat model.
        CallsError: The connection cannot be used.
        EvaluationError: The measure does not fit the judge.
        DataError: An item has no rubric aspects, which the measure needs.
    """
    if outcome.judge is None:
        return None
    if outcome.judge == OVERLAP:
        if outcome.measure != "rubric":
            raise EvaluationError(f'{OVERLAP} counts words of rubric aspects; leave out `measure="{outcome.measure}"`.')
        return OutcomeJudge(outcome, None, aspect_titles(items))
    config = JudgeConfig(max_tokens=outcome.max_tokens).for_model(outcome.judge)
    chat, reached, here = judge_chat_model(outcome.judge, config, connection, seeded=False)
    # `values` replaces the ledger by that of the candidates.
    backend = None if here is None else here()
    judge = Judge(chat, reached, Path("ledger.sqlite"), attempts=outcome.attempts, backend=backend)
    return OutcomeJudge(outcome, judge, aspect_titles(items) if outcome.measure == "rubric" else {})


def aspect_titles(items: pl.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Return the titles of each item's rubric aspects, by config and id. Raises `DataError` if an item has none."""
    titles = {}
    for config, item_id, aspects in items.select("config", "id", "aspects").iter_rows():
        if not aspects:
            raise DataError(
                f'The item of id {item_id} has no rubric aspects to judge by; choose `measure="rating"` or '
                '`measure="win"`.'
            )
        titles[config, item_id] = [aspect["aspect"] for aspect in aspects]
    return titles
