"""The prompt of a judge as data: its messages, the verdict, and the sampling that belongs to the model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Literal

from pluralbench_runs import FrozenModel, digest
from pydantic import Field, model_validator

from pluralbench_rewards.contract import EarlierPair, Message
from pluralbench_rewards.judge_prompts import prompt_text
from pluralbench_rewards.prompts.finding import LETTERS
from pluralbench_rewards.prompts.reading import Reading

Protocol = Literal["pairwise", "pointwise", "listwise"]

ROLES = ("system", "developer", "user", "assistant")
# A name in braces is a variable, in double braces itself; other braces, as in JSON or LaTeX, are text.
_NAME = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
QUESTION = ("question", "conversation")
OPTIONAL = ("person", "language", "rubric", "reference", "history")
"""Variables that may be empty; only blocks may use them then."""
RESPONSES: dict[Protocol, tuple[str, ...]] = {
    "pairwise": ("response_a", "response_b", "response_1", "response_2", "responses"),
    "pointwise": ("response",),
    "listwise": ("responses", "count"),
}
SHOWN: dict[Protocol, tuple[set[str], ...]] = {
    "pairwise": ({"response_a", "response_1", "responses"}, {"response_b", "response_2", "responses"}),
    "pointwise": ({"response"},),
    "listwise": ({"responses"},),
}
"""Variables of which a prompt needs one each, so that it shows all responses."""
EACH = {
    "turn": ("role", "Role", "content"),
    "first_turn": ("role", "Role", "content"),
    "response": ("number", "letter", "response"),
    "choice": ("question", "chosen", "rejected"),
}
"""Variables of the texts in `Each`."""


@dataclass(frozen=True)
class Question:
    """What a judge sees: a prompt, and responses to rate, to compare, or to choose from.

    Attributes:
        responses: The responses in the order in which the judge reads them.
        language: A sentence with the language of the question and the expected language of the answer.
        variables: Further variables of `OPTIONAL`, such as a rubric, for a judge with a prompt from a file.
    """

    id: str
    prompt: Sequence[Message]
    responses: Sequence[str] = ()
    context: str = ""
    language: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


class PromptMessage(FrozenModel):
    """An entry of a prompt: a message, the turns of the conversation, or a turn that the model writes.

    Attributes:
        role: Role of the message. One that is not in `ROLES` must be in the prompt's `roles`.
        reply: A turn that the model writes before the rest is sent.
    """

    role: str = ""
    text: str = ""
    conversation: bool = False
    reply: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> "PromptMessage":
        if self.conversation + self.reply + bool(self.text) != 1 or (self.conversation and self.role):
            raise ValueError("a message has a role and a text, or is `conversation = true` or `reply = true`")
        if self.reply and self.role not in {"", "assistant"}:
            raise ValueError(f"the model writes as assistant, not as {self.role!r}")
        if self.text and not self.role:
            raise ValueError("a message with a text needs a role")
        return self


class Sampling(FrozenModel):
    """Sampling that belongs to a model; an option on the command line takes precedence."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)


class Each(FrozenModel):
    """How entries of lists are written.

    Attributes:
        turn: A turn in `{conversation}`, and in `{question}` if there are several; `{Role}` has a capital letter.
        choices: Maximum number of earlier choices, the latest ones. Default: all.
        rstrip: Leave out line ends and spaces at the end of turns and responses.
    """

    turn: str = "{role}: {content}"
    first_turn: str | None = None
    response: str = "Response {number}:\n{response}"
    choice: str = "Question: {question}\nChosen answer: {chosen}\nOther answer: {rejected}"
    choices: int | None = Field(None, ge=1)
    separator: str = "\n\n"
    rstrip: bool = False


class RubricPrompt(FrozenModel):
    """The prompt of a second model that writes `{rubric}`, once for each question."""

    messages: tuple[PromptMessage, ...] = Field(min_length=1)
    sampling: Sampling = Sampling()


class JudgePrompt(FrozenModel):
    """A prompt of a judge, from a TOML file.

    Attributes:
        source: Where its text is from, if it is not ours.
        license: License of that text.
        protocol: Whether the judge sees two responses, one, or a list.
        roles: Roles besides `ROLES` that the model's chat template knows.
        messages: The messages in order. A last message of the role assistant is the beginning of the reply.
        blocks: Texts by name, which messages use like variables; empty if one of their own variables is.
    """

    name: str
    about: str = ""
    source: str | None = None
    license: str | None = None
    protocol: Protocol = "pairwise"
    roles: tuple[str, ...] = ()
    messages: tuple[PromptMessage, ...] = Field(min_length=1)
    blocks: dict[str, str] = Field(default_factory=dict)
    each: Each = Each()
    rubric: RubricPrompt | None = None
    verdict: Reading
    sampling: Sampling = Sampling()

    def __str__(self) -> str:
        return self.name

    @model_validator(mode="after")
    def _check(self) -> "JudgePrompt":
        known = (*QUESTION, *OPTIONAL, *RESPONSES[self.protocol])
        for name, text in self.blocks.items():
            if name in known:
                raise ValueError(f"the block {name} has the name of a variable")
            _check_names(text, known, f"in the block {name}")
        for name, own in EACH.items():
            _check_names(getattr(self.each, name) or "", own, f"in each.{name}")
        _check_messages(self.messages, (*known, *self.blocks), self.roles)
        if not (self.variables & {*QUESTION} or any(message.conversation for message in self.messages)):
            raise ValueError("the messages do not show the question; use {question} or {conversation}")
        if not all(self.variables & names for names in SHOWN[self.protocol]):
            raise ValueError(f"the messages do not show all responses; use {', '.join(RESPONSES[self.protocol])}")
        if self.rubric is not None:
            asked = (*QUESTION, "person", "language")
            fitting = [name for name, text in self.blocks.items() if {*_names(text)} <= {*asked}]
            _check_messages(self.rubric.messages, (*asked, *fitting), self.roles)
            if any(message.reply for message in self.rubric.messages):
                raise ValueError("the model that writes the rubric writes one reply")
            if not any("rubric" in _names(message.text) for message in self.messages):
                raise ValueError("the messages do not use {rubric}, which a second model would write")
        self._check_verdict()
        return self

    def _check_verdict(self) -> None:
        verdict, meanings = self.verdict, {*self.verdict.values.values()}
        if self.protocol == "pairwise":
            if verdict.values and not {"A", "B"} <= meanings <= {"A", "B", "tie"}:
                raise ValueError("`values` of a pairwise verdict must name A and B, and may name tie")
            if not verdict.values and verdict.scale is None and verdict.ranges is None:
                raise ValueError("a pairwise verdict needs `values`, `scale` or `ranges`")
        elif verdict.ranges is not None or verdict.ranking is not None:
            raise ValueError(f"a {self.protocol} verdict has no `ranges` and no `ranking`")
        elif self.protocol == "pointwise":
            if not verdict.values and verdict.scale is None:
                raise ValueError("a pointwise verdict needs `scale`, or `values` that are numbers")
            if any(isinstance(meaning, str) for meaning in meanings):
                raise ValueError("`values` of a pointwise verdict must be numbers")
        elif verdict.values:
            raise ValueError("a listwise verdict has a `scale`, or is the number or letter of the best response")
        if verdict.by_place and verdict.scale is None:
            raise ValueError("{number} or {letter} in a verdict reads scores, which need a `scale`")

    @property
    def digest(self) -> str:
        """SHA-256 of what the judge sees and how it is read and sampled."""
        return digest(self.model_dump(mode="json", exclude={"name", "about", "source", "license"}, exclude_none=True))

    @property
    def variables(self) -> set[str]:
        """The variables in the messages, also those for a rubric, and in the blocks that they use."""
        messages = (*self.messages, *(self.rubric.messages if self.rubric else ()))
        used = {*chain.from_iterable(_names(message.text) for message in messages)}
        return used | {*chain.from_iterable(_names(self.blocks[name]) for name in used & self.blocks.keys())}

    @property
    def prefill(self) -> str:
        """The beginning of the reply; "" if the model writes all of it."""
        last = self.messages[-1]
        return last.text if last.role == "assistant" and not last.reply else ""

    def parts(self) -> list[tuple[PromptMessage, ...]]:
        """Return the messages that are sent before each reply of the model."""
        parts: list[list[PromptMessage]] = [[]]
        for message in self.messages:
            if message.reply:
                parts.append([])
            else:
                parts[-1].append(message)
        return [tuple(part) for part in parts]

    def values(self, question: Question) -> dict[str, str]:
        """Return the values of all variables, with the blocks."""
        each, responses, turns = self.each, [*question.responses], [*question.prompt]
        if each.rstrip:
            responses = [text.rstrip() for text in responses]
            turns = [{**turn, "content": turn["content"].rstrip()} for turn in turns]
        forms = [each.first_turn or each.turn, *[each.turn] * (len(turns) - 1)]
        conversation = each.separator.join(
            fill(form, {"role": turn["role"], "Role": turn["role"].capitalize(), "content": turn["content"]})
            for form, turn in zip(forms, turns, strict=True)
        )
        texts = (
            fill(each.response, {"number": str(place + 1), "letter": LETTERS[place % len(LETTERS)], "response": text})
            for place, text in enumerate(responses)
        )
        values = {
            "question": turns[0]["content"] if len(turns) == 1 else conversation,
            "conversation": conversation,
            "response": responses[0] if responses else "",
            "responses": each.separator.join(texts),
            "count": str(len(responses)),
            **dict.fromkeys(OPTIONAL, ""),
            "person": question.context,
            "language": question.language,
            **question.variables,
        }
        for place, text in enumerate(responses[:2]):
            values |= {f"response_{LETTERS[place].lower()}": text, f"response_{place + 1}": text}
        blocks = {
            name: fill(text, values) if all(values[one] for one in _names(text)) else ""
            for name, text in self.blocks.items()
        }
        return values | blocks

    def history(self, pairs: Sequence[EarlierPair]) -> str:
        """Return earlier choices of a person as `{history}`, the oldest first."""
        latest = pairs if self.each.choices is None else pairs[-self.each.choices :]
        texts = (
            fill(
                self.each.choice,
                {"question": prompt_text(pair.prompt), "chosen": pair.chosen, "rejected": pair.rejected},
            )
            for pair in latest
        )
        return self.each.separator.join(texts)


def render(messages: Sequence[PromptMessage], question: Question, values: Mapping[str, str]) -> list[Message]:
    """Return messages with the values of their variables."""
    rendered: list[Message] = []
    for message in messages:
        if message.conversation:
            rendered += [{"role": turn["role"], "content": turn["content"]} for turn in question.prompt]
        else:
            rendered.append({"role": message.role, "content": fill(message.text, values)})
    return rendered


def missing_variables(messages: Sequence[PromptMessage], values: Mapping[str, str]) -> list[str]:
    """Return the variables of `OPTIONAL` that messages use outside blocks, and that are empty."""
    used = {*chain.from_iterable(_names(message.text) for message in messages)}
    return [name for name in OPTIONAL if name in used and not values[name]]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the variables in a text; values are not searched for variables."""
    return _NAME.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], text)


def escape(text: str) -> str:
    """Write a text so that `fill` gives it back."""
    return re.sub(r"\{([A-Za-z_]\w*)\}", r"{{\1}}", text)


def _names(text: str) -> Iterator[str]:
    yield from (match[2] for match in _NAME.finditer(text) if match[2])


def _check_names(text: str, known: Sequence[str], where: str) -> None:
    for name in _names(text):
        if name not in known:
            raise ValueError(
                f"there is no variable {{{name}}} {where}; there are {', '.join(known)}, and {{{{{name}}}}} is the text"
            )


def _check_messages(messages: Sequence[PromptMessage], known: Sequence[str], roles: Sequence[str]) -> None:
    for message in messages:
        if message.text and message.role not in {*ROLES, *roles}:
            raise ValueError(
                f"there is no role {message.role!r}; use one of {', '.join([*ROLES, *roles])}, or list it in `roles` "
                "if the model's chat template has it"
            )
        _check_names(message.text, known, f"in the message of the role {message.role}")
    if messages[0].reply or messages[-1].reply:
        raise ValueError("a turn that the model writes stands between two other messages")
    if messages[-1].role in {"system", "developer"}:
        raise ValueError(f"the last message has the role {messages[-1].role}, which asks for no reply")
    if any(one.reply and other.reply for one, other in pairwise(messages)):
        raise ValueError("two turns that the model writes follow each other")
