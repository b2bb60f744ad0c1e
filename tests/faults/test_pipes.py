"""A pipe that nobody writes to, in place of each file or folder that a command reads: a sentence that names it."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_options import COMMANDS, commands
from option_values import LINES, make_written

pytestmark = [pytest.mark.faults, pytest.mark.timeout(30)]
WRITTEN = {"--out", "--html", "--plots", "--site", "--figure", "--export", "--export-review", "--pending", "--push"}
"""What is written: a pipe is written to as any command writes to it, once somebody reads."""
EXPLAINED = re.compile(r"FILE|DIR|RUN|JSONL|TOML|\b([Dd]irectory|[Ff]older|[Ff]ile|[Rr]elease|table|`annotations`)\b")
NO_PLACE = {"--digest", "--columns", "--baseline-columns", "--downstream-columns", "--split", "--score-column"}
NO_PLACE |= {"--where-run", "--only"}
"""Options whose explanation names a file and whose value names none."""
LINE = {
    "build-chinese": "--out out",
    "build-chinese tasks": "--writer m --base-url {server} --api-key-env '' --annotator a --annotator b --out out",
    "build-chinese annotations": "sheet.csv --tasks tasks --out read.jsonl",
    "build-chinese resolve": "pairs.jsonl --out ranked.jsonl",
    "build-chinese describe": "pairs.jsonl",
    "build-persona-judge label": "--export sheets --task prism --annotator a --annotator b --annotator c",
    "build-personalized": "--llm m --base-url {server} --api-key-env '' --out out",
    "build-personalized rank": "--out out",
    "build-personalized rate": "--export sheets --annotator a --annotator b",
    "build-personalized training": "--persona-llm m --base-url {server} --api-key-env '' --out out",
    "pluralbench list": "pairs",
    "pluralbench train-planner": "./base --data people.jsonl --out out",
    "pluralbench rate": "runs/a --export sheets --annotator a --annotator b",
    "pluralbench-release rebuild": "personal",
    "pluralbench-release publish": "personal org/name",
}
"""What follows the words of a command that `LINES` lacks, or that ends sooner so."""
WITH = {
    "--plans": "--benchmark personalized --data people.jsonl --profile plan",
    "--personas": "--benchmark personalized --data people.jsonl --profile persona",
}
"""Options without which another mistake comes first."""


def places() -> Iterator[tuple[str, Any]]:
    """The options and arguments that name what a command reads."""
    for words, command in commands():
        for option in command.params:
            kind, text = str(option.type_descriptor.annotation), f"{option.metavar} {option.help}"
            if option.opts[0] in WRITTEN | NO_PLACE or getattr(option, "is_flag", False):
                continue
            if "Path" in kind or ("str" in kind and EXPLAINED.search(text)):
                yield words, option


def line(words: str) -> list[str]:
    """The words of a command that would do something."""
    [*given] = [one.words for one in LINES if one.words.startswith(f"{words} ")]
    text = f"{words} {LINE[words]}" if words in LINE else given[0]
    return shlex.split(text.format(server="http://127.0.0.1:9/v1"))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    make_written(folder)
    for suffix in ("jsonl", "toml"):
        os.mkfifo(folder / f"pipe.{suffix}")
    return folder


PLACES = list(places())
UNREAD = {
    *(f"build-chinese --{name}" for name in ("recipe", "import", "replay", "reuse")),
    *(f"build-chinese annotations {name}" for name in ("files", "--again", "--review")),
    *("build-chinese tasks --checks", "build-chinese preference --reward-base", "build-multilingual --review-judge"),
    *("build-personalized rate files", "build-personalized rate --import", "build-personalized rate --pilot"),
    *("build-persona-judge label files", "build-persona-judge label --import", "build-personalized training --source"),
    *(f"pluralbench rate {name}" for name in ("files", "--import", "--data")),
    *(f"pluralbench {verb} --{name}" for verb in ("suite", "check") for name in ("plans", "personas")),
    *("pluralbench score --english", "pluralbench judge --english", "pluralbench merge --data"),
    *("pluralbench contamination --data", "pluralbench agree --data", "pluralbench agree --model"),
    *("pluralbench personalize --personas", "pluralbench plan --encoder", "pluralbench best-of-n --reward"),
    *("pluralbench optimize --import", "pluralbench check --data", "pluralbench check --model"),
    *("pluralbench leaderboard --data", "pluralbench-release diff b"),
}
"""Where these words end with another sentence, or need no such file: they only may not hang or fail."""


@pytest.mark.parametrize(("words", "option"), PLACES, ids=[f"{words} {option.opts[0]}" for words, option in PLACES])
def test_a_pipe_is_named(
    words: str,
    option: Any,
    good: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in good.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    pipe = "pipe.toml" if "TOML" in f"{option.help}" else "pipe.jsonl"
    flag = option.opts[0]
    given = line(words)
    if flag.startswith("-"):
        prefix = "table:" if "table:" in f"{option.help}" else "pairs=" if "NAME=" in f"{option.metavar}" else ""
        given += [*shlex.split(WITH.get(flag, "")), flag, prefix + pipe]
    else:
        arguments = [one.opts[0] for one in dict(commands())[words].params if not one.opts[0].startswith("-")]
        at = len(words.split()) + arguments.index(flag)
        given[at : at + 1] = [pipe]
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as ended:
        import_module(COMMANDS[given[0]].partition(":")[0]).main()
    said = "".join(capsys.readouterr())
    if f"{words} {flag}" in UNREAD:
        assert ended.value.code in {None, 0, 1, 2}, said[-300:]
    else:
        assert (ended.value.code, pipe in said) == (2, True), said[-300:]
