"""Translate with Apertium, a rule-based offline translator (Debian: `apertium` and packages of language pairs).

Languages without a pair from English are reached through others, such as French through Catalan.
"""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Self

from pluralbench_calls import Answer, CallsError, Request
from pluralbench_runs import Json, one_line
from pluralbench_schemas import Language, language_of

from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import pack, request_text, translation_answer

ENGLISH = "eng"
# In its line format, Apertium removes a final period, and without one it moves words across lines. Through Catalan, a
# line may still change a pronoun in the next one.
MARK = "␞"
END = f"{MARK}.{MARK}"
TIMEOUT = 600.0  # seconds for one message; Apertium translates a page in a second


class Apertium(Translator):
    """Runs `apertium` on many lines at once; see `Translator`."""

    provider = "apertium"
    model = "apertium"
    longest = 100_000
    concurrency: int | None = 2

    def __init__(self, table: TranslatorTable, connection: ConnectionTable) -> None:
        del connection
        if table.model or table.glossary:
            raise TranslatorError("Apertium has neither models nor glossaries; remove them.")

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Return the body of a request, with ISO 639-3 codes."""
        return {"text": text, "source": ENGLISH, "target": language.code[:3]}

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Pack many texts into a message: starting Apertium takes longer than translating a page."""
        return pack(requests, lambda request: request.body["target"], strings=200, code_points=100_000)

    async def __aenter__(self) -> Self:
        """Check that Apertium is installed; raise `TranslatorError` if it is not."""
        if shutil.which("apertium") is None:
            raise TranslatorError(
                "Apertium is not installed: `apt install apertium apertium-eng-spa`, or another pair."
            )
        return self

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Translate texts into one language, line by line; line breaks are kept."""
        chain = self._chain(str(requests[0].body["target"]))
        texts = [request_text(request).split("\n") for request in requests]
        lines = [line for text in texts for line in text]
        for mode in chain:
            lines = await _run(mode, lines)
        answers, start = [], 0
        for request, text in zip(requests, texts, strict=True):
            translated = "\n".join(lines[start : start + len(text)])
            start += len(text)
            answers.append(translation_answer(request, translated, model=f"apertium {', '.join(chain)}"))
        yield answers

    @cached_property
    def _modes(self) -> list[tuple[str, str]]:
        result = subprocess.run(["apertium", "-l"], capture_output=True, text=True, check=False)  # noqa: S607 - fixed words
        pairs = [tuple(line.split("-")) for line in result.stdout.split()]
        return sorted((pair[0], pair[1]) for pair in pairs if len(pair) == 2 and "_" not in "".join(pair))

    def _chain(self, target: str) -> list[str]:
        """Return the modes of the shortest path from English; raise `UnsupportedLanguage` if there is none."""
        paths: dict[str, list[str]] = {ENGLISH: []}
        queue = [ENGLISH]
        while queue:
            current = queue.pop(0)
            for source, end in self._modes:
                if source == current and end not in paths:
                    paths[end] = [*paths[current], f"{source}-{end}"]
                    queue.append(end)
        if target not in paths:
            supported = sorted(end for end in paths if end != ENGLISH and language_of(end))
            raise UnsupportedLanguage(
                f"Apertium cannot translate from English to {target!r} here (installed: "
                f"{', '.join(supported) or 'none'}); install another pair, or choose another translator."
            )
        return paths[target]


async def _run(mode: str, lines: Sequence[str]) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        "apertium", "-u", "-f", "line", mode,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    cores = [line.rstrip() for line in lines]
    sent = "".join(f"{core.replace(MARK, '')}{END}\n" for core in cores)
    try:
        async with asyncio.timeout(TIMEOUT):
            out, problem = await process.communicate(sent.encode())
    except TimeoutError:
        raise CallsError(f"Apertium's {mode} did not answer within {TIMEOUT:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    translated = out.decode(errors="replace").split("\n")[:-1]
    if process.returncode or len(translated) != len(lines):
        raise CallsError(
            f"Apertium's {mode} answered {len(translated)} lines for {len(lines)} sent "
            f"({one_line(problem.decode(errors='replace')) or 'no message'})."
        )
    # A line without its mark lost its end, so it is not a translation. Apertium drops trailing white space.
    return [
        (line.partition(MARK)[0].rstrip() if MARK in line else "") + original[len(core) :]
        for line, core, original in zip(translated, cores, lines, strict=True)
    ]
