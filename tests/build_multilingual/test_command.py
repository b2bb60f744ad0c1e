"""The command `build-multilingual`: what works says what to do next, and what fails says so in one sentence.

Answers come from a ledger that a made-up translator filled.
"""

import re
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self

import polars as pl
import pytest
import tomli_w
from build_multilingual.recipe import ChecksTable, ConnectionTable, SourceTable, TranslatorTable
from build_multilingual.source import load
from build_multilingual.translate import TranslationContext, mask_all, translate
from build_multilingual.translators.apertium import Apertium
from commands import refused_with
from pluralbench_calls import Answer, Ledger, Limits, Request
from pluralbench_release import RECIPE, rebuild, verify
from pluralbench_schemas import LANGUAGES
from releases import files_of
from written_tables import write

Run = Callable[..., tuple[int, str]]


def rows(release: Path, config: str) -> dict[int, dict[str, Any]]:
    frame = pl.read_parquet(release / f"data/{config}/test.parquet")
    return {row["id"]: row for row in frame.to_dicts()}


# A source of five rows. What the translator below makes of it fails a check where a text says so.
PAIRS = [
    {"id": 3, "prompt": "Is it `a`?", "chosen": "Yes, it is.", "rejected": "No, it is not.", "subset": "donotanswer"},
    {"id": 5, "prompt": "How many?", "chosen": "There are 7.", "rejected": "A lot.", "subset": "llmbar-natural"},
    {"id": 8, "prompt": "Empty in Spanish?", "chosen": "Maybe.", "rejected": "Never so.", "subset": "math-prm"},
    {"id": 9, "prompt": "Write f.", "chosen": "def f(): return 1", "rejected": "def f(): ...", "subset": "hep-go"},
    {"id": 12, "prompt": "Same in German?", "chosen": "Alike.", "rejected": "Equal.", "subset": "mt-bench-easy"},
]


class Recorded(Apertium):
    """Apertium by its requests; in answers each word has a letter more."""

    async def __aenter__(self) -> Self:
        return self

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        yield [Answer.to(request, "answer", self.translated_text(request), model="by hand") for request in requests]

    @staticmethod
    def translated_text(request: Request) -> str:
        text, target = str(request.body["text"]), request.body["target"]
        if text == "Empty in Spanish?" and target == "spa":
            return "Empty in Spanish?"
        if text in {"Alike.", "Equal."} and target == "deu":
            return "Gleich."
        return " ".join(f"u{word}" if word[:1].isalpha() else word for word in text.split(" "))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write(tmp_path / "pairs.jsonl", PAIRS)


@pytest.fixture
def recorded(tmp_path: Path, pairs: Path) -> Path:
    """A ledger with every answer that a build from `pairs` into Spanish and German asks for."""
    table = SourceTable(location=str(pairs))
    result = load(table).pairs
    with Ledger(tmp_path / "recorded.sqlite") as ledger:
        translator = Recorded(TranslatorTable(name="apertium"), ConnectionTable())
        context = TranslationContext(translator, translator, ledger, Limits(), ChecksTable())
        languages = [LANGUAGES[code] for code in ("spa_Latn", "deu_Latn")]
        list(translate(result, languages, mask_all(result), context, table.prompt_only))
    return tmp_path / "recorded.sqlite"


@pytest.fixture
def words(pairs: Path, recorded: Path) -> list[str | Path]:
    """The options of a build from `pairs` without a translator."""
    return ["--source", pairs, "--language", "spa_Latn", "--language", "deu_Latn", "--replay", recorded]


def decisions(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["id,language,decision,reason", *lines, ""]), encoding="utf-8")
    return path


def test_a_build_from_any_table(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    status, output = run(*words, "--out", tmp_path / "out")
    assert status == 0, output
    assert "29 recorded calls, 0 of them new" in output
    assert "chosen: identical answers" in output
    assert "prompt: unchanged" in output
    assert verify(tmp_path / "out") == []
    for code in ("spa_Latn", "deu_Latn", "eng_Latn"):  # the sample's recipe has English too
        assert list(rows(tmp_path / "out", code)) == [3, 5, 9]
    own = rows(tmp_path / "out", "spa_Latn")[3]
    assert (own["prompt"], own["chosen"], own["category"]) == ("uIs uit `a`?", "uYes, uit uis.", "Safety")
    assert (own["translator"], own["source"]) == ("by hand", "donotanswer")
    assert pl.read_parquet(tmp_path / "out/provenance/dropped.parquet").rows() == [
        (8, "spa_Latn", "check", "prompt: unchanged"),
        (12, "deu_Latn", "check", "chosen: identical answers"),
        (12, "deu_Latn", "check", "rejected: identical answers"),
    ]
    assert pl.read_parquet(tmp_path / "out/provenance/set_aside.parquet")["translation"].to_list() == [
        "Empty in Spanish?",
        "Gleich.",
        "Gleich.",
    ]
    recipe = tomllib.loads((tmp_path / "out" / RECIPE).read_text(encoding="utf-8"))
    assert recipe["translation"]["rated"] == []  # of the sample only its defaults are taken


@pytest.mark.heavy
def test_the_share_of_drops_is_of_all_rows_of_the_source(run: Run, recorded: Path, tmp_path: Path) -> None:
    equal = {"id": 20, "prompt": "Which?", "chosen": "Both.", "rejected": "Both. ", "subset": "donotanswer"}
    source = write(tmp_path / "more.jsonl", [*PAIRS, equal])
    recipe = tmp_path / "recipe.toml"
    values = {"languages": ["spa_Latn", "deu_Latn"], "audit": {"max_drop_share": 0.5}}
    tables = {"source": {"location": str(source)}, "translator": {"name": "apertium"}}
    recipe.write_text(tomli_w.dumps(values | tables), encoding="utf-8")
    status, output = run("--recipe", recipe, "--replay", recorded, "--out", tmp_path / "out")
    assert status == 0, output
    assert list(rows(tmp_path / "out", "spa_Latn")) == [3, 5, 9]


def test_people_decide(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    path = decisions(tmp_path / "d.csv", "8,spa_Latn,keep,fine", "5,,drop,English grammar", "12,deu_Latn,keep,", "9,,,")
    out = tmp_path / "out"
    status, output = run(*words, "--decisions", path, "--out", out)
    assert (status, "English grammar" in output) == (0, True)
    assert list(rows(out, "spa_Latn")) == list(rows(out, "deu_Latn")) == [3, 8, 9]
    assert rows(out, "spa_Latn")[8]["prompt"] == "Empty in Spanish?"
    assert pl.read_parquet(out / "provenance/decisions.parquet").height == 3
    assert verify(out) == []
    path.unlink()  # a rebuild takes them from the release
    assert not any(rebuild(out, tmp_path / "again", sources=[str(words[1])]))
    assert files_of(tmp_path / "again")["provenance/decisions.parquet"] == files_of(out)["provenance/decisions.parquet"]


@pytest.mark.heavy
def test_decisions_are_bound_by_their_content(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    out, path = tmp_path / "out", decisions(tmp_path / "d.csv", "5,,drop,grammar", "3,spa_Latn,keep,")
    assert run(*words, "--decisions", path, "--out", out)[0] == 0
    before = files_of(out)
    moved = decisions(tmp_path / "moved.csv", "3,spa_Latn,keep,", "9,,,nothing decided", "5,,drop,grammar")
    assert run(*words, "--decisions", moved, "--out", out)[0] == 0
    assert {name: digest for name, digest in files_of(out).items() if name.startswith("data")} == {
        name: digest for name, digest in before.items() if name.startswith("data")
    }
    before = files_of(out)
    decisions(path, "5,,drop,grammar", "3,spa_Latn,drop,")
    status, output = run(*words, "--out", out)  # forgotten
    sentence = r"Error: .*out was made with other settings \(decisions_digest [0-9a-f]{8}…, now none\); .*"
    assert (status, bool(re.fullmatch(sentence, output.strip()))) == (2, True), output
    assert files_of(out) == before
    refused_with(
        run("--recipe", out / RECIPE, *words[:2], "--replay", out, "--decisions", path, "--out", tmp_path / "other"),
        "The decisions do not match the recipe's `filter.decisions_digest`.",
    )
    status, output = run(*words, "--decisions", path, "--out", out)
    assert (status, ", 0 of them new" in output) == (0, True), output
    assert list(rows(out, "deu_Latn")) == [9]


def test_decisions_that_leave_no_row_are_refused(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    path = decisions(tmp_path / "d.csv", "3,,drop,", "5,,drop,", "9,,drop,no code")
    refused_with(
        run(*words, "--decisions", path, "--out", tmp_path / "out"),
        "No row is left in spa_Latn: 5 of 5 are dropped, first id 3 (dropped by a person).",
    )
    assert not (tmp_path / "out").exists()


def test_review_sheets_are_written_and_read_again(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    review = tmp_path / "review"
    status, output = run(*words, "--export-review", review, "--out", tmp_path / "out")
    assert status == 0
    assert f"Review sheet: {review / 'spa_Latn.csv'} (its key is in {review / 'keys'})" in output
    sheet = pl.read_csv(review / "spa_Latn.csv", infer_schema=False)
    assert sheet["id"].to_list() == ["3", "5", "8", "9", "12"]  # what failed a check is there too
    assert sheet.filter(id="8")["check"].to_list() == ["prompt: unchanged"]
    decided = pl.when(pl.col("id") == "8").then(pl.lit("keep")).when(pl.col("id") == "3").then(pl.lit("drop"))
    sheet.with_columns(decision=decided).write_csv(tmp_path / "filled.csv", include_bom=True)
    assert run(*words, "--decisions", tmp_path / "filled.csv", "--out", tmp_path / "decided")[0] == 0
    assert list(rows(tmp_path / "decided", "spa_Latn")) == [5, 8, 9]


@pytest.mark.parametrize("given", [["--rated", "bad.jsonl"], ["--export-review", "."]])
def test_what_can_be_known_before_is_said_before(
    run: Run, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "bad.jsonl").write_text('{"source": "x"}\n', encoding="utf-8")
    status, output = run("--source", pairs, "--language", "spa_Latn", *given, "--out", tmp_path / "out")
    assert (status, "Apertium is not installed" in output) == (2, False)
    assert not list(tmp_path.glob("out*"))
