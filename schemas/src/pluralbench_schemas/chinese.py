"""Tables of CheemsBench and CheemsPreference: prompts whose responses are ranked.

Column names are the published ones. There `rank` is an object with the responses' ids as keys, which no table can hold;
here it is a list. The rows carry their provenance in further columns.
"""

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.rules import Rows, are_call_keys, each, fields, non_blank, rule

MARKS = ("1", "2", "s")
RESPONSE = pl.Struct({"id": pl.String, "content": pl.String, "model": pl.String})
RANK = pl.Struct({"id": pl.String, "rank": pl.Int64})


def _several() -> pl.Expr:
    ids = fields("responses", "id").list
    return (ids.len() > 1) & (ids.n_unique() == ids.len())


def _two_of(column: str, length: int, marked: pl.Expr | None = None) -> pl.Expr:
    """Whether each entry has this length and begins with the ids of two responses. marked: holds for each, too."""
    entry = pl.element().list
    shaped = (entry.len() == length) & (entry.get(0, null_on_oob=True) != entry.get(1, null_on_oob=True))
    shaped = shaped if marked is None else shaped & marked
    named = pl.col(column).list.eval(entry.head(2).explode(empty_as_null=False))
    strange = named.list.set_difference(fields("responses", "id")).list.len()
    return each(column, shaped) & (strange == 0)


def _gapless() -> pl.Expr:
    ranks, ids = fields("rank", "rank").list, fields("rank", "id")
    levels = ranks.n_unique()
    known = ids.list.set_difference(fields("responses", "id")).list.len() == 0
    ranked = (ranks.min() == 1) & (ranks.max() == levels) & (levels > 1)
    return ranked & known & (ids.list.n_unique() == ids.list.len())


def _categories() -> pl.Expr:
    names = pl.col("category").list
    return (names.len() > 0) & names.eval(pl.element().str.contains(r"\S")).list.all()


class RankedResponses(Rows):
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

    _text = non_blank("id", "input", "annotated_by")
    _responses = rule("must be two or more, each with an id of its own", "responses", holds=lambda _: _several())
    _annotations = rule(
        "must be [id, id, mark] of two of the responses",
        "annotations",
        holds=lambda name: _two_of(name, 3, pl.element().list.get(2, null_on_oob=True).is_in(MARKS)),
    )
    _ranked = rule("must rank responses from 1 without a gap, not all alike", "rank", holds=lambda _: _gapless())
    _ordered = rule("must be [better, worse] of two of the responses", "order", holds=lambda name: _two_of(name, 2))
    _categorised = rule("must name a main category", "category", holds=lambda _: _categories())
    _counted = rule(
        "must be no more than `judgements`",
        "conflicts",
        holds=lambda name: (pl.col(name) >= 0) & (pl.col(name) <= pl.col("judgements")),
    )
    _call_keys = are_call_keys("vote_calls", "reward_calls")


RANKED_RESPONSES = RankedResponses.row_types()
"""Names and types of a table of `RankedResponses`, to make one."""
