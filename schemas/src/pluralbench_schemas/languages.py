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

    @property
    def short_name(self) -> str:
        """The name without what stands in brackets: "Chinese" of "Chinese (Simplified)"."""
        return self.name.partition(" (")[0]


def _read() -> dict[str, Language]:
    text = Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
    return {code: Language(code, **values) for code, values in tomllib.loads(text).items()}


LANGUAGES = _read()
"""Every language by its FLORES-200 code, such as `spa_Latn`."""


# What ISO 639-3 calls a language whose largest variety is the one here.
MACROLANGUAGES = {"ara": "arb", "fas": "pes"}


def similar_languages(code: str) -> list[str]:
    """The known codes that somebody who wrote `code` may have meant: by code or name, else what looks most alike."""
    wanted = code.strip().lower()
    names = {language.code: _names(language) for language in LANGUAGES.values()}
    same = [known for known, own in names.items() if wanted in own]
    same = same or [language.code for language in LANGUAGES.values() if len(wanted) > 1 and wanted in language.autonym]
    if same:
        return same
    near = get_close_matches(wanted, sorted(set().union(*names.values())), n=1, cutoff=0.75)
    return [known for known, own in names.items() if near and near[0] in own]


def _names(language: Language) -> set[str]:
    names = {language.name.lower(), language.short_name.lower(), language.autonym.lower()}
    return names | {language.code.lower(), language.code[:3], language.langid, language.google.lower()}


def language_of(code: str) -> Language | None:
    """The language of an ISO 639 code of two or three letters, such as "de" or "zho", or of a FLORES-200 code."""
    wanted = MACROLANGUAGES.get(code.lower(), code.replace("_", "-").lower())
    return next(
        (
            language
            for language in LANGUAGES.values()
            if wanted in {language.code.replace("_", "-").lower(), language.code[:3], language.langid}
        ),
        None,
    )
