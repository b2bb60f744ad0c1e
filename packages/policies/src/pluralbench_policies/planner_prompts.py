"""What a planner reads and writes: a person's posts and their question, and what they expect of an answer as a list.

Personalized RewardBench, section 4.3. Training and inference share these words, and both end the prompt with what
begins an answer; the code that the paper goes by leaves that out at inference. Nothing here needs torch.
"""

import re
from collections.abc import Sequence

from pluralbench_rewards import Message
from pluralbench_runs import digest

SYSTEM = """\
You are told what a person posted earlier and what they ask now. Work out from both what this person expects of an \
answer to their question. Write one sentence that introduces a list, and then the list: one expectation a line, a few \
words each, after a hyphen."""
ASKED = "Their earlier posts:\n{posts}\n\nTheir question:\n{question}"
INTRODUCTION = "This person expects an answer that covers the following:"
WORDINGS = {"system": SYSTEM, "asked": ASKED, "introduction": INTRODUCTION}

BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+(?P<title>.*\S)\s*$")
MARKS = re.compile(r"\*\*|__")


def planner_prompts_digest() -> str:
    """SHA-256 of the words above."""
    return digest(dict(WORDINGS))


def planner_messages(question: str, posts: Sequence[str]) -> list[Message]:
    """What a planner reads. posts: as a prompt shows them, in their order."""
    asked = ASKED.format(posts="\n".join(posts), question=question)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]


def plan_text(aspects: Sequence[str]) -> str:
    """What a planner learns to write: a sentence, and a bullet with the title of each aspect."""
    return "\n".join([INTRODUCTION, *(f"- {' '.join(aspect.split())}" for aspect in aspects)])


def read_plan(text: str) -> list[str]:
    """The titles of a plan, in its order and each once; none where it has no list.

    A title is what a line has after a hyphen, another bullet or a number, without marks of bold type.
    """
    found = (BULLET.match(line) for line in text.splitlines())
    titles = (" ".join(MARKS.sub("", one["title"]).split()) for one in found if one is not None)
    return list(dict.fromkeys(title for title in titles if title))
