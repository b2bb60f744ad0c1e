"""What every PluralBench table must look like."""

import pandera.polars as pa

from pluralbench_schemas.personalized import (
    POST,
    RUBRIC_ASPECT,
    PersonalizedPairs,
    PersonalizedQuestions,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
    evidence_in_narrative,
    normalized,
    render_profile,
)
from pluralbench_schemas.validation import TableError, validate

SCHEMAS: dict[str, type[pa.DataFrameModel]] = {
    schema.__name__: schema
    for schema in (
        PersonalizedPairs,
        PersonalizedQuestions,
        VerbatimPersonalizedPairs,
        VerbatimPersonalizedQuestions,
    )
}
"""Every schema by the name that a release's manifest gives it."""

__all__ = [
    "POST",
    "RUBRIC_ASPECT",
    "SCHEMAS",
    "PersonalizedPairs",
    "PersonalizedQuestions",
    "TableError",
    "VerbatimPersonalizedPairs",
    "VerbatimPersonalizedQuestions",
    "evidence_in_narrative",
    "normalized",
    "render_profile",
    "validate",
]
