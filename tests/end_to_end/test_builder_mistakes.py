"""What no builder can be asked: one sentence that names it, exit status 2, nothing written and an old release kept."""

import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from commands import in_process

CLOSED = "http://127.0.0.1:9/v1"
MODULES = {
    "build-personalized": "build_personalized.cli",
    "build-multilingual": "build_multilingual.cli",
    "build-chinese": "build_chinese.cli",
    "build-persona-judge": "build_persona_judge.cli",
}
OF_ALL = [
    ("--recipe papre", "There is no recipe 'papre'; give "),
    ("--reuse nowhere", "There is no ledger nowhere: no such file."),
    ("--replay nowhere", "There is no ledger nowhere: no such file."),
]
NO_RATED = "requires --rated."
NOWHERE = "nowhere does not exist, and it is not the name of a dataset on the Hub (ORG/NAME)."
ONE_SOURCE = (
    "--source-name and --license require a single source, not {}; build these one by one, or set the `name` "
    "and `license` of each in a recipe."
)
ENDPOINT = f"--base-url {CLOSED}"
OWN = [
    ("build-personalized --source beer", "Unknown source 'beer'"),
    ("build-personalized --source a/Posts.xml", "did you mean `stack-exchange:a/Posts.xml`?"),
    ("build-personalized --source stack-exchange:", "Unknown source"),
    ("build-personalized --source stack-exchange:nowhere/Posts.xml", "The dump nowhere/Posts.xml does not exist"),
    ("build-personalized --source lamp-qa:/no/where", "lamp-qa:DIRECTORY"),
    ("build-personalized --retriever bm26", "Unknown retriever 'bm26'"),
    (
        f"build-personalized {ENDPOINT}",
        "requires a model of that endpoint in place of the recipe's; name it with --llm",
    ),
    ("build-personalized --max-cost 1", "`--max-cost` requires `--price`"),
    ("build-personalized --seed 3 training", "Options go after the verb: build-personalized training --seed ..."),
    (
        f"build-personalized training {ENDPOINT}",
        "requires a model of that endpoint in place of the recipe's; name it with --persona-llm",
    ),
    ("build-personalized training --shares 1", "'1' is not of the form TRAIN/VALIDATION/TEST"),
    ("build-personalized training --shares 0.5/0.1/0.1", "are 0.5/0.1/0.1, but must add up to 1"),
    ("build-personalized training --source table:t --column who=user", "there is no column `who` to rename"),
    ("build-personalized training --column who", "--column 'who' is not of the form FIELD=COLUMN"),
    ("build-personalized training --against none --against sample", "`none` compares with no benchmark"),
    ("build-personalized training --against nowhere", "; check `--against`."),
    ("build-multilingual --source x --column question=text", "--column question=text names no field; those of"),
    ("build-multilingual --column source=text", f"--column {NO_RATED}"),
    ("build-multilingual --separator tab", "describe a table; name it with --source or --rated."),
    ("build-multilingual --direction zh-en", f"--direction {NO_RATED}"),
    ("build-multilingual --scale higher/1/2", f"--scale {NO_RATED}"),
    *(
        (f"build-multilingual --rated x --scale {scale}", f"'{scale}' is not of the form BETTER/EASY/HARD")
        for scale in ("higher", "higher/1", "best/1/2", "higher/1/2/3")
    ),
    ("build-multilingual --rated x --scale higher/a/1", "`translation.rated.0.scale.easy`: Input should be a valid"),
    ("build-multilingual --rated x --direction zh", "'zh' is not a direction such as `zh-en`."),
    ("build-multilingual --rated nowhere", NOWHERE),
    ("build-multilingual --source nowhere", NOWHERE),
    ("build-multilingual --language spa_Latn --language spa_Latn", "the language spa_Latn is given twice."),
    (
        "build-multilingual --language eng_Latn",
        "eng_Latn is the source language; add the source itself with `--add-english`.",
    ),
    ("build-multilingual --language zh", "unknown language 'zh'; did you mean zho_Hans or zho_Hant."),
    ("build-multilingual --language klingon", "The options: `languages`: unknown language 'klingon'; give a code of"),
    (
        "build-multilingual --recipe translation --rated x --column sorce=a",
        "--column sorce=a names no field; did you mean `source`? those of --source are id, prompt,",
    ),
    ("build-multilingual --recipe translation", "there is nothing to build; set `--language` or `--rated`."),
    (
        "build-multilingual --recipe translation --language spa_Latn",
        "`--language` requires `--source` and `--translator`.",
    ),
    ("build-multilingual --recipe translation --add-english --rated x", "`--add-english` requires `--source`."),
    ("build-multilingual --decisions nowhere.csv", "The file of decisions nowhere.csv does not exist."),
    ("build-multilingual --translator gogle", "Unknown translator 'gogle'; choose apertium, google, nllb."),
    ("build-multilingual --translator apertium:eng-spa", "Apertium has neither models nor glossaries; remove them"),
    ("build-multilingual --glossary projects/p", "Apertium has neither models nor glossaries; remove them"),
    ("build-multilingual --translator nllb --glossary projects/p", "NLLB has no glossaries; remove it."),
    ("build-multilingual --translator google", "Google Cloud Translation needs a project to bill; set `--project`"),
    ("build-persona-judge --opinion-qa nowhere", "There is no wave in nowhere"),
    ("build-persona-judge --prism nowhere", "nowhere does not exist"),
    ("build-persona-judge --prism sample --respondents 3", "`respondents` belongs to the task opinion_qa"),
    ("build-persona-judge --opinion-qa sample --exclude-family gpt", "`exclude_families` belongs to the task prism"),
    ("build-persona-judge --prism sample --size 99", "The task prism has"),
    ("build-persona-judge --opinion-qa sample --respondents 11", "American_Trends_Panel_W901"),
    (
        "build-persona-judge --source-name x",
        ONE_SOURCE.format("prism, opinion_qa, empathic_conversations, personal_reddit"),
    ),
    ("build-persona-judge --people-csv a --people-csv b --license x", ONE_SOURCE.format("a, b")),
    ("build-persona-judge --people-csv prism", "prism is the name of another source"),
    ("build-persona-judge --people-csv tea", "no file people.csv in tea"),
    ("build-persona-judge --people-csv 'a b'", "people_csv.0.task"),
    ("build-persona-judge label", "Give one of --export FOLDER, --import FOLDER; none given."),
    ("build-chinese annotations an.csv --tasks nowhere --out o.jsonl", "nowhere has no prompts.jsonl"),
    ("build-chinese resolve none.jsonl --out o.jsonl", "none.jsonl cannot be read: No such file or directory."),
    ("build-chinese tasks --recipe paper --annotator an", "The recipe names no prompts"),
    (f"build-chinese tasks {ENDPOINT}", "name them with --writer."),
    (
        f"build-chinese preference {ENDPOINT}",
        "requires a model of that endpoint in place of the recipe's; name it with --judge.",
    ),
    ("build-chinese preference --annotated a --prompts b --license x", ONE_SOURCE.format("annotated, unlabeled")),
]
ALL = ["build-personalized", "build-multilingual", "build-persona-judge"]
MISTAKES = [*((f"{name} {words}", said) for name in ALL for words, said in OF_ALL), *OWN]
SAMPLE = {"source": {"locations": ["sample"]}, "llm": {"provider": "hand-written", "model": "hand-written"}}
LANGUAGE = {"languages": ["spa_Latn"], "source": {"location": "sample"}, "translator": {"name": "apertium"}}
RECIPES: list[tuple[str, dict[str, Any], str]] = [
    ("build-personalized", SAMPLE | {"audit": {"zzz": 1}}, "`audit.zzz`; the keys here are max_chosen_longer"),
    ("build-personalized", SAMPLE | {"profile_size": 0}, "`profile_size`: Input should be greater than or equal to 1"),
    ("build-personalized", SAMPLE | {"source": {"locations": []}}, "`source.locations`"),
    ("build-personalized", SAMPLE | {"llm": {"provider": "a.org", "model": "m"}}, "'a.org' requires `--base-url`"),
    ("build-multilingual", LANGUAGE | {"checks": {"shortest": 0}}, "`checks.shortest`: Input should be greater than 0"),
    ("build-multilingual", LANGUAGE | {"version": "1"}, "`version`: String should match pattern"),
]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Assert that a command says one sentence with these words, and that it writes nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)  # which nothing before the first call imports

    def check(line: str, part: str) -> None:
        name, *words = shlex.split(line)
        run = in_process(name, import_module(MODULES[name]).main, monkeypatch, capsys)
        status, said = run(*words)
        assert (status, said.count("\n"), said.startswith("Error: ")) == (2, 1, True), said
        assert part in said
        assert said.endswith((".\n", "?\n"))
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] in ([], ["recipe.toml"])

    return check


@pytest.mark.parametrize(("line", "part"), MISTAKES)
def test_a_mistake_is_a_sentence_and_leaves_nothing(refused: Callable[..., None], line: str, part: str) -> None:
    refused(line, part)


@pytest.mark.parametrize(("name", "values", "part"), RECIPES)
def test_a_bad_recipe_is_named_with_its_key(
    refused: Callable[..., None], tmp_path: Path, name: str, values: dict[str, Any], part: str
) -> None:
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    refused(f"{name} --recipe recipe.toml", part)
