"""What a release says of its sources is true on every machine, and names no folder of the one that built it."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import build_chinese.cli
import build_multilingual.cli
import build_persona_judge.cli
import build_personalized.cli
import pytest
from build_multilingual.source import SAMPLE as TRANSLATIONS
from build_persona_judge.sources.loaded import FOLDER as PERSONAS
from build_personalized.sources import SAMPLE as PEOPLE
from commands import in_process
from pluralbench_release import rebuild, verify
from samples import sample

Given = Callable[[], tuple[list[str], list[str]]]


def people() -> tuple[list[str], list[str]]:
    source = f"lamp-qa:{PEOPLE / 'questions'}"
    return ["--source", source], [source]


def rated() -> tuple[list[str], list[str]]:
    source = str(TRANSLATIONS / "translations.jsonl")
    return ["--recipe", "translation", "--rated", source, "--per-level", "5"], [source]


def personas_of() -> tuple[list[str], list[str]]:
    places = {"prism": "prism", "opinion-qa": "opinion_qa"}
    words = [word for flag, name in places.items() for word in (f"--{flag}", str(PERSONAS / name))]
    return [*words, "--size", "3", "--respondents", "10"], words[1::2]


def annotated() -> tuple[list[str], list[str]]:
    path = sample("build-chinese").release.with_name("chinese-rewardbench-annotated.jsonl")
    return ["preference", "--annotated", str(path)], [str(path)]


@pytest.mark.parametrize(
    ("name", "main", "given"),
    [
        ("build-personalized", build_personalized.cli.main, people),
        ("build-multilingual", build_multilingual.cli.main, rated),
        ("build-persona-judge", build_persona_judge.cli.main, personas_of),
        ("build-chinese", build_chinese.cli.main, annotated),
    ],
)
def test_a_release_names_its_sources_without_their_folders(
    name: str,
    main: Callable[[], NoReturn],
    given: Given,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, sources = given()
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "dist" / "mine"
    status, said = in_process(name, main, monkeypatch, capsys)(*words, "--name", "mine")
    assert status == 0, said
    for path in out.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            for source in sources:
                place = Path(source.removeprefix("lamp-qa:"))
                assert str(place.parent).encode() not in held, path
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "\n# mine\n" in card
    assert 'load_dataset("mine", ' in card
    assert all(f"(`{Path(source).name}`)" in card for source in sources)
    assert verify(out) == []
    assert not any(rebuild(out, tmp_path / "again", sources=sources))
