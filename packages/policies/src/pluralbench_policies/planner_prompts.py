"""The planner's prompt and output format: a user's posts and question, and a list of what they expect of an answer.

Personalized RewardBench, section 4.3. Training and inference use the same prompt, and both add the generation prompt,
which the paper's code omits at inference. This module does not need torch.
"""

import re
from collections.abc import Sequence

from pluralbench_rewards import Message
from pluralbench_runs import digest

# Fixed words begin here, which spelling rules leave alone.
SYSTEM = """\
You are told what a person posted earlier and what they ask now. Work out from both what this person expects of an \
answer to their question. Write one sentence that introduces a list, and then the list: one expectation a line, a few \
words each, after a hyphen."""
# Fixed words end here.
USER = "Their earlier posts:\n{posts}\n\nTheir question:\n{question}"
INTRODUCTION = "This person expects an answer that covers the following:"
WORDINGS = {"system": SYSTEM, "asked": USER, "introduction": INTRODUCTION}

BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+(?P<title>\S.*)")
MARKS = re.compile(r"\*\*|__")


def planner_prompts_digest() -> str:
    """Compute the SHA-256 of the prompt texts."""
    return digest(dict(WORDINGS))


def planner_messages(question: str, posts: Sequence[str]) -> list[Message]:
    """Make the planner's prompt. `posts` are formatted and in the order to show."""
    user = USER.format(posts="\n".join(posts), question=question)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def plan_text(aspects: Sequence[str]) -> str:
    """Make the text of a plan: an introduction, and a bullet with the title of each aspect."""
    return "\n".join([INTRODUCTION, *(f"- {' '.join(aspect.split())}" for aspect in aspects)])


def read_plan(text: str) -> list[str]:
    """Parse the titles of a plan, in order and without duplicates; empty if the text has no list.

    A title is the text of a line after a hyphen, another bullet or a number, without marks of bold type.
    """
    matches = (BULLET.match(line) for line in text.splitlines())
    titles = (" ".join(MARKS.sub("", match["title"]).split()) for match in matches if match is not None)
    return list(dict.fromkeys(title for title in titles if title))
