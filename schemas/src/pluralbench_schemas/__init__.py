"""What every PluralBench table must look like."""

import pandera.polars as pa

from pluralbench_schemas.chinese import RANK, RANKED_RESPONSES, RESPONSE, RankedResponses
from pluralbench_schemas.languages import ENGLISH, LANGUAGES, Language, language_of, near_languages
from pluralbench_schemas.multilingual import MultilingualPairs, TranslationPairs
from pluralbench_schemas.persona import VARIABLE, PersonaItems
from pluralbench_schemas.personalized import (
    POST,
    RUBRIC_ASPECT,
    PersonalizedPairs,
    PersonalizedQuestions,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
    evidence_in_narrative,
    normalized,
    render_posts,
    render_profile,
)
from pluralbench_schemas.validation import TableError, validate

SCHEMAS: dict[str, type[pa.DataFrameModel]] = {
    schema.__name__: schema
    for schema in (
        MultilingualPairs,
        PersonaItems,
        PersonalizedPairs,
        PersonalizedQuestions,
        RankedResponses,
        TranslationPairs,
        VerbatimPersonalizedPairs,
        VerbatimPersonalizedQuestions,
    )
}
"""Every schema by the name that a release's manifest gives it."""

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "POST",
    "RANK",
    "RANKED_RESPONSES",
    "RESPONSE",
    "RUBRIC_ASPECT",
    "SCHEMAS",
    "VARIABLE",
    "Language",
    "MultilingualPairs",
    "PersonaItems",
    "PersonalizedPairs",
    "PersonalizedQuestions",
    "RankedResponses",
    "TableError",
    "TranslationPairs",
    "VerbatimPersonalizedPairs",
    "VerbatimPersonalizedQuestions",
    "evidence_in_narrative",
    "language_of",
    "near_languages",
    "normalized",
    "render_posts",
    "render_profile",
    "validate",
]
