"""Every schema by name."""

import pandera.polars as pa

from pluralbench_schemas.chinese import RankedResponses
from pluralbench_schemas.multilingual import MultilingualPairs, TranslationPairs
from pluralbench_schemas.persona import PersonaItems
from pluralbench_schemas.personalized import (
    PersonalizedPairs,
    PersonalizedQuestions,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
)

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
