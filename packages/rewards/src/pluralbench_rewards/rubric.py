"""Coverage of rubric aspects by an answer, judged by a language model or by shared words.

Each aspect gets 0 (not covered), 1 (partly) or 2 (fully), the scale of the best-of-N code of Personalized RewardBench.
The score of an answer is the mean over its aspects, from 0 to 2; LaMP-QA divides it by two.
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

from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import SECTION, ReplySchema

MAX_SCORE = 2  # of an aspect
SYSTEM = """\
You check how far an answer gives a person what they expect of it. You see their question, a numbered list of aspects \
that this person expects, and the answer. Judge each aspect by itself and by the answer alone:
0: the answer does not cover it;
1: the answer covers it in part, or in passing;
2: the answer covers it fully and to the point.
An aspect that is only named is not covered. Length alone earns nothing.
Write nothing but a list with one number for each aspect, in their order, such as [0, 2, 1]."""
PROMPTS: dict[str, Json] = {"rubric": SYSTEM, "section": SECTION}

MIN_LETTERS = 5  # of a word that counts; most shorter words are not content words


@dataclass(frozen=True)
class RubricCase:
    """An answer to check for aspects that the user expects; `question` is the conversation before it."""

    id: str
    question: str
    answer: str
    aspects: Sequence[str]


def score_aspects(judge: Judge, cases: Sequence[RubricCase]) -> list[ParsedReply[list[float]]]:
    """Let a judge score each aspect of each case with 0, 1 or 2."""

    def request(case: RubricCase, attempt: int) -> Request:
        count = len(case.aspects)
        aspects = "\n".join(f"{number}. {aspect}" for number, aspect in enumerate(case.aspects, start=1))
        # The answer is last, because other answers to the question follow the same beginning.
        sections = {"question": case.question, "aspects": aspects, "answer": case.answer}
        scores = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MAX_SCORE}}
        schema = ReplySchema("scores", {"scores": scores | {"minItems": count, "maxItems": count}})
        return judge.request(
            schema, SYSTEM, sections, f"the aspects of an answer to {case.id}", attempt, structured=True
        )

    return judge.ask(cases, request, lambda case, reply: parse_scores(reply, len(case.aspects)), "rubrics")


def parse_scores(reply: str, aspects: int) -> list[float]:
    """Parse the scores of so many aspects in a reply: its only list of 0, 1 and 2, or JSON with `scores`.

    Raises:
        InvalidAnswer: The list has another length or other numbers, or there are two different lists.
    """
    text = strip_thinking(reply).strip()
    distinct = {json.dumps(scores): scores for scores in _lists(text)}
    if not distinct:
        raise InvalidAnswer("no list of scores")
    if len(distinct) > 1:
        raise InvalidAnswer("two different lists of scores")
    [scores] = distinct.values()
    if len(scores) != aspects:
        raise InvalidAnswer(f"{len(scores)} scores for {aspects} aspects")
    if any(isinstance(score, bool) or score not in range(MAX_SCORE + 1) for score in scores):
        raise InvalidAnswer("a score off the scale")
    return [float(score) for score in scores]


def _lists(text: str) -> list[list[Any]]:
    lists = []
    for bracketed in re.findall(r"\[[^\[\]]*\]", text):
        try:
            lists.append(json.loads(bracketed))
        except ValueError:  # not a JSON list
            continue
    return [items for items in lists if items]


def mean_score(scores: Sequence[float]) -> float:
    """Compute the score of an answer: the mean over its aspects, 0 to 2."""
    return fmean(scores)


def overlap(case: RubricCase) -> list[float]:
    """Compute for each aspect twice the share of its word stems that the answer contains, 0 to 2.

    This is not a measure of quality. It needs no model and serves to test pipelines.
    """
    answer = stems(case.answer)
    return [MAX_SCORE * len(own & answer) / len(own) if (own := stems(aspect)) else 0.0 for aspect in case.aspects]


def stems(text: str, min_letters: int = MIN_LETTERS) -> set[str]:
    """Return the stems of the English words of a text with at least `min_letters` letters."""
    return {_stemmer().stemWord(word) for word in re.findall(r"\w+", text.casefold()) if len(word) >= min_letters}


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
