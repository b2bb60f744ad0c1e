from .catalogue import SCHEMAS, release_columns
from .categories import CATEGORIES
from .chinese import RANK, RANKED_RESPONSES, RESPONSE
from .errors import TableError
from .languages import ENGLISH, LANGUAGES, Language, language_of, similar_languages
from .multilingual import MULTILINGUAL_PAIRS, TRANSLATION_PAIRS
from .persona import PERSONA_ITEMS, VARIABLE
from .personalized import (
    PERSONALIZED_PAIRS,
    PERSONALIZED_QUESTIONS,
    VERBATIM_PERSONALIZED_PAIRS,
    VERBATIM_PERSONALIZED_QUESTIONS,
    evidence_in_narrative,
    normalized,
)
from .preferences import MESSAGE, PERSONALIZED_PREFERENCES, RANKED_PAIRS, ROLES
from .profiles import POST, RUBRIC_ASPECT, render_posts, render_profile
from .rules import Schema
from .validation import validate

__all__ = [
    "CATEGORIES",
    "ENGLISH",
    "LANGUAGES",
    "MESSAGE",
    "MULTILINGUAL_PAIRS",
    "PERSONALIZED_PAIRS",
    "PERSONALIZED_PREFERENCES",
    "PERSONALIZED_QUESTIONS",
    "PERSONA_ITEMS",
    "POST",
    "RANK",
    "RANKED_PAIRS",
    "RANKED_RESPONSES",
    "RESPONSE",
    "ROLES",
    "RUBRIC_ASPECT",
    "SCHEMAS",
    "TRANSLATION_PAIRS",
    "VARIABLE",
    "VERBATIM_PERSONALIZED_PAIRS",
    "VERBATIM_PERSONALIZED_QUESTIONS",
    "Language",
    "Schema",
    "TableError",
    "evidence_in_narrative",
    "language_of",
    "normalized",
    "release_columns",
    "render_posts",
    "render_profile",
    "similar_languages",
    "validate",
]
