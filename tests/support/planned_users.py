"""People whose posts say in passing what they expect of any answer, so that the true aspects of a question are known.

A person has some of the wishes below, a post for each in one of several wordings, and posts that say nothing of the
kind. The aspects of their question are the titles of their wishes, in the order of the posts; of the two answers one
keeps to them, and the other to wishes that the person does not have. Titles and posts share no word that counts.
"""

import random
from collections.abc import Sequence
from typing import Any

from pluralbench_rewards import Group, RubricCase, overlap

WISHES = {
    "low expenses": ["I count every coin at the end of the month.", "Money is tight here, so I buy little."],
    "safety warnings": ["Last year I hurt my hand badly.", "My small children run around me while I work."],
    "quick results": ["I never have more than ten minutes.", "If it takes an hour, I give up."],
    "beginner vocabulary": ["I am new to all of this.", "Nobody ever taught me the basic words."],
    "scientific evidence": ["I only believe what was measured in a study.", "Show me numbers, or I doubt it."],
    "environmental impact": ["I try to throw nothing away.", "Plastic in the sea makes me sad."],
}
IDLE = ["The weather was fine on Sunday.", "My cat sleeps on the chair.", "We had soup for dinner.", "I like trains."]
TOPICS = (
    "repair a bicycle", "bake bread", "grow tomatoes", "paint a door", "learn chess", "sew a curtain", "dry herbs",
    "build a shelf", "clean a carpet", "keep bees", "record a song", "plan a hike", "brew tea", "fold a kite",
)  # fmt: skip
SAID = "As for {}, this is what counts."


def person(number: int, *, seed: int = 0) -> dict[str, Any]:
    """A row as Personalized RewardBench has it; the user's id is their number."""
    draw = random.Random(f"{seed} {number}")
    titles = draw.sample(sorted(WISHES), 4)
    kept, others = titles[:2], titles[2:]
    posts = [draw.choice(WISHES[title]) for title in kept]
    posts.insert(draw.randint(0, 2), draw.choice(IDLE))
    return {
        "id": f"u{seed}-{number}",
        "question": f"How do I {draw.choice(TOPICS)}?",
        "profile": [{"id": f"{place}", "category": "", "text": text} for place, text in enumerate(posts)],
        "rubric_aspects": [{"aspect": title, "evidence": "", "reason": ""} for title in kept],
        "narrative": "",
        "category": "Home",
        "chosen": " ".join(SAID.format(title) for title in kept),
        "rejected": " ".join(SAID.format(title) for title in others),
    }


def people(number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """So many of them."""
    return [person(place, seed=seed) for place in range(number)]


def by_words_told(groups: Sequence[Group]) -> list[list[float]]:
    """A reward that sees nothing but how many words of what it is told a response has; a coin decides between equals.

    The coin is drawn by the response's text, so that it is the same whatever is told.
    """
    return [
        [_words(group, response) + 1e-6 * random.Random(response).random() for response in group.responses]
        for group in groups
    ]


def _words(group: Group, response: str) -> float:
    return sum(overlap(RubricCase(group.id, "", response, group.context)))
