"""All schemas by name."""

from collections.abc import Iterable

from pluralbench_schemas.chinese import RANKED_RESPONSES
from pluralbench_schemas.multilingual import MULTILINGUAL_PAIRS, TRANSLATION_PAIRS
from pluralbench_schemas.persona import PERSONA_ITEMS
from pluralbench_schemas.personalized import (
    PERSONALIZED_PAIRS,
    PERSONALIZED_QUESTIONS,
    VERBATIM_PERSONALIZED_PAIRS,
    VERBATIM_PERSONALIZED_QUESTIONS,
)
from pluralbench_schemas.preferences import PERSONALIZED_PREFERENCES, RANKED_PAIRS
from pluralbench_schemas.rules import Schema

SCHEMAS: dict[str, Schema] = {
    "MultilingualPairs": MULTILINGUAL_PAIRS,
    "PersonaItems": PERSONA_ITEMS,
    "PersonalizedPairs": PERSONALIZED_PAIRS,
    "PersonalizedPreferences": PERSONALIZED_PREFERENCES,
    "PersonalizedQuestions": PERSONALIZED_QUESTIONS,
    "RankedPairs": RANKED_PAIRS,
    "RankedResponses": RANKED_RESPONSES,
    "TranslationPairs": TRANSLATION_PAIRS,
    "VerbatimPersonalizedPairs": VERBATIM_PERSONALIZED_PAIRS,
    "VerbatimPersonalizedQuestions": VERBATIM_PERSONALIZED_QUESTIONS,
}
"""All schemas by their name in a release's manifest."""


def release_columns(columns: Iterable[str]) -> set[str]:
    """Return the columns that belong to a schema whose columns are all in `columns`."""
    present = set(columns)
    return {name for schema in SCHEMAS.values() if schema.columns.keys() <= present for name in schema.columns}
