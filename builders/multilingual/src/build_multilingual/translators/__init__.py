"""Translators: each module here is one, found by its name.

A module has a function `translator(table, connection)` that returns a `Translator`. What it needs beside this package's
dependencies it imports when first entered, so that a replay needs nothing of it.
"""

import importlib
from typing import Protocol

from pluralbench_calls import PackingBackend, Request
from pluralbench_runs import Json
from pluralbench_schemas import Language

from build_multilingual.errors import TranslatorError
from build_multilingual.recipe import ConnectionTable, TranslatorTable, known_translators
from build_multilingual.translators._packing import text_length


class Translator(PackingBackend, Protocol):
    """A backend that answers requests of kind "translation", each of one text.

    provider, model: the identity of its answers. longest: code points of one text.
    """

    provider: str
    model: str
    longest: int
    concurrency: int | None = None

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """What is asked: the text, the languages as the translator calls them, and all that changes the answer.

        Raises `UnsupportedLanguage`.
        """

    def size(self, request: Request) -> int:
        """Characters."""
        return text_length(request)


def translator(table: TranslatorTable, connection: ConnectionTable) -> Translator:
    """The translator of a recipe. Raises `TranslatorError` for a name that is none."""
    if table.name not in known_translators():
        raise TranslatorError(f"There is no translator {table.name!r}; choose {', '.join(known_translators())}.")
    module = importlib.import_module(f"{__name__}.{table.name}")
    made: Translator = module.translator(table, connection)
    return made
