"""Items of the persona judge: of two options, which one belongs to a person who is known by a persona alone."""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.rules import Rows, are_call_keys, differs, fields, non_blank, rule, same_in_all

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


def _once_each() -> pl.Expr:
    names = fields("persona", "variable").list
    return names.n_unique() == names.len()


def _sentences() -> pl.Expr:
    entry = pl.element().struct
    return pl.col("persona").list.eval(entry.field("value").is_null() == entry.field("sentence").is_null()).list.all()


class PersonaItems(Rows):
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

    _text = non_blank("task", "user", "option_a", "option_b", "origin_a", "origin_b")
    _differ = differs("option_b", "option_a")
    _one_task = same_in_all("task")
    _rendered = rule(
        "must have each variable once, and a sentence where it has a value and nowhere else",
        "persona",
        holds=lambda _: _once_each() & _sentences(),
    )
    _call_keys = are_call_keys("rank_calls")
