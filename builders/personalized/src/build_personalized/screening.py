"""Answers that are valid and yet no answers: they repeat the instructions of the prompt, or ask back.

Each rule has a name, by which a recipe takes it or leaves it (`screening`), and a reason, by which what breaks it is
counted. An answer that breaks one is asked for again, like one over the limit of words.
"""

import re
from collections.abc import Sequence

from pluralbench_calls import InvalidAnswer
from pluralbench_release.audit import normalized

from build_personalized.prompts import instructions
from build_personalized.recipe import Rule
from build_personalized.sentences import split_sentences

WORD = re.compile(r"\w+")
RUN = 7  # words in a row; of the sample's answers none has even three of the instructions
QUESTION = re.compile(r"[?？؟]\W*$")
REASONS: dict[Rule, str] = {"echo": "repeats the instructions", "asking back": "asks back"}


def screen(answer: str, rules: Sequence[Rule], word_limit: int, language: str) -> None:
    """Raise `InvalidAnswer` for an answer that breaks one of `rules`.

    word_limit: of the prompt. language: of the answer, a BCP 47 code.
    """
    broken = {
        "echo": lambda: repeats(answer, instructions(word_limit)),
        "asking back": lambda: asks_back(answer, language),
    }
    for rule in rules:
        if broken[rule]():
            raise InvalidAnswer(REASONS[rule])


def repeats(answer: str, lines: Sequence[str]) -> bool:
    """Whether `RUN` words in a row stand so in one of the lines."""
    words = f" {' '.join(WORD.findall(normalized(answer)))} "
    told = [WORD.findall(normalized(line)) for line in lines]
    runs = (line[start : start + RUN] for line in told for start in range(len(line) - RUN + 1))
    return any(f" {' '.join(run)} " in words for run in runs)


def asks_back(answer: str, language: str) -> bool:
    """Whether more than half of an answer's words stand in sentences that end with a question mark."""
    asked = total = 0
    for sentence in split_sentences(answer, language):
        count = len(sentence.split())
        total += count
        asked += count if QUESTION.search(sentence) else 0
    return 2 * asked > total
