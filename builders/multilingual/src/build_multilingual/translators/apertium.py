"""Apertium, a rule-based translator that works offline (Debian: `apertium` and packages of language pairs).

Where it has no pair from English, it goes by way of another language, as from English by Catalan to French.
"""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Self

from pluralbench_calls import Answer, ConnectionFailed, Request
from pluralbench_runs import Json, one_line
from pluralbench_schemas import Language, language_of

from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import answer_to, pack, text_of

ENGLISH = "eng"
# In its format of lines, Apertium takes a stop at the end for its own, and without one it moves words across lines. By
# way of Catalan a line may still change a pronoun in the next one.
MARK = "␞"
END = f"{MARK}.{MARK}"
SECONDS = 600.0  # for one message; Apertium translates a page in a second
GROWTH, LEAST_BYTES = 20, 2**20  # the most that it may write: so many times what was sent, or this


def translator(table: TranslatorTable, connection: ConnectionTable) -> "Apertium":
    """The translator of a recipe. Raises `TranslatorError` for a model or a glossary, which it has not."""
    del connection
    if table.model or table.glossary:
        raise TranslatorError("Apertium has neither models nor glossaries; leave them out.")
    return Apertium()


class Apertium(Translator):
    """Runs `apertium` over many lines at once; see `Translator`."""

    provider = "apertium"
    model = "apertium"
    longest = 100_000
    concurrency: int | None = 2

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Apertium calls languages by ISO 639-3."""
        return {"text": text, "source": ENGLISH, "target": language.code[:3]}

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Starting it takes longer than a page of text does."""
        return pack(requests, lambda request: request.body["target"], strings=200, code_points=100_000)

    async def __aenter__(self) -> Self:
        """Raises `TranslatorError` where it is not installed."""
        if shutil.which("apertium") is None:
            raise TranslatorError(
                "Apertium is not installed: `apt install apertium apertium-eng-spa`, or another pair."
            )
        return self

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Many texts of one language, line by line; line breaks are kept."""
        chain = self._chain(str(requests[0].body["target"]))
        texts = [text_of(request).split("\n") for request in requests]
        lines = [line for text in texts for line in text]
        for mode in chain:
            lines = await _run(mode, lines)
        answers, start = [], 0
        for request, text in zip(requests, texts, strict=True):
            translated = "\n".join(lines[start : start + len(text)])
            start += len(text)
            answers.append(answer_to(request, translated, model=f"apertium {', '.join(chain)}"))
        yield answers

    @cached_property
    def _modes(self) -> list[tuple[str, str]]:
        try:
            done = subprocess.run(["apertium", "-l"], capture_output=True, text=True, check=False, timeout=SECONDS)  # noqa: S607 - fixed words
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise TranslatorError(f"Apertium cannot say what it translates ({one_line(error)}).") from None
        pairs = [tuple(line.split("-")) for line in done.stdout.split()]
        return sorted((pair[0], pair[1]) for pair in pairs if len(pair) == 2 and "_" not in "".join(pair))

    def _chain(self, target: str) -> list[str]:
        """The modes of the shortest way from English. Raises `UnsupportedLanguage`."""
        ways: dict[str, list[str]] = {ENGLISH: []}
        waiting = [ENGLISH]
        while waiting:
            here = waiting.pop(0)
            for source, end in self._modes:
                if source == here and end not in ways:
                    ways[end] = [*ways[here], f"{source}-{end}"]
                    waiting.append(end)
        if target not in ways:
            known = sorted(end for end in ways if end != ENGLISH and language_of(end))
            raise UnsupportedLanguage(
                f"Apertium has no way from English to {target!r} here; it has {', '.join(known) or 'none'}: install "
                "another pair, or choose another translator."
            )
        return ways[target]


async def _communicate(process: asyncio.subprocess.Process, sent: bytes, most: int) -> tuple[bytes, bytes]:
    """What the process writes and what it complains of; of each a byte more than `most` at most."""
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - all three are pipes
    reads = [asyncio.create_task(_read(pipe, most)) for pipe in (process.stdout, process.stderr)]
    with contextlib.suppress(OSError):  # a process that ends early says why in what it writes
        process.stdin.write(sent)
        await process.stdin.drain()
        process.stdin.close()
    out, problem = await asyncio.gather(*reads)
    if len(out) <= most:
        await process.wait()
    return out, problem


async def _read(pipe: asyncio.StreamReader, most: int) -> bytes:
    found = bytearray()
    while len(found) <= most and (part := await pipe.read(2**16)):
        found += part
    return bytes(found)


async def _run(mode: str, lines: Sequence[str]) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        "apertium", "-u", "-f", "line", mode,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    cores = [line.rstrip() for line in lines]
    sent = "".join(f"{core.replace(MARK, '')}{END}\n" for core in cores)
    most = max(LEAST_BYTES, GROWTH * len(sent.encode()))
    try:
        async with asyncio.timeout(SECONDS):
            out, problem = await _communicate(process, sent.encode(), most)
    except TimeoutError:
        raise ConnectionFailed(f"Apertium's {mode} did not answer within {SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if len(out) > most:
        raise ConnectionFailed(f"Apertium's {mode} wrote more than {most:,} bytes for {len(sent.encode()):,} sent.")
    translated = out.decode(errors="replace").split("\n")[:-1]
    if process.returncode or len(translated) != len(lines):
        raise ConnectionFailed(
            f"Apertium's {mode} answered {len(translated)} lines for {len(lines)} sent "
            f"({one_line(problem.decode(errors='replace')) or 'no message'})."
        )
    # What lost its mark lost its end, so it is no translation. White space at the end would be lost as well.
    return [
        (line.partition(MARK)[0].rstrip() if MARK in line else "") + before[len(core) :]
        for line, core, before in zip(translated, cores, lines, strict=True)
    ]
