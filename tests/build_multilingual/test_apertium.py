"""Apertium as it is installed here: what its translations keep of a text, and what is said where it cannot help."""

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.masking import mask
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import translator
from pluralbench_calls import Answer, Request, read_ledger
from pluralbench_schemas import LANGUAGES

MODES = Path("/usr/share/apertium/modes")
NEEDED = ("eng-spa", "eng-cat", "cat-fra", "cat-ita", "cat-por")
MISSING = [pair for pair in NEEDED if shutil.which("apertium") is None or not (MODES / f"{pair}.mode").is_file()]
needs_apertium = pytest.mark.skipif(bool(MISSING), reason=f"Apertium has no {', '.join(MISSING)} here")
Run = Callable[..., tuple[int, str]]


def ask(texts: Sequence[str], code: str = "spa_Latn") -> list[Answer]:
    """What Apertium answers, in one message."""
    who = translator(TranslatorTable(name="apertium"), ConnectionTable())
    requests = [Request("translation", who.provider, who.model, who.body(text, LANGUAGES[code])) for text in texts]

    async def asked() -> list[Answer]:
        async with who:
            return [answer async for part in who.send_packed(requests) for answer in part]

    return asyncio.run(asked())


def translated(text: str, code: str = "spa_Latn") -> str:
    (found,) = all_translated([text], code)
    return found


def all_translated(texts: Sequence[str], code: str = "spa_Latn") -> list[str]:
    """Each text's translation; all are in one message, since Apertium takes half a second to start."""
    answers = ask(texts, code)
    assert {answer.outcome for answer in answers} == {"answer"}
    return [answer.text for answer in answers]


@needs_apertium
@pytest.mark.parametrize(
    ("code", "model", "word"),
    [
        ("spa_Latn", "apertium eng-spa", "casa"),
        ("fra_Latn", "apertium eng-cat, cat-fra", "maison"),
        ("ita_Latn", "apertium eng-cat, cat-ita", "casa"),
        ("por_Latn", "apertium eng-cat, cat-por", "casa"),
    ],
)
def test_the_shortest_way_is_taken_and_named(code: str, model: str, word: str) -> None:
    (answer,) = ask(["The house is red."], code)
    assert (answer.model, answer.outcome, answer.provider, answer.prompt_tokens) == (model, "answer", "apertium", 17)
    assert word in answer.text
    assert answer.text.endswith(".")


LAYOUT = """\
The house is red.

The cat is white, and the dog is black:

- the red house is big.
- the white cat is small.

    1. the indented line is long.
\tThe line with a tab is short.
* The star is bright.


The end is here."""


@needs_apertium
@pytest.mark.parametrize("code", ["spa_Latn", "por_Latn"])
def test_lines_bullets_and_final_stops_are_kept(code: str) -> None:
    before, after = LAYOUT.split("\n"), translated(LAYOUT, code).split("\n")
    assert len(after) == len(before)
    for english, other in zip(before, after, strict=True):
        assert bool(english.strip()) == bool(other.strip())
        for start in ("- ", "    1. ", "\t", "* "):
            assert english.startswith(start) == other.startswith(start), other
        assert english.rstrip()[-1:] == other.rstrip()[-1:], other


@needs_apertium
def test_a_stop_is_neither_added_nor_taken_away() -> None:
    texts = [f"The house{stop}" for stop in ("", ".", "?", "!", ":", " …")]
    assert all_translated(texts) == [text.replace("The house", "La casa") for text in texts]


@needs_apertium
@pytest.mark.parametrize("code", ["spa_Latn", "fra_Latn"])
def test_marks_survive(code: str) -> None:
    text = (
        "Send the letter to a.b@c.example before 10:30, open https://example.org/a?b=1, run `make all`, and pay "
        "$x^2$ euros to {name}.\n\n```\ncode here\n```\n\nThe number 7 is [TOPIC] and the number 8 is %s."
    )
    masked = mask(text)
    assert len(masked.spans) >= 9
    restored = masked.restore(translated(masked.text, code))
    for _, span in masked.spans:
        assert span in restored


@needs_apertium
def test_what_means_something_to_apertium_is_text_here() -> None:
    marks = ["^", "$", "\\", "/", "@", "#", "*", "<b>", "{ }", "~", "_", "|", "^7/8<9>$", "\\@", "[", "]", "[]", "\\["]
    texts = [f"The house {mark} and the cat" for mark in marks]
    assert all_translated(texts) == [f"La casa {mark} y el gato" for mark in marks]


@needs_apertium
def test_other_scripts_and_its_own_end_mark_pass() -> None:
    text = "The house 家 дом بيت 👩‍👩‍👧 and the cat"
    assert translated(text) == "La casa 家 дом بيت 👩‍👩‍👧 y el gato"
    assert translated("The house␞ and the cat␞") == "La casa y el gato"


@needs_apertium
def test_what_has_no_text_is_empty() -> None:
    assert [(answer.outcome, answer.text.strip()) for answer in ask(["", " ", "\n\n", "The cat"])] == [
        ("empty", ""),
        ("empty", ""),
        ("empty", ""),
        ("answer", "El gato"),
    ]


@needs_apertium
@pytest.mark.parametrize("code", ["spa_Latn", "ita_Latn"])
def test_words_stay_in_their_line_and_how_texts_are_packed_changes_no_translation(code: str) -> None:
    cats, end = translated("two cats", code), translated("End", code)
    assert translated("- two cats\n\nEnd", code).split("\n") == [f"- {cats}", "", end]
    packed = all_translated(["two cats", "End"], code)
    assert [text.lower() for text in packed] == [cats.lower(), end.lower()]


@needs_apertium
def test_a_language_without_a_way() -> None:
    with pytest.raises(UnsupportedLanguage) as caught:
        ask(["The house"], "jpn_Jpan")
    message = str(caught.value)
    assert message.startswith("Apertium has no way from English to 'jpn' here; it has ")
    assert message.endswith(": install another pair, or choose another translator.")
    named = (
        message.removeprefix("Apertium has no way from English to 'jpn' here; it has ").partition(":")[0].split(", ")
    )
    assert {"fra", "ita", "por", "spa"} <= {*named}
    assert named == sorted(named)
    assert "eng" not in named


def pairs(folder: Path) -> Path:
    rows = [
        {
            "id": 1,
            "prompt": "How do I bake a loaf of bread at home?",
            "chosen": "Mix the flour with the water.\n\n- Wait for 2 hours.\n- Bake it in the oven at 220 degrees.",
            "rejected": "You can buy bread in the shop. It is good bread.",
            "subset": "chat",
        },
        {
            "id": 2,
            "prompt": "Write a function that adds two numbers.",
            "chosen": "def add(a, b):\n    return a + b",
            "rejected": "def add(a, b):\n    return a - b",
            "subset": "hep-python",
        },
    ]
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@needs_apertium
def test_a_build_of_two_languages(run: Run, tmp_path: Path) -> None:
    codes = ["spa_Latn", "ita_Latn"]
    words = [
        "--source",
        pairs(tmp_path),
        "--translator",
        "apertium",
        *(word for code in codes for word in ("--language", code)),
    ]
    status, said = run(*words, "--out", tmp_path / "out")
    assert status == 0, said
    for code in codes:
        made = pl.read_parquet(tmp_path / f"out/data/{code}/test.parquet")
        assert made["id"].to_list() == [1, 2]
        assert made["chosen"][1] == "def add(a, b):\n    return a + b"
        assert made["chosen"][0].count("\n- ") == 2
        assert "220" in made["chosen"][0]
    assert set(read_ledger(tmp_path / "out/provenance/ledger.parquet")["provider"]) == {"apertium"}


def test_not_installed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = [
        "--source",
        pairs(tmp_path),
        "--translator",
        "apertium",
        "--language",
        "spa_Latn",
        "--out",
        tmp_path / "out",
    ]
    assert run(*words) == (
        2,
        "Error: Apertium is not installed: `apt install apertium apertium-eng-spa`, or another pair.\n",
    )
    assert not (tmp_path / "out.work").exists()


@pytest.mark.parametrize(
    "table", [TranslatorTable(name="apertium", model="m"), TranslatorTable(name="apertium", glossary="g")]
)
def test_it_has_neither_models_nor_glossaries(table: TranslatorTable) -> None:
    with pytest.raises(TranslatorError) as caught:
        translator(table, ConnectionTable())
    assert str(caught.value) == "Apertium has neither models nor glossaries; leave them out."


@needs_apertium
def test_a_pair_that_breaks_says_so(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "apertium").write_text(
        '#!/bin/sh\n[ "$1" = -l ] && echo eng-spa && exit 0\ncat > /dev/null\necho "Error: no data" >&2\nexit 1\n',
        encoding="utf-8",
    )
    (broken / "apertium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken}:/usr/bin:/bin")
    words = [
        "--source",
        pairs(tmp_path),
        "--translator",
        "apertium",
        "--language",
        "spa_Latn",
        "--out",
        tmp_path / "out",
    ]
    assert run(*words) == (
        2,
        "Error: Apertium's eng-spa answered 0 lines for 7 sent (Error: no data). 0 of 4 texts in spa_Latn are "
        "recorded; run the same command again to go on.\n",
    )
