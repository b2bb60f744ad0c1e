"""A text as the pieces that a translator is asked for, and what stays between them.

The first way sends the text whole, with marks for what must survive; only what is longer than a request takes is cut,
at the ends of sentences. The second way, for what failed, sends it sentence by sentence and cut at each span, so that
nothing can be lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sentencex import get_sentence_boundaries

from build_multilingual.masking import Masked, has_letters

Way = Literal["whole", "cut"]


@dataclass(frozen=True)
class Piece:
    """A stretch of a text. asked: whether it is to be translated; else it stays as it is."""

    text: str
    asked: bool


def pieces(masked: Masked, way: Way, longest: int) -> list[Piece]:
    """The pieces of a text, in order; put together they are the masked text (whole) or the text itself (cut).

    longest: code points that a piece may have.
    """
    if not has_letters(masked.prose):
        # The marks are set again by whoever puts the pieces together, so that both ways end alike.
        return [Piece(masked.text if way == "whole" else masked.restore(masked.text), asked=False)]
    if way == "whole":
        return [piece for part in _shortened(masked.text, longest) for piece in _trimmed(part)]
    found: list[Piece] = []
    for number, part in enumerate(masked.parts):
        found += [
            piece
            for sentence in sentences(part)
            for short in _shortened(sentence, longest)
            for piece in _trimmed(short)
        ]
        if number < len(masked.spans):
            found.append(Piece(masked.spans[number][1], asked=False))
    return found


def joined(parts: Sequence[Piece], translations: Iterator[str]) -> str:
    """The pieces with the asked ones translated, in order."""
    return "".join(next(translations) if piece.asked else piece.text for piece in parts)


def sentences(text: str) -> list[str]:
    """The sentences of an English text with the white space after each; a line break ends one too."""
    found = []
    for line in text.splitlines(keepends=True):
        ends = [boundary["end_index"] for boundary in get_sentence_boundaries("en", line)] if line.strip() else []
        starts = [0, *(end for end in ends if 0 < end < len(line)), len(line)]
        found += [line[start:end] for start, end in pairwise(starts) if end > start]
    return found


def _shortened(text: str, longest: int) -> list[str]:
    """The text in parts of at most `longest` code points, cut at ends of sentences, else at blanks, else anywhere."""
    if len(text) <= longest:
        return [text] if text else []
    parts, part = [], ""
    for sentence in sentences(text):
        if part and len(part) + len(sentence) > longest:
            parts.append(part)
            part = ""
        part += sentence
        while len(part) > longest:
            # A mark has no blank in it, so a cut at a blank leaves it whole.
            blank = max(part.rfind(" ", 0, longest), part.rfind("\n", 0, longest))
            end = blank + 1 if blank > 0 else longest
            parts.append(part[:end])
            part = part[end:]
    return [*parts, part] if part else parts


def _trimmed(text: str) -> list[Piece]:
    """White space around a piece stays as it is, and so does what has no letters: a translator may change both."""
    core = text.strip()
    if not has_letters(core):
        return [Piece(text, asked=False)]
    start = text.index(core)
    around = [Piece(text[:start], asked=False), Piece(core, asked=True), Piece(text[start + len(core) :], asked=False)]
    return [piece for piece in around if piece.text]
