"""What a scorer could cheat on in pairs of texts: length, leaks, repetition; and limits to it."""

from pluralbench_release.audit.figures import means, pair_figures, wins, wins_text, word_count
from pluralbench_release.audit.limits import check_limits, limited
from pluralbench_release.audit.texts import alike, content_words, near_duplicates, near_texts, normalized, overlap
from pluralbench_release.errors import AuditFailed
from pluralbench_release.recipe import PairLimits

__all__ = [
    "AuditFailed",
    "PairLimits",
    "alike",
    "check_limits",
    "content_words",
    "limited",
    "means",
    "near_duplicates",
    "near_texts",
    "normalized",
    "overlap",
    "pair_figures",
    "wins",
    "wins_text",
    "word_count",
]
