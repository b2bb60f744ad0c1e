"""Whether the words around a verdict deny it, or put another one beside it.

A reply such as "I don't think [[A]] wins" has a verdict in the right form, and says the opposite. It is invalid, and is
requested again. Only the clause with the verdict is searched, so "A does not answer, so [[B]]" is a verdict.
"""

import re

NEAR = 200  # characters before and after a verdict that are searched

# Before a verdict, in its clause. Some words are part of an assurance: "no doubt", 不错 (good), 非常 (very).
_NEGATION = (
    r"\b(?:not|cannot|never|neither|nor|hardly|unlikely|i doubt|than|instead of|if|whether|unless"
    r"|no (?:es|creo|pienso|considero|elijo|diría)|no\W*$|ni|non|não|nem|nunca|pas"
    r"|nicht|kein\w*|weder|besser als|niet|geen|nie"  # codespell:ignore als
    r"|не|ни|нет|ليس|ليست|لا(?! شك)|לא|değil|không|bukan|tidak)(?!\w)"
    r"|n['’]t\b|不(?![错過过仅僅但同论論管])|并非|並非|绝非|絕非|而非|没有|沒有|≠|❌|~~|नहीं"
)
BEFORE = re.compile(_NEGATION, re.IGNORECASE)
CLAUSE = re.compile(
    r"[\n.,;:!?。，；：！？、)）—…]|\b(?:but|so|hence|thus|therefore|sondern|sino|mais|donc|因此|所以)\b", re.IGNORECASE
)
_CLOSING = r"(?:</?\w{1,20}>|[\]\)}>*_\"'”’`】］])*"
# Behind a verdict and its brackets, with at most two words between.
AFTER = re.compile(
    _CLOSING + r"(?:[ ]*[?？]"
    r"|[ ]*[并並也都绝絕更]?(?:不(?!错)|非(?!常)|没有|沒有|नहीं|ではな|じゃな|では?あり?ません|[은는이가]?[ ]?아니)"
    r"|(?:[ ]+(?!as\b|since\b|because\b)\w+){0,2}?[ ]+(?:\w+n['’]t|cannot|not|never|worse|worst|inferior|loses|lost"
    r"|weaker|wrong|nicht|kein\w*|no|non|não|pas|n['’]est|niet|не|ليس|değil|không|bukan|tidak)\b)",
    re.IGNORECASE,
)
_OR = r"(?<=[ ])(?:or|and|oder|und|ou|et|y|o|или|и)(?=[ ])|或|和|与|與|还是|還是"  # codespell:ignore oder
BESIDE = re.compile(
    _CLOSING + rf"[ ]*(?:(?:/|&|=)[ ]*(?=\D)|(?:{_OR})[ ]*)"
    r"(?:(?:response|answer|assistant|output|model)[ ]*)?(?!\[\[)(?:[\[(*\"'（【［]{1,3}\w{1,2}\b|(?-i:[A-HJ-Z1-9]\b))",
    re.IGNORECASE,
)


def is_denied(text: str, start: int, end: int) -> bool:
    """Return whether the words around a verdict, from `start` to `end`, deny it, or ask for it."""
    before = text[max(start - NEAR, 0) : start].replace("!=", "≠")
    return bool(BEFORE.search(CLAUSE.split(before)[-1]) or AFTER.match(text[end : end + NEAR]))


def is_one_of_two(text: str, end: int) -> bool:
    """Return whether another verdict stands beside the one that ends here, as in "[[A]] or B"."""
    return bool(BESIDE.match(text[end : end + NEAR]))
