"""Screen answers that repeat the prompt's instructions or ask back instead of answering.

A recipe selects rules by name (`screening`); drops are counted by the rule's reason. An answer that breaks a rule is
requested again, like one over the word limit.
"""

import re
from collections.abc import Sequence

import sentencex
from pluralbench_calls import InvalidAnswer
from pluralbench_release.similarity import normalized

from build_personalized.prompts import POLARITY, prompt_lines
from build_personalized.recipe import Rule

LETTER = re.compile(r"[^\W\d_]")
QUOTED_LINES = re.compile(r"^[^\S\n]*(?:(?:[-*+]|\d+[.)])[^\S\n]+)*>.*$", re.MULTILINE)
END = ".!?"


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text in a language (BCP 47) into sentences, each a substring of it, and drop those without a letter.

    A period without a following space does not end a sentence, as in "history.SE".
    """
    sentences: list[str] = []
    for part in sentencex.segment(language.split("-", maxsplit=1)[0], text):
        if sentences and sentences[-1].endswith(tuple(END)) and not part[:1].isspace():
            sentences[-1] += part
        else:
            sentences.append(part)
    stripped = [sentence.strip() for sentence in sentences]
    return [sentence for sentence in stripped if LETTER.search(sentence)] or [text.strip()]


def own_sentences(text: str, language: str = "en") -> list[str]:
    """Return the sentences of a Markdown text outside of quotations (`> `), as in `split_sentences`."""
    parts = [part for part in QUOTED_LINES.split(text) if LETTER.search(part)]
    return [sentence for part in parts for sentence in split_sentences(part, language)]


WORD = re.compile(r"\w+")
ECHO_WORDS = 7  # consecutive words; no answer of the sample shares even three with the instructions
# From the end of a sentence backwards: forwards, each of many question marks would look at all that follow it.
QUESTION = re.compile(r"\W*?[?？؟]")
REASONS: dict[Rule, str] = {"echo": "repeats the instructions", "asking back": "asks back"}


def screen(answer: str, rules: Sequence[Rule], word_limit: int, language: str) -> None:
    """Check an answer against rules.

    Raises:
        InvalidAnswer: The answer breaks a rule; the message is the rule's reason.
    """
    broken = {
        "echo": lambda: repeats(answer, prompt_lines("answer", *POLARITY.values(), word_limit=word_limit)),
        "asking back": lambda: asks_back(answer, language),
    }
    for rule in rules:
        if broken[rule]():
            raise InvalidAnswer(REASONS[rule])


def repeats(answer: str, lines: Sequence[str]) -> bool:
    """Return whether the answer shares `ECHO_WORDS` consecutive words with one of the lines."""
    words = f" {' '.join(WORD.findall(normalized(answer)))} "
    line_words = [WORD.findall(normalized(line)) for line in lines]
    runs = (line[start : start + ECHO_WORDS] for line in line_words for start in range(len(line) - ECHO_WORDS + 1))
    return any(f" {' '.join(run)} " in words for run in runs)


def asks_back(answer: str, language: str) -> bool:
    """Return whether more than half of an answer's words are in questions."""
    in_questions = total = 0
    for sentence in split_sentences(answer, language):
        count = len(sentence.split())
        total += count
        in_questions += count if QUESTION.match(sentence[::-1]) else 0
    return 2 * in_questions > total
