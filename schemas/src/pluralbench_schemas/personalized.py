"""Tables of Personalized RewardBench: the LaMP-QA questions it starts from and the pairs it is made of.

Column names and nesting are the published ones (`alireza7/LaMP-QA`, `QiyaoMa/Personalized-RewardBench`); the pairs
carry their provenance in four more columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.rules import Rows, differs, have_fields, is_call_key, non_blank, rule

POST = pl.Struct({"id": pl.String, "category": pl.String, "text": pl.String})
RUBRIC_ASPECT = pl.Struct({"aspect": pl.String, "evidence": pl.String, "reason": pl.String})


def normalized(text: pl.Expr) -> pl.Expr:
    """Text as evidence is compared: lower case, one blank for any white space, straight quotes."""
    straight = text.str.replace_all("[‘’]", "'").str.replace_all("[“”]", '"')
    return straight.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def evidence_in_narrative() -> pl.Expr:
    """Per row, whether each aspect's evidence, where it has one, stands in the narrative word for word."""
    evidence = pl.col("rubric_aspects").list.eval(normalized(pl.element().struct.field("evidence")).fill_null(""))
    pairs = pl.struct(evidence.alias("evidence"), normalized(pl.col("narrative")).fill_null("").alias("narrative"))
    return pairs.map_elements(
        lambda row: all(text in row["narrative"] for text in row["evidence"] or ()), return_dtype=pl.Boolean
    )


class PersonalizedQuestions(Rows):
    """Questions of people with a history: the LaMP-QA source rows.

    `narrative` may be empty and `rubric_aspects` too where a source has none yet.
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
    """Chosen and rejected answers that differ in whether they keep to the person's rubric.

    generator: the model that wrote both answers. prompt_version: of the prompts it was given.
    chosen_call, rejected_call: keys of the two recorded calls.
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
    """Each aspect's evidence stands in the narrative."""
    return rule(
        "must quote each `evidence` from `narrative`", "rubric_aspects", holds=lambda _: evidence_in_narrative()
    )


class VerbatimPersonalizedQuestions(PersonalizedQuestions):
    """`PersonalizedQuestions` whose evidence is quoted from the narrative."""

    _verbatim = quote_evidence()


class VerbatimPersonalizedPairs(PersonalizedPairs):
    """`PersonalizedPairs` whose evidence is quoted from the narrative."""

    _verbatim = quote_evidence()


def render_profile(posts: Sequence[Mapping[str, Any]]) -> str:
    """Posts as a prompt shows them, see `render_posts`."""
    return "\n".join(render_posts(posts))


def render_posts(posts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each post as a prompt shows it: a header with its number, and its category if it has one, then the text."""
    headers = [f"Post {number}, {post.get('category') or ''}" for number, post in enumerate(posts, start=1)]
    return [f"[{header.removesuffix(', ')}]\n{post['text']}" for header, post in zip(headers, posts, strict=True)]
