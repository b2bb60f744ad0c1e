"""Text blocks of a persona and of demonstrations, for judges and other models."""

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
