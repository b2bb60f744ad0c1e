"""Join and check translated pieces. Worker processes import this module, so it does not import polars."""

from collections.abc import Sequence
from dataclasses import dataclass

from pluralbench_schemas import Language

from build_multilingual.checks import find_problem
from build_multilingual.masking import MaskedText, PlaceholderLost, strip_marks
from build_multilingual.pieces import Piece, Strategy, join_pieces
from build_multilingual.recipe import ChecksTable

NO_ANSWER = {
    "error": "refused by the translator",
    "empty": "empty",
    "length": "cut off",
    "refusal": "refused by the translator",
    "content_filter": "refused by the translator",
}


@dataclass(frozen=True)
class TranslatedTexts:
    """Answers of the translator for texts in one language, with all that the checks need.

    Attributes:
        language: Target language.
        checks: Limits of the checks.
        strategy: Strategy by which the texts were split.
        texts: For each text the masked English, its pieces, and the outcome and text of the answer to each translated
            piece.
    """

    language: Language
    checks: ChecksTable
    strategy: Strategy
    texts: Sequence[tuple[MaskedText, Sequence[Piece], Sequence[tuple[str, str]]]]


def check_translations(translated: TranslatedTexts) -> list[tuple[str, str]]:
    """Join and check the translation of each text.

    Returns:
        For each text the translation and its problem ("" if it passed the checks).
    """
    return [_check_text(*text, translated) for text in translated.texts]


def _check_text(
    masked: MaskedText, pieces: Sequence[Piece], answers: Sequence[tuple[str, str]], translated: TranslatedTexts
) -> tuple[str, str]:
    translation = join_pieces(pieces, iter([text.strip() if outcome == "answer" else "" for outcome, text in answers]))
    failed = next((outcome for outcome, _ in answers if outcome != "answer"), None)
    if failed is not None:
        return translation, NO_ANSWER[failed]
    if translated.strategy == "whole":
        prose = strip_marks(translation)
        try:
            translation = masked.restore(translation)
        except PlaceholderLost as lost:
            return translation, str(lost)
    else:
        prose = " ".join(text for _, text in answers)
    return translation, find_problem(masked, prose, translated.language, translated.checks)
