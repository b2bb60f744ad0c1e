"""Split texts into sentences."""

import re

import sentencex

LETTER = re.compile(r"[^\W\d_]")
QUOTED_LINES = re.compile(r"^[^\S\n]*(?:(?:[-*+]|\d+[.)])[^\S\n]+)*>.*$", re.MULTILINE)
END = ".!?"


def split_sentences(text: str, language: str = "en") -> list[str]:
    """Split a text into sentences, each a substring of it; sentences without a letter are dropped.

    A period without a following space does not end a sentence, as in "history.SE".

    Args:
        text: The text.
        language: BCP 47 code of its language.
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
