"""The command `build-multilingual`: what works says what to do next, and what fails says so in one sentence.

Answers come from a ledger that a made-up translator filled, or from a script that stands where Apertium would.
"""

import csv
import hashlib
import json
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self

import polars as pl
import pytest
import tomli_w
from build_multilingual.checks import ChecksTable
from build_multilingual.recipe import ConnectionTable, SourceTable, TranslatorTable
from build_multilingual.source import SAMPLE, load
from build_multilingual.translate import Asking, mask_all, translate
from build_multilingual.translators.apertium import Apertium
from pluralbench_calls import Answer, Ledger, Limits, Request
from pluralbench_release import RECIPE, read_manifest, rebuild, verify
from pluralbench_schemas import LANGUAGES

Run = Callable[..., tuple[int, str]]
CLOSED = "http://127.0.0.1:9"
RECIPES = SAMPLE.parent / "recipes"


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(result: tuple[int, str], sentence: str) -> None:
    """Exit status 2 and this sentence, and nothing else."""
    status, said = result
    assert status == 2, said
    assert said == f"Error: {sentence}\n"


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
        yield [Answer.to(request, "answer", self.said(request), model="by hand") for request in requests]

    @staticmethod
    def said(request: Request) -> str:
        text, target = str(request.body["text"]), request.body["target"]
        if text == "Empty in Spanish?" and target == "spa":
            return "Empty in Spanish?"
        if text in {"Alike.", "Equal."} and target == "deu":
            return "Gleich."
        return " ".join(f"u{word}" if word[:1].isalpha() else word for word in text.split(" "))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS), encoding="utf-8")
    return path


@pytest.fixture
def recorded(tmp_path: Path, pairs: Path) -> Path:
    """A ledger with every answer that a build from `pairs` into Spanish and German asks for."""
    table = SourceTable(location=str(pairs))
    found = load(table).pairs
    with Ledger(tmp_path / "recorded.sqlite") as ledger:
        asking = Asking(Recorded(), Recorded(), ledger, Limits(), ChecksTable())
        languages = [LANGUAGES[code] for code in ("spa_Latn", "deu_Latn")]
        list(translate(found, languages, mask_all(found), asking, table.prompt_only))
    return tmp_path / "recorded.sqlite"


@pytest.fixture
def words(pairs: Path, recorded: Path) -> list[str | Path]:
    """The options of a build from `pairs` without a translator."""
    return ["--source", pairs, "--language", "spa_Latn", "--language", "deu_Latn", "--replay", recorded]


def decisions(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["id,language,decision,reason", *lines, ""]), encoding="utf-8")
    return path


def test_help_shows_examples_and_every_option(run: Run) -> None:
    status, shown = run("--help")
    assert status == 0
    text = " ".join(shown.split())
    for part in (
        "Examples: build-multilingual",
        "--source pairs.jsonl --language deu_Latn --translator google --project mine --out dist/german",
        "--recipe translation --rated wmt21.jsonl --per-level 50",
        "apertium, google, nllb",
        "`ORG/NAME@REVISION`",
        "--review-rows",
        "BETTER/EASY/HARD",
    ):
        assert part in text


def test_a_build_from_any_table(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    status, said = run(*words, "--out", tmp_path / "out")
    assert status == 0, said
    assert "29 recorded calls, 0 of them made now" in said
    assert "chosen: identical answers" in said
    assert "prompt: unchanged" in said
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


def test_a_row_may_go_in_its_language_alone(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    assert run(*words, "--drop", "language", "--out", tmp_path / "out")[0] == 0
    assert list(rows(tmp_path / "out", "spa_Latn")) == [3, 5, 9, 12]
    assert list(rows(tmp_path / "out", "deu_Latn")) == [3, 5, 8, 9]
    assert list(rows(tmp_path / "out", "eng_Latn")) == [3, 5, 8, 9, 12]
    assert not any(rebuild(tmp_path / "out", tmp_path / "again", sources=[str(words[1])]))


def test_people_decide(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    path = decisions(tmp_path / "d.csv", "8,spa_Latn,keep,fine", "5,,drop,English grammar", "12,deu_Latn,keep,", "9,,,")
    out = tmp_path / "out"
    status, said = run(*words, "--decisions", path, "--out", out)
    assert (status, "English grammar" in said) == (0, True)
    assert list(rows(out, "spa_Latn")) == list(rows(out, "deu_Latn")) == [3, 8, 9]
    assert rows(out, "spa_Latn")[8]["prompt"] == "Empty in Spanish?"
    assert pl.read_parquet(out / "provenance/decisions.parquet").height == 3
    assert verify(out) == []
    path.unlink()  # a rebuild takes them from the release
    assert not any(rebuild(out, tmp_path / "again", sources=[str(words[1])]))
    assert files(tmp_path / "again")["provenance/decisions.parquet"] == files(out)["provenance/decisions.parquet"]


@pytest.mark.parametrize("language", ["", "all", "eng_Latn"])
def test_a_row_that_a_person_drops_altogether_goes_from_the_source_too(
    run: Run, words: list[str | Path], tmp_path: Path, language: str
) -> None:
    path = decisions(tmp_path / "d.csv", f"5,{language},drop,English grammar")
    assert run(*words, "--drop", "language", "--decisions", path, "--out", tmp_path / "out")[0] == 0
    for code in ("spa_Latn", "deu_Latn", "eng_Latn"):
        assert 5 not in rows(tmp_path / "out", code), code


def test_decisions_are_bound_by_their_content(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    out, path = tmp_path / "out", decisions(tmp_path / "d.csv", "5,,drop,grammar", "3,spa_Latn,keep,")
    assert run(*words, "--decisions", path, "--out", out)[0] == 0
    before = files(out)
    moved = decisions(tmp_path / "moved.csv", "3,spa_Latn,keep,", "9,,,nothing decided", "5,,drop,grammar")
    assert run(*words, "--decisions", moved, "--out", out)[0] == 0
    assert {name: digest for name, digest in files(out).items() if name.startswith("data")} == {
        name: digest for name, digest in before.items() if name.startswith("data")
    }
    before = files(out)
    decisions(path, "5,,drop,grammar", "3,spa_Latn,drop,")
    for words_of_others, now in ((["--decisions", path], "[0-9a-f]{8}…"), ([], "none")):
        status, said = run(*words, *words_of_others, "--out", out)
        sentence = rf"Error: .*out was made with other settings \(decisions_digest [0-9a-f]{{8}}…, now {now}\); give .*"
        assert (status, bool(re.fullmatch(sentence, said.strip()))) == (2, True), said
    assert files(out) == before
    refused(
        run("--recipe", out / RECIPE, *words[:2], "--replay", out, "--decisions", path, "--out", tmp_path / "other"),
        "The decisions are not those that the recipe names by `filter.decisions_digest`.",
    )
    assert run(*words, "--decisions", path, "--out", out, "--fresh")[0] == 0
    assert list(rows(out, "deu_Latn")) == [9]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("4,,drop,", "The decisions name the id 4, which the source does not have."),
        ("5,spa_Latn,keep,\n5,,drop,", "The decisions both keep and drop id 5 in spa_Latn."),
        ("5,spanish,drop,", "PATH: there is no language 'spanish' (id 5); did you mean spa_Latn?"),
        ("5,,remove,", "PATH: the decision 'remove' on id 5 is neither drop nor keep."),
        (
            "3,,drop,\n5,,drop,\n9,,drop,no code",
            "No row is left in spa_Latn: 5 of 5 are dropped, first id 3 (dropped by a person).",
        ),
    ],
)
def test_decisions_that_cannot_be_followed(
    run: Run, words: list[str | Path], tmp_path: Path, line: str, sentence: str
) -> None:
    path = decisions(tmp_path / "d.csv", line)
    refused(run(*words, "--decisions", path, "--out", tmp_path / "out"), sentence.replace("PATH", str(path)))
    assert not (tmp_path / "out").exists()


def test_review_sheets_are_written_and_read_again(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    review = tmp_path / "review"
    status, said = run(*words, "--export-review", review, "--out", tmp_path / "out")
    assert status == 0
    assert f"Review sheet: {review / 'spa_Latn.csv'} (its key is in {review / 'keys'})" in said
    sheet = pl.read_csv(review / "spa_Latn.csv", infer_schema=False)
    assert sheet["id"].to_list() == ["3", "5", "8", "9", "12"]  # what failed a check is there too
    assert sheet.filter(id="8")["check"].to_list() == ["prompt: unchanged"]
    decided = pl.when(pl.col("id") == "8").then(pl.lit("keep")).when(pl.col("id") == "3").then(pl.lit("drop"))
    sheet.with_columns(decision=decided).write_csv(tmp_path / "filled.csv", include_bom=True)
    assert run(*words, "--decisions", tmp_path / "filled.csv", "--out", tmp_path / "decided")[0] == 0
    assert list(rows(tmp_path / "decided", "spa_Latn")) == [5, 8, 9]


def test_a_few_rows_for_review_and_a_folder_of_something_else(
    run: Run, words: list[str | Path], tmp_path: Path
) -> None:
    review = tmp_path / "review"
    assert run(*words, "--export-review", review, "--review-rows", "2", "--out", tmp_path / "out")[0] == 0
    for folder in (review, review / "keys"):
        for code in ("spa_Latn", "deu_Latn"):
            with (folder / f"{code}.csv").open(encoding="utf-8-sig", newline="") as file:
                assert len(list(csv.DictReader(file))) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").touch()
    refused(
        run(*words, "--export-review", tmp_path / "mine", "--out", tmp_path / "another"),
        f"{tmp_path / 'mine'} holds files that no review sheets; choose another --export-review.".replace(
            "that no", "that are no"
        ),
    )


def test_a_replay_without_the_answers_sends_nothing(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    more = ["--language", "ita_Latn", "--out", tmp_path / "out"]
    status, said = run(*words, *more)
    assert status == 2
    assert said.startswith(
        "Error: The ledger has no answer for the prompt of 3 in ita_Latn (model apertium at apertium, "
    )
    assert said.endswith("…), and a replay sends nothing. 0 of 13 texts in ita_Latn are recorded.\n")


# What stands for Apertium: it writes what it is asked to a log, and fails while a file `broken` is beside it.
SCRIPT = """#!/bin/sh
here=$(dirname "$0")
if [ "$1" = -l ]; then echo eng-spa; echo spa-por; exit; fi
[ -e "$here/broken" ] && exit 1
while IFS= read -r line; do echo "$line" >> "$here/log"; printf '%s\\n' "u$line"; done
"""


@pytest.fixture
def apertium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script above; returns its log."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "apertium").write_text(SCRIPT, encoding="utf-8")
    (folder / "apertium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "log"


def test_a_build_asks_and_the_same_again_asks_nothing(run: Run, apertium: Path, pairs: Path, tmp_path: Path) -> None:
    words = ["--source", pairs, "--language", "spa_Latn", "--no-add-english", "--out", tmp_path / "out"]
    status, said = run(*words)
    assert (status, "13 recorded calls, 13 of them made now" in said) == (0, True), said
    asked = apertium.read_text(encoding="utf-8").splitlines()
    assert len(asked) == 13
    assert rows(tmp_path / "out", "spa_Latn")[3]["prompt"] == "uIs it `a`?"
    status, said = run(*words)
    assert (status, "13 recorded calls, 0 of them made now" in said) == (0, True)
    status, said = run(*words[:-1], tmp_path / "other", "--reuse", tmp_path / "out", "--language", "por_Latn")
    assert (status, "26 recorded calls, 13 of them made now" in said) == (0, True)
    assert len(apertium.read_text(encoding="utf-8").splitlines()) == 13 + 26  # by way of Spanish
    assert rows(tmp_path / "other", "por_Latn")[5]["translator"] == "apertium eng-spa, spa-por"


def test_a_build_that_was_stopped_goes_on_with_the_same_command(
    run: Run, apertium: Path, pairs: Path, tmp_path: Path
) -> None:
    words = ["--source", pairs, "--language", "spa_Latn", "--no-add-english", "--out", tmp_path / "out"]
    (apertium.parent / "broken").touch()
    status, said = run(*words)
    assert status == 2
    assert said.endswith("0 of 13 texts in spa_Latn are recorded; run the same command again to go on.\n")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists()
    (apertium.parent / "broken").unlink()
    assert run(*words)[0] == 0


def test_the_ceiling_holds_before_anything_is_sent(run: Run, apertium: Path, pairs: Path, tmp_path: Path) -> None:
    words = ["--source", pairs, "--language", "spa_Latn", "--price", "20", "--out", tmp_path / "out"]
    status, said = run(*words, "--max-cost", "0.001")
    assert status == 2
    assert said.startswith("Error: The spending ceiling of $0.00 is reached: $0.0000 is spent and the next call could")
    assert not apertium.exists()
    status, said = run(*words, "--max-cost", "1")
    assert status == 0, said


def test_only_pairs_of_translations(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes((SAMPLE / "translations.jsonl").read_bytes())
    out = tmp_path / "out"
    status, said = run("--recipe", "translation", "--rated", path, "--per-level", "5", "--out", out)
    assert (status, "translation-pairs 0.1.0, 0 recorded calls, 0 of them made now" in said) == (0, True), said
    manifest = read_manifest(out)
    assert [(table.config, table.rows) for table in manifest.tables] == [("translation", 20)]
    assert [source.location for source in manifest.sources] == ["mine.jsonl"]
    assert verify(out) == []
    path.rename(tmp_path / "moved.jsonl")
    assert not any(rebuild(out, tmp_path / "again", sources=[str(tmp_path / "moved.jsonl")]))
    refused(
        run("--recipe", "translation", "--rated", path, "--per-level", "5", "--out", tmp_path / "none"),
        f"There is no file or directory {path}, and a dataset on the Hub is named ORG/NAME.",
    )


def test_a_scale_of_ones_own(run: Run, tmp_path: Path) -> None:
    lines = (SAMPLE / "translations.jsonl").read_text(encoding="utf-8").replace('"score":', '"points":').splitlines()
    (tmp_path / "mine.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["--recipe", "translation", "--rated", tmp_path / "mine.jsonl", "--per-level", "3", "--score", "points"]
    status, said = run(*words, "--out", tmp_path / "out")
    assert status == 2
    assert "the scale of `points` is not known" in said
    assert run(*words, "--scale", "higher/0.25/0.5", "--out", tmp_path / "out")[0] == 0
    [table] = tomllib.loads((tmp_path / "out" / RECIPE).read_text(encoding="utf-8"))["translation"]["rated"]
    assert table["scale"] == {"better": "higher", "easy": 0.25, "hard": 0.5}


SAMPLE_RECIPE, TRANSLATION_RECIPE = (f"Recipe {RECIPES / f'{name}.toml'}: " for name in ("sample", "translation"))
NO_RATED = "says something about rated translations; say where they are with --rated."
MISTAKES: list[tuple[list[str], str]] = [
    (["--recipe", "papre"], "There is no recipe 'papre': give paper, sample, translation or the path of a TOML file."),
    (["--column", "prompt"], "--column 'prompt' is not of the form WHAT=COLUMN, such as prompt=text."),
    (["--column", "=text"], "--column '=text' is not of the form WHAT=COLUMN, such as prompt=text."),
    (["--column", "prompt="], "--column 'prompt=' is not of the form WHAT=COLUMN, such as prompt=text."),
    (
        ["--column", "question=text"],
        f"{SAMPLE_RECIPE}`source.columns`: there is no column `question` to rename; the columns are id, prompt, "
        "chosen, rejected, chosen_model, rejected_model, subset, category.",
    ),
    (["--direction", "zh-en"], f"--direction {NO_RATED}"),
    (["--score", "points"], f"--score {NO_RATED}"),
    (["--scale", "higher/1/2"], f"--scale {NO_RATED}"),
    *(
        (
            ["--rated", "x", "--scale", scale],
            f"--scale '{scale}' is not of the form BETTER/EASY/HARD, such as higher/0.25/0.5.",
        )
        for scale in ("higher", "higher/1", "best/1/2", "higher/1/2/3")
    ),
    (
        ["--rated", "x", "--scale", "higher/a/1"],
        f"{SAMPLE_RECIPE}`translation.rated.0.scale.easy`: Input should be a valid number, unable to parse string as a "
        "number.",
    ),
    (
        ["--rated", "x", "--direction", "zh"],
        f"{SAMPLE_RECIPE}`translation.rated.0.direction`: 'zh' is no direction such as `zh-en`.",
    ),
    (
        ["--rated", "nowhere.jsonl"],
        "There is no file or directory nowhere.jsonl, and a dataset on the Hub is named ORG/NAME.",
    ),
    (
        ["--max-cost", "1"],
        f"{SAMPLE_RECIPE}a `max_cost` needs a `price` under [connection] (or --price) to be reckoned by.",
    ),
    (
        ["--language", "spa_Latn", "--language", "spa_Latn"],
        f"{SAMPLE_RECIPE}`languages`: the language spa_Latn is given twice.",
    ),
    (
        ["--language", "eng_Latn"],
        f"{SAMPLE_RECIPE}`languages`: eng_Latn is not translated into; `english = true` adds the source itself.",
    ),
    (["--language", "spanish"], f"{SAMPLE_RECIPE}`languages`: there is no language 'spanish'; did you mean spa_Latn."),
    (
        ["--language", "zh"],
        f"{SAMPLE_RECIPE}`languages`: there is no language 'zh'; did you mean zho_Hans or zho_Hant.",
    ),
    (
        ["--language", "klingon"],
        f"{SAMPLE_RECIPE}`languages`: there is no language 'klingon'; the languages are those of `languages.toml`.",
    ),
    (
        ["--recipe", "translation"],
        f"{TRANSLATION_RECIPE}nothing is asked for: name `languages`, or rated translations under [translation].",
    ),
    (
        ["--recipe", "translation", "--language", "spa_Latn"],
        f"{TRANSLATION_RECIPE}languages need a `location` under [source] and a `name` under [translator].",
    ),
    (
        ["--recipe", "translation", "--add-english", "--rated", "x"],
        f"{TRANSLATION_RECIPE}`english = true` needs a `location` under [source].",
    ),
    (["--source", "nowhere"], "There is no file or directory nowhere, and a dataset on the Hub is named ORG/NAME."),
    (["--decisions", "nowhere.csv"], "There is no file nowhere.csv with decisions."),
    (["--replay", "nowhere"], "There is no ledger nowhere: no such file."),
    (["--reuse", "nowhere"], "There is no ledger nowhere: no such file."),
]


@pytest.mark.parametrize(("given", "sentence"), MISTAKES)
def test_a_mistake_is_a_sentence_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*given, "--out", "out"), sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--translator", "gogle"], "There is no translator 'gogle'; choose apertium, google, nllb."),
        (["--translator", "_packing"], "There is no translator '_packing'; choose apertium, google, nllb."),
        (["--translator", "apertium:eng-spa"], "Apertium has neither models nor glossaries; leave them out."),
        (
            ["--glossary", "projects/p/locations/l/glossaries/g"],
            "Apertium has neither models nor glossaries; leave them out.",
        ),
        (["--translator", "google"], "Google Cloud Translation wants a project to bill: give --project."),
    ],
)
def test_a_translator_that_cannot_be_is_a_sentence(
    run: Run, pairs: Path, tmp_path: Path, given: list[str], sentence: str
) -> None:
    status, said = run("--source", pairs, *given, "--out", tmp_path / "out")
    assert (status, said.startswith(f"Error: {sentence[:-1]}")) == (2, True), said
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


@pytest.mark.parametrize("given", [["--translator", "gogle"], ["--column", "prompt=question"]])
def test_a_mistake_before_the_first_call_binds_nothing(run: Run, tmp_path: Path, given: list[str]) -> None:
    assert run("--limit", "1", *given, "--out", tmp_path / "out")[0] == 2
    assert list(tmp_path.iterdir()) == []
    assert run("--limit", "1", "--out", tmp_path / "out")[0] == 0


@pytest.mark.parametrize("given", [["--rated", "bad.jsonl"], ["--export-review", "."]])
def test_what_can_be_known_before_is_said_before(
    run: Run, apertium: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"source": "x"}\n', encoding="utf-8")
    assert run("--source", pairs, "--language", "spa_Latn", *given, "--out", tmp_path / "out")[0] == 2
    assert not apertium.exists()
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("drop", ["everywhere", "language"])
def test_equal_answers_in_the_source_are_dropped_without_a_call(
    run: Run, apertium: Path, tmp_path: Path, drop: str
) -> None:
    path = tmp_path / "equal.jsonl"
    equal = [
        {"id": 20 + number, "prompt": "Which?", "chosen": "x = f(y)", "rejected": "x = f(y)\n", "subset": subset}
        for number, subset in enumerate(("hep-go", "donotanswer"))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*PAIRS, *equal]), encoding="utf-8")
    status, said = run("--source", path, "--language", "spa_Latn", "--drop", drop, "--out", tmp_path / "out")
    assert (status, "identical answers" in said) == (0, True), said
    assert "Which?" not in apertium.read_text(encoding="utf-8")
    for code in ("spa_Latn", "eng_Latn"):
        assert list(rows(tmp_path / "out", code)) == [3, 5, 8, 9, 12]
    assert pl.read_parquet(tmp_path / "out/provenance/dropped.parquet").rows() == [
        (20, "eng_Latn", "source", "identical answers"),
        (21, "eng_Latn", "source", "identical answers"),
    ]
    assert not any(rebuild(tmp_path / "out", tmp_path / "again", sources=[str(path)]))


def test_a_source_of_equal_answers_alone_is_a_sentence(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    refused(
        run(*words, "--column", "chosen=rejected", "--out", tmp_path / "out"),
        "No row is left in spa_Latn: 5 of 5 are dropped, first id 3 (identical answers).",
    )


def test_output_of_another_recipe_is_refused_with_the_keys(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--language", "spa_Latn", "--limit", "1", "--per-level", "2", "--out", out]
    assert run(*words)[0] == 0
    before = files(out)
    refused(
        run("--language", "ita_Latn", "--limit", "2", "--per-level", "2", "--seed", "7", "--out", out),
        f'{out} was made with other settings (languages ["spa_Latn"], now ["ita_Latn"]; seed 42, now 7; limit 1, now '
        "2); give the same again to go on, choose another output directory, or start over with `fresh`.",
    )
    assert files(out) == before
    # The rate, the price and the account say nothing about the content.
    assert run(*words, "--price", "1", "--max-cost", "5", "--project", "mine", "--location", "eu")[0] == 0
    assert run(*words, "--seed", "7", "--fresh")[0] == 0
    assert files(out) != before


def recipe(path: Path, **tables: Any) -> Path:
    values = {"languages": ["spa_Latn"], "source": {"location": "sample"}, "translator": {"name": "apertium"}} | tables
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"langauges": []}, "unknown key `langauges`; did you mean `languages`?"),
        ({"translator": {"name": "apertium", "modle": "x"}}, "unknown key `translator.modle`; did you mean `model`?"),
        ({"filter": {"drop": "some"}}, "`filter.drop` must be one of everywhere, language; it is `some`."),
        ({"checks": {"shortest": 0}}, "`checks.shortest`: Input should be greater than 0."),
        ({"connection": {"concurrency": 0}}, "`connection.concurrency`: Input should be greater than or equal to 1."),
        ({"source": {"location": "sample", "limit": 0}}, "`source.limit`: Input should be greater than or equal to 1."),
        ({"languages": []}, "nothing is asked for: name `languages`, or rated translations under [translation]."),
        ({"version": "1"}, "`version`: String should match pattern '^\\d+\\.\\d+\\.\\d+$'."),
    ],
)
def test_a_bad_recipe_is_named_with_its_key(run: Run, tmp_path: Path, tables: dict[str, Any], sentence: str) -> None:
    path = recipe(tmp_path / "recipe.toml", **tables)
    refused(run("--recipe", path, "--out", tmp_path / "out"), f"Recipe {path}: {sentence}")
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


def test_every_build_writes_a_recipe_that_builds_it(run: Run, tmp_path: Path) -> None:
    assert run("--language", "por_Latn", "--limit", "1", "--out", tmp_path / "a/name")[0] == 0
    assert run("--recipe", tmp_path / "a/name" / RECIPE, "--out", tmp_path / "b/name")[0] == 0
    assert files(tmp_path / "b/name") == files(tmp_path / "a/name")


def test_the_recipes_that_come_with_it_are_read() -> None:
    for name in ("sample", "paper", "translation"):
        values = tomllib.loads((RECIPES / f"{name}.toml").read_text(encoding="utf-8"))
        assert set(values.get("languages", [])) <= set(LANGUAGES)
    paper = tomllib.loads((RECIPES / "paper.toml").read_text(encoding="utf-8"))
    assert len(paper["languages"]) == 23
    assert (paper["source"]["location"], paper["translator"]["name"]) == ("allenai/reward-bench", "google")
    assert ConnectionTable(**paper["connection"]).limits().max_cost == 5000
    assert TranslatorTable(**paper["translator"]).model == "general/nmt"
