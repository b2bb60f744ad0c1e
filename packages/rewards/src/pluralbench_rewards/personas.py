"""What a model is told of a person who is known by a persona: a description, and choices of theirs that show it."""

from collections.abc import Sequence

from pluralbench_runs import Json

from pluralbench_rewards.contract import EarlierPair, Message

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
    """A prompt as one text: the message where it has one, else what each side said."""
    if len(prompt) == 1:
        return prompt[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in prompt)


def persona_block(sentences: Sequence[str]) -> str:
    """A persona as any model is told of it, a line a sentence."""
    return PERSONA.format(persona="\n".join(sentences))


def demonstration_block(pair: EarlierPair) -> str:
    """A pair that a person decided, as a judge is told of it."""
    return DEMONSTRATION.format(question=prompt_text(pair.prompt), chosen=pair.chosen, rejected=pair.rejected)


def persona_context(sentences: Sequence[str], demonstrations: Sequence[EarlierPair] = ()) -> str:
    """All that a judge is told of a person: the persona, and then each demonstration."""
    return "\n\n".join([persona_block(sentences), *map(demonstration_block, demonstrations)])
