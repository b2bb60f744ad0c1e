"""Automatic checks of translations: letters, change, length, language."""

from collections.abc import Sequence

from pluralbench_schemas import LANGUAGES, Language

from build_multilingual.language_id import identify
from build_multilingual.masking import WORD, MaskedText, has_letters
from build_multilingual.recipe import ChecksTable

MAX_NAME_WORDS = 4
# Characters for identifying the language, in three parts from beginning to end. A short sample is fast and enough to
# confirm the expected language; only a longer one is enough to reject it.
SHORT_SAMPLE, LONG_SAMPLE = 120, 600
CONFIDENT = 0.9
NO_ALPHABET = {"Japanese", "Hangul", "Hans", "Hant"}


def find_problems(texts: Sequence[tuple[MaskedText, str]], language: Language, limits: ChecksTable) -> list[str]:
    """Return the first problem of each translation, "" if it passes all checks.

    `texts`: English texts, and their translations without the masked spans.
    """
    with_words = [number for number, (source, _) in enumerate(texts) if source.words(1)]
    problems = [""] * len(texts)
    for number in with_words:
        problems[number] = _find_problem(*texts[number], language, limits)
    passing = [number for number in with_words if not problems[number]]
    for number, problem in zip(
        passing, _wrong_languages([texts[number][1] for number in passing], language, limits), strict=True
    ):
        problems[number] = problem or _wrong_script(texts[number][1], language)
    return problems


def _find_problem(source: MaskedText, translated: str, language: Language, limits: ChecksTable) -> str:
    """Find a problem that shows without identifying the language."""
    if not has_letters(translated):
        return "no letters" if translated.strip() else "empty"
    opening = source.words(MAX_NAME_WORDS + 1)
    # A name or a single term can be the same in both languages.
    is_name = len(opening) == 1 or (len(opening) <= MAX_NAME_WORDS and all(word[0].isupper() for word in opening))
    if not is_name and _same_words(source, opening[0], translated):
        return "unchanged"
    if source.length < limits.least_characters:
        return ""
    ratio = _length(translated) / source.length / language.length
    return "too short" if ratio < limits.shortest else "too long" if ratio > limits.longest else ""


def _same_words(source: MaskedText, first_word: str, translated: str) -> bool:
    first = WORD.search(translated)
    if first is None or first[0].lower() != first_word.lower():
        return False
    return [word.lower() for word in WORD.findall(translated)] == [word.lower() for word in source.words()]


def _wrong_languages(texts: Sequence[str], language: Language, limits: ChecksTable) -> list[str]:
    min_length = limits.least_characters_langid / (3 if language.script in NO_ALPHABET else 1)
    numbers = [number for number, text in enumerate(texts) if _length(text) >= min_length]
    found = dict(zip(numbers, identify([_sample(texts[number], SHORT_SAMPLE) for number in numbers]), strict=True))
    unsure = [n for n, (code, confidence) in found.items() if code != language.langid or confidence < CONFIDENT]
    found |= zip(unsure, identify([_sample(texts[number], LONG_SAMPLE) for number in unsure]), strict=True)
    problems = [""] * len(texts)
    for number, (code, confidence) in found.items():
        if code != language.langid and confidence >= limits.least_confidence:
            problems[number] = f"reads as {_language_name(code)}"
    return problems


def _wrong_script(text: str, language: Language) -> str:
    if language.script not in {"Hans", "Hant"}:
        return ""
    import hanzidentifier

    other = {"Hans": hanzidentifier.TRADITIONAL, "Hant": hanzidentifier.SIMPLIFIED}[language.script]
    reasons = {other: "in the other Chinese script", hanzidentifier.MIXED: "in both Chinese scripts"}
    return reasons.get(hanzidentifier.identify(text), "")


def _length(text: str) -> int:
    """Characters without white space; with vowel signs, which are not letters in some scripts."""
    return len("".join(text.split()))


def _sample(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    part = characters // 3
    middle = (len(text) - part) // 2
    return " ".join((text[:part], text[middle : middle + part], text[-part:]))


def _language_name(langid: str) -> str:
    return next(language.short_name for language in LANGUAGES.values() if language.langid == langid)
