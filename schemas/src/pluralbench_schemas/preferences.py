"""Preferences of users with their other questions: training data of personalized reward models."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.profiles import POST
from pluralbench_schemas.rules import Rows, differs, each, fields, have_fields, is_call_key, non_blank, rule

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
ROLES = ("system", "user", "assistant")


class PersonalizedPreferences(Rows):
    """Pairs of answers with a user's preference. The rows of a user are in chronological order.

    Attributes:
        id: Unique id.
        user_id: Id of the user.
        prompt: The conversation up to the answer: structs of `role` and `content`, ending with a user message.
        chosen: The preferred answer.
        rejected: The other answer.
        profile: The user's other questions, the most recent first.
        persona: Summary of the user; null if none was requested.
        persona_call: Key of the recorded call of the persona.
        source_id: Id of the conversation or question in the source.
        chosen_source: Id of `chosen` in the source; null if it has none.
        rejected_source: Id of `rejected` in the source; null if it has none.
        original_split: Split of the row in the source; null if it has none.
    """

    id: str = pa.Field(unique=True)
    user_id: str
    prompt: pl.List = pa.Field(dtype_kwargs={"inner": MESSAGE})
    chosen: str
    rejected: str
    profile: pl.List = pa.Field(dtype_kwargs={"inner": POST})
    persona: str = pa.Field(nullable=True)
    persona_call: str = pa.Field(nullable=True)
    source_id: str
    chosen_source: str = pa.Field(nullable=True)
    rejected_source: str = pa.Field(nullable=True)
    original_split: str = pa.Field(nullable=True)

    _text = non_blank("id", "user_id", "chosen", "rejected", "persona", "source_id")
    _messages = rule(
        "must have text in each message, of the role system, user or assistant",
        "prompt",
        holds=lambda name: each(
            name,
            pl.element().struct.field("content").str.contains(r"\S") & pl.element().struct.field("role").is_in(ROLES),
        ),
    )
    _last_message = rule(
        "must end with a message of the user",
        "prompt",
        holds=lambda name: (pl.col(name).list.last().struct.field("role") == "user").fill_null(value=False),
    )
    _differ = differs("rejected", "chosen")
    _posts = have_fields("must have an id and a text in each post", "profile", "id", "text")
    _others = rule(
        "must not contain the row's own question (`source_id`)",
        "profile",
        holds=lambda name: ~fields(name, "id").list.contains(pl.col("source_id")),
    )
    _call_keys = is_call_key("persona_call")
    _recorded = rule(
        "must be present exactly if `persona_call` is",
        "persona",
        holds=lambda name: pl.col(name).is_null() == pl.col("persona_call").is_null(),
    )
