"""Automatic checks of translations: letters, change, length, language."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pluralbench_schemas import LANGUAGES, Language

from build_multilingual.masking import WORD, MaskedText, has_letters
from build_multilingual.recipe import ChecksTable

MAX_NAME_WORDS = 4
# Characters for identifying the language, in three parts from beginning to end. A short sample is fast and enough to
# confirm the expected language; only a longer one is enough to reject it.
SHORT_SAMPLE, LONG_SAMPLE = 120, 600
CONFIDENT = 0.9
NO_ALPHABET = {"Japanese", "Hangul", "Hans", "Hant"}


def find_problem(source: MaskedText, translated: str, language: Language, limits: ChecksTable) -> str:
    """Return the first problem of a translation, "" if it passes all checks.

    Args:
        source: The English text.
        translated: The translation without the masked spans.
        language: Expected language.
        limits: Limits of the checks.
    """
    opening = source.words(MAX_NAME_WORDS + 1)
    if not opening:
        return ""
    if not has_letters(translated):
        return "no letters" if translated.strip() else "empty"
    if not _is_name(opening) and _same_words(source, opening[0], translated):
        return "unchanged"
    # Without white space, but with vowel signs, which are not letters in some scripts.
    length = len("".join(translated.split()))
    return _wrong_length(source.length, length, language, limits) or _wrong_language(
        translated, length, language, limits
    )


def _same_words(source: MaskedText, first_word: str, translated: str) -> bool:
    first = WORD.search(translated)
    if first is None or first[0].lower() != first_word.lower():
        return False
    return [word.lower() for word in WORD.findall(translated)] == [word.lower() for word in source.words()]


def _is_name(opening: Sequence[str]) -> bool:
    """Return whether the words may be a name or a single term, which can be the same in both languages."""
    return len(opening) == 1 or (len(opening) <= MAX_NAME_WORDS and all(word[0].isupper() for word in opening))


def _wrong_length(english: int, length: int, language: Language, limits: ChecksTable) -> str:
    if english < limits.least_characters:
        return ""
    ratio = length / english / language.length
    return "too short" if ratio < limits.shortest else "too long" if ratio > limits.longest else ""


def _wrong_language(text: str, length: int, language: Language, limits: ChecksTable) -> str:
    min_length = limits.least_characters_langid
    if length >= (min_length / 3 if language.script in NO_ALPHABET else min_length):
        identified, confidence = _identify(_sample(text, SHORT_SAMPLE))
        if identified != language.langid or confidence < CONFIDENT:
            identified, confidence = _identify(_sample(text, LONG_SAMPLE))
        if identified != language.langid and confidence >= limits.least_confidence:
            return f"reads as {_language_name(identified)}"
    if language.script in {"Hans", "Hant"}:
        import hanzidentifier

        other = {"Hans": hanzidentifier.TRADITIONAL, "Hant": hanzidentifier.SIMPLIFIED}[language.script]
        reasons = {other: "in the other Chinese script", hanzidentifier.MIXED: "in both Chinese scripts"}
        return reasons.get(hanzidentifier.identify(text), "")
    return ""


def _sample(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    part = characters // 3
    middle = (len(text) - part) // 2
    return " ".join((text[:part], text[middle : middle + part], text[-part:]))


def _identify(text: str) -> tuple[str, float]:
    """Identify the language of a text with py3langid; return its code and the confidence from 0 to 1."""
    result: tuple[str, float] = _identifier().classify(" ".join(text.split()))
    return result


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    # Only the supported languages: similar other ones would only cause mistakes.
    identifier.set_languages(sorted({language.langid for language in LANGUAGES.values()}))
    return identifier


def _language_name(langid: str) -> str:
    return next(language.short_name for language in LANGUAGES.values() if language.langid == langid)
