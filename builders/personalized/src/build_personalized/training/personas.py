"""Generate a persona for each user: a model's short summary of the user's questions (paper, appendix B).

The model sees questions only, so a persona cannot reveal which answer a user chose. As in the paper it sees all
questions of a user, including those of the pairs, which the reward model sees anyway.
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
from build_personalized.prompts import messages_of, prompt_lines
from build_personalized.screening import REASONS, repeats
from build_personalized.sources.loaded import drops_frame
from build_personalized.training.recipe import HAND_WRITTEN, NO_MODEL, PersonaTable, TrainingRecipe
from build_personalized.training.sources import SAMPLE

STEP = "persona"
SAMPLE_ONLY = (
    "hand-written personas exist only for the users of the sample; choose a model, or none, with `persona.model=...`"
)


def persona_messages(posts: Sequence[dict[str, Any]], table: PersonaTable) -> list[Message]:
    """Return the messages of the request for a persona, of a user's posts, newest first."""
    shown = [post | {"text": _first_words(post["text"], table.question_words)} for post in posts[: table.questions]]
    return messages_of("persona", questions=render_profile(shown), word_limit=table.word_limit)


def persona_backend(recipe: TrainingRecipe, *, replay: bool) -> Backend:
    """Return the backend that writes personas; with `replay` no request is sent."""
    if replay or recipe.persona.provider == NO_MODEL:
        return Replay()
    if recipe.persona.provider == HAND_WRITTEN:
        return CannedBackend(_sample_personas, SAMPLE_ONLY)
    return chat_backend(recipe.persona, recipe.connection)


def add_personas(
    pairs: pl.DataFrame, posts: pl.DataFrame, recipe: TrainingRecipe, ledger: Ledger, backend: Backend
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the columns `persona` and `persona_call`; without a model (`none`) both are null.

    The posts are those of all users, oldest first.

    Returns:
        The pairs, and the dropped pairs: those of users without a valid persona.
    """
    if recipe.persona.provider == NO_MODEL:
        empty = pl.lit(None, dtype=pl.String)
        return pairs.with_columns(persona=empty, persona_call=empty), drops_frame([])
    users = pairs["user_id"].unique(maintain_order=True).to_list()
    newest_first = posts.group_by("user_id").agg(pl.col("post").reverse())
    user_posts: dict[str, list[dict[str, Any]]] = dict(newest_first.iter_rows())

    def request(user: str, attempt: int) -> Request:
        messages = persona_messages(user_posts.get(user, []), recipe.persona)
        return chat_request(recipe.persona, messages, seed=recipe.seed, label=persona_label(user), attempt=attempt)

    def parse(_: str, text: str) -> str:
        return parse_persona(text, recipe.persona.word_limit)

    replies = ask_until_valid(
        users,
        request,
        parse,
        ledger,
        backend,
        attempts=recipe.persona.attempts,
        limits=recipe.connection.limits(),
        label="personas",
    )
    rows = [(user, reply.value, reply.answer.key, reply.reason) for user, reply in zip(users, replies, strict=True)]
    columns = ("user_id", "persona", "persona_call", "reason")
    personas = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    joined = pairs.join(personas, on="user_id", how="left", maintain_order="left")
    dropped = joined.filter(pl.col("persona").is_null()).select("config", step=pl.lit(STEP), reason="reason", id="id")
    return joined.drop_nulls("persona").drop("reason"), dropped


def parse_persona(text: str, word_limit: int) -> str:
    """Return the persona in a reply.

    Raises:
        InvalidAnswer: The reply is empty, a refusal, too long, or repeats the prompt's instructions.
    """
    persona = parse_answer(text, word_limit)
    if repeats(persona, prompt_lines("persona", word_limit=word_limit)):
        raise InvalidAnswer(REASONS["echo"])
    return persona


def persona_label(user: str) -> str:
    """Label of the call for a persona, in the ledger and in messages."""
    return f"persona of {user}"


def _first_words(text: str, words: int) -> str:
    """Cut a text after a number of words; a shorter text keeps its white space."""
    parts = text.split()
    return text if len(parts) <= words else f"{' '.join(parts[:words])} …"


def _sample_personas() -> dict[str, str]:
    rows = pl.read_ndjson((SAMPLE / "personas.jsonl").read_bytes())
    return {persona_label(row["user"]): row["persona"] for row in rows.to_dicts()}
