"""Items of the persona judge: which of two options belongs to a person, given only a persona."""

import polars as pl

from pluralbench_schemas.rules import Schema, are_call_keys, differs, fields, non_blank, one_of, rule, same_in_all

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


def _unique_variables() -> pl.Expr:
    names = fields("persona", "variable").list
    return names.n_unique() == names.len()


def _complete_sentences() -> pl.Expr:
    entry = pl.element().struct
    return pl.col("persona").list.eval(entry.field("value").is_null() == entry.field("sentence").is_null()).list.all()


PERSONA_ITEMS = Schema(
    columns={
        "id": pl.String,
        "task": pl.String,
        "kind": pl.String,
        "user": pl.String,
        "persona": pl.List(VARIABLE),
        "context": pl.String,
        "option_a": pl.String,
        "option_b": pl.String,
        "truth": pl.String,
        "origin_a": pl.String,
        "origin_b": pl.String,
        "gap": pl.Float64,
        "rank_calls": pl.List(pl.String),
    },
    rules=[
        non_blank("task", "user", "option_a", "option_b", "origin_a", "origin_b"),
        differs("option_b", "option_a"),
        same_in_all("task"),
        rule(
            "must have each variable once, with a sentence exactly if it has a value",
            "persona",
            holds=lambda _: _unique_variables() & _complete_sentences(),
        ),
        are_call_keys("rank_calls"),
        one_of("kind", KINDS),
        one_of("truth", TRUTHS),
    ],
    nullable=("gap",),
)
"""Items of one task.

Columns:
    id: Unique id.
    task: Name of the task.
    kind: The question: which response the person prefers ("preference"), which answer they give ("opinion"), or
        which text they wrote ("authorship").
    user: Id of the person.
    persona: Structs of `variable`, `value` (null if missing), `number` (null if the value is not a number),
        `sentence` (null if the value is missing) and `sets` (the variable sets of the variable).
    context: The subject of both options; may be empty.
    option_a: The first option.
    option_b: The second option.
    truth: "A", "B" or "tie".
    origin_a: Origin of the first option.
    origin_b: Origin of the second option.
    gap: Difference of the source's scores, from which a tie follows; null if there are no scores.
    rank_calls: Keys of the recorded rankings.
"""
