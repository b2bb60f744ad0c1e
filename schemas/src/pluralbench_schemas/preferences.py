"""Preferences of people who are known by their other questions: what personalized reward models learn from."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.personalized import POST
from pluralbench_schemas.rules import Rows, differs, each, fields, have_fields, is_call_key, non_blank, rule

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
ROLES = ("system", "user", "assistant")


class PersonalizedPreferences(Rows):
    """Pairs of answers of which one person preferred one, a row a pair, each person's rows in their order in time.

    prompt: the conversation up to the answer, structs of `role` and `content`; the user speaks last. profile: the
    person's other questions, the most recent first. persona: a summary of the person, null where none was asked for.
    persona_call: key of the recorded call behind it. source_id: the conversation or question in the source.
    chosen_source, rejected_source: the answers there, null where they have no ids. original_split: the split in which
    the source has the row, null where it has none.
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
    _asked = rule(
        "must end with a message of the user",
        "prompt",
        holds=lambda name: (pl.col(name).list.last().struct.field("role") == "user").fill_null(value=False),
    )
    _differ = differs("rejected", "chosen")
    _posts = have_fields("must have an id and a text in each post", "profile", "id", "text")
    _others = rule(
        "must not hold the row's own question, the post of its `source_id`",
        "profile",
        holds=lambda name: ~fields(name, "id").list.contains(pl.col("source_id")),
    )
    _call_keys = is_call_key("persona_call")
    _recorded = rule(
        "must be there where `persona_call` is, and nowhere else",
        "persona",
        holds=lambda name: pl.col(name).is_null() == pl.col("persona_call").is_null(),
    )
