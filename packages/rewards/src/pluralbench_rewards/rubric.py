"""How well an answer covers what a person expects: a language model that goes by rubric aspects, and a count of words.

Both give each aspect 0 (not covered), 1 (somewhat) or 2 (very well), the scale of the best-of-N code of Personalized
RewardBench; a score of an answer is the mean over its aspects, from 0 to 2. LaMP-QA divides by two.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from pluralbench_calls import InvalidAnswer, ParsedReply, Request, strip_thinking
from pluralbench_runs import Json

from pluralbench_rewards.judge import SECTION, Judge, ReplySchema

MOST = 2  # of an aspect
SYSTEM = """\
You check how far an answer gives a person what they expect of it. You see their question, the answer, and a numbered \
list of aspects that this person expects. Judge each aspect by itself and by the answer alone:
0: the answer does not cover it;
1: the answer covers it in part, or in passing;
2: the answer covers it fully and to the point.
An aspect that is only named is not covered. Length alone earns nothing.
Write nothing but a list with one number for each aspect, in their order, such as [0, 2, 1]."""
PROMPTS: dict[str, Json] = {"rubric": SYSTEM, "section": SECTION}

SHORTEST = 5  # letters of a word that counts: most shorter ones say nothing of a subject


@dataclass(frozen=True)
class RubricCase:
    """An answer to be checked. question: the conversation up to the answer, as text. aspects: what is expected."""

    id: str
    question: str
    answer: str
    aspects: Sequence[str]


def score_aspects(judge: Judge, cases: Sequence[RubricCase]) -> list[ParsedReply[list[float]]]:
    """For each case the score of each aspect, 0, 1 or 2, by a judge, or why there is none."""

    def request(case: RubricCase, attempt: int) -> Request:
        count = len(case.aspects)
        aspects = "\n".join(f"{number}. {aspect}" for number, aspect in enumerate(case.aspects, start=1))
        shown = {"question": case.question, "answer": case.answer, "aspects": aspects}
        scores = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MOST}}
        wanted = ReplySchema("scores", {"scores": scores | {"minItems": count, "maxItems": count}})
        return judge.request(wanted, SYSTEM, shown, f"the aspects of an answer to {case.id}", attempt, structured=True)

    return judge.ask(cases, request, lambda case, reply: parse_scores(reply, len(case.aspects)), "rubrics")


def parse_scores(reply: str, aspects: int) -> list[float]:
    """The scores of so many aspects in a reply: its one list of 0, 1 and 2, or JSON with `scores`.

    Raises `InvalidAnswer` for a list of another length, other numbers, and two lists that differ.
    """
    text = strip_thinking(reply).strip()
    found = {json.dumps(scores): scores for scores in _lists(text)}
    if not found:
        raise InvalidAnswer("no list of scores")
    if len(found) > 1:
        raise InvalidAnswer("two different lists of scores")
    [scores] = found.values()
    if len(scores) != aspects:
        raise InvalidAnswer(f"{len(scores)} scores for {aspects} aspects")
    if any(isinstance(score, bool) or score not in range(MOST + 1) for score in scores):
        raise InvalidAnswer("a score off the scale")
    return [float(score) for score in scores]


def _lists(text: str) -> list[list[Any]]:
    lists = []
    for written in re.findall(r"\[[^\[\]]*\]", text):
        try:
            lists.append(json.loads(written))
        except ValueError:  # brackets around something else
            continue
    return [found for found in lists if found]


def mean_score(scores: Sequence[float]) -> float:
    """The score of an answer: the mean over its aspects, 0 to 2."""
    return fmean(scores)


def overlap(case: RubricCase) -> list[float]:
    """For each aspect twice the share of its words that the answer has, 0 to 2: words are compared by their stems.

    No measure of quality: it sees words and no sense. It needs no model, so that machinery can be checked with it.
    """
    said = stems(case.answer)
    return [MOST * len(own & said) / len(own) if (own := stems(aspect)) else 0.0 for aspect in case.aspects]


def stems(text: str, shortest: int = SHORTEST) -> set[str]:
    """The stems of the words of a text that have at least so many letters; of English words."""
    return {_stemmer().stemWord(word) for word in re.findall(r"\w+", text.casefold()) if len(word) >= shortest}


@cache
def _stemmer() -> Any:
    import snowballstemmer  # noqa: PLC0415 - only where words are counted

    return snowballstemmer.stemmer("english")
