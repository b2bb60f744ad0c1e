"""Prompts of judges that compare two responses, rate one, or pick the best of a list; text blocks of the user."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pluralbench_calls.verdicts import MAX_RATING
from pluralbench_runs import Json, digest

from pluralbench_rewards.contract import EarlierPair, Message

# Fixed words begin here, which spelling rules leave alone.
PAIR_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and two answers, Response A and Response B.
{criterion}{language}
The order of the answers means nothing, and neither does their length: more is not better than what was asked for.
{how}"""
# Fixed words end here.

# Fixed words begin here, which spelling rules leave alone.
RATING_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and one answer.
{criterion}{language}
Length alone earns nothing.
{how}"""
# Fixed words end here.

# Fixed words begin here, which spelling rules leave alone.
LIST_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and {count} answers, Response 1 to Response \
{count}.
{criterion}{language}
The order of the answers means nothing, and neither does their length: more is not better than what was asked for.
{how}"""
# Fixed words end here.

Criterion = Literal["quality", "person"]
"""The criterion of a judge. "quality": the user context decides if there is any, else the quality of the answer.
"person": what this user most likely expects, even without user context, like the judge in the paper of Personalized
RewardBench."""

# Fixed words begin here, which spelling rules leave alone.
PAIR_CRITERIA: dict[str, Json] = {
    "quality": "Decide which of the two serves this person better. If something is said about the person or about what "
    "they expect, that decides; otherwise weigh how helpful, relevant, correct and complete the answers are.",
    "person": "Decide which of the two comes closer to what this very person most likely expected when they asked. Go "
    "by all that is said about the person and about what they expect. Where nothing is said, infer from how they ask "
    "what they want to know and what matters to them. What most people would prefer does not count.",
}
# Fixed words end here.
# Fixed words begin here, which spelling rules leave alone.
RATING_CRITERIA: dict[str, Json] = {
    "quality": "Rate how well the answer serves this person, from 1 (not at all) to 10 (it could not be better). If "
    "something is said about the person or about what they expect, that decides; otherwise weigh how helpful, "
    "relevant, correct and complete the answer is.",
    "person": "Rate how close the answer comes to what this very person most likely expected when they asked, from 1 "
    "(not at all) to 10 (it could not be closer). Go by all that is said about the person and about what they expect. "
    "Where nothing is said, infer from how they ask what they want to know and what matters to them. What most people "
    "would prefer does not count.",
}
# Fixed words end here.
# Fixed words begin here, which spelling rules leave alone.
LIST_CRITERIA: dict[str, Json] = {
    "quality": "Decide which of them serves this person best. If something is said about the person or about what they "
    "expect, that decides; otherwise weigh how helpful, relevant, correct and complete the answers are. Name one, even "
    "if several seem equally good.",
    "person": "Decide which of them comes closest to what this very person most likely expected when they asked. Go by "
    "all that is said about the person and about what they expect. Where nothing is said, infer from how they ask what "
    "they want to know and what matters to them. What most people would prefer does not count. Name one, even if "
    "several seem equally close.",
}
# Fixed words end here.
LANGUAGE = (
    " It is stated in which language the question is and in which the answer should be. To be in another language "
    "makes an answer worse, but it is one point among others: the language says nothing else about the person, and "
    "answers in the right language differ by all the rest."
)

Reply = Literal["reasoned", "brief", "structured"]
"""The form of a judge's reply: reasons and then the verdict, only the verdict, or JSON by a schema that the server
enforces, which small models need."""

PAIR_REPLY: dict[str, Json] = {
    "reasoned": "Give your reasons in at most 100 words. Then write, as the last line and alone in it, [[A]] or [[B]].",
    "brief": "Give no reasons. Write nothing else than [[A]] or [[B]].",
    "structured": 'Give no reasons. Reply in JSON: {"verdict": "A"} or {"verdict": "B"}.',
}
RATING_REPLY: dict[str, Json] = {
    "reasoned": "Give your reasons in at most 100 words. Then write, as the last line and alone in it, the rating as "
    "[[1]] to [[10]].",
    "brief": "Give no reasons. Write nothing else than the rating as [[1]] to [[10]].",
    "structured": 'Give no reasons. Reply in JSON with the rating as a number, such as {"rating": 1}.',
}
LIST_REPLY: dict[str, Json] = {
    "reasoned": "Give your reasons in at most 100 words. Then write, as the last line and alone in it, the number of "
    "the best answer as [[1]] to [[{count}]].",
    "brief": "Give no reasons. Write nothing else than the number of the best answer as [[1]] to [[{count}]].",
    "structured": 'Give no reasons. Reply in JSON with the number of the best answer, such as {{"best": 1}}.',
}
SCHEMAS: dict[str, dict[str, Json]] = {
    "verdict": {"type": "string", "enum": ["A", "B"]},
    "rating": {"type": "integer", "minimum": 1, "maximum": MAX_RATING},
}

SECTION = "<{name}>\n{text}\n</{name}>"
PROMPTS: dict[str, Json] = {
    "pair": [PAIR_SYSTEM, PAIR_CRITERIA, PAIR_REPLY],
    "rating": [RATING_SYSTEM, RATING_CRITERIA, RATING_REPLY],
    "language": LANGUAGE,
    "schemas": SCHEMAS,
    "section": SECTION,
}


LIST_PROMPTS: dict[str, Json] = {"list": [LIST_SYSTEM, LIST_CRITERIA, LIST_REPLY]}
"""Prompts that only `protocol="listwise"` adds; apart, so that the digest of other runs does not depend on them."""


class ReplySchema(NamedTuple):
    """The schema of a structured reply: its name, and the JSON schema of each property."""

    name: str
    properties: Mapping[str, Any]


def schema_of(name: str) -> ReplySchema:
    """Return the schema of a "verdict" or a "rating"."""
    return ReplySchema(name, {name: SCHEMAS[name]})


def pick_schema(responses: int) -> ReplySchema:
    """Return the schema of the pick of one of so many responses."""
    return ReplySchema("pick", {"best": {"type": "integer", "minimum": 1, "maximum": responses}})


def prompts_digest(*, listwise: bool = False) -> str:
    """Compute the SHA-256 of the prompts, with those that pick the best of a list if `listwise`."""
    return digest({**PROMPTS, **(LIST_PROMPTS if listwise else {})})


PERSONA = "Who I am, and how I like to be answered:\n{persona}"
DEMONSTRATION = """\
Earlier this person chose between two answers.
<earlier_question>
{question}
</earlier_question>
<answer_they_chose>
{chosen}
</answer_they_chose>
<answer_they_did_not_choose>
{rejected}
</answer_they_did_not_choose>"""
WORDINGS: dict[str, Json] = {"persona": PERSONA, "demonstration": DEMONSTRATION}


def prompt_text(prompt: Sequence[Message]) -> str:
    """Format a prompt as one text: its message if there is only one, else all with their roles."""
    if len(prompt) == 1:
        return prompt[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in prompt)


def persona_block(sentences: Sequence[str]) -> str:
    """Format a persona, one sentence per line."""
    return PERSONA.format(persona="\n".join(sentences))


def demonstration_block(pair: EarlierPair) -> str:
    """Format an earlier decided pair."""
    return DEMONSTRATION.format(question=prompt_text(pair.prompt), chosen=pair.chosen, rejected=pair.rejected)


def persona_context(sentences: Sequence[str], demonstrations: Sequence[EarlierPair] = ()) -> str:
    """Format the user context of a judge: the persona, then each demonstration."""
    return "\n\n".join([persona_block(sentences), *map(demonstration_block, demonstrations)])
