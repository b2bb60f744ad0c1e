"""What came back for texts, put together and checked.

Worker processes import this, so it imports no tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pluralbench_schemas import Language

from build_multilingual.checks import problem
from build_multilingual.masking import Masked, PlaceholderLost, without_marks
from build_multilingual.pieces import Piece, Way, joined
from build_multilingual.recipe import ChecksTable

NO_ANSWER = {
    "error": "refused by the translator",
    "empty": "empty",
    "length": "cut off",
    "refusal": "refused by the translator",
    "content_filter": "refused by the translator",
}


@dataclass(frozen=True)
class TranslatedText:
    """Texts of one language with what came back for them in one way, all that the checks want of them.

    texts: of each the masked English, its pieces, and the outcome and text of the answer to each piece asked.
    """

    language: Language
    checks: ChecksTable
    way: Way
    texts: Sequence[tuple[Masked, Sequence[Piece], Sequence[tuple[str, str]]]]


def settle(answered: TranslatedText) -> list[tuple[str, str]]:
    """The translation of each text, put together and checked, and what is wrong with it ("" where nothing is)."""
    return [_settled(*text, answered) for text in answered.texts]


def _settled(
    masked: Masked, plan: Sequence[Piece], answers: Sequence[tuple[str, str]], answered: TranslatedText
) -> tuple[str, str]:
    translation = joined(plan, iter([text.strip() if outcome == "answer" else "" for outcome, text in answers]))
    failed = next((outcome for outcome, _ in answers if outcome != "answer"), None)
    if failed is not None:
        return translation, NO_ANSWER[failed]
    if answered.way == "whole":
        translated = without_marks(translation)
        try:
            translation = masked.restore(translation)
        except PlaceholderLost as lost:
            return translation, str(lost)
    else:
        translated = " ".join(text for _, text in answers)
    return translation, problem(masked, translated, answered.language, answered.checks)
