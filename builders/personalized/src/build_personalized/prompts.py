"""Messages of the builder's requests; their words are in prompts.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pluralbench_calls import Message
from pluralbench_schemas import render_profile

PROMPTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
PROMPT_VERSION: str = PROMPTS["version"]
POLARITY: dict[str, str] = PROMPTS["polarity"]

Side = Literal["chosen", "rejected"]


def prompt_lines(kind: str, *more: str, word_limit: int) -> list[str]:
    """Return the fixed lines of prompts and of `more` texts: all but the posts, the question and the aspects."""
    blanks = dict.fromkeys(("profile", "question", "questions", "aspects", "polarity"), "\n")
    texts = [text.format(word_limit=word_limit, **blanks) for text in PROMPTS[kind].values()]
    return [line for text in (*texts, *more) for line in text.splitlines() if line.strip()]


def answer_messages(
    question: str, posts: Sequence[Mapping[str, str]], aspects: Sequence[str], side: Side, word_limit: int
) -> list[Message]:
    """Return the messages of the request for one side's answer."""
    texts = {"question": question, "polarity": POLARITY[side], "aspects": ", ".join(aspects)}
    return messages_of("answer", profile=render_profile(posts), word_limit=word_limit, **texts)


def aspects_messages(question: str, sentences: Sequence[str], max_aspects: int) -> list[Message]:
    """Return the messages of the request for the rubric aspects in a narrative's sentences."""
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, start=1))
    return messages_of("aspects", question=question, sentences=numbered, max_aspects=max_aspects)


def messages_of(kind: str, **values: object) -> list[Message]:
    """Return a prompt's messages, filled with values."""
    return [{"role": role, "content": PROMPTS[kind][role].format(**values)} for role in ("system", "user")]
