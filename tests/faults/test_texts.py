"""Texts that would control a terminal, a spreadsheet or a page, in all inputs and words: they arrive as text."""

import csv
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from chat_server import ChatServer
from children import Ended, ended
from command_options import commands
from conftest import Tried
from inputs import KINDS, Kind
from markdown_it import MarkdownIt
from mutations import FORMATS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
ELEMENT = "<img src=x onerror=alert(1)>"
HOSTILE = [
    "\x1b]0;title\x07\x1b[2J\x1b[5;35mx",
    "\x9b31m\x9dtitle\x9c\x90q\x9c\x85",
    "\u202ex\u2066y\u061c\u200f",
    "\x1b]8;;https://e.org\x1b\\link\x1b]8;;\x1b\\",
    "a\x08\x08b\x7f\r\x0bc\u2028d\U000e0041",
    f"=1+1{ELEMENT}",
    f"| {ELEMENT} [x](javascript:alert(1)) ![x](https://e.org/x.png) `{ELEMENT}` <!-- $x$ \\input{{x}}",
    f"</script>{ELEMENT}</td></table>'\"&lt;{ELEMENT}",
]
OWN = re.compile(r"\x1b\[(?:(?!5;35)[\d;]*m|\?25[lh]|[12]?[AK]|2K)|\r(?=\x1b|$)", re.MULTILINE)
"""What the commands themselves send to a terminal: colors, and the moves of progress bars."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
REPORTS = tuple(f"pluralbench report runs --out out.{form} --format {form}" for form in ("csv", "markdown", "latex"))
WORKS = {"", "--help", "--version", "--install-completion", "--show-completion"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_hostile_texts(kind: Kind, tried: Tried, tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> None:
    good = tmp_path_factory.mktemp("good")
    kind.make(good)
    lines = (*kind.commands, *(REPORTS if kind.name == "runs" else ()))
    for number, draw, folder in tried.cases(40):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        suffixes = {*FORMATS, ".parquet"}
        files = sorted(path for path in folder.glob(kind.changed) if path.is_file() and path.suffix in suffixes)
        if not files:
            continue
        file, text = draw.choice(files), draw.choice(HOSTILE)
        _put(file, text, draw)
        before = {path for path in folder.rglob("*") if path.is_file()}
        words = [
            word.format(file=file.relative_to(folder), server=chat.base_url) for word in shlex.split(draw.choice(lines))
        ]
        _judge(tried, number, ended(words, folder, env=TERMINAL), f"[{' '.join(words)}; {text!a}]")
        for path in {path for path in folder.rglob("*") if path.is_file()} - before:
            if problem := _taken(path):
                tried.failure(number, "lost", f"{path.name}: {problem} [{' '.join(words)}; {text!a}]")


def test_hostile_words(tried: Tried) -> None:
    """Any option of any command, with such a value."""
    every = [
        (words.split(), option)
        for words, command in commands()
        for option in command.params
        if not getattr(option, "is_flag", False) and option.opts[0] not in WORKS
    ]
    for number, draw, folder in tried.cases(300):
        words, option = draw.choice(every)
        text = draw.choice(HOSTILE[:5]).replace("\x00", "")
        given = [f"{option.opts[0]}={text}"] if option.opts[0].startswith("-") else [text, text]
        _judge(tried, number, ended([*words, *given], folder, env=TERMINAL), f"{words} {given!a}")


def _judge(tried: Tried, number: int, done: Ended, how: str) -> None:
    said = OWN.sub("", done.said.replace("\r\n", "\n"))
    if found := RAW.search(said):
        tried.failure(number, "terminal", f"{said[max(0, found.start() - 60) : found.end() + 60]!a} {how}")
    fault = Ended(done.status, "", done.seconds, done.hung).fault or ("traceback" if "Traceback" in said else "")
    if fault:
        tried.failure(number, fault, f"{done.last_line[:300]} {how}")


class _Elements(HTMLParser):
    """Whether a page has an element or a link that a text made."""

    problem = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if "onerror" in values or "e.org" in str(values) or str(values.get("href", "")).startswith("javascript:"):
            self.problem = f"<{tag} {values}>"


def _taken(path: Path) -> str:
    """What a spreadsheet or a page would make of a text in this file."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next((cell for row in csv.reader(file) for cell in row if cell.lstrip().startswith("=1+1")), "")
    if path.suffix not in {".md", ".markdown", ".html"}:
        return ""
    text = path.read_text(encoding="utf-8")
    page = _Elements()
    page.feed(text if path.suffix == ".html" else MarkdownIt("commonmark").enable("table").render(text))
    return page.problem


def _hostile(value: Any, text: str, draw: Random) -> Any:
    """The value with the text in a third of its strings, or in the only one."""
    if isinstance(value, dict):
        return {name: _hostile(part, text, draw) for name, part in value.items()}
    if isinstance(value, list):
        return [_hostile(part, text, draw) for part in value]
    return (
        (f"{text}{value}" if draw.random() < 0.7 else text) if isinstance(value, str) and draw.random() < 0.3 else value
    )


def _put(file: Path, text: str, draw: Random) -> None:
    """Put the text into a file's strings; the head of a table stays."""
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        names = [name for name, kind in frame.schema.items() if kind == pl.String]
        columns = [pl.Series(name, _hostile(frame[name].to_list(), text, draw), pl.String) for name in names]
        frame.with_columns(columns).write_parquet(file)
        return
    load, dump = FORMATS[file.suffix]
    value = load(file)
    head = value[:1] if file.suffix == ".csv" else []
    changed = _hostile(value[len(head) :] if head else value, text, draw)
    file.write_bytes(dump([*head, *changed] if head else changed).encode())
