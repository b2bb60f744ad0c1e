"""Join and check translated pieces. Worker processes import this module, so it does not import polars."""

from collections.abc import Sequence
from dataclasses import dataclass

from pluralbench_schemas import Language

from build_multilingual.checks import find_problems
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

    `texts` has for each text the masked English, its pieces, and the outcome and text of the answer to each translated
    piece."""

    language: Language
    checks: ChecksTable
    strategy: Strategy
    texts: Sequence[tuple[MaskedText, Sequence[Piece], Sequence[tuple[str, str]]]]


def check_translations(translated: TranslatedTexts) -> list[tuple[str, str]]:
    """Join and check each text; return its translation and problem ("" if it passed the checks)."""
    results = [_restore(*text, translated.strategy) for text in translated.texts]
    whole = [number for number, (_, prose, problem) in enumerate(results) if not problem]
    pairs = [(translated.texts[number][0], results[number][1]) for number in whole]
    problems = dict(zip(whole, find_problems(pairs, translated.language, translated.checks), strict=True))
    return [(text, problems.get(number, lost)) for number, (text, _, lost) in enumerate(results)]


def _restore(
    masked: MaskedText, pieces: Sequence[Piece], answers: Sequence[tuple[str, str]], strategy: Strategy
) -> tuple[str, str, str]:
    """Return the translation, the translation without the masked spans, and what is missing of it ("" if nothing)."""
    translation = join_pieces(pieces, iter([text.strip() if outcome == "answer" else "" for outcome, text in answers]))
    failed = next((outcome for outcome, _ in answers if outcome != "answer"), None)
    if failed is not None:
        return translation, "", NO_ANSWER[failed]
    if strategy == "cut":
        return translation, " ".join(text for _, text in answers), ""
    try:
        return masked.restore(translation), strip_marks(translation), ""
    except PlaceholderLost as lost:
        return translation, "", str(lost)
