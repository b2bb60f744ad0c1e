"""Translators: one class each, in a module that `recipe.TRANSLATORS` names.

A class takes the recipe's tables. It imports optional dependencies when it is first entered, so that a replay does not
need them.
"""

from pkgutil import resolve_name
from typing import Protocol

from pluralbench_calls import PackingBackend, Request
from pluralbench_runs import Json
from pluralbench_schemas import Language

from build_multilingual.errors import TranslatorError
from build_multilingual.recipe import TRANSLATORS, ConnectionTable, TranslatorTable
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
    if table.name not in TRANSLATORS:
        raise TranslatorError(f"Unknown translator {table.name!r}; choose {', '.join(TRANSLATORS)}.")
    instance: Translator = resolve_name(f"{__name__}.{TRANSLATORS[table.name]}")(table, connection)
    return instance
