"""The sentences of a text."""

import re

import sentencex

LETTER = re.compile(r"[^\W\d_]")
QUOTED_LINES = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+)*>.*$", re.MULTILINE)
END = ".!?"


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text, each a substring of it; those without a letter are left out.

    language: a BCP 47 code. A full stop that no blank follows ends none, as in "history.SE".
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
    """The sentences of a Markdown text that its author wrote: those outside lines that quote (`> `).

    See `split_sentences`; a text without a letter of the author's own has none.
    """
    parts = [part for part in QUOTED_LINES.split(text) if LETTER.search(part)]
    return [sentence for part in parts for sentence in split_sentences(part, language)]
