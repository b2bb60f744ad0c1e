"""What builders make of somebody's own files: a card that names source, licence and title, and no folder of theirs."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import build_chinese.cli
import build_multilingual.cli
import build_persona_judge.cli
import build_personalized.cli
import persona_sources
import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from chinese_project import annotated, write_rows
from commands import in_process
from pluralbench_release import read_card, read_manifest

PRIVATE = "zq7-private"
APERTIUM = """#!/bin/sh
if [ "$1" = -l ]; then echo eng-spa; exit; fi
while IFS= read -r line; do printf '%s\\n' "u$line"; done
"""
PAIR = {"prompt": "Is it so?", "chosen": "Yes, it is.", "rejected": "No, it is not.", "subset": "donotanswer"}


@dataclass(frozen=True)
class Own:
    """A builder, and what its command is given for sources that `write` puts into a folder."""

    name: str
    main: Callable[[], NoReturn]
    write: Callable[[Path], Sequence[str | Path]]


def people(folder: Path) -> list[str | Path]:
    return ["--people-csv", persona_sources.people_csv(folder / "drinks")]


def questions(folder: Path) -> list[str | Path]:
    rows = shutil.copytree(SAMPLE / "questions", folder / "drinks", ignore=shutil.ignore_patterns("README.md"))
    return ["--source", f"lamp-qa:{rows}"]


def pairs(folder: Path) -> list[str | Path]:
    (folder / "drinks.jsonl").write_text(json.dumps(PAIR) + "\n", encoding="utf-8")
    return ["--source", folder / "drinks.jsonl", "--language", "spa_Latn", "--translator", "apertium"]


def prompts(folder: Path) -> list[str | Path]:
    rows = [annotated(number, config) for number, config in enumerate(("open", "human", "preference"))]
    return ["preference", "--annotated", write_rows(folder / "drinks.jsonl", rows)]


OWN = [
    Own("build-personalized", build_personalized.cli.main, questions),
    Own("build-multilingual", build_multilingual.cli.main, pairs),
    Own("build-chinese", build_chinese.cli.main, prompts),
    Own("build-persona-judge", build_persona_judge.cli.main, people),
]


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_a_card_names_source_licence_and_title_and_no_folder(
    own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/apertium").write_text(APERTIUM, encoding="utf-8")
    (tmp_path / "bin/apertium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    folder = tmp_path / PRIVATE
    folder.mkdir()
    run = in_process(own.name, own.main, monkeypatch, capsys)
    words = own.write(folder)

    for out, told in (
        (tmp_path / "plain", []),
        (tmp_path / "told", ["--source-name", "Drinks", "--title", "My drinks"]),
    ):
        status, said = run(*words, *told, "--licence", "cc-by-4.0", "--name", "drinks", "--out", out)
        assert status == 0, said
        [source] = read_manifest(out).sources
        assert (source.licence, read_card(out)["license"]) == ("cc-by-4.0", "cc-by-4.0")
        assert not [path for path in out.rglob("*") if path.is_file() and PRIVATE.encode() in readable(path)]
    assert (source.name, read_card(out)["pretty_name"]) == ("Drinks", "My drinks")
    assert "drinks" in read_manifest(tmp_path / "plain").sources[0].location


def readable(path: Path) -> bytes:
    return str(pl.read_parquet(path).to_dicts()).encode() if path.suffix == ".parquet" else path.read_bytes()


@pytest.mark.parametrize(
    ("own", "words", "sources"),
    [
        (OWN[2], ["preference", "--annotated", "a.jsonl", "--prompts", "p.jsonl"], "annotated, unlabelled"),
        (OWN[3], ["--people-csv", "a", "--people-csv", "b"], "a, b"),
        (OWN[3], [], "prism, opinion_qa, empathic_conversations, personal_reddit"),
    ],
    ids=["build-chinese", "build-persona-judge", "the sample"],
)
def test_a_name_is_of_one_source(
    own: Own,
    words: list[str],
    sources: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert in_process(own.name, own.main, monkeypatch, capsys)(*words, "--licence", "cc0-1.0") == (
        2,
        f"Error: --source-name and --licence are for one source, and here are {sources}; build these one by one, or "
        "give each its `name` and `licence` in a recipe.\n",
    )
