"""Prompts of the builder and their version, which rows record; a changed word needs a new version.

The wording is ours, the content that of section 3.1 and appendix E of the paper: both answers see the profile, follow
the person's style and keep the word limit; the two prompts differ only in the polarity of the aspects.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pluralbench_calls import Message
from pluralbench_schemas import render_profile

PROMPT_VERSION = "1"

Side = Literal["chosen", "rejected"]

ANSWER_SYSTEM = """\
You answer the questions of one particular person, who shows you posts they wrote earlier.
Learn from the posts what this person likes, what binds them and how they write. Then answer their question:
- match their style: tone, level of detail, form;
- use the interests and the limits that the posts show;
- answer the question itself, directly, and heed what they say about aspects;
- write at most {word_limit} words.
Reply with the answer alone: no heading, no remark about the posts or about how you worked."""

ANSWER_USER = """\
Posts I wrote earlier, the most relevant first:
{profile}

My question:
{question}

{polarity} {aspects}.

Answer me in at most {word_limit} words."""

POLARITY: Mapping[Side, str] = {
    "chosen": "Aspects that I expect your answer to cover:",
    "rejected": "Aspects that I do not expect in your answer, so keep them out of it:",
}

ASPECTS_SYSTEM = """\
Someone asked a question and explained it in numbered sentences. Find the aspects that a good answer must cover for this
person: the needs, wishes, limits and worries that the sentences state.
Reply in JSON: an object with a list `aspects` of 1 to {max_aspects} items, each an object with
- `sentence`: the number of the sentence that states the aspect;
- `aspect`: a title of 2 to 10 words;
- `reason`: one sentence that says why it matters to this person."""

ASPECTS_USER = """\
The question:
{question}

The sentences:
{sentences}

Name the aspects of these sentences that a good answer must cover."""


def instructions(word_limit: int) -> list[str]:
    """Return the fixed lines of the answer prompts: all but the posts, the question and the aspects."""
    blanks = {"profile": "\n", "question": "\n", "aspects": "\n", "polarity": "\n"}
    prompts = ANSWER_SYSTEM.format(word_limit=word_limit), ANSWER_USER.format(word_limit=word_limit, **blanks)
    return [line for text in (*prompts, *POLARITY.values()) for line in text.splitlines() if line.strip()]


def answer_messages(
    question: str, posts: Sequence[Mapping[str, str]], aspects: Sequence[str], side: Side, word_limit: int
) -> list[Message]:
    """Return the messages of the request for one side's answer.

    Args:
        question: The person's question.
        posts: Posts of the profile, most relevant first.
        aspects: Titles of the aspects.
        side: `chosen` or `rejected`.
        word_limit: Maximum words of the answer.
    """
    user = ANSWER_USER.format(
        profile=render_profile(posts),
        question=question,
        polarity=POLARITY[side],
        aspects=", ".join(aspects),
        word_limit=word_limit,
    )
    return _messages(ANSWER_SYSTEM.format(word_limit=word_limit), user)


def aspects_messages(question: str, sentences: Sequence[str], max_aspects: int) -> list[Message]:
    """Return the messages of the request for the rubric aspects in a narrative's sentences."""
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, start=1))
    return _messages(
        ASPECTS_SYSTEM.format(max_aspects=max_aspects), ASPECTS_USER.format(question=question, sentences=numbered)
    )


def _messages(system: str, user: str) -> list[Message]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]
