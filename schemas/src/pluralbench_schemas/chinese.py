"""Tables of CheemsBench and CheemsPreference: prompts whose responses are ranked.

Column names are the published ones. There `rank` is an object with the responses' ids as keys, which no table can hold;
here it is a list. The rows carry their provenance in further columns.
"""

from typing import Any

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.call_keys import are_call_keys

MARKS = ("1", "2", "s")
RESPONSE = pl.Struct({"id": pl.String, "content": pl.String, "model": pl.String})
RANK = pl.Struct({"id": pl.String, "rank": pl.Int64})

COLUMNS: dict[str, Any] = {
    "id": pl.String,
    "input": pl.String,
    "sys_prompt": pl.String,
    "responses": pl.List(RESPONSE),
    "annotations": pl.List(pl.List(pl.String)),
    "rank": pl.List(RANK),
    "order": pl.List(pl.List(pl.String)),
    "category": pl.List(pl.String),
    "judgements": pl.Int64,
    "conflicts": pl.Int64,
    "annotated_by": pl.String,
    "vote_calls": pl.List(pl.String),
    "reward_calls": pl.List(pl.String),
}
RANKED_RESPONSES = pl.Schema(COLUMNS)
"""Names and types of a table of `RankedResponses`, to make one."""


def _ids(column: str) -> pl.Expr:
    return pl.col(column).list.eval(pl.element().struct.field("id"))


def _ranks() -> pl.Expr:
    return pl.col("rank").list.eval(pl.element().struct.field("rank"))


def _named(column: str) -> pl.Expr:
    """The ids at the first two places of each entry."""
    return pl.col(column).list.eval(pl.element().list.head(2).explode(empty_as_null=False))


class RankedResponses(pa.DataFrameModel):
    """Prompts with ranked responses.

    responses: structs of `id`, `content` and `model`, which is "" where nobody said. annotations: [first, second, mark]
    with mark "1" for first better, "2" for second better, "s" for equal; in a preference set those that were kept.
    rank: structs of `id` and `rank`, 1 for the best, the next layer one more, equal ones alike. order: [better, worse],
    what the annotations order, directly or by way of others. category: main and sub-category. judgements, conflicts:
    how many annotations there were, and how many the ranks do not keep. annotated_by: "people" or a judge model.
    vote_calls, reward_calls: keys of the recorded calls behind the row.
    """

    id: str = pa.Field(unique=True)
    input: str
    sys_prompt: str = pa.Field(nullable=True)
    responses: pl.List = pa.Field(dtype_kwargs={"inner": RESPONSE})
    annotations: pl.List = pa.Field(dtype_kwargs={"inner": pl.List(pl.String)})
    rank: pl.List = pa.Field(dtype_kwargs={"inner": RANK})
    order: pl.List = pa.Field(dtype_kwargs={"inner": pl.List(pl.String)})
    category: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})
    judgements: int
    conflicts: int
    annotated_by: str
    vote_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})
    reward_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("id", "input", "annotated_by", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(r"\S"))

    @pa.check("responses", error="must be two or more, each with an id of its own")
    @classmethod
    def _responses(cls, data: pa.PolarsData) -> pl.LazyFrame:
        ids = _ids("responses")
        return data.lazyframe.select((ids.list.len() > 1) & (ids.list.n_unique() == ids.list.len()))

    @pa.check("annotations", error="must be [id, id, mark] of two of the responses")
    @classmethod
    def _annotations(cls, data: pa.PolarsData) -> pl.LazyFrame:
        entry = pl.element().list
        shaped = pl.col("annotations").list.eval(
            (entry.len() == 3) & entry.get(2).is_in(MARKS) & (entry.get(0) != entry.get(1))
        )
        strange = _named("annotations").list.set_difference(_ids("responses")).list.len()
        return data.lazyframe.select(shaped.list.all() & (strange == 0))

    @pa.check("rank", error="must rank responses from 1 without a gap, not all alike")
    @classmethod
    def _ranked(cls, data: pa.PolarsData) -> pl.LazyFrame:
        ranks, ids = _ranks(), _ids("rank")
        levels = ranks.list.n_unique()
        gapless = (ranks.list.min() == 1) & (ranks.list.max() == levels) & (levels > 1)
        known = ids.list.set_difference(_ids("responses")).list.len() == 0
        return data.lazyframe.select(gapless & known & (ids.list.n_unique() == ids.list.len()))

    @pa.check("order", error="must be [better, worse] of two of the responses")
    @classmethod
    def _ordered(cls, data: pa.PolarsData) -> pl.LazyFrame:
        entry = pl.element().list
        shaped = pl.col("order").list.eval((entry.len() == 2) & (entry.get(0) != entry.get(1)))
        strange = _named("order").list.set_difference(_ids("responses")).list.len()
        return data.lazyframe.select(shaped.list.all() & (strange == 0))

    @pa.check("category", error="must name a main category")
    @classmethod
    def _categorised(cls, data: pa.PolarsData) -> pl.LazyFrame:
        names = pl.col("category").list
        return data.lazyframe.select((names.len() > 0) & names.eval(pl.element().str.contains(r"\S")).list.all())

    @pa.check("conflicts", error="must be no more than `judgements`")
    @classmethod
    def _counted(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("conflicts") >= 0) & (pl.col("conflicts") <= pl.col("judgements")))

    @pa.check("vote_calls", "reward_calls", error="must be keys of calls, 64 hexadecimal digits")
    @classmethod
    def _call_keys(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(are_call_keys(data.key))
