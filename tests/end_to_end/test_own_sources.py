"""A release of somebody's own files names source, license and title, and no folder of theirs; it is built again."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import build_chinese.cli
import build_multilingual.cli
import build_persona_judge.cli
import build_personalized.cli
import persona_sources
import polars as pl
import pytest
from build_multilingual.source import SAMPLE as TRANSLATIONS
from build_persona_judge.sources.loaded import FOLDER as PERSONAS
from build_personalized.sources import SAMPLE as PEOPLE
from case_marks import heavy
from chinese_project import annotated, write_rows
from commands import by_apertium, in_process
from pluralbench_release import read_card, read_manifest, rebuild, verify

PRIVATE = "zq7-private"
NAMED = ["--source-name", "Drinks", "--title", "My drinks", "--license", "cc-by-4.0"]
PAIR = {"prompt": "Is it so?", "chosen": "Yes, it is.", "rejected": "No, it is not.", "subset": "donotanswer"}


def questions(drinks: Path) -> Sequence[str]:
    shutil.copytree(PEOPLE / "questions", drinks, ignore=shutil.ignore_patterns("README.md"))
    return "--source", f"lamp-qa:{drinks}"


def pairs(drinks: Path) -> Sequence[str]:
    drinks.write_text(json.dumps(PAIR) + "\n", encoding="utf-8")
    return "--source", str(drinks), "--language", "spa_Latn", "--translator", "apertium"


def rated(drinks: Path) -> Sequence[str]:
    shutil.copy(TRANSLATIONS / "translations.jsonl", drinks)
    return "--rated", str(drinks), "--recipe", "translation", "--per-level", "5"


def prompts(drinks: Path) -> Sequence[str]:
    write_rows(drinks, [annotated(number, config) for number, config in enumerate(("open", "human", "preference"))])
    return "preference", "--annotated", str(drinks)


def people(drinks: Path) -> Sequence[str]:
    return "--people-csv", str(persona_sources.people_csv(drinks))


def raters(drinks: Path) -> Sequence[str]:
    return "--prism", str(shutil.copytree(PERSONAS / "prism", drinks)), "--size", "3"


def respondents(drinks: Path) -> Sequence[str]:
    return "--opinion-qa", str(shutil.copytree(PERSONAS / "opinion_qa", drinks)), "--respondents", "10"


@pytest.mark.parametrize(
    ("main", "given", "suffix"),
    [
        (build_personalized.cli.main, questions, ""),
        (build_multilingual.cli.main, pairs, ".jsonl"),
        (build_persona_judge.cli.main, people, ""),
        *heavy(
            (build_multilingual.cli.main, rated, ".jsonl"),
            (build_chinese.cli.main, prompts, ".jsonl"),
            (build_persona_judge.cli.main, raters, ""),
            (build_persona_judge.cli.main, respondents, ""),
        ),
    ],
)
def test_own_files_are_named_without_their_folder(
    main: Callable[[], NoReturn],
    given: Callable[[Path], Sequence[str]],
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    by_apertium(tmp_path, monkeypatch)
    run = in_process("build", main, monkeypatch, capsys)
    (tmp_path / PRIVATE).mkdir()
    words = given(tmp_path / PRIVATE / f"drinks{suffix}")
    plain, told = tmp_path / "plain", tmp_path / "told"
    for out, more in ((plain, []), (told, [] if given is rated else NAMED)):
        status, said = run(*words, *more, "--name", "drinks", "--out", out)
        assert status == 0, said
        assert not [path for path in out.rglob("*") if path.is_file() and PRIVATE.encode() in readable(path)]
        if more:
            [source] = read_manifest(out).sources
            assert (source.name, source.license) == ("Drinks", "cc-by-4.0")
            assert (read_card(out)["pretty_name"], read_card(out)["license"]) == ("My drinks", "cc-by-4.0")
    card = (plain / "README.md").read_text(encoding="utf-8")
    for part in ("\n# drinks\n", 'load_dataset("plain", ', f"drinks{suffix}`)"):
        assert part in card
    assert verify(plain) == []
    [place] = [word for word in words if PRIVATE in word]
    assert not any(rebuild(plain, tmp_path / "again", sources=[place]))


def readable(path: Path) -> bytes:
    return str(pl.read_parquet(path).to_dicts()).encode() if path.suffix == ".parquet" else path.read_bytes()
