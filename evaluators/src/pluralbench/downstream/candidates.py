"""Candidates: the answers that a policy samples to each prompt, recorded in the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Answer, Backend, Ledger, Limits, ask, chat_backend, chat_request
from pluralbench_calls.chat import ChatModel, ConnectionConfig, check_connection
from pluralbench_local import LocalModel
from pluralbench_rewards import Group, Message, ModelRecord
from pluralbench_runs import digest

from pluralbench.config import PlanConfig, SamplingConfig
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import POLICY, Role, find_chat_model
from pluralbench.results.downstream import CANDIDATES, THREAD_KEY

# Fixed words begin here, which spelling rules leave alone.
SYSTEM = """\
You answer somebody whose earlier posts, or whose wishes, you are told before their question. Work out what this \
person knows, likes and needs and how they write, and answer the question for them, in their manner. Write at most 100 \
words. Write the answer alone: say nothing of the posts, and nothing of how you came to it."""
# Fixed words end here.
"""System prompt of the policy if the prompt has user context."""

TEXTS = ("answer", "length")
"""Call outcomes that yield a candidate. A "length" answer was cut at the maximum number of tokens; its text is used."""


@dataclass(frozen=True)
class Policy:
    """A policy with its backend, its model and sampling as recorded, and its entry in the run's result."""

    chat: ChatModel
    backend: Backend
    limits: Limits
    record: ModelRecord


@dataclass(frozen=True)
class Thread:
    """A conversation up to a user turn, numbered from 0, of an item.

    `group` is as a reward model reads it, without responses, and `messages` as the policy does.
    """

    config: str
    id: str
    cluster: str
    turn: int
    group: Group
    messages: Sequence[Message]

    @property
    def history(self) -> str:
        """First 16 digits of the SHA-256 of the messages."""
        return digest([dict(message) for message in self.messages])[:16]

    @property
    def key(self) -> tuple[str, str, int, str]:
        """Values of the columns `THREAD_KEY`."""
        return self.config, self.id, self.turn, self.history


def find_policy(
    name: str | Path | LocalModel,
    sampling: SamplingConfig | PlanConfig,
    connection: ConnectionConfig | None = None,
    role: Role = POLICY,
) -> Policy:
    """Find a policy by its name.

    Args:
        name: `"local"` (the embedded model), the name of a model if `connection` has a base URL, or a directory or
            ORG/NAME on the Hub, which runs in this process.
        sampling: Temperature, top-p and maximum number of tokens.
        connection: Endpoint of the policy. Default: none.
        role: What it is for.

    Raises:
        RecipeError: The name and the connection describe no valid chat model.
        EvaluationError: A model in this process has options of a connection, or the policy cannot be called.
    """
    options: dict[str, Any] = sampling.model_dump(include={"temperature", "top_p", "max_tokens", "extra"})
    chat, reached, here = find_chat_model(name, connection, options, role)
    if here is not None:
        model = name if isinstance(name, LocalModel) else LocalModel(name=str(name))
        return Policy(chat, here(), Limits(), model.record().model_copy(update={"kind": "policy"}))
    try:
        check_connection(chat, reached)
    except ValueError as error:
        raise EvaluationError(f"The {role.name} {name} cannot be called: {error}.") from None
    record = ModelRecord(name=chat.model, kind="policy", provider=chat.provider)
    return Policy(chat, chat_backend(chat, reached), reached.limits(), record)


def initial_threads(items: pl.DataFrame, groups: Sequence[Group]) -> list[Thread]:
    """Return the first turn of every item. `groups` are the items with their user context, in the order of `items`."""
    rows = items.select("config", "id", "cluster").iter_rows()
    return [_thread(row, group, 0, user_turns(group)[0]) for row, group in zip(rows, groups, strict=True)]


def next_thread(thread: Thread, answer: str, item: Group) -> Thread | None:
    """Continue a conversation after the policy's answer; None if the item has no further user turn."""
    turns = user_turns(item)
    if thread.turn + 1 == len(turns):
        return None
    prompt = [*thread.group.prompt, {"role": "assistant", "content": answer}, *turns[thread.turn + 1]]
    return _thread((thread.config, thread.id, thread.cluster), item, thread.turn + 1, prompt)


def user_turns(group: Group) -> list[list[Message]]:
    """Split a prompt into user turns; each begins after the previous turn that needs an answer."""
    turns: list[list[Message]] = [[]]
    for message in group.prompt:
        if message["role"] == "user" and turns[-1] and turns[-1][-1]["role"] == "user":
            turns.append([])
        turns[-1].append(dict(message))
    return turns


def policy_messages(group: Group) -> Sequence[Message]:
    """Return a conversation as the policy reads it: with a system message if it has user context."""
    return [{"role": "system", "content": SYSTEM}, *group.messages] if group.context else group.messages


def _thread(key: tuple[str, str, str], item: Group, turn: int, prompt: Sequence[Message]) -> Thread:
    """`key`: config, id and cluster of the item."""
    group = replace(item, prompt=list(prompt), responses=[])
    return Thread(*key, turn, group, policy_messages(group))


def sample(policy: Policy, threads: Sequence[Thread], count: int, ledger: Ledger, *, seed: int) -> pl.DataFrame:
    """Sample so many candidates by conversation; a frame with the columns `CANDIDATES`, in the order of `threads`.

    Raises:
        CallsError: An error that concerns every request.
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
    """Return text, outcome, reason and token count of an answer. The text is null, with a reason, if it is unusable."""
    is_text = answer.outcome in TEXTS and answer.text.strip() != ""
    outcome = "empty" if answer.outcome in TEXTS and not is_text else answer.outcome
    return {
        "text": answer.text if is_text else None,
        "outcome": outcome,
        "reason": None if is_text else answer.text.rstrip(". ") if answer.outcome == "error" else outcome,
        "tokens": answer.completion_tokens,
    }


def check_candidates(candidates: pl.DataFrame, policy: str) -> None:
    """Raise `EvaluationError` if no candidate has a text."""
    if candidates["text"].drop_nulls().is_empty():
        outcome, count = candidates["outcome"].value_counts(sort=True).row(0)
        reason = candidates.filter(outcome=outcome)["reason"][0]
        raise EvaluationError(
            f"The policy {policy} returned no text for any prompt ({count:,} times {outcome}"
            f"{'' if reason == outcome else f': {reason}'}); check its chat template, `max_tokens=...` and "
            "`profile_size=...`."
        )
