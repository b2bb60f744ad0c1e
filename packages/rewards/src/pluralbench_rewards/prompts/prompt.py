"""The prompt of a judge as data: its messages, the verdict, and the sampling that belongs to the model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pluralbench_runs import FrozenModel, did_you_mean, digest
from pydantic import Field, model_validator

from pluralbench_rewards.contract import Message
from pluralbench_rewards.judge_prompts import prompt_text
from pluralbench_rewards.prompts.reading import Reading

ROLES = ("system", "developer", "user", "assistant")
# A name in braces is a variable, in double braces itself; other braces, as in JSON or LaTeX, are text.
_NAME = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
SHARED = ("question", "conversation", "person", "language")
VARIABLES: dict[str, tuple[str, ...]] = {
    "pairwise": (*SHARED, "response_a", "response_b"),
    "pointwise": (*SHARED, "response"),
    "listwise": (*SHARED, "responses", "count"),
}


class PromptMessage(FrozenModel):
    """A message of a prompt.

    Attributes:
        role: Its role. One that is not in `ROLES` must be in the prompt's `roles`, as the model's template knows it.
        text: Its text, with variables in braces.
    """

    role: str
    text: str


class Sampling(FrozenModel):
    """Sampling that belongs to a model; an option on the command line takes precedence."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)


class JudgePrompt(FrozenModel):
    """A prompt of a judge, from a TOML file.

    Attributes:
        name: Name of the shipped prompt, or of the file.
        about: What it is for, in a sentence.
        protocol: Whether the judge sees two responses, one, or a list.
        roles: Roles besides `ROLES` that the model's chat template knows.
        messages: The messages in order. A last message of the role assistant is the beginning of the reply.
        verdict: How the verdict is read.
        sampling: Sampling that belongs to the model.
    """

    name: str
    about: str = ""
    protocol: Literal["pairwise", "pointwise", "listwise"] = "pairwise"
    roles: tuple[str, ...] = ()
    messages: tuple[PromptMessage, ...] = Field(min_length=1)
    verdict: Reading
    sampling: Sampling = Sampling()

    def __str__(self) -> str:
        return self.name

    @model_validator(mode="after")
    def _check(self) -> "JudgePrompt":
        known = VARIABLES[self.protocol]
        for message in self.messages:
            if message.role not in {*ROLES, *self.roles}:
                hint = did_you_mean(message.role, ROLES).strip() or "list it in `roles` if the model's template has it"
                raise ValueError(f"there is no role {message.role!r}; {hint.rstrip('.')}")
            for name in _names(message.text):
                if name not in known:
                    hint = did_you_mean(name, known).strip() or f"the variables are {', '.join(known)}"
                    raise ValueError(f"there is no variable {{{name}}} in a {self.protocol} prompt; {hint.rstrip('.')}")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of all but the name."""
        return digest(self.model_dump(mode="json", exclude={"name", "about"}, exclude_none=True))

    @property
    def variables(self) -> set[str]:
        """The variables in the messages."""
        return {name for message in self.messages for name in _names(message.text)}

    @property
    def prefill(self) -> str:
        """The beginning of the reply; "" if the model writes all of it."""
        last = self.messages[-1]
        return last.text if last.role == "assistant" else ""

    def render(self, values: Mapping[str, str]) -> list[Message]:
        """Return the messages with the values of the variables."""
        return [{"role": message.role, "content": fill(message.text, values)} for message in self.messages]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the variables in a text; values are not searched for variables."""
    return _NAME.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], text)


def _names(text: str) -> Iterator[str]:
    """Yield the variables in a text."""
    yield from (match[2] for match in _NAME.finditer(text) if match[2])


def question_values(prompt: Sequence[Message], person: str, language: str) -> dict[str, str]:
    """Return the variables of a question."""
    turns = "\n\n".join(f"{message['role']}: {message['content']}" for message in prompt)
    return {"question": prompt_text(prompt), "conversation": turns, "person": person, "language": language}
