"""Tables of Personalized RewardBench: the LaMP-QA questions it starts from and the pairs it is made of.

Column names and nesting are the published ones (`alireza7/LaMP-QA`, `QiyaoMa/Personalized-RewardBench`); the pairs
carry their provenance in four more columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandera.polars as pa
import polars as pl

from pluralbench_schemas.call_keys import CALL_KEY

POST = pl.Struct({"id": pl.String, "category": pl.String, "text": pl.String})
RUBRIC_ASPECT = pl.Struct({"aspect": pl.String, "evidence": pl.String, "reason": pl.String})


def _filled(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key).str.contains(r"\S"))


def _all_filled(data: pa.PolarsData, *fields: str) -> pl.LazyFrame:
    """Whether each item of a list of structs has text in all of `fields`."""
    item = pl.element().struct
    filled = pl.all_horizontal(item.field(field).str.contains(r"\S").fill_null(False) for field in fields)
    return data.lazyframe.select(pl.col(data.key).list.eval(filled).list.all())


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


class PersonalizedQuestions(pa.DataFrameModel):
    """Questions of people with a history: the LaMP-QA source rows.

    `narrative` may be empty and `rubric_aspects` too where a source has none yet.
    """

    id: str = pa.Field(unique=True)
    question: str
    category: str
    narrative: str
    rubric_aspects: pl.List = pa.Field(dtype_kwargs={"inner": RUBRIC_ASPECT})
    profile: pl.List = pa.Field(dtype_kwargs={"inner": POST})

    class Config:
        """No column beside these."""

        strict = True

    @pa.check("id", "question", error="must have text")
    @classmethod
    def _text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _filled(data)

    @pa.check("profile", error="must have at least one post")
    @classmethod
    def _some_posts(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).list.len() > 0)

    @pa.check("profile", error="must have an id and a text in each post")
    @classmethod
    def _post_texts(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _all_filled(data, "id", "text")

    @pa.check("rubric_aspects", error="must have a title in each aspect")
    @classmethod
    def _aspect_titles(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _all_filled(data, "aspect")


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

    @pa.check("chosen", "rejected", "generator", "prompt_version", error="must have text")
    @classmethod
    def _answer_text(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return _filled(data)

    @pa.check("chosen_call", "rejected_call", error="must be the key of a recorded call, 64 hexadecimal digits")
    @classmethod
    def _call_keys(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).str.contains(CALL_KEY))

    @pa.check("rubric_aspects", error="must have at least one aspect")
    @classmethod
    def _some_aspects(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).list.len() > 0)

    @pa.check("rejected", error="must differ from `chosen`")
    @classmethod
    def _differ(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("chosen") != pl.col("rejected"))


class VerbatimPersonalizedQuestions(PersonalizedQuestions):
    """`PersonalizedQuestions` whose evidence is quoted from the narrative."""

    @pa.check("rubric_aspects", error="must quote each `evidence` from `narrative`")
    @classmethod
    def _verbatim(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(evidence_in_narrative())


class VerbatimPersonalizedPairs(PersonalizedPairs):
    """`PersonalizedPairs` whose evidence is quoted from the narrative."""

    @pa.check("rubric_aspects", error="must quote each `evidence` from `narrative`")
    @classmethod
    def _verbatim(cls, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(evidence_in_narrative())


def render_profile(posts: Sequence[Mapping[str, Any]]) -> str:
    """Posts as a prompt shows them, see `render_posts`."""
    return "\n".join(render_posts(posts))


def render_posts(posts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each post as a prompt shows it: a header with its number, and its category if it has one, then the text."""
    headers = [f"Post {number}, {post.get('category') or ''}" for number, post in enumerate(posts, start=1)]
    return [f"[{header.removesuffix(', ')}]\n{post['text']}" for header, post in zip(headers, posts, strict=True)]
