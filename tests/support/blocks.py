"""The code blocks of the documents, the commands in them, and those in a table's column "run"."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from members import MEMBERS, ROOT

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*(ROOT / name for name in TOP), *(member / "README.md" for member in MEMBERS), *PAGES]
FILES = {"csv", "jsonl", "toml"}
UV_FLAGS = {"--group", "--package", "--extra"}


@dataclass(frozen=True)
class Block:
    """A code block. where: its document and first line. language: what is written behind the fence.

    file: the file that it is, where the paragraph before it ends with one of this kind, as in "This is `an.csv`:".
    """

    where: str
    language: str
    code: str
    file: str = ""


@cache
def blocks(document: Path) -> tuple[Block, ...]:
    """The code blocks of a Markdown file, in order, and after them the commands in its tables."""
    name = document.relative_to(ROOT).as_posix()
    tokens = MarkdownIt().enable("table").parse(document.read_text(encoding="utf-8"))
    fenced, said = [], ""
    for token in tokens:
        if token.type == "inline":
            said = token.content
        elif token.type in {"fence", "code_block"} and token.map is not None:
            language = token.info.strip()
            files = re.findall(rf"`(\S+\.{language})`", said) if language in FILES else []
            fenced.append(Block(f"{name}:{token.map[0] + 1}", language, token.content, files[-1] if files else ""))
            said = ""
    return *fenced, *(Block(f"{name}:{line}", "console", f"$ {code}") for line, code in _in_tables(tokens))


def _in_tables(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    """What stands as code in a column "run", with its line."""
    column, heads, line = 0, list[str](), 0
    for token, inline in pairwise(tokens):
        if token.type == "thead_open":
            heads = []
        elif token.type == "th_open":
            heads.append(inline.content)
        elif token.type == "tr_open":
            column, line = -1, token.map[0] + 1 if token.map else line
        elif token.type == "td_open":
            column += 1
            if heads[column] == "run":
                yield from ((line, part.content) for part in inline.children or () if part.type == "code_inline")


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command of a console block: what `$` begins, `\\` continues and `&&` joins; no comments."""
    for line in block.code.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        assert line.startswith("$ "), f"{block.where}: {line!r} is no command"
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while "&&" in words:
            place = words.index("&&")
            yield words[:place]
            words = words[place + 1 :]
        yield words


def without_uv(words: list[str]) -> list[str]:
    """The command that `uv run --group NAME ...` runs."""
    if words[:2] != ["uv", "run"]:
        return words
    rest = words[2:]
    while rest[0] in UV_FLAGS:
        rest = rest[2:]
    return rest
