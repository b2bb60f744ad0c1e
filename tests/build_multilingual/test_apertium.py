"""Apertium as it is installed here: what its translations keep of a text, and what is said where it cannot help."""

import asyncio
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from build_multilingual.errors import UnsupportedLanguage
from build_multilingual.masking import mask
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import translator
from case_marks import heavy
from pluralbench_calls import Answer, Request, read_ledger
from pluralbench_schemas import LANGUAGES
from written_tables import write

MODES = Path("/usr/share/apertium/modes")
NEEDED = ("eng-spa", "eng-cat", "cat-ita")
MISSING = [pair for pair in NEEDED if shutil.which("apertium") is None or not (MODES / f"{pair}.mode").is_file()]
needs_apertium = pytest.mark.skipif(bool(MISSING), reason=f"Apertium has no {', '.join(MISSING)} here")
# There is one at once, and one by way of Catalan; further languages would be more of the same, and slower.
ways = pytest.mark.parametrize("code", ["spa_Latn", pytest.param("ita_Latn", marks=pytest.mark.heavy)])
Run = Callable[..., tuple[int, str]]


def ask(texts: Sequence[str], code: str = "spa_Latn") -> list[Answer]:
    """What Apertium answers, in one message."""
    who = translator(TranslatorTable(name="apertium"), ConnectionTable())
    requests = [Request("translation", who.provider, who.model, who.body(text, LANGUAGES[code])) for text in texts]

    async def asked() -> list[Answer]:
        async with who:
            return [answer async for part in who.send_packed(requests) for answer in part]

    return asyncio.run(asked())


def translated(*texts: str, code: str = "spa_Latn") -> list[str]:
    """Each text's translation; all are in one message, since Apertium takes half a second to start."""
    answers = ask(texts, code)
    assert {answer.outcome for answer in answers} == {"answer"}
    return [answer.text for answer in answers]


@needs_apertium
@pytest.mark.parametrize("code", ["spa_Latn", *heavy("ita_Latn")])
def test_the_shortest_way_is_taken_and_named(code: str) -> None:
    (answer,) = ask(["The house is red."], code)
    model = {"spa_Latn": "apertium eng-spa", "ita_Latn": "apertium eng-cat, cat-ita"}[code]
    assert (answer.model, answer.outcome, answer.provider, answer.prompt_tokens) == (model, "answer", "apertium", 17)
    assert "casa" in answer.text
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
@ways
def test_lines_bullets_and_final_stops_are_kept(code: str) -> None:
    [result] = translated(LAYOUT, code=code)
    before, after = LAYOUT.split("\n"), result.split("\n")
    assert len(after) == len(before)
    for english, other in zip(before, after, strict=True):
        assert bool(english.strip()) == bool(other.strip())
        for start in ("- ", "    1. ", "\t", "* "):
            assert english.startswith(start) == other.startswith(start), other
        assert english.rstrip()[-1:] == other.rstrip()[-1:], other


@needs_apertium
@ways
def test_marks_survive(code: str) -> None:
    text = (
        "Send the letter to a.b@c.example before 10:30, open https://example.org/a?b=1, run `make all`, and pay "
        "$x^2$ euros to {name}.\n\n```\ncode here\n```\n\nThe number 7 is [TOPIC] and the number 8 is %s."
    )
    masked = mask(text)
    assert len(masked.spans) >= 9
    [result] = translated(masked.text, code=code)
    restored = masked.restore(result)
    assert all(span in restored for _, span in masked.spans)


@needs_apertium
def test_a_language_without_a_way() -> None:
    sentence = (
        r"Apertium cannot translate from English to 'jpn' here \(installed: (.*)\); install another pair, or choose"
    )
    with pytest.raises(UnsupportedLanguage, match=sentence) as caught:
        ask(["The house"], "jpn_Jpan")
    named = re.findall(sentence, str(caught.value))[0].split(", ")
    assert {"ita", "spa"} <= {*named}
    assert named == sorted(named)
    assert "eng" not in named


def build(run: Run, folder: Path) -> tuple[int, str]:
    """Have two rows translated into Spanish."""
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
    words = ("--source", write(folder / "pairs.jsonl", rows), "--translator", "apertium", "--language", "spa_Latn")
    return run(*words, "--out", folder / "out")


@needs_apertium
def test_a_build(run: Run, tmp_path: Path) -> None:
    status, output = build(run, tmp_path)
    assert status == 0, output
    made = pl.read_parquet(tmp_path / "out/data/spa_Latn/test.parquet")
    assert made["id"].to_list() == [1, 2]
    assert made["chosen"][1] == "def add(a, b):\n    return a + b"
    assert made["chosen"][0].count("\n- ") == 2
    assert "220" in made["chosen"][0]
    assert set(read_ledger(tmp_path / "out/provenance/ledger.parquet")["provider"]) == {"apertium"}


def test_not_installed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build(run, tmp_path) == (
        2,
        "Error: Apertium is not installed: `apt install apertium apertium-eng-spa`, or another pair.\n",
    )
    assert not (tmp_path / "out.work").exists()
