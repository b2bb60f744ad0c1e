"""All schemas by name."""

from collections.abc import Iterable

from pluralbench_schemas.chinese import RankedResponses
from pluralbench_schemas.multilingual import MultilingualPairs, TranslationPairs
from pluralbench_schemas.persona import PersonaItems
from pluralbench_schemas.personalized import (
    PersonalizedPairs,
    PersonalizedQuestions,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
)
from pluralbench_schemas.preferences import PersonalizedPreferences, RankedPairs
from pluralbench_schemas.rules import Rows

SCHEMAS: dict[str, type[Rows]] = {
    schema.__name__: schema
    for schema in (
        MultilingualPairs,
        PersonaItems,
        PersonalizedPairs,
        PersonalizedPreferences,
        PersonalizedQuestions,
        RankedPairs,
        RankedResponses,
        TranslationPairs,
        VerbatimPersonalizedPairs,
        VerbatimPersonalizedQuestions,
    )
}
"""All schemas by their name in a release's manifest."""


def release_columns(columns: Iterable[str]) -> set[str]:
    """Return the columns that belong to a schema whose required columns are all in `columns`."""
    present = set(columns)
    known = set()
    for schema in SCHEMAS.values():
        parts = schema.to_schema().columns
        if {name for name, column in parts.items() if column.required} <= present:
            known |= present & parts.keys()
    return known
