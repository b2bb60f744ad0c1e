"""The languages that texts can be in, from `languages.toml`: a new one is a line there."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

ENGLISH = "eng_Latn"


@dataclass(frozen=True)
class Language:
    """A language. What the fields mean is said at the head of `languages.toml`."""

    code: str
    name: str
    autonym: str
    google: str
    nllb: str
    langid: str
    script: str
    family: str
    resource: Literal["High", "Mid", "Low"]
    joshi: int
    length: float


def _read() -> dict[str, Language]:
    text = Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
    return {code: Language(code, **values) for code, values in tomllib.loads(text).items()}


LANGUAGES = _read()
"""Every language by its FLORES-200 code, such as `spa_Latn`."""


def near_languages(code: str) -> list[str]:
    """The known codes that somebody who wrote `code` may have meant: by code, by name in either language."""
    names = {
        name.lower(): language.code
        for language in LANGUAGES.values()
        for name in (
            language.code,
            language.code[:3],
            language.langid,
            language.google,
            language.name,
            language.autonym,
        )
    }
    wanted = code.lower()
    # Both scripts of a language, where it has two, share a name or a short code.
    same = [
        language.code
        for language in LANGUAGES.values()
        if wanted in {language.code[:3], language.langid, language.google.lower(), language.name.lower()}
    ]
    near = [names[name] for name in get_close_matches(wanted, names, n=3, cutoff=0.7)]
    return list(dict.fromkeys([*same, *near]))[:3]


def language_of(code: str) -> Language | None:
    """The language of an ISO 639 code of two or three letters, such as "de" or "zho", or of a FLORES-200 code."""
    wanted = code.replace("_", "-").lower()
    return next(
        (
            language
            for language in LANGUAGES.values()
            if wanted in {language.code.replace("_", "-").lower(), language.code[:3], language.langid}
        ),
        None,
    )
