"""Items of the persona judge: of two options, which one belongs to a person who is known by a persona alone."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.call_keys import are_call_keys

KINDS = ("preference", "opinion", "authorship")
TRUTHS = ("A", "B", "tie")
VARIABLE = pl.Struct(
    {
        "variable": pl.String,
        "value": pl.String,
        "number": pl.Float64,
        "sentence": pl.String,
        "sets": pl.List(pl.String),
    }
)


class PersonaItems(pa.DataFrameModel):
    """Items of one task.

    kind: what is asked, which response the person prefers, which answer they give, or which text they wrote. persona:
    structs of `variable`, `value` (null where it is missing), `number` (for what is a number), `sentence` (null where
    the value is missing) and `sets`, the variable sets it is in. context: what both options are about, which may be
    empty. truth: "A", "B" or "tie". origin_a, origin_b: what each option came from. gap: the difference in the source's
    scores by which a tie is told, null where there are none. rank_calls: keys of the recorded calls behind the row.
    """

    id: str = pa.Field(unique=True)
    task: str
    kind: str = pa.Field(isin=KINDS)
    user: str
    persona: pl.List = pa.Field(dtype_kwargs={"inner": VARIABLE})
    context: str
    option_a: str
    option_b: str
    truth: str = pa.Field(isin=TRUTHS)
    origin_a: str
    origin_b: str
    gap: float = pa.Field(nullable=True)
    rank_calls: pl.List = pa.Field(dtype_kwargs={"inner": pl.String})

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("task", "user", "option_a", "option_b", "origin_a", "origin_b", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(r"\S"))

    @pa.check("option_b", error="must differ from `option_a`")
    @classmethod
    def _differ(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("option_a") != pl.col("option_b"))

    @pa.check("task", error="must be the same in all rows")
    @classmethod
    def _one_task(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("task") == pl.col("task").first())

    @pa.check("persona", error="must have each variable once, and a sentence where it has a value and nowhere else")
    @classmethod
    def _rendered(cls, data: pa.PolarsData) -> pl.LazyFrame:
        entry = pl.element().struct
        names = pl.col("persona").list.eval(entry.field("variable"))
        told = pl.col("persona").list.eval(entry.field("value").is_null() == entry.field("sentence").is_null())
        return data.lazyframe.select((names.list.n_unique() == names.list.len()) & told.list.all())

    @pa.check("rank_calls", error="must be keys of calls, 64 hexadecimal digits")
    @classmethod
    def _call_keys(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(are_call_keys(data.key))
