"""What is wrong with a translation: each reason, with sentences written for it in the 23 languages of the paper."""

import tomllib
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from build_multilingual.checks import find_problems
from build_multilingual.language_id import identify
from build_multilingual.masking import mask
from build_multilingual.recipe import RECIPES, ChecksTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_schemas import LANGUAGES
from py3langid.langid import MODEL_FILE, LanguageIdentifier

WRITTEN = tomllib.loads((Path(__file__).parent / "translations.toml").read_text(encoding="utf-8"))
BRIDGE: str = WRITTEN["english"]
TRANSLATIONS: dict[str, str] = WRITTEN["translations"]
IDENTIFIER = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
LIMITS = ChecksTable()
ANY_LENGTH = ChecksTable(shortest=0.001, longest=1000.0)


def problem(english: str, translated: str, code: str, limits: ChecksTable = LIMITS) -> str:
    [found] = find_problems([(mask(english), translated)], LANGUAGES[code], limits)
    return found


def name(code: str) -> str:
    """How a reason calls a language, of which Chinese is one."""
    return LANGUAGES[code].short_name


def test_every_language_of_the_paper_has_a_translation() -> None:
    paper = tomllib.loads((RECIPES / "paper.toml").read_text(encoding="utf-8"))
    assert TRANSLATIONS.keys() == {*paper["languages"]}


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_translation_into_another_language_is_named(code: str) -> None:
    for claimed in TRANSLATIONS:
        result = problem(BRIDGE, TRANSLATIONS[code], claimed, ANY_LENGTH)
        if claimed == code:
            assert result == ""
        elif name(claimed) == "Chinese" == name(code):
            assert result == "in the other Chinese script"
        else:
            assert result == f"reads as {name(code)}", claimed


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_english_that_is_left_is_named(code: str) -> None:
    assert problem(BRIDGE, BRIDGE, code) == "unchanged"
    assert problem(BRIDGE, BRIDGE.upper(), code) == "unchanged"
    assert (
        problem(BRIDGE, BRIDGE.replace("Monday", "2.").replace("the ", "the… "), code, ANY_LENGTH) == "reads as English"
    )


@pytest.mark.parametrize(("code", "other"), list(permutations(("zho_Hans", "zho_Hant"))))
def test_chinese_of_two_scripts(code: str, other: str) -> None:
    half = TRANSLATIONS[code].partition("。")[0] + "。" + TRANSLATIONS[other].partition("。")[2]
    assert problem(BRIDGE, half, code) == "in both Chinese scripts"
    assert problem("Yes.", {"zho_Hans": "對嗎？", "zho_Hant": "对吗？"}[code], code) == "in the other Chinese script"
    assert problem("The book.", "大山小水", code) == ""  # as it is written in both


def test_from_how_many_letters_the_language_is_judged() -> None:
    spanish, japanese = TRANSLATIONS["spa_Latn"], TRANSLATIONS["jpn_Jpan"]
    least = ChecksTable(shortest=0.001, longest=1000.0, least_characters_langid=60)
    assert problem(BRIDGE, first_letters(spanish, 59), "deu_Latn", least) == ""
    assert problem(BRIDGE, first_letters(spanish, 60), "deu_Latn", least) == "reads as Spanish"
    for claimed in ("kor_Hang", "zho_Hans", "zho_Hant"):
        assert problem(BRIDGE, first_letters(japanese, 20), claimed, least) == "reads as Japanese"
        assert not problem(BRIDGE, first_letters(japanese, 19), claimed, least).startswith("reads as")


def first_letters(text: str, count: int) -> str:
    """The beginning of a text up to its `count`th character that is no blank."""
    places = [place for place, character in enumerate(text) if not character.isspace()]
    return text[: places[count - 1] + 1]


@pytest.mark.parametrize("code", ["deu_Latn", "jpn_Jpan", "kor_Hang", "zho_Hant"])
def test_the_length_that_is_just_right(code: str) -> None:
    usual = LANGUAGES[code].length
    english = "word " * 50  # 200 letters
    letter = TRANSLATIONS[code].strip()[0]
    limits = ChecksTable(shortest=0.5, longest=2.0, least_characters_langid=10_000)
    for factor, reason in ((0.48, "too short"), (0.52, ""), (1.0, ""), (1.96, ""), (2.04, "too long")):
        assert problem(english, letter * round(200 * usual * factor), code, limits) == reason, factor


@pytest.mark.parametrize(
    ("english", "translated", "reason"),
    [
        ("Good morning.", "", "empty"),
        ("Good morning.", " \n\u00a0", "empty"),
        ("Good morning.", "… 1!", "no letters"),
        ("Good morning.", "_", "no letters"),
        ("Good morning.", "Good  Morning!", "unchanged"),
        ("Good morning.", "Buenos días.", ""),
        # What has to survive is no reason to call a text unchanged, nor is it counted.
        ("See `print(x)` and https://example.org/a.", "Vea y.", ""),
        ("See `print(x)` and https://example.org/a.", "See and", "unchanged"),
        # Nothing to translate, nothing to be wrong.
        ("", "", ""),
        ("3 + 4 = 7", "", ""),
        ("`code`", "", ""),
        ("Paris", "Paris", ""),
        ("Shakespeare.", "Shakespeare", ""),
        ("OK", "ok", ""),
    ],
)
def test_what_is_wrong_beside_language_and_length(english: str, translated: str, reason: str) -> None:
    assert problem(english, translated, "spa_Latn") == reason


@pytest.mark.parametrize("english", ["Marie Curie", "New York", "William Shakespeare, London", "Windows XP", "Élise"])
def test_a_name_may_stay(english: str) -> None:
    assert problem(english, english, "deu_Latn") == ""


@pytest.mark.parametrize("english", ["Marie's tea", "Good morning", "The Old Man And The Sea", "e-mail it"])
def test_what_is_no_name_may_not_stay(english: str) -> None:
    assert problem(english, english, "deu_Latn") == "unchanged"


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.text(st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=60)
def test_any_two_texts_are_judged(english: str, translated: str) -> None:
    reasons: Any = ("", "empty", "no letters", "unchanged", "too short", "too long", "in the other Chinese script")
    for code in ("vie_Latn", "zho_Hans"):
        result = problem(english, translated, code)
        assert result in {*reasons, "in both Chinese scripts"} or result.startswith("reads as ")


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda text, start, size: text[start : start + size],
                st.sampled_from([BRIDGE, BRIDGE.upper(), *TRANSLATIONS.values()]),
                st.integers(0, 80),
                st.integers(0, 200),
            ),
            st.text(max_size=40),
        ),
        max_size=8,
    )
)
def test_languages_are_those_of_py3langid(texts: list[str]) -> None:
    IDENTIFIER.set_languages(sorted({language.langid for language in LANGUAGES.values()}))
    expected = [IDENTIFIER.classify(" ".join(text.split())) for text in texts]
    found = identify(texts)
    assert [confidence for _, confidence in found] == pytest.approx(
        [confidence for _, confidence in expected], abs=1e-4
    )
    for (code, confidence), (own, _) in zip(found, expected, strict=True):
        assert code == own or confidence < 0.51
