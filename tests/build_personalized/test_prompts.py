"""The prompts' wording is pinned to their version."""

from build_personalized.prompts import PROMPT_VERSION, answer_messages, aspects_messages
from pluralbench_runs import digest

POSTS = [{"id": "1", "category": "beer", "text": "I like stout."}, {"id": "2", "category": "tea", "text": "A\nB"}]

WORDINGS = {"1": "2cc547c17d48460368f3379f30b10164351cea427dc95a817dd4b7f1c81b1d6c"}
"""SHA-256 of all prompts for fixed inputs, by version: a changed word needs a new version and a new line here."""


def test_a_changed_word_needs_a_new_version() -> None:
    message = [
        answer_messages("Which one?", POSTS, ["Cost", "Noise"], "chosen", 100),
        answer_messages("Which one?", POSTS, ["Cost", "Noise"], "rejected", 100),
        aspects_messages("Which one?", ["I am poor.", "I am tired."], 6),
    ]
    assert digest(message) == WORDINGS[PROMPT_VERSION]
