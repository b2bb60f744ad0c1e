"""The command `build-personalized`: what works says what to do next, and what fails says so in one sentence.

What all builders promise alike is in tests/end_to_end/test_builder_contract.py.
"""

import hashlib
import json
import shutil
import sqlite3
import sys
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from build_personalized.recipe import RECIPES, PersonalizedRecipe
from pluralbench_calls import Ledger, read_ledger
from pluralbench_release import LEDGER, RECIPE
from pluralbench_runs import read_recipe
from samples import sample

CLOSED = "http://127.0.0.1:9/v1"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A copy of the sample's release, to be endangered."""
    return shutil.copytree(sample("build-personalized").release, tmp_path / "release")


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def recipe(folder: Path, **tables: Any) -> Path:
    """A recipe file: the sample with its hand-written answers, with these keys and tables instead."""
    values: dict[str, Any] = {"source": {"locations": ["sample"]}}
    values |= {"llm": {"provider": "hand-written", "model": "hand-written"}} | tables
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path


def refused(result: tuple[int, str], *parts: str, status: int = 2) -> None:
    """One sentence, that holds `parts`."""
    assert result[0] == status, result[1]
    assert result[1].startswith("Error: ")
    assert result[1].count("\n") == 1
    assert result[1].endswith((".\n", "?\n"))
    for part in parts:
        assert part in result[1]


@pytest.mark.smoke
def test_help_shows_examples(run: Run) -> None:
    status, shown = run("--help")
    assert status == 0
    text = " ".join(shown.split())
    for part in ("Examples: ", "build-personalized --llm local --limit 2", "--source stack-exchange:beer", "--replay"):
        assert part in text


def test_the_sample_says_what_it_made() -> None:
    out, said = sample("build-personalized")
    for part in ("72 recorded calls, 72 of them made now", "Art_and_Entertainment", "hand-written"):
        assert part in said
    assert pl.read_parquet(out / "data/*/test.parquet").height == 24
    assert json.loads((out / "provenance/statistics.json").read_text(encoding="utf-8"))["drops"] == []
    assert tomllib.loads((out / RECIPE).read_text(encoding="utf-8"))["source"]["locations"] == ["sample"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--recipe", "nowhere.toml"], ["There is no recipe 'nowhere.toml'"]),
        (["--source", "beer"], ["Unknown source 'beer'"]),
        (["--source", "a/Posts.xml"], ["Unknown source 'a/Posts.xml'", "did you mean `stack-exchange:a/Posts.xml`?"]),
        (["--source", "stack-exchange:"], ["Unknown source"]),
        (["--source", "stack-exchange:nowhere/Posts.xml"], ["There is no dump nowhere/Posts.xml"]),
        (["--source", "lamp-qa:/no/where"], ["/no/where", "lamp-qa:DIRECTORY"]),
        (["--retriever", "bm26"], ["Unknown retriever 'bm26'"]),
        (["--llm", "m", "--base-url", "localhost:80"], ["The base URL is not of the form https://HOST/v1"]),
        (["--llm", "m"], ["api.openai.com wants a key", "OPENAI_API_KEY", "0 of 24 chosen answers are recorded"]),
        (["--replay", "nowhere"], ["There is no ledger nowhere"]),
        (["--reuse", "nowhere"], ["There is no ledger nowhere"]),
        (["--max-cost", "0.000001", "--price", "1/1", "--llm", "m", "--base-url", CLOSED], ["ceiling", "`max_cost`"]),
        (["--max-cost", "1"], ["a `max_cost` needs a `price` under [connection]"]),
        (["--price", "1"], ["`connection.price`: '1' is not of the form IN/OUT"]),
        (["--price", "1/x"], ["`connection.price`: '1/x' is not of the form IN/OUT"]),
    ],
)
def test_a_bad_option_is_named_and_the_old_release_stays(
    run: Run, release: Path, words: list[str], parts: list[str]
) -> None:
    before = files(release)
    refused(run(*words, "--fresh", "--out", release), *parts)
    assert files(release) == before


@pytest.mark.parametrize(
    ("tables", "parts"),
    [
        ({"retreiver": "bm25"}, ["unknown key `retreiver`; did you mean `retriever`?"]),
        ({"llm": {"provider": "local", "model": "m", "temprature": 1}}, ["`llm.temprature`", "`temperature`?"]),
        ({"audit": {"zzz": 1}}, ["unknown key `audit.zzz`; the keys here are max_chosen_longer"]),
        ({"profile_size": 0}, ["`profile_size`", "greater than or equal to 1"]),
        ({"source": {"locations": []}}, ["`source.locations`"]),
        ({"version": "1"}, ["`version`"]),
        ({"llm": {"provider": "api.example.org", "model": "m"}}, ["'api.example.org' needs a `base_url`"]),
    ],
)
def test_a_bad_recipe_is_named_with_its_key(run: Run, tmp_path: Path, tables: dict[str, Any], parts: list[str]) -> None:
    path = recipe(tmp_path, **tables)
    refused(run("--recipe", path, "--out", tmp_path / "out"), str(path), *parts)
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


def test_the_recipes_state_the_rule_of_the_attempts() -> None:
    stated = [read_recipe(PersonalizedRecipe, RECIPES / f"{name}.toml").attempts for name in ("paper", "sample")]
    assert stated == [5, 5] == [PersonalizedRecipe.model_fields["attempts"].default] * 2
    for name in ("paper", "sample"):
        assert "attempts = 5" in (RECIPES / f"{name}.toml").read_text(encoding="utf-8")


def test_a_recipe_that_is_no_toml_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[source\n", encoding="utf-8")
    refused(run("--recipe", tmp_path / "recipe.toml", "--out", tmp_path / "out"), "recipe.toml is not valid TOML")


@pytest.mark.parametrize(
    "source", [["stack-exchange:{}"], ["sample", "stack-exchange:{}"]], ids=["a dump", "a dump beside the sample"]
)
def test_a_dump_in_which_nobody_asked_often_enough(run: Run, tmp_path: Path, source: list[str]) -> None:
    dump = tmp_path / "Posts.xml"
    dump.write_text("<posts></posts>", encoding="utf-8")
    words = [word for location in source for word in ("--source", location.format(dump))]
    refused(run(*words, "--out", tmp_path / "out"), str(dump), "no user has 4 questions or more")
    assert [path.name for path in tmp_path.iterdir()] == ["Posts.xml"]


def ledger_without_answers(path: Path, release: Path) -> None:
    frame = read_ledger(release / LEDGER).filter(pl.col("kind") == "rank")
    frame.write_parquet(path, metadata={"pluralbench_ledger_format": "1"})


def parquet_of_format_2(path: Path, release: Path) -> None:
    read_ledger(release / LEDGER).write_parquet(path, metadata={"pluralbench_ledger_format": "2"})


def sqlite_of_format_2(path: Path, _: Path) -> None:
    with Ledger(path):
        pass
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")


def other_sqlite(path: Path, _: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (
            ledger_without_answers,
            ["has no answer for chosen answer for art-01, attempt 1", "a replay sends nothing", "0 of 24"],
        ),
        (parquet_of_format_2, ["is of format 2 and this version reads format 1"]),
        (sqlite_of_format_2, ["is of format 2 and this version reads format 1"]),
        (other_sqlite, ["is no ledger: it names no format version"]),
        (lambda path, release: shutil.copy(release / "provenance/row_digests.parquet", path), ["is no ledger"]),
        (
            lambda path, _: path.write_text("calls", encoding="utf-8"),
            ["is no ledger: it is neither SQLite nor Parquet"],
        ),
        (lambda path, _: path.write_bytes(b""), ["is no ledger"]),
        (lambda path, _: path.mkdir(), ["There is no ledger"]),
    ],
)
def test_a_replay_without_the_right_ledger(
    run: Run, release: Path, tmp_path: Path, make: Callable[[Path, Path], object], parts: list[str]
) -> None:
    make(tmp_path / "ledger", release)
    before = files(release)
    refused(run("--replay", tmp_path / "ledger", "--fresh", "--out", release), *parts)
    assert files(release) == before


@pytest.mark.parametrize("words", [["--replay", "nowhere"], ["--retriever", "contriever:/no/model"]])
def test_a_mistake_before_the_first_call_binds_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    refused(run(*words, "--out", tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == []
