"""Pairs to train reward models on, with prompt and answers as messages, which trainers read as they are."""

import polars as pl

from pluralbench_schemas.profiles import POST
from pluralbench_schemas.rules import Schema, differs, each, fields, have_fields, is_call_key, non_blank, rule

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
ROLES = ("system", "user", "assistant")
VOTE_ON_PAIR = pl.Struct({"annotator": pl.String, "vote": pl.String})
VOTES = ("chosen", "rejected", "tie")


def _ends_with(role: str, column: str) -> pl.Expr:
    return (pl.col(column).list.last().struct.field("role") == role).fill_null(value=False)


MESSAGE_PAIRS = Schema(
    columns={
        "id": pl.String,
        "prompt": pl.List(MESSAGE),
        "chosen": pl.List(MESSAGE),
        "rejected": pl.List(MESSAGE),
    },
    rules=[
        non_blank("id"),
        rule(
            "must have text in each message, of the role system, user or assistant",
            "prompt",
            "chosen",
            "rejected",
            holds=lambda name: each(
                name,
                pl.element().struct.field("content").str.contains(r"\S")
                & pl.element().struct.field("role").is_in(ROLES),
            ),
        ),
        rule("must end with a message of the user", "prompt", holds=lambda name: _ends_with("user", name)),
        rule(
            "must be one message of the assistant",
            "chosen",
            "rejected",
            holds=lambda name: (pl.col(name).list.len() == 1) & _ends_with("assistant", name),
        ),
        differs("rejected", "chosen"),
    ],
)
"""Pairs of answers. Conversation and answers are lists of structs of `role` and `content`.

Columns:
    id: Unique id.
    prompt: The conversation up to the answer, ending with a user message.
    chosen: The preferred answer, one message.
    rejected: The other answer, one message.
"""


RANKED_PAIRS = Schema(
    columns={
        **MESSAGE_PAIRS.columns,
        "prompt_id": pl.String,
        "chosen_id": pl.String,
        "rejected_id": pl.String,
        "annotated_by": pl.String,
        "votes": pl.List(VOTE_ON_PAIR),
    },
    rules=[
        *MESSAGE_PAIRS.rules,
        non_blank("prompt_id", "chosen_id", "rejected_id", "annotated_by"),
        have_fields("must name the annotator of each vote", "votes", "annotator"),
        rule(
            "must be chosen, rejected or tie in each vote",
            "votes",
            holds=lambda name: each(name, pl.element().struct.field("vote").is_in(VOTES)),
        ),
    ],
)
"""Pairs that annotations of ranked responses prefer; see `RANKED_RESPONSES`.

Columns:
    prompt_id: Id of the prompt in the rankings.
    chosen_id: Id of the chosen response there.
    rejected_id: Id of the rejected response there.
    annotated_by: "people" or the name of a judge model.
    votes: The votes of each annotator on the two responses: structs of `annotator` and `vote`, which is "chosen",
        "rejected" or "tie". Sorted by annotator.
"""


PERSONALIZED_PREFERENCES = Schema(
    columns={
        **MESSAGE_PAIRS.columns,
        "user_id": pl.String,
        "profile": pl.List(POST),
        "persona": pl.String,
        "persona_call": pl.String,
        "source_id": pl.String,
        "chosen_source": pl.String,
        "rejected_source": pl.String,
        "original_split": pl.String,
    },
    rules=[
        *MESSAGE_PAIRS.rules,
        non_blank("user_id", "persona", "source_id"),
        have_fields("must have an id and a text in each post", "profile", "id", "text"),
        rule(
            "must not contain the row's own question (`source_id`)",
            "profile",
            holds=lambda name: ~fields(name, "id").list.contains(pl.col("source_id")),
        ),
        is_call_key("persona_call"),
        rule(
            "must be present exactly if `persona_call` is",
            "persona",
            holds=lambda name: pl.col(name).is_null() == pl.col("persona_call").is_null(),
        ),
    ],
    nullable=("persona", "persona_call", "chosen_source", "rejected_source", "original_split"),
)
"""Pairs of answers with a user's preference. The rows of a user are in chronological order.

Columns:
    user_id: Id of the user.
    profile: The user's other questions, the most recent first.
    persona: Summary of the user; null if none was requested.
    persona_call: Key of the recorded call of the persona.
    source_id: Id of the conversation or question in the source.
    chosen_source: Id of `chosen` in the source; null if it has none.
    rejected_source: Id of `rejected` in the source; null if it has none.
    original_split: Split of the row in the source; null if it has none.
"""
