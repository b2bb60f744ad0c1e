"""Check by rendering that a chat template writes all messages of a prompt, and the same text each time."""

from collections.abc import Sequence
from typing import Protocol

from pluralbench_rewards import Group, Message

from pluralbench_local.errors import LocalError

RENDERINGS = 3  # of the same conversation
WORDS = 40  # between the ends of a message, more than a template that cuts messages leaves


class Renders(Protocol):
    """A template; see `pluralbench_local.conversations.Template`."""

    def conversation(self, messages: Sequence[Message], response: str) -> str:
        """Render a prompt with a response."""


def check_template(groups: Sequence[Group], template: Renders) -> None:
    """Check a template on a conversation of each sequence of roles among the prompts.

    Raises:
        LocalError: If the template leaves out a message or a part of it, renders the same conversation differently, or
            fails.
    """
    shapes = {tuple(message["role"] for message in group.prompt): group for group in reversed(groups)}
    for roles, group in reversed(shapes.items()):
        ends = [(f"begin{place}a", f"end{place}z") for place in range(len(roles))]
        messages = [
            {"role": role, "content": f"{begin} {'word ' * WORDS}{end}"}
            for role, (begin, end) in zip(roles, ends, strict=True)
        ]
        first, *others = (template.conversation(messages, group.responses[0]).casefold() for _ in range(RENDERINGS))
        if any(text != first for text in others):
            raise LocalError(
                "The chat template renders the same conversation differently each time; give another one as "
                "`chat_template=...`."
            )
        lacking = next((place for place, marks in enumerate(ends) if not all(mark in first for mark in marks)), None)
        if lacking is not None:
            raise LocalError(
                f"The chat template leaves out message {lacking + 1} of {len(roles)} ({roles[lacking]}) of the prompt "
                f"{group.id}, or a part of it; give another one as `chat_template=...`."
            )
