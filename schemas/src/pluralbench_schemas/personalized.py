"""Tables of Personalized RewardBench: LaMP-QA questions and pairs of answers.

Column names and nesting are the published ones (`alireza7/LaMP-QA`, `QiyaoMa/Personalized-RewardBench`). Four more
columns have the provenance of the pairs.
"""

import polars as pl

from pluralbench_schemas.profiles import POST, RUBRIC_ASPECT
from pluralbench_schemas.rules import Schema, differs, have_fields, is_call_key, non_blank, rule


def normalized(text: pl.Expr) -> pl.Expr:
    """Normalize text for the comparison of evidence: lower case, single spaces, straight quotes."""
    straight = text.str.replace_all("[‘’]", "'").str.replace_all("[“”]", '"')
    return straight.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def evidence_in_narrative() -> pl.Expr:
    """Whether the evidence of each aspect, if any, is quoted verbatim from the narrative, by row."""
    evidence = pl.col("rubric_aspects").list.eval(normalized(pl.element().struct.field("evidence")).fill_null(""))
    pairs = pl.struct(evidence.alias("evidence"), normalized(pl.col("narrative")).fill_null("").alias("narrative"))
    return pairs.map_elements(
        lambda row: all(text in row["narrative"] for text in row["evidence"] or ()), return_dtype=pl.Boolean
    )


PERSONALIZED_QUESTIONS = Schema(
    columns={
        "id": pl.String,
        "question": pl.String,
        "category": pl.String,
        "narrative": pl.String,
        "rubric_aspects": pl.List(RUBRIC_ASPECT),
        "profile": pl.List(POST),
    },
    rules=[
        non_blank("id", "question"),
        rule("must have at least one post", "profile", holds=lambda name: pl.col(name).list.len() > 0),
        have_fields("must have an id and a text in each post", "profile", "id", "text"),
        have_fields("must have a title in each aspect", "rubric_aspects", "aspect"),
    ],
)
"""Questions of users with a profile: the rows of LaMP-QA.

Columns:
    id: Unique id.
    question: The question.
    category: Category of the question.
    narrative: The user's description of their question; may be empty.
    rubric_aspects: Structs of `aspect`, `evidence` and `reason`; may be empty if a source has none yet.
    profile: The user's past posts: structs of `id`, `category` and `text`.
"""


PERSONALIZED_PAIRS = Schema(
    columns={
        **PERSONALIZED_QUESTIONS.columns,
        "chosen": pl.String,
        "rejected": pl.String,
        "generator": pl.String,
        "prompt_version": pl.String,
        "chosen_call": pl.String,
        "rejected_call": pl.String,
    },
    rules=[
        *PERSONALIZED_QUESTIONS.rules,
        non_blank("chosen", "rejected", "generator", "prompt_version"),
        is_call_key("chosen_call", "rejected_call"),
        rule("must have at least one aspect", "rubric_aspects", holds=lambda name: pl.col(name).list.len() > 0),
        differs("rejected", "chosen"),
    ],
)
"""Pairs of answers, of which only the chosen one follows the user's rubric.

Columns:
    chosen: The chosen answer.
    rejected: The rejected answer.
    generator: Model of both answers.
    prompt_version: Version of the prompts.
    chosen_call: Key of the recorded call of `chosen`.
    rejected_call: Key of the recorded call of `rejected`.
"""


VERBATIM = rule(
    "must quote each `evidence` from `narrative`", "rubric_aspects", holds=lambda _: evidence_in_narrative()
)


VERBATIM_PERSONALIZED_QUESTIONS = Schema(PERSONALIZED_QUESTIONS.columns, [*PERSONALIZED_QUESTIONS.rules, VERBATIM])
"""`PERSONALIZED_QUESTIONS` with evidence that is quoted from the narrative."""


VERBATIM_PERSONALIZED_PAIRS = Schema(PERSONALIZED_PAIRS.columns, [*PERSONALIZED_PAIRS.rules, VERBATIM])
"""`PERSONALIZED_PAIRS` with evidence that is quoted from the narrative."""
