"""The prompts, in our own words, and the version that rows carry. Change a word, and the version must change.

What they must say is section 3.1 and appendix E of the paper: both answers see the profile, follow the person's style
and answer within the limit; the two prompts differ only in the polarity of the aspects.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

PROMPT_VERSION = "1"

Side = Literal["chosen", "rejected"]
Message = dict[str, str]

ANSWER_SYSTEM = """\
You write answers for one particular person, whom you know from the posts they have written.
Read the posts to learn what this person likes, what they care about and how they write. Then answer their question:
- match their style: tone, level of detail, form;
- use the interests and the constraints that the posts show;
- answer the question itself, directly;
- do what the last lines say about aspects;
- write at most {word_limit} words.
Reply with the answer alone: no heading, no remark about the posts or about how you worked."""

ANSWER_USER = """\
The question:
{question}

The person's earlier posts, the most relevant first:
{profile}

{polarity}
{aspects}"""

POLARITY: Mapping[Side, str] = {
    "chosen": "The person expects the answer to cover these aspects, so cover each of them:",
    "rejected": "The person does not expect the answer to cover these aspects, so keep each of them out:",
}

ASPECTS_SYSTEM = """\
Someone asked a question and then explained it in numbered sentences. Find out which aspects a good answer must cover
for this person: needs, wishes, limits and worries that the sentences state.
Reply in JSON, an object with a list `aspects` of 1 to {max_aspects} items, each with
- `sentence`: the number of the sentence that states the aspect;
- `aspect`: a title of 2 to 10 words;
- `reason`: one sentence that says why it matters to this person.
Example:
{{"aspects": [{{"sentence": 2, "aspect": "Recipes without an oven", "reason": "Their kitchen has only a hob."}}]}}"""

ASPECTS_USER = """\
The question:
{question}

The sentences:
{sentences}"""


def render_profile(posts: Sequence[Mapping[str, str]]) -> str:
    """Posts as a prompt shows them: a header with number and category, then the text (the paper's code, A.2)."""
    return "\n".join(
        f"[Post {number}, {post['category']}]\n{post['text']}" for number, post in enumerate(posts, start=1)
    )


def answer_messages(
    question: str, posts: Sequence[Mapping[str, str]], aspects: Sequence[str], side: Side, word_limit: int
) -> list[Message]:
    """Messages that ask for one side's answer; `aspects` are titles and are joined by commas."""
    user = ANSWER_USER.format(
        question=question, profile=render_profile(posts), polarity=POLARITY[side], aspects=", ".join(aspects)
    )
    return _messages(ANSWER_SYSTEM.format(word_limit=word_limit), user)


def aspects_messages(question: str, sentences: Sequence[str], max_aspects: int) -> list[Message]:
    """Messages that ask for the rubric aspects in a narrative's sentences."""
    numbered = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, start=1))
    return _messages(
        ASPECTS_SYSTEM.format(max_aspects=max_aspects), ASPECTS_USER.format(question=question, sentences=numbered)
    )


def _messages(system: str, user: str) -> list[Message]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]
