"""Reward models as the reward functions of trainers: TRL, verl and OpenRLHF. Imports no torch.

A reward function scores each response by itself, so its rewards do not depend on what else is in a batch. Signatures:
TRL 1.16 (`grpo_trainer.py`), verl 0.9 (`reward_manager/naive.py`), OpenRLHF 0.11 (`utils/agent.py`).
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pluralbench_rewards import Group, Message, RenderedConversation, RewardModel, ScoresRendered
from pluralbench_runs import hidden_progress, log_status

from pluralbench_policies.errors import PolicyError

RewardFormat = Literal["trl", "verl", "openrlhf"]
END_TOKEN = re.compile(r"(<\|[^|<>\s]+\|>|</s>|<eos>|<end_of_turn>)\s*$")
"""Tokens with which policies end a response."""
Conversation = Group | RenderedConversation
"""A group with one response, or a rendered conversation."""


class Reward(NamedTuple):
    """The reward of a conversation, or NaN with the reason; `tokens` is None if the model does not count them."""

    value: float
    tokens: int | None
    reason: str


def score_all(model: RewardModel, conversations: Sequence[Conversation]) -> list[Reward]:
    """Score each conversation.

    Raises:
        PolicyError: The model reads no rendered conversation.
        UserError: The model cannot score one of them.
    """
    with hidden_progress():  # that of the trainer is shown
        return _score_all(model, conversations)


def _score_all(model: RewardModel, conversations: Sequence[Conversation]) -> list[Reward]:
    rewards: dict[int, Reward] = {}
    groups = {place: one for place, one in enumerate(conversations) if isinstance(one, Group)}
    rendered = {place: one for place, one in enumerate(conversations) if isinstance(one, RenderedConversation)}
    parts = [([*groups], model.score([*groups.values()]))] if groups else []
    if rendered:
        parts.append(([*rendered], check_rendered(model).score_rendered([*rendered.values()])))
    for places, scored in parts:
        reasons = iter(scored.reasons)
        for number, (place, row) in enumerate(zip(places, scored.scores, strict=True)):
            tokens = scored.tokens[number][0] if scored.tokens else None
            if row and math.isfinite(row[0]):
                rewards[place] = Reward(row[0], tokens, "")
            else:
                reason = scored.dropped.get(number) or next(reasons, "it is not finite")
                rewards[place] = Reward(math.nan, tokens, reason)
    return [rewards[place] for place in range(len(conversations))]


def check_rendered(model: RewardModel) -> ScoresRendered:
    """Return a model that scores rendered conversations. Raises `PolicyError` for any other."""
    if isinstance(model, ScoresRendered):
        return model
    raise PolicyError(f"The reward model {model.record().name} reads messages, not a rendered conversation.")


class _Call(NamedTuple):
    conversations: Sequence[Conversation]
    rewards: "Future[list[Reward]]"


class BatchedRewards:
    """Rewards by a model that is loaded when it is first needed. Can be pickled if `load` can."""

    def __init__(self, load: Callable[[], RewardModel]) -> None:
        self.load = load
        self._lock, self._loading = Lock(), Lock()
        self._waiting: list[_Call] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.load,)

    @property
    def model(self) -> RewardModel:
        """The model."""
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> RewardModel:
        return self.load()

    @cached_property
    def _worker(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "rewards")

    def submit(self, conversations: Sequence[Conversation]) -> "Future[list[Reward]]":
        """Score conversations in a thread; those that are submitted during a batch form the next one together."""
        call = _Call(conversations, Future())
        with self._lock:
            self._waiting.append(call)
            self._worker.submit(self._compute)
        return call.rewards

    def _compute(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        if calls:  # otherwise an earlier batch had them
            self._answer(calls)

    def _answer(self, calls: Sequence[_Call]) -> None:
        try:
            rewards = iter(score_all(self.model, [one for call in calls for one in call.conversations]))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            if len(calls) == 1:
                calls[0].rewards.set_exception(error)
                return
            for call in calls:  # a conversation that cannot be scored concerns its own call alone
                self._answer([call])
            return
        for call in calls:
            call.rewards.set_result([next(rewards) for _ in call.conversations])


class RewardFunction:
    """A reward model as the reward function of a trainer. Can be pickled if the model can.

    Args:
        load: Loads the model, at the first call.
        format: The trainer.
        name: `__name__`, under which TRL logs the rewards.
        ending: OpenRLHF: text at the end of a query that is not of the response; see `openrlhf_conversations`.
    """

    def __init__(self, load: Callable[[], RewardModel], format: RewardFormat, name: str, ending: str = "") -> None:  # noqa: A002
        self.rewards, self.format, self.ending = BatchedRewards(load), format, ending
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Score; the arguments and the result are those of the trainer."""
        return FORMATS[self.format](self, *args, **kwargs)


def _trl(function: RewardFunction, prompts: Sequence[Any], completions: Sequence[Any], **_: Any) -> list[float | None]:
    """Return a reward for each completion, a text or messages; None, which TRL ignores, where there is none."""
    conversations = [
        _group({"prompt": prompt}, *completion_parts(completion))
        for prompt, completion in zip(prompts, completions, strict=True)
    ]
    # In the thread of the caller: TRL calls once for all completions.
    return [or_none(reward.value) for reward in score_all(function.rewards.model, conversations)]


def or_none(reward: float) -> float | None:
    """Return None for NaN, as TRL marks a missing reward."""
    return None if math.isnan(reward) else reward


def completion_parts(completion: Any) -> tuple[str, list[Message]]:
    """Return the response of TRL's completion, a text or messages, and the messages before it."""
    if isinstance(completion, str):
        return completion, []
    *before, last = _messages(completion)
    return last["content"], before


def _verl(function: RewardFunction, solution_str: str, extra_info: Mapping[str, Any] | None = None, **_: Any) -> float:
    """Return the reward of a response to the prompt in `extra_info`.

    Raises:
        PolicyError: The prompt is missing; or there is no reward, since verl ignores no response.
    """
    if not extra_info or "prompt" not in extra_info:
        raise PolicyError(
            "verl gives a reward function no prompt; put it into `extra_info` of each row, as `prompt` (text or "
            "messages)."
        )
    group = _group(extra_info, solution_str)
    [reward] = function.rewards.submit([group]).result()
    return _required(reward, group)


def _openrlhf(
    function: RewardFunction, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any
) -> dict[str, Any]:
    """Return the rewards of queries as tensors, see `openrlhf_conversations`.

    Raises:
        PolicyError: A query is not read; or there is no reward, since OpenRLHF ignores no response.
    """
    import torch

    conversations = openrlhf_conversations(function.rewards.model, queries, prompts, labels, function.ending)
    rewards = zip(function.rewards.submit(conversations).result(), conversations, strict=True)
    values = torch.tensor([_required(reward, conversation) for reward, conversation in rewards])
    return {"rewards": values, "scores": values, "extra_logs": {}}


FORMATS: Mapping[RewardFormat, Callable[..., Any]] = MappingProxyType(
    {"trl": _trl, "verl": _verl, "openrlhf": _openrlhf}
)


def openrlhf_conversations(
    model: RewardModel,
    queries: Sequence[str],
    prompts: Sequence[str] | None,
    labels: Sequence[Any] | None,
    ending: str = "",
) -> list[Conversation]:
    """Return the conversations of OpenRLHF's queries, each of which is a prompt with its response as one text.

    A label that is a JSON object with `prompt` (text or messages) says what the model reads as the prompt. Without
    one, a model that scores rendered conversations reads the query as it is, as OpenRLHF's own reward models do; any
    other reads the text of the prompt as a message of the user. Prompts and labels may be unknown.

    What ends a query is not of the response: `ending`, by default that of the chat template or the tokenizer's EOS
    token. A query that is read as it is gets the ending of the chat template, with which `score` reads conversations: a
    policy writes only its first token, or none if it is cut off.

    Raises:
        PolicyError: A query does not begin with its prompt; or the model needs prompts.
    """
    given = [None] * len(queries)
    own, *others = model.endings() if isinstance(model, ScoresRendered) else [""]
    endings = [ending] if ending else [text for text in (own, *others) if text]
    conversations: list[Conversation] = []
    for query, prompt, label in zip(queries, prompts or given, labels or given, strict=True):
        values = _label_values(label)
        if prompt is None or (not values and isinstance(model, ScoresRendered)):
            check_rendered(model)
            conversations.append(RenderedConversation(_without_ending(query, endings) + own))
            continue
        if not query.startswith(prompt):
            raise PolicyError(f"A query does not begin with its prompt: {_begin(query)!r}, {_begin(prompt)!r}.")
        response = _without_ending(query.removeprefix(prompt), endings)
        conversations.append(_group(values or {"prompt": prompt}, response))
    return conversations


def _without_ending(text: str, endings: Sequence[str]) -> str:
    """The first of these that the text has."""
    found = next((ending for ending in endings if text.endswith(ending)), None)
    if found is None and endings:
        _warn(f"A query of OpenRLHF does not end with {endings[0]!r}: it is cut off, or written for another template.")
    elif found is None and (token := END_TOKEN.search(text)):
        _warn(f"A response ends with {token[0]!r}; if this ends each query, give it as `ending=...`.")
    return text.removesuffix(found or "")


@cache
def _warn(sentence: str) -> None:
    """Print a sentence once."""
    log_status(sentence)


def _begin(text: str) -> str:
    return text[:60]


def _label_values(label: Any) -> Mapping[str, Any]:
    """Those of a label that is a JSON object with a prompt."""
    try:
        values = json.loads(label) if isinstance(label, str) else label
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, Mapping) and "prompt" in values else {}


def _required(reward: Reward, conversation: Conversation) -> float:
    if math.isnan(reward.value):
        name = f" of {conversation.id}" if isinstance(conversation, Group) and conversation.id else ""
        raise PolicyError(f"A completion{name} has no score ({reward.reason}).")
    return reward.value


def _group(values: Mapping[str, Any], response: str, before: Sequence[Message] = ()) -> Group:
    """The group of a response, from `prompt` (text or messages) and perhaps `id`; `before` are messages between."""
    prompt = values.get("prompt")
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else _messages(prompt)
    return Group(str(values.get("id") or ""), [*messages, *before], [response])


def group_from_messages(value: Any) -> Group:
    """Return the group of a conversation, whose last message is the response. Raises `PolicyError`."""
    *prompt, last = _messages(value)
    if not prompt or last["role"] != "assistant":
        raise PolicyError("A conversation does not end with a message of the assistant after its prompt.")
    return Group("", prompt, [last["content"]])


def _messages(value: Any) -> list[Message]:
    """Messages of text. Raises `PolicyError` for anything else."""
    try:
        messages = [{"role": one["role"], "content": one["content"]} for one in value]
    except (KeyError, TypeError, IndexError):
        messages = []
    if not messages or not all(isinstance(text, str) for one in messages for text in one.values()):
        raise PolicyError(f"A prompt is neither text nor messages with `role` and `content`: {_begin(repr(value))}.")
    return messages
