"""Candidates: what a policy answers to each prompt, sampled once and recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Answer, Backend, Ledger, Limits, ask, chat_backend, chat_request
from pluralbench_calls.chat import LOCAL, ChatModel, ConnectionConfig, check_connection
from pluralbench_local import LocalModel
from pluralbench_rewards import Group, Message, ModelRecord
from pluralbench_runs import digest

from pluralbench.config import PlanConfig, SamplingConfig
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import resolve_chat_model
from pluralbench.results.downstream import CANDIDATES

SYSTEM = """\
You answer somebody whose earlier posts, or whose wishes, you are told before their question. Work out what this \
person knows, likes and needs and how they write, and answer the question for them, in their manner. Write at most 100 \
words. Write the answer alone: say nothing of the posts, and nothing of how you came to it."""
"""What a policy is told where something is said about the person."""

TEXTS = ("answer", "length")
"""Outcomes of a call that are a candidate: "length" was cut at the most tokens, and its text counts as it is."""

THREAD_KEY = ("config", "id", "turn", "history")
"""What tells prompts apart."""


@dataclass(frozen=True)
class Policy:
    """A policy that can be asked. chat: what it is and how it is sampled. backend: what answers for it."""

    chat: ChatModel
    backend: Backend
    limits: Limits
    record: ModelRecord


@dataclass(frozen=True)
class Thread:
    """A conversation up to a turn of the user. group: as a reward model sees it. messages: as the policy does."""

    config: str
    id: str
    cluster: str
    turn: int
    group: Group
    messages: Sequence[Message]

    @property
    def history(self) -> str:
        """Names the conversation: SHA-256 of its messages, 16 digits."""
        return digest([dict(message) for message in self.messages])[:16]

    @property
    def key(self) -> tuple[str, str, int, str]:
        """The columns of `THREAD_KEY`."""
        return self.config, self.id, self.turn, self.history


def resolve_policy(
    name: str | Path | LocalModel,
    sampling: SamplingConfig | PlanConfig,
    connection: ConnectionConfig | None = None,
) -> Policy:
    """A policy by its name: "local" is the embedded model, a name with a base URL a model of that endpoint, and any
    other a folder or ORG/NAME on the Hub, which runs in this process.

    Raises `RecipeError` and `EvaluationError`.
    """
    connection = connection or ConnectionConfig()
    how: dict[str, Any] = sampling.model_dump(include={"temperature", "top_p", "max_tokens"})
    if isinstance(name, LocalModel) or (str(name) != LOCAL and connection.base_url is None):
        if connection.batch:
            raise EvaluationError(
                f"The policy {name} runs in this process, which takes no batches: give --policy-base-url, or leave out "
                "--policy-batch."
            )
        from pluralbench_policies import Generation, chat_model_of  # noqa: PLC0415 - needs torch

        described = name if isinstance(name, LocalModel) else LocalModel(name=str(name))
        chat = chat_model_of(described, **how)
        record = described.record().model_copy(update={"kind": "policy"})
        return Policy(chat, Generation(described), Limits(), record)
    chat, reached = resolve_chat_model(str(name), connection, how, "policy")
    try:
        check_connection(chat, reached)
    except ValueError as error:
        raise EvaluationError(f"The policy {name} cannot be asked: {error}.") from None
    record = ModelRecord(name=chat.model, kind="policy", provider=chat.provider)
    return Policy(chat, chat_backend(chat, reached), reached.limits(), record)


def initial_threads(items: pl.DataFrame, groups: Sequence[Group]) -> list[Thread]:
    """The first turn of every item. groups: the items, with what is said about the person."""
    rows = items.select("config", "id", "cluster").iter_rows()
    return [_thread(row, group, 0, user_turns(group)[0]) for row, group in zip(rows, groups, strict=True)]


def next_thread(thread: Thread, said: str, whole: Group) -> Thread | None:
    """The conversation after the assistant said something; None where the user says no more.

    whole: the item, with all that the user says.
    """
    turns = user_turns(whole)
    if thread.turn + 1 == len(turns):
        return None
    prompt = [*thread.group.prompt, {"role": "assistant", "content": said}, *turns[thread.turn + 1]]
    return _thread((thread.config, thread.id, thread.cluster), whole, thread.turn + 1, prompt)


def user_turns(group: Group) -> list[list[Message]]:
    """What is said up to each turn of the user that has no answer, from the turn before."""
    turns: list[list[Message]] = [[]]
    for message in group.prompt:
        if message["role"] == "user" and turns[-1] and turns[-1][-1]["role"] == "user":
            turns.append([])
        turns[-1].append(dict(message))
    return turns


def _thread(item: tuple[str, str, str], whole: Group, turn: int, prompt: Sequence[Message]) -> Thread:
    """item: its config, id and cluster."""
    group = replace(whole, prompt=list(prompt), responses=[])
    messages = group.messages
    if group.context:
        messages = [{"role": "system", "content": SYSTEM}, *messages]
    return Thread(*item, turn, group, messages)


def sample(policy: Policy, threads: Sequence[Thread], count: int, ledger: Ledger, *, seed: int) -> pl.DataFrame:
    """Ask the policy for so many candidates for each conversation; a frame of `CANDIDATES`, in the threads' order.

    What the ledger has is not asked again. seed: of what is sent where the policy takes seeds. Raises a `CallsError`
    for what concerns every request.
    """
    requests = [
        chat_request(policy.chat, thread.messages, seed=seed, label=f"an answer to {thread.group.id}", attempt=number)
        for thread in threads
        for number in range(count)
    ]
    answers = iter(ask(requests, ledger, policy.backend, limits=policy.limits, label="candidates"))
    rows = [
        {**dict(zip(THREAD_KEY, thread.key, strict=True)), "cluster": thread.cluster, "sample": number}
        | answer_fields(next(answers))
        for thread in threads
        for number in range(count)
    ]
    return pl.DataFrame(rows, schema=CANDIDATES)


def answer_fields(answer: Answer) -> dict[str, Any]:
    """The text of an answer, null where it has none, with the outcome of the call, and then the reason why."""
    is_text = answer.outcome in TEXTS and answer.text.strip() != ""
    outcome = "empty" if answer.outcome in TEXTS and not is_text else answer.outcome
    return {
        "text": answer.text if is_text else None,
        "outcome": outcome,
        "reason": None if is_text else answer.text.rstrip(". ") if answer.outcome == "error" else outcome,
        "tokens": answer.completion_tokens,
    }


def check_candidates(candidates: pl.DataFrame, policy: str) -> None:
    """Raise `EvaluationError` where the policy gave no text at all."""
    if candidates["text"].drop_nulls().is_empty():
        outcome, count = candidates["outcome"].value_counts(sort=True).row(0)
        reason = candidates.filter(outcome=outcome)["reason"][0]
        raise EvaluationError(
            f"The policy {policy} gave no text for any prompt ({count:,} times {outcome}"
            f"{'' if reason == outcome else f': {reason}'}); look at its chat template, --max-tokens and "
            "--profile-size."
        )
