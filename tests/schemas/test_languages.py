"""The languages: those of the paper with what it says of each, and English; found by any name they have."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of, similar_languages

# reference/multilingual.md, B.1 and B.2: ISO 639-1, script, family, resource, class of Joshi et al.
PAPER = {
    "arb_Arab": ("ar", "Arabic", "Afro-Asiatic", "High", 3),
    "ces_Latn": ("cs", "Latin", "Indo-European", "High", 4),
    "deu_Latn": ("de", "Latin", "Indo-European", "High", 5),
    "ell_Grek": ("el", "Greek", "Indo-European", "Mid", 3),
    "fra_Latn": ("fr", "Latin", "Indo-European", "High", 5),
    "heb_Hebr": ("he", "Hebrew", "Afro-Asiatic", "Mid", 3),
    "hin_Deva": ("hi", "Devanagari", "Indo-European", "High", 4),
    "ind_Latn": ("id", "Latin", "Austronesian", "Mid", 3),
    "ita_Latn": ("it", "Latin", "Indo-European", "High", 4),
    "jpn_Jpan": ("ja", "Japanese", "Japonic", "High", 5),
    "kor_Hang": ("ko", "Hangul", "Koreanic", "Mid", 4),
    "nld_Latn": ("nl", "Latin", "Indo-European", "High", 4),
    "pes_Arab": ("fa", "Arabic", "Indo-European", "High", 4),
    "pol_Latn": ("pl", "Latin", "Indo-European", "High", 4),
    "por_Latn": ("pt", "Latin", "Indo-European", "High", 4),
    "ron_Latn": ("ro", "Latin", "Indo-European", "Mid", 3),
    "rus_Cyrl": ("ru", "Cyrillic", "Indo-European", "High", 4),
    "spa_Latn": ("es", "Latin", "Indo-European", "High", 5),
    "tur_Latn": ("tr", "Latin", "Turkic", "High", 4),
    "ukr_Cyrl": ("uk", "Cyrillic", "Indo-European", "Mid", 3),
    "vie_Latn": ("vi", "Latin", "Austroasiatic", "High", 4),
    "zho_Hans": ("zh", "Hans", "Sino-Tibetan", "High", 4),
    "zho_Hant": ("zh", "Hant", "Sino-Tibetan", "High", 0),
}


@pytest.mark.parametrize("code", PAPER)
def test_what_the_paper_says_of_a_language(code: str) -> None:
    language = LANGUAGES[code]
    assert (language.langid, language.script, language.family, language.resource, language.joshi) == PAPER[code]


def test_every_language_is_filled() -> None:
    for code, language in LANGUAGES.items():
        assert language.code == code == language.nllb
        assert all(value or name == "joshi" for name, value in asdict(language).items())
        assert language.resource in {"High", "Mid", "Low"}
        assert 0 <= language.joshi <= 5
        assert 0.2 <= language.length <= 2
    assert LANGUAGES[ENGLISH].length == 1
    for name in ("code", "name", "autonym", "google", "nllb"):
        assert len({getattr(language, name) for language in LANGUAGES.values()}) == len(LANGUAGES), name


def test_the_codes_for_google_are_its_own() -> None:
    own = {"heb_Hebr": "iw", "zho_Hans": "zh-CN", "zho_Hant": "zh-TW"}
    found = {code: LANGUAGES[code].google for code in PAPER}
    assert {code: google for code, google in found.items() if google != LANGUAGES[code].langid} == own


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_is_near_by_any_of_its_names(code: str) -> None:
    language = LANGUAGES[code]
    both = [other.code for other in LANGUAGES.values() if other.langid == language.langid]
    for name in (code, language.name, language.autonym, language.google):
        for written in (name, name.upper(), name.lower()):
            assert similar_languages(written)[0] == code, written
    for name in (code[:3], language.langid, code[:3].upper()):
        assert similar_languages(name)[: len(both)] == both, name


@pytest.mark.parametrize(
    ("written", "codes"),
    [
        ("spa-Latn", ["spa_Latn"]),
        ("spanisch", ["spa_Latn"]),
        ("germann", ["deu_Latn"]),
        ("Ukranian", ["ukr_Cyrl"]),
        ("Spa_Latn", ["spa_Latn"]),
        *((written, ["zho_Hans", "zho_Hant"]) for written in ("chinese", "Chinese", "中文")),
        *((written, []) for written in ("klingon", "", "xx", "!", "\0", "zz_Zzzz")),
    ],
)
def test_a_language_is_near_by_a_slip(written: str, codes: list[str]) -> None:
    assert similar_languages(written) == codes


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_is_found_by_its_codes(code: str) -> None:
    language = LANGUAGES[code]
    for written in (code, code.lower(), code.replace("_", "-")):
        assert language_of(written) is language
    expected = LANGUAGES["zho_Hans"] if code == "zho_Hant" else language  # the first of two scripts
    for written in (code[:3], language.langid, language.langid.upper()):
        assert language_of(written) is expected


@pytest.mark.parametrize("written", ["", "xx", "xyz", "Spanish", "spa_", "_Latn", "deutsch", "de-en"])
def test_no_language_is_found_by_anything_else(written: str) -> None:
    assert language_of(written) is None


def test_the_languages_of_the_paper_and_english_are_there() -> None:
    assert len(PAPER) == 23
    assert {ENGLISH, *PAPER} <= {*LANGUAGES}


@given(st.text(max_size=12))
def test_at_most_three_are_near(written: str) -> None:
    found = similar_languages(written)
    assert len(found) == len({*found}) <= 3
    assert {*found} <= {*LANGUAGES}
