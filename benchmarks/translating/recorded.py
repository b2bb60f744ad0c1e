"""Record the ledger of a benchmark with a simulated translator.

    python -m translating.recorded '{"folder": ..., "rows": 300, "languages": ["deu_Latn"], "seed": 1}'

It replaces Google's translator in a build, with its name, requests and messages, so its answers are recorded like
Google's. It runs in its own process, because the memory of the controller would count for the processes that it starts.
"""

import json
import re
import shutil
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from importlib import import_module
from math import ceil
from pathlib import Path
from random import Random
from typing import Any, Self

import polars as pl
from build_multilingual import MultilingualRecipe, build, source
from build_multilingual.masking import MaskedText, has_letters, mask
from build_multilingual.pieces import split_pieces
from build_multilingual.recipe import ConnectionTable, SourceTable, TranslatorTable
from build_multilingual.translators.google import CODE_POINTS, MODEL, STRINGS, GoogleTranslator
from pluralbench_calls import Answer, Ledger, Request
from pluralbench_runs import BuildOptions, rng_for, write_recipe
from pluralbench_schemas import LANGUAGES, Language

from translating.english import pairs
from translating.protocol import ANSWERS, ENGLISH, FACTS, LEDGER, RECIPE, SQLITE, TEXTS, Packing, Prepared, Settings

LOST = 0.01  # share of texts with marks that lose a mark at first and are split and sent again
RUN = range(1, 4)  # words
UNSPACED = {"Japanese", "Hans", "Hant"}
LINES_AND_MARKS = re.compile(r"(\n|\[\d+\])")


class Words:
    """Text of any length in one language, from runs of a few words of its sentences.

    Repeated whole sentences would compress unrealistically well.
    """

    def __init__(self, language: Language, sentences: Sequence[str]) -> None:
        self._ratio = language.length
        spaced = language.script not in UNSPACED
        text = "".join(sentence + " " * spaced for sentence in sentences)
        words = re.findall(r"\S+\s+" if spaced else r".{1,3}", text)
        self._runs = ["".join(words[n : n + length]) for n in range(len(words) - RUN[-1] + 1) for length in RUN]

    def instead_of(self, english: str, draw: Random) -> str:
        """Return text of the length of a translation, with line breaks and marks in place."""
        return "".join(self._segment(part, draw) for part in LINES_AND_MARKS.split(english))

    def _segment(self, english: str, draw: Random) -> str:
        core = english.strip()
        if not has_letters(core):
            return english
        length = max(1, round(len(core) * self._ratio))
        text = ""
        while len(text) < length:
            text += draw.choice(self._runs)
        before, _, after = english.partition(core)
        return before + text.strip() + after


class MadeTranslator(GoogleTranslator):
    """A simulated Google translator that answers at once from `sentences.toml`."""

    concurrency: int | None = 1

    def __init__(self, table: TranslatorTable, connection: ConnectionTable, codes: Iterable[str], seed: int) -> None:
        super().__init__(table, connection)
        banks = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))
        self._words = {LANGUAGES[code].google: Words(LANGUAGES[code], banks[code]) for code in codes}
        self._seed = seed
        self.answered: dict[str, list[dict[str, str]]] = defaultdict(lambda: [{}, {}])
        """First and second replies to each text, by language."""

    async def __aenter__(self) -> Self:
        """Do nothing."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Do nothing."""

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Answer one message."""
        yield [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Answer:
        text, target = str(request.body["text"]), str(request.body["target"])
        draw = rng_for(self._seed, "translation", target, text, request.sample)
        made = self._words[target].instead_of(text, draw)
        if request.sample == 0 and "[0]" in text and draw.random() < LOST:
            made = made.replace("[0]", "", 1)
        self.answered[target][request.sample][text] = made
        return Answer.to(request, "answer", made, tokens=(len(text), 0))


def prepare(settings: Settings) -> Prepared:
    """Write the English pairs, the recipe, the ledger and the lookup tables of the peers."""
    folder = Path(settings.folder)
    with (folder / ENGLISH).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in pairs(settings.rows, settings.seed))
    english = SourceTable(location=str(folder / ENGLISH), license="apache-2.0", attribution="Made for a benchmark.")
    table = TranslatorTable(name="google", model=MODEL)
    recipe = MultilingualRecipe(languages=settings.languages, source=english, translator=table)
    write_recipe(recipe, folder / RECIPE)
    made = MadeTranslator(table, recipe.connection, settings.languages, settings.seed)
    # Where the builder takes it from.
    import_module("build_multilingual.build").translator = lambda *_: made  # type: ignore[attr-defined]
    built = folder / "built"
    manifest = build(recipe, BuildOptions(out=built)).manifest
    kept = {entry.config: entry.rows for entry in manifest.tables}
    if kept != dict.fromkeys(settings.languages, settings.rows):
        raise SystemExit(f"Simulated translations failed the checks, so rows were dropped: {kept}.")
    loaded = source.load(english).pairs
    _write_lookups(folder, loaded, built, made)
    shutil.copy(built / "provenance" / "ledger.parquet", folder / LEDGER)
    with Ledger(folder / SQLITE) as ledger:
        ledger.add_from(folder / LEDGER)
    shutil.rmtree(built)
    texts = [
        mask(row[name])
        for row in loaded.iter_rows(named=True)
        for name in source.TEXTS
        if name == "prompt" or not source.matches(row["subset"], english.prompt_only)
    ]
    prepared = Prepared(
        texts=len(texts),
        characters=sum(len(text.text) for text in texts),
        spans=sum(len(text.spans) for text in texts),
        calls=manifest.ledger.calls,
        packings=[_packing(texts, made, LANGUAGES[code]) for code in settings.languages],
    )
    (folder / FACTS).write_text(prepared.to_json(), "utf-8")
    return prepared


def _write_lookups(folder: Path, english: pl.DataFrame, built: Path, made: MadeTranslator) -> None:
    """Write the lookup tables of each language: final texts, and replies."""
    for name in (TEXTS, ANSWERS):
        (folder / name).mkdir()
    for path in sorted((built / "data").iterdir()):
        rows = english.join(pl.read_parquet(path / "test.parquet"), on="id", suffix="_made")
        texts = dict(row for name in source.TEXTS for row in rows.select(name, f"{name}_made").iter_rows())
        _write(folder / TEXTS / f"{path.name}.json", texts)
        _write(folder / ANSWERS / f"{path.name}.json", made.answered[LANGUAGES[path.name].google])


def _packing(texts: Iterable[MaskedText], made: GoogleTranslator, language: Language) -> Packing:
    """Count the messages for the texts of one language, and the minimum."""
    pieces = {
        piece.text: None for text in texts for piece in split_pieces(text, "whole", made.longest) if piece.translate
    }
    requests = [Request("translation", made.provider, made.model, made.body(text, language)) for text in pieces]
    started = time.perf_counter()
    messages = made.pack(requests)
    seconds = time.perf_counter() - started
    sizes = [(len(message), sum(len(str(request.body["text"])) for request in message)) for message in messages]
    assert all(count <= STRINGS and size <= CODE_POINTS for count, size in sizes)  # noqa: S101 - a check
    assert sum(count for count, _ in sizes) == len(requests)  # noqa: S101 - the same
    least = max(ceil(len(pieces) / STRINGS), ceil(sum(map(len, pieces)) / CODE_POINTS))
    return Packing(language.code, len(pieces), sum(map(len, pieces)), len(messages), least, seconds)


def _write(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    prepare(Settings(**json.loads(sys.argv[1])))
