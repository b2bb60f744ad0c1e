"""Languages and their codes. To add one, add a line to `languages.toml`."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

ENGLISH = "eng_Latn"


@dataclass(frozen=True)
class Language:
    """A language. The head of `languages.toml` explains the fields."""

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
        """The name without brackets, such as "Chinese" for "Chinese (Simplified)"."""
        return self.name.partition(" (")[0]


def _read() -> dict[str, Language]:
    text = Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
    return {code: Language(code, **values) for code, values in tomllib.loads(text).items()}


LANGUAGES = _read()
"""All languages by FLORES-200 code, such as `spa_Latn`."""


# ISO 639-3 codes of macrolanguages, and the codes of their largest varieties.
MACROLANGUAGES = {"ara": "arb", "fas": "pes"}


def similar_languages(code: str) -> list[str]:
    """Suggest known codes for an unknown one: by code or name, otherwise the most similar one."""
    query = code.strip().lower()
    names = {language.code: _names(language) for language in LANGUAGES.values()}
    same = [known for known, own in names.items() if query in own]
    same = same or [language.code for language in LANGUAGES.values() if len(query) > 1 and query in language.autonym]
    if same:
        return same
    near = get_close_matches(query, sorted(set().union(*names.values())), n=1, cutoff=0.75)
    return [known for known, own in names.items() if near and near[0] in own]


def _names(language: Language) -> set[str]:
    names = {language.name.lower(), language.short_name.lower(), language.autonym.lower()}
    return names | {language.code.lower(), language.code[:3], language.langid, language.google.lower()}


def language_of(code: str) -> Language | None:
    """Find a language by an ISO 639 code, such as "de" or "zho", or by a FLORES-200 code."""
    query = MACROLANGUAGES.get(code.lower(), code.replace("_", "-").lower())
    return next(
        (
            language
            for language in LANGUAGES.values()
            if query in {language.code.replace("_", "-").lower(), language.code[:3], language.langid}
        ),
        None,
    )
