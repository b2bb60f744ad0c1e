"""What is wrong with a translation, as far as one can tell without reading it."""

import re
from functools import cache
from typing import Any

from pluralbench_schemas import LANGUAGES, Language

from build_multilingual.masking import LETTER, Masked
from build_multilingual.recipe import ChecksTable

WORD = re.compile(r"[^\W\d_]+")
SAMPLED = 600  # characters by which the language is told; more take time and change nothing
NO_ALPHABET = {"Japanese", "Hangul", "Hans", "Hant"}


def problem(source: Masked, translated: str, language: Language, limits: ChecksTable) -> str:
    """The first thing that is wrong, "" where nothing is.

    translated: what was translated, without what had to survive as it is.
    """
    words = WORD.findall(source.prose)
    if not words:
        return ""
    letters = len(LETTER.findall(translated))
    if not letters:
        return "no letters" if translated.strip() else "empty"
    # A name alone may well be the same in both languages.
    if len(words) > 1 and WORD.findall(translated.lower()) == [word.lower() for word in words]:
        return "unchanged"
    return _wrong_length(sum(map(len, words)), letters, language, limits) or _wrong_language(
        translated, letters, language, limits
    )


def _wrong_length(english: int, letters: int, language: Language, limits: ChecksTable) -> str:
    if english < limits.least_letters:
        return ""
    ratio = letters / english / language.length
    return "too short" if ratio < limits.shortest else "too long" if ratio > limits.longest else ""


def _wrong_language(text: str, letters: int, language: Language, limits: ChecksTable) -> str:
    enough = limits.least_letters_langid
    if letters >= (enough / 3 if language.script in NO_ALPHABET else enough):
        found, confidence = _identified(text[:SAMPLED])
        if found != language.langid and confidence >= limits.least_confidence:
            return f"reads as {_name(found)}"
    if language.script in {"Hans", "Hant"}:
        import hanzidentifier  # noqa: PLC0415 - a second that other languages save

        other = {"Hans": hanzidentifier.TRADITIONAL, "Hant": hanzidentifier.SIMPLIFIED}[language.script]
        if hanzidentifier.identify(text) in {other, hanzidentifier.MIXED}:
            return (
                "in the other Chinese script" if hanzidentifier.identify(text) == other else "in both Chinese scripts"
            )
    return ""


def _identified(text: str) -> tuple[str, float]:
    """The language of a text by py3langid, and how sure it is, from 0 to 1."""
    found: tuple[str, float] = _identifier().classify(" ".join(text.split()))
    return found


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - half a second to load

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    # Among the languages that are built here: others that look alike would only be mistakes.
    identifier.set_languages(sorted({language.langid for language in LANGUAGES.values()}))
    return identifier


def _name(langid: str) -> str:
    return next(language.name for language in LANGUAGES.values() if language.langid == langid).partition(" (")[0]
