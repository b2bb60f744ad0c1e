"""What is wrong with a translation, as far as one can tell without reading it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pluralbench_schemas import LANGUAGES, Language

from build_multilingual.masking import WORD, Masked, has_letters
from build_multilingual.recipe import ChecksTable

LONGEST_NAME = 4  # words
# Characters by which the language is told, in three stretches from beginning to end. A few are enough to be sure that
# it is the right one, and take a fraction of the time; it takes more to be sure that it is not.
AT_A_GLANCE, AT_LENGTH = 120, 600
SURE = 0.9
NO_ALPHABET = {"Japanese", "Hangul", "Hans", "Hant"}


def problem(source: Masked, translated: str, language: Language, limits: ChecksTable) -> str:
    """The first thing that is wrong, "" where nothing is.

    translated: what was translated, without what had to survive as it is.
    """
    opening = source.words(LONGEST_NAME + 1)
    if not opening:
        return ""
    if not has_letters(translated):
        return "no letters" if translated.strip() else "empty"
    if not _is_name(opening) and _same(source, opening[0], translated):
        return "unchanged"
    # Without blanks, and with the signs that stand for vowels in some scripts, which are no letters.
    length = len("".join(translated.split()))
    return _wrong_length(source.length, length, language, limits) or _wrong_language(
        translated, length, language, limits
    )


def _same(source: Masked, first_word: str, translated: str) -> bool:
    first = WORD.search(translated)
    if first is None or first[0].lower() != first_word.lower():
        return False
    return [word.lower() for word in WORD.findall(translated)] == [word.lower() for word in source.words()]


def _is_name(opening: Sequence[str]) -> bool:
    """Whether these words may be a name or a single term, which may well be the same in both languages."""
    return len(opening) == 1 or (len(opening) <= LONGEST_NAME and all(word[0].isupper() for word in opening))


def _wrong_length(english: int, length: int, language: Language, limits: ChecksTable) -> str:
    if english < limits.least_characters:
        return ""
    ratio = length / english / language.length
    return "too short" if ratio < limits.shortest else "too long" if ratio > limits.longest else ""


def _wrong_language(text: str, length: int, language: Language, limits: ChecksTable) -> str:
    enough = limits.least_characters_langid
    if length >= (enough / 3 if language.script in NO_ALPHABET else enough):
        found, confidence = _identified(_sampled(text, AT_A_GLANCE))
        if found != language.langid or confidence < SURE:
            found, confidence = _identified(_sampled(text, AT_LENGTH))
        if found != language.langid and confidence >= limits.least_confidence:
            return f"reads as {_name(found)}"
    if language.script in {"Hans", "Hant"}:
        import hanzidentifier  # noqa: PLC0415 - a second that other languages save

        other = {"Hans": hanzidentifier.TRADITIONAL, "Hant": hanzidentifier.SIMPLIFIED}[language.script]
        reasons = {other: "in the other Chinese script", hanzidentifier.MIXED: "in both Chinese scripts"}
        return reasons.get(hanzidentifier.identify(text), "")
    return ""


def _sampled(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    part = characters // 3
    middle = (len(text) - part) // 2
    return " ".join((text[:part], text[middle : middle + part], text[-part:]))


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
    return next(language.short_name for language in LANGUAGES.values() if language.langid == langid)
