"""Pairs to train reward models on, with prompt and answers as messages, which trainers read as they are."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.profiles import POST
from pluralbench_schemas.rules import Rows, differs, each, fields, have_fields, is_call_key, non_blank, rule

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
ROLES = ("system", "user", "assistant")
VOTE_ON_PAIR = pl.Struct({"annotator": pl.String, "vote": pl.String})
VOTES = ("chosen", "rejected", "tie")


def _ends_with(role: str, column: str) -> pl.Expr:
    return (pl.col(column).list.last().struct.field("role") == role).fill_null(value=False)


class MessagePairs(Rows):
    """Pairs of answers. Conversation and answers are lists of structs of `role` and `content`.

    Attributes:
        id: Unique id.
        prompt: The conversation up to the answer, ending with a user message.
        chosen: The preferred answer, one message.
        rejected: The other answer, one message.
    """

    id: str = pa.Field(unique=True)
    prompt: pl.List = pa.Field(dtype_kwargs={"inner": MESSAGE})
    chosen: pl.List = pa.Field(dtype_kwargs={"inner": MESSAGE})
    rejected: pl.List = pa.Field(dtype_kwargs={"inner": MESSAGE})

    _id_text = non_blank("id")
    _messages = rule(
        "must have text in each message, of the role system, user or assistant",
        "prompt",
        "chosen",
        "rejected",
        holds=lambda name: each(
            name,
            pl.element().struct.field("content").str.contains(r"\S") & pl.element().struct.field("role").is_in(ROLES),
        ),
    )
    _last_message = rule("must end with a message of the user", "prompt", holds=lambda name: _ends_with("user", name))
    _answer = rule(
        "must be one message of the assistant",
        "chosen",
        "rejected",
        holds=lambda name: (pl.col(name).list.len() == 1) & _ends_with("assistant", name),
    )
    _differ = differs("rejected", "chosen")


class RankedPairs(MessagePairs):
    """Pairs that annotations of ranked responses prefer; see `RankedResponses`.

    Attributes:
        prompt_id: Id of the prompt in the rankings.
        chosen_id: Id of the chosen response there.
        rejected_id: Id of the rejected response there.
        annotated_by: "people" or the name of a judge model.
        votes: The votes of each annotator on the two responses: structs of `annotator` and `vote`, which is "chosen",
            "rejected" or "tie". Sorted by annotator.
    """

    prompt_id: str
    chosen_id: str
    rejected_id: str
    annotated_by: str
    votes: pl.List = pa.Field(dtype_kwargs={"inner": VOTE_ON_PAIR})

    _text = non_blank("prompt_id", "chosen_id", "rejected_id", "annotated_by")
    _voters = have_fields("must name the annotator of each vote", "votes", "annotator")
    _votes = rule(
        "must be chosen, rejected or tie in each vote",
        "votes",
        holds=lambda name: each(name, pl.element().struct.field("vote").is_in(VOTES)),
    )


RANKED_PAIRS = RankedPairs.row_types()
"""Column names and types of `RankedPairs`, to create a table."""


class PersonalizedPreferences(MessagePairs):
    """Pairs of answers with a user's preference. The rows of a user are in chronological order.

    Attributes:
        user_id: Id of the user.
        profile: The user's other questions, the most recent first.
        persona: Summary of the user; null if none was requested.
        persona_call: Key of the recorded call of the persona.
        source_id: Id of the conversation or question in the source.
        chosen_source: Id of `chosen` in the source; null if it has none.
        rejected_source: Id of `rejected` in the source; null if it has none.
        original_split: Split of the row in the source; null if it has none.
    """

    user_id: str
    profile: pl.List = pa.Field(dtype_kwargs={"inner": POST})
    persona: str = pa.Field(nullable=True)
    persona_call: str = pa.Field(nullable=True)
    source_id: str
    chosen_source: str = pa.Field(nullable=True)
    rejected_source: str = pa.Field(nullable=True)
    original_split: str = pa.Field(nullable=True)

    _text = non_blank("user_id", "persona", "source_id")
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
