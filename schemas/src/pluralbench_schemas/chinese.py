"""Tables of CheemsBench and CheemsPreference: prompts with ranked responses.

Column names are the published ones. There, `rank` is an object with the responses' ids as keys; here it is a list,
because a table cannot represent such objects. Further columns have the provenance of the rows.
"""

import polars as pl

from pluralbench_schemas.rules import Schema, are_call_keys, each, fields, have_fields, non_blank, rule

MARKS = ("1", "2", "s")
RESPONSE = pl.Struct({"id": pl.String, "content": pl.String, "model": pl.String})
RANK = pl.Struct({"id": pl.String, "rank": pl.Int64})
VOTE = pl.Struct({"annotator": pl.String, "first": pl.String, "second": pl.String, "vote": pl.String})


def _distinct_responses() -> pl.Expr:
    ids = fields("responses", "id").list
    return (ids.len() > 1) & (ids.n_unique() == ids.len())


def _begins_with_two_ids(column: str, length: int, condition: pl.Expr | None = None) -> pl.Expr:
    """Whether each entry has this length, begins with the ids of two responses, and satisfies the condition."""
    entry = pl.element().list
    is_valid = (entry.len() == length) & (entry.get(0, null_on_oob=True) != entry.get(1, null_on_oob=True))
    is_valid = is_valid if condition is None else is_valid & condition
    ids = pl.col(column).list.eval(entry.head(2).explode(empty_as_null=False))
    unknown = ids.list.set_difference(fields("responses", "id")).list.len()
    return each(column, is_valid) & (unknown == 0)


def _votes_on_two() -> pl.Expr:
    """Whether each vote is on two different responses of the row, and each annotator votes once on two responses."""
    ids, item = fields("responses", "id"), pl.element().struct
    shown = [fields("votes", side) for side in ("first", "second")]
    known = pl.all_horizontal(side.list.set_difference(ids).list.len() == 0 for side in shown)
    pair = pl.concat_list(item.field("first"), item.field("second")).list.sort().list.join("\n")
    once = pl.col("votes").list.eval(item.field("annotator") + "\n" + pair).list
    return known & each("votes", item.field("first") != item.field("second")) & (once.n_unique() == once.len())


def _gapless() -> pl.Expr:
    ranks, ids = fields("rank", "rank").list, fields("rank", "id")
    levels = ranks.n_unique()
    ids_known = ids.list.set_difference(fields("responses", "id")).list.len() == 0
    no_gaps = (ranks.min() == 1) & (ranks.max() == levels) & (levels > 1)
    return no_gaps & ids_known & (ids.list.n_unique() == ids.list.len())


def _categories() -> pl.Expr:
    names = pl.col("category").list
    return (names.len() > 0) & names.eval(pl.element().str.contains(r"\S")).list.all()


RANKED_RESPONSES = Schema(
    columns={
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
        "votes": pl.List(VOTE),
        "vote_calls": pl.List(pl.String),
        "reward_calls": pl.List(pl.String),
    },
    rules=[
        non_blank("id", "input", "annotated_by"),
        rule("must be two or more, each with an id of its own", "responses", holds=lambda _: _distinct_responses()),
        rule(
            "must be [id, id, mark] of two of the responses",
            "annotations",
            holds=lambda name: _begins_with_two_ids(name, 3, pl.element().list.get(2, null_on_oob=True).is_in(MARKS)),
        ),
        have_fields("must name the annotator of each vote", "votes", "annotator"),
        rule(
            "must have the mark 1, 2 or s in each vote",
            "votes",
            holds=lambda name: each(name, pl.element().struct.field("vote").is_in(MARKS)),
        ),
        rule("must be on two of the responses, each annotator's once", "votes", holds=lambda _: _votes_on_two()),
        rule("must rank responses from 1 without a gap, not all alike", "rank", holds=lambda _: _gapless()),
        rule(
            "must be [better, worse] of two of the responses", "order", holds=lambda name: _begins_with_two_ids(name, 2)
        ),
        rule("must name a main category", "category", holds=lambda _: _categories()),
        rule(
            "must be no more than `judgements`",
            "conflicts",
            holds=lambda name: (pl.col(name) >= 0) & (pl.col(name) <= pl.col("judgements")),
        ),
        are_call_keys("vote_calls", "reward_calls"),
    ],
    nullable=("sys_prompt",),
)
"""Prompts with ranked responses.

Columns:
    id: Unique id.
    input: The prompt.
    sys_prompt: The system prompt; null if there is none.
    responses: Structs of `id`, `content` and `model` ("" if unknown).
    annotations: Lists [first, second, mark] with the mark "1" if the first response is better, "2" if the second
        is, "s" if they are equal. A preference set has only the annotations that were kept.
    rank: Structs of `id` and `rank`. The best rank is 1; equal responses share a rank, and there are no gaps.
    order: Pairs [better, worse] that follow from the annotations, directly or transitively.
    category: Main category and subcategory.
    judgements: Number of annotations.
    conflicts: Number of annotations that contradict the ranks.
    annotated_by: "people" or the name of a judge model.
    votes: The votes of each annotator behind the annotations: structs of `annotator` (a number in place of the
        name, or the judge model), `first`, `second` and `vote`, a mark as in `annotations`. Sorted by annotator.
        Empty if it is not known who voted.
    vote_calls: Keys of the recorded votes.
    reward_calls: Keys of the recorded rewards.
"""
