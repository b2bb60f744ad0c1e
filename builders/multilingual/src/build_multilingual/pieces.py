"""Split a text into pieces for the translator.

The strategy `whole` sends the complete text with marks, and splits only texts that are too long, between sentences. The
strategy `cut`, for texts that failed, splits at each sentence and each masked span, so that no span can be lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sentencex import get_sentence_boundaries

from build_multilingual.masking import MaskedText, has_letters

Strategy = Literal["whole", "cut"]


@dataclass(frozen=True)
class Piece:
    """Part of a text; what is not to `translate` stays unchanged."""

    text: str
    translate: bool


def split_pieces(masked: MaskedText, strategy: Strategy, max_length: int) -> list[Piece]:
    """Split a text into pieces of at most `max_length` code points.

    They join to the masked text (`whole`) or to the text itself (`cut`).
    """
    if not has_letters(masked.prose):
        # With `whole` the caller restores the marks, as for texts that are translated.
        return [Piece(masked.text if strategy == "whole" else masked.restore(masked.text), translate=False)]
    if strategy == "whole":
        return [piece for part in _split_long(masked.text, max_length) for piece in _split_white_space(part)]
    pieces: list[Piece] = []
    for number, part in enumerate(masked.parts):
        pieces += [
            piece
            for sentence in sentences(part)
            for short in _split_long(sentence, max_length)
            for piece in _split_white_space(short)
        ]
        if number < len(masked.spans):
            pieces.append(Piece(masked.spans[number][1], translate=False))
    return pieces


def join_pieces(pieces: Sequence[Piece], translations: Iterator[str]) -> str:
    """Join pieces, taking the translations of those to translate, in order."""
    return "".join(next(translations) if piece.translate else piece.text for piece in pieces)


def sentences(text: str) -> list[str]:
    """Split an English text into sentences, each with the white space after it; a line break ends a sentence too."""
    parts = []
    for line in text.splitlines(keepends=True):
        ends = [boundary["end_index"] for boundary in get_sentence_boundaries("en", line)] if line.strip() else []
        starts = [0, *(end for end in ends if 0 < end < len(line)), len(line)]
        parts += [line[start:end] for start, end in pairwise(starts) if end > start]
    return parts


def _split_long(text: str, max_length: int) -> list[str]:
    """Split a text that is too long between sentences, else at white space, else anywhere."""
    if len(text) <= max_length:
        return [text] if text else []
    parts, part = [], ""
    for sentence in sentences(text):
        if part and len(part) + len(sentence) > max_length:
            parts.append(part)
            part = ""
        part += sentence
        while len(part) > max_length:
            # A mark has no white space, so it is not split here.
            blank = max(part.rfind(" ", 0, max_length), part.rfind("\n", 0, max_length))
            end = blank + 1 if blank > 0 else max_length
            parts.append(part[:end])
            part = part[end:]
    return [*parts, part] if part else parts


def _split_white_space(text: str) -> list[Piece]:
    """Split off surrounding white space; a translator could change it, or a text without letters."""
    core = text.strip()
    if not has_letters(core):
        return [Piece(text, translate=False)]
    start = text.index(core)
    end = start + len(core)
    pieces = [Piece(text[:start], translate=False), Piece(core, translate=True), Piece(text[end:], translate=False)]
    return [piece for piece in pieces if piece.text]
