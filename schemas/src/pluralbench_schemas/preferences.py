"""Preferences of people who are known by their other questions: what personalized reward models learn from."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.call_keys import CALL_KEY
from pluralbench_schemas.personalized import POST

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
ROLES = ("system", "user", "assistant")


class PersonalizedPreferences(pa.DataFrameModel):
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

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("id", "user_id", "chosen", "rejected", "persona", "source_id", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(r"\S"))

    @pa.check("prompt", error="must have text in each message, of the role system, user or assistant")
    @classmethod
    def _messages(cls, data: pa.PolarsData) -> pl.LazyFrame:
        message = pl.element().struct
        said = message.field("content").str.contains(r"\S") & message.field("role").is_in(ROLES)
        return data.lazyframe.select(pl.col(data.key).list.eval(said.fill_null(value=False)).list.all())

    @pa.check("prompt", error="must end with a message of the user")
    @classmethod
    def _asked(cls, data: pa.PolarsData) -> pl.LazyFrame:
        role = pl.col(data.key).list.last().struct.field("role")
        return data.lazyframe.select((role == "user").fill_null(value=False))

    @pa.check("rejected", error="must differ from `chosen`")
    @classmethod
    def _differ(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("chosen") != pl.col("rejected"))

    @pa.check("profile", error="must have an id and a text in each post")
    @classmethod
    def _posts(cls, data: pa.PolarsData) -> pl.LazyFrame:
        post = pl.element().struct
        filled = post.field("id").str.contains(r"\S") & post.field("text").str.contains(r"\S")
        return data.lazyframe.select(pl.col(data.key).list.eval(filled.fill_null(value=False)).list.all())

    @pa.check("profile", error="must not hold the row's own question, the post of its `source_id`")
    @classmethod
    def _others(cls, data: pa.PolarsData) -> pl.LazyFrame:
        ids = pl.col(data.key).list.eval(pl.element().struct.field("id"))
        return data.lazyframe.select(~ids.list.contains(pl.col("source_id")))

    @pa.check("persona_call", error="must be the key of a recorded call, 64 hexadecimal digits")
    @classmethod
    def _call_keys(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(CALL_KEY))

    @pa.check("persona", error="must be there where `persona_call` is, and nowhere else")
    @classmethod
    def _recorded(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("persona").is_null() == pl.col("persona_call").is_null())
