"""Ask a judge with a prompt from a file: a rubric by a second model, several turns, and the verdict."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from pluralbench_calls import ParsedReply, Request, answer_text, chat_request
from pluralbench_calls.chat import MAX_ATTEMPTS

from pluralbench_rewards.chat_client import ChatClient
from pluralbench_rewards.contract import Message
from pluralbench_rewards.errors import RewardsError
from pluralbench_rewards.prompts.prompt import JudgePrompt, PromptMessage, Question, missing_variables, render
from pluralbench_rewards.prompts.reading import Reading

Value = TypeVar("Value")

PREFILLED = {"add_generation_prompt": False, "continue_final_message": True}
"""Request fields by which vLLM and SGLang continue the last message; llama.cpp does so without them."""
FIXES = {
    "person": 'choose a `profile="..."`',
    "language": "choose a benchmark whose languages are known",
    "rubric": 'name the model that writes it with `rubric_model=...`, its column with `columns=["rubric=COLUMN"]`, or '
    'a file with `rubric="FILE"`',
    "reference": 'name its column with `columns=["reference=COLUMN"]`',
    "history": "choose a benchmark with earlier choices",
}


class _Open(NamedTuple):
    """A question to which a reply is not complete.

    Attributes:
        attempt: Number of its first attempt; each sample has its own (see `ChatClient.ask`).
    """

    question: Question
    attempt: int
    messages: list[Message]
    calls: tuple[str, ...]


def ask_prompt(
    judge: ChatClient,
    prompt: JudgePrompt,
    questions: Sequence[Question],
    read: Callable[[Reading, Question, str, str], Value],
    label: str,
    samples: int,
    rubric_writer: ChatClient | None,
) -> list[ParsedReply[Value]]:
    """Ask a judge each question; `read` gets the last reply and the beginning that was sent of it.

    A turn or rubric that is empty, cut or refused in all attempts makes the reply invalid, with its reason. Calls of
    a reply are those of the rubric and of all turns.

    Raises:
        RewardsError: A variable of the prompt has no value, or no model writes its rubrics.
    """
    settled: dict[int, ParsedReply[Value]] = {}
    entries = [_Open(question, MAX_ATTEMPTS * sample, [], ()) for sample in range(samples) for question in questions]
    if prompt.rubric is not None and any("rubric" not in question.variables for question in questions):
        rubrics = _rubrics(rubric_writer, prompt, questions) * samples
        for index, (entry, rubric) in enumerate(zip(entries, rubrics, strict=True)):
            if rubric.value is None:
                settled[index] = ParsedReply(None, rubric.answer, f"no rubric: {rubric.reason}", rubric.calls)
            else:
                variables = {**entry.question.variables, "rubric": rubric.value}
                entries[index] = entry._replace(
                    question=replace(entry.question, variables=variables), calls=rubric.calls
                )
    *turns, last = prompt.parts()
    for number, messages in enumerate(turns, 1):
        places = [index for index in range(len(entries)) if index not in settled]
        sent = [_sent(prompt, messages, entries[index]) for index in places]
        replies = judge.ask(sent, partial(_request, judge, f"turn {number}"), _text, f"turns {number}")
        for index, one, reply in zip(places, sent, replies, strict=True):
            calls = (*one.calls, *reply.calls)
            if reply.value is None:
                settled[index] = ParsedReply(None, reply.answer, f"turn {number}: {reply.reason}", calls)
            else:
                turn = {"role": "assistant", "content": reply.value}
                entries[index] = one._replace(messages=[*one.messages, turn], calls=calls)
    places = [index for index in range(len(entries)) if index not in settled]
    sent = [_sent(prompt, last, entries[index]) for index in places]
    prefilled = bool(prompt.prefill)
    verdicts = judge.ask(
        sent,
        partial(_request, judge, label, prefilled=prefilled),
        lambda one, reply: read(prompt.verdict, one.question, reply, one.messages[-1]["content"] if prefilled else ""),
        label,
    )
    for index, one, verdict in zip(places, sent, verdicts, strict=True):
        settled[index] = replace(verdict, calls=(*one.calls, *verdict.calls))
    return [settled[index] for index in range(len(entries))]


def _rubrics(writer: ChatClient | None, prompt: JudgePrompt, questions: Sequence[Question]) -> list[ParsedReply[str]]:
    """Let the second model write a rubric for each question."""
    if writer is None or prompt.rubric is None:
        raise RewardsError(f"The prompt {prompt.name} needs a rubric; {FIXES['rubric']}.")
    messages = prompt.rubric.messages
    request = partial(_request, writer, "the rubric", prefilled=messages[-1].role == "assistant")
    opened = [_sent(prompt, messages, _Open(question, 0, [], ())) for question in questions]
    return writer.ask(opened, request, _text, "rubrics")


def _sent(prompt: JudgePrompt, messages: Sequence[PromptMessage], entry: _Open) -> _Open:
    values = prompt.values(entry.question)
    for name in missing_variables(messages, values):
        raise RewardsError(
            f"The prompt {prompt.name} shows {{{name}}}, which the item {entry.question.id} does not have; "
            f"{FIXES[name]}."
        )
    return entry._replace(messages=[*entry.messages, *render(messages, entry.question, values)])


def _request(judge: ChatClient, label: str, entry: _Open, attempt: int, *, prefilled: bool = False) -> Request:
    model = judge.model
    if prefilled:
        model = model.model_copy(update={"extra": PREFILLED | model.extra})
    return chat_request(
        model,
        entry.messages,
        seed=judge.seed,
        label=f"{label} on {entry.question.id}",
        attempt=entry.attempt + attempt,
        temperature_step=judge.temperature_step,
    )


def _text(_: _Open, reply: str) -> str:
    return answer_text(reply)
