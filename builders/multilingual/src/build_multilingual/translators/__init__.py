"""Translators: each module in this package is one, selected by its name.

A module has a function `translator(table, connection)` that returns a `Translator`. It imports optional dependencies
when the translator is first entered, so that a replay does not need them.
"""

import importlib
from typing import Protocol

from pluralbench_calls import PackingBackend, Request
from pluralbench_runs import Json
from pluralbench_schemas import Language

from build_multilingual.errors import TranslatorError
from build_multilingual.recipe import ConnectionTable, TranslatorTable, available_translators
from build_multilingual.translators._packing import text_length


class Translator(PackingBackend, Protocol):
    """Backend that answers requests of kind "translation", each with one text.

    Attributes:
        provider: Provider under which answers are recorded.
        model: Model under which answers are recorded.
        longest: Maximum code points of a text.
        concurrency: Maximum number of messages in flight. Default: that of the recipe.
    """

    provider: str
    model: str
    longest: int
    concurrency: int | None = None

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Return the body of a request: the text, the translator's language codes, and all settings of the answer.

        Raises:
            UnsupportedLanguage: The translator does not support the language.
        """

    def size(self, request: Request) -> int:
        """Return the characters of a request."""
        return text_length(request)


def translator(table: TranslatorTable, connection: ConnectionTable) -> Translator:
    """Return the translator of a recipe.

    Raises:
        TranslatorError: The name is unknown, or the translator does not have the model or glossary.
    """
    if table.name not in available_translators():
        raise TranslatorError(f"Unknown translator {table.name!r}; choose {', '.join(available_translators())}.")
    module = importlib.import_module(f"{__name__}.{table.name}")
    instance: Translator = module.translator(table, connection)
    return instance
