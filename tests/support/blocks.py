"""The code blocks of the documents, and the commands in them."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from members import MEMBERS, ROOT

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*(ROOT / name for name in TOP), *(member / "README.md" for member in MEMBERS), *PAGES]
UV_FLAGS = {"--group", "--package", "--extra"}


@dataclass(frozen=True)
class Block:
    """A code block. where: its document and first line. language: what is written behind the fence."""

    where: str
    language: str
    code: str


def blocks(document: Path) -> list[Block]:
    """The code blocks of a Markdown file, in order."""
    name = document.relative_to(ROOT).as_posix()
    return [
        Block(f"{name}:{token.map[0] + 1}", token.info.strip(), token.content)
        for token in MarkdownIt().parse(document.read_text(encoding="utf-8"))
        if token.type in {"fence", "code_block"} and token.map is not None
    ]


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
