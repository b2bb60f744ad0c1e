"""Tables of Personalized RewardBench: LaMP-QA questions and pairs of answers.

Column names and nesting are the published ones (`alireza7/LaMP-QA`, `QiyaoMa/Personalized-RewardBench`). Four more
columns have the provenance of the pairs.
"""

from typing import Any

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.profiles import POST, RUBRIC_ASPECT
from pluralbench_schemas.rules import Rows, differs, have_fields, is_call_key, non_blank, rule


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


class PersonalizedQuestions(Rows):
    """Questions of users with a profile: the rows of LaMP-QA.

    Attributes:
        id: Unique id.
        question: The question.
        category: Category of the question.
        narrative: The user's description of their question; may be empty.
        rubric_aspects: Structs of `aspect`, `evidence` and `reason`; may be empty if a source has none yet.
        profile: The user's past posts: structs of `id`, `category` and `text`.
    """

    id: str = pa.Field(unique=True)
    question: str
    category: str
    narrative: str
    rubric_aspects: pl.List = pa.Field(dtype_kwargs={"inner": RUBRIC_ASPECT})
    profile: pl.List = pa.Field(dtype_kwargs={"inner": POST})

    _text = non_blank("id", "question")
    _some_posts = rule("must have at least one post", "profile", holds=lambda name: pl.col(name).list.len() > 0)
    _post_texts = have_fields("must have an id and a text in each post", "profile", "id", "text")
    _aspect_titles = have_fields("must have a title in each aspect", "rubric_aspects", "aspect")


class PersonalizedPairs(PersonalizedQuestions):
    """Pairs of answers, of which only the chosen one follows the user's rubric.

    Attributes:
        chosen: The chosen answer.
        rejected: The rejected answer.
        generator: Model of both answers.
        prompt_version: Version of the prompts.
        chosen_call: Key of the recorded call of `chosen`.
        rejected_call: Key of the recorded call of `rejected`.
    """

    chosen: str
    rejected: str
    generator: str
    prompt_version: str
    chosen_call: str
    rejected_call: str

    _answer_text = non_blank("chosen", "rejected", "generator", "prompt_version")
    _call_keys = is_call_key("chosen_call", "rejected_call")
    _some_aspects = rule(
        "must have at least one aspect", "rubric_aspects", holds=lambda name: pl.col(name).list.len() > 0
    )
    _differ = differs("rejected", "chosen")


def quote_evidence() -> Any:
    """Check that the evidence of each aspect is in the narrative."""
    return rule(
        "must quote each `evidence` from `narrative`", "rubric_aspects", holds=lambda _: evidence_in_narrative()
    )


class VerbatimPersonalizedQuestions(PersonalizedQuestions):
    """`PersonalizedQuestions` with evidence that is quoted from the narrative."""

    _verbatim = quote_evidence()


class VerbatimPersonalizedPairs(PersonalizedPairs):
    """`PersonalizedPairs` with evidence that is quoted from the narrative."""

    _verbatim = quote_evidence()
