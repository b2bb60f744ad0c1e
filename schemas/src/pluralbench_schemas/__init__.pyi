from .catalogue import SCHEMAS, release_columns
from .categories import CATEGORIES
from .chinese import RANK, RANKED_RESPONSES, RESPONSE, RankedResponses
from .errors import TableError
from .languages import ENGLISH, LANGUAGES, Language, language_of, similar_languages
from .multilingual import MultilingualPairs, TranslationPairs
from .persona import VARIABLE, PersonaItems
from .personalized import (
    PersonalizedPairs,
    PersonalizedQuestions,
    VerbatimPersonalizedPairs,
    VerbatimPersonalizedQuestions,
    evidence_in_narrative,
    normalized,
)
from .preferences import MESSAGE, RANKED_PAIRS, ROLES, PersonalizedPreferences, RankedPairs
from .profiles import POST, RUBRIC_ASPECT, render_posts, render_profile
from .validation import validate

__all__ = [
    "CATEGORIES",
    "ENGLISH",
    "LANGUAGES",
    "MESSAGE",
    "POST",
    "RANK",
    "RANKED_PAIRS",
    "RANKED_RESPONSES",
    "RESPONSE",
    "ROLES",
    "RUBRIC_ASPECT",
    "SCHEMAS",
    "VARIABLE",
    "Language",
    "MultilingualPairs",
    "PersonaItems",
    "PersonalizedPairs",
    "PersonalizedPreferences",
    "PersonalizedQuestions",
    "RankedPairs",
    "RankedResponses",
    "TableError",
    "TranslationPairs",
    "VerbatimPersonalizedPairs",
    "VerbatimPersonalizedQuestions",
    "evidence_in_narrative",
    "language_of",
    "normalized",
    "release_columns",
    "render_posts",
    "render_profile",
    "similar_languages",
    "validate",
]
