"""A persona for each user: a short text in which a model sums up the questions that they asked (paper, appendix B).

The model sees questions alone, never an answer, so a persona cannot tell which answer a user chose. As in the paper it
sees all questions of a user, those of the pairs included: a reward model is given them anyway.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_calls import (
    Backend,
    CannedBackend,
    InvalidAnswer,
    Ledger,
    Message,
    Replay,
    Request,
    ask_until_valid,
    chat_backend,
    chat_request,
)
from pluralbench_schemas import render_profile

from build_personalized.answers import parse_answer
from build_personalized.screening import REASONS, repeats
from build_personalized.sources.loaded import drops_frame
from build_personalized.training.recipe import NOBODY, WRITTEN, PersonaTable, TrainingRecipe
from build_personalized.training.sources import SAMPLE

STEP = "persona"
NOT_OF_THE_SAMPLE = (
    "hand-written personas are only for the sample's own users; choose a model with --persona-llm, or none"
)
SYSTEM = """\
You are shown questions that one person asked, and sum up the person for somebody who will answer their next question.
Write one paragraph about this person, in the third person and in at most {word_limit} words:
- what they care about, and what they know already;
- what limits them: money, time, food, health, place, tools;
- how they write, and how long, how plain and how detailed an answer should be for them.
Say only what the questions show, and guess no age, sex, origin or belief.
Reply with the paragraph alone."""
USER = """\
The questions of this person, the newest first:
{questions}

Sum up this person in at most {word_limit} words."""


def persona_messages(posts: Sequence[dict[str, Any]], table: PersonaTable) -> list[Message]:
    """Messages that ask for a persona. posts: of one user, the newest first."""
    shown = [post | {"text": _beginning(post["text"], table.question_words)} for post in posts[: table.questions]]
    return [
        {"role": "system", "content": SYSTEM.format(word_limit=table.word_limit)},
        {"role": "user", "content": USER.format(questions=render_profile(shown), word_limit=table.word_limit)},
    ]


def writer_of(recipe: TrainingRecipe, *, replay: bool) -> Backend:
    """Who writes personas. replay: nobody is asked."""
    if replay or recipe.persona.provider == NOBODY:
        return Replay()
    if recipe.persona.provider == WRITTEN:
        return CannedBackend(_written, NOT_OF_THE_SAMPLE)
    return chat_backend(recipe.persona, recipe.connection)


def add_personas(
    pairs: pl.DataFrame, posts: pl.DataFrame, recipe: TrainingRecipe, ledger: Ledger, writer: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`pairs` with `persona` and `persona_call`; the pairs of users of whom none could be had are drops.

    Without a model (`none`) both columns are null.
    """
    if recipe.persona.provider == NOBODY:
        empty = pl.lit(None, dtype=pl.String)
        return pairs.with_columns(persona=empty, persona_call=empty), drops_frame([])
    users = pairs["user_id"].unique(maintain_order=True).to_list()
    newest_first = posts.group_by("user_id").agg(pl.col("post").reverse())
    asked: dict[str, list[dict[str, Any]]] = dict(newest_first.iter_rows())

    def request(user: str, attempt: int) -> Request:
        messages = persona_messages(asked.get(user, []), recipe.persona)
        return chat_request(recipe.persona, messages, seed=recipe.seed, label=persona_label(user), attempt=attempt)

    def parse(_: str, text: str) -> str:
        return parse_persona(text, recipe.persona.word_limit)

    settled = ask_until_valid(
        users,
        request,
        parse,
        ledger,
        writer,
        attempts=recipe.persona.attempts,
        limits=recipe.connection.limits(),
        label="personas",
    )
    found = [(user, one.value, one.answer.key, one.reason) for user, one in zip(users, settled, strict=True)]
    columns = ("user_id", "persona", "persona_call", "reason")
    written = pl.DataFrame(found, schema=dict.fromkeys(columns, pl.String), orient="row")
    joined = pairs.join(written, on="user_id", how="left", maintain_order="left")
    dropped = joined.filter(pl.col("persona").is_null()).select("config", step=pl.lit(STEP), reason="reason", id="id")
    return joined.drop_nulls("persona").drop("reason"), dropped


def parse_persona(text: str, word_limit: int) -> str:
    """The persona in a reply. Raises `InvalidAnswer`: empty, refused, too long, or the prompt's own instructions."""
    persona = parse_answer(text, word_limit)
    lines = [line for line in f"{SYSTEM}\n{USER}".format(word_limit=word_limit, questions="").splitlines() if line]
    if repeats(persona, lines):
        raise InvalidAnswer(REASONS["echo"])
    return persona


def persona_label(user: str) -> str:
    """What a call for a persona is called, in the ledger and in messages."""
    return f"persona of {user}"


def _beginning(text: str, words: int) -> str:
    """The first words of a text; white space stays where nothing is cut."""
    parts = text.split()
    return text if len(parts) <= words else f"{' '.join(parts[:words])} …"


def _written() -> dict[str, str]:
    """The personas that were written for the sample, by what the call for one is called."""
    rows = pl.read_ndjson((SAMPLE / "personas.jsonl").read_bytes())
    return {persona_label(row["user"]): row["persona"] for row in rows.to_dicts()}
