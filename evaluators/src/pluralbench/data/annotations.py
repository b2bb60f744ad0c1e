"""Votes of people on items: one frame of them, and what is known of the people."""

from collections.abc import Mapping, Sequence

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Annotations
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError

VOTE: pl.DataType = pl.Struct(
    {"annotator": pl.String, "response": pl.Int64, "grade": pl.Float64, "attributes": pl.List(pl.String)}
)
"""A vote on an item: the person (null: not known), the place of the response (null: a tie), the strength (null: votes
have none), and the person's attributes in the order of `Annotations.attributes`."""
ATTRIBUTE = "attribute_"
"""What the names of columns with attributes begin with."""


def annotations_schema(annotations: Annotations) -> pl.Schema:
    """Return the columns of `annotations.parquet`."""
    attributes = [f"{ATTRIBUTE}{name}" for name in annotations.attributes]
    kinds = {"config": pl.String, "id": pl.String, "annotator": pl.String, "response": pl.Int64, "grade": pl.Float64}
    return pl.Schema(kinds | dict.fromkeys(attributes, pl.String))


def annotations_of(benchmark: Benchmark, items: pl.DataFrame) -> pl.DataFrame | None:
    """Return the votes on items, one row a vote; None if the benchmark has none.

    Args:
        benchmark: Description of the benchmark.
        items: Items with the columns of `pluralbench.data.rows_to_items.ITEMS`.

    Returns:
        The columns of `annotations_schema`: config and id of the item; `annotator`, null if the person is not known;
        `response`, the place of the response in the item, null for a tie; `grade`, the strength of the vote, 0 for a
        tie, null if votes have none; and a column `attribute_NAME` for each attribute. In the order of the items, then
        by person and vote.
    """
    return None if benchmark.annotations is None else _votes_of(benchmark.annotations, items)


def _votes_of(annotations: Annotations, items: pl.DataFrame) -> pl.DataFrame:
    votes = items.select("config", "id", "annotations").explode("annotations").drop_nulls("annotations")
    rows = votes.unnest("annotations")
    attributes = [
        pl.col("attributes").list.get(place, null_on_oob=True).alias(f"{ATTRIBUTE}{name}")
        for place, name in enumerate(annotations.attributes)
    ]
    schema = annotations_schema(annotations)
    return rows.with_columns(attributes).select(pl.col(name).cast(kind) for name, kind in schema.items())


def check_people(benchmark: Benchmark, items: Mapping[str, pl.DataFrame]) -> tuple[dict[str, pl.DataFrame], int]:
    """Check that the attributes of a person are the same in all votes; a missing one differs from none.

    Args:
        benchmark: Description of the benchmark.
        items: Items by config.

    Returns:
        The items, without attributes that vary if the benchmark drops these, and the number of people who had any.

    Raises:
        DataError: If an attribute of a person varies.
    """
    parts, annotations = dict(items), benchmark.annotations
    if annotations is None or not annotations.attributes:
        return parts, 0
    votes = pl.concat([_votes_of(annotations, part) for part in parts.values()])
    varying: dict[str, set[str]] = {}
    for name in annotations.attributes:
        values = (
            votes.drop_nulls("annotator")
            .group_by("annotator")
            .agg(pl.col(f"{ATTRIBUTE}{name}").drop_nulls().unique().sort().alias("values"))
        )
        several = values.filter(pl.col("values").list.len() > 1).sort("annotator")
        if several.height and annotations.varying == "error":
            person, own = several.row(0)
            raise DataError(
                f"The attribute {name} of {plural(several.height, 'person', 'people')} varies, such as "
                f'{first_ids(own)} of {person}; correct it, or set `varying` of the annotations to "drop".'
            )
        varying[name] = {*several["annotator"]}
    people = set[str]().union(*varying.values())
    if people:
        parts = {config: _without_varying(part, [*varying.values()]) for config, part in parts.items()}
    return parts, len(people)


def with_personas(benchmark: Benchmark, items: pl.DataFrame) -> pl.DataFrame:
    """Give items without a persona one of their person's attributes, by the sentences of `Annotations.persona`."""
    annotations = benchmark.annotations
    if annotations is None or not annotations.persona:
        return items
    personas = []
    for persona, votes in items.select("persona", "annotations").iter_rows():
        known = zip(annotations.attributes, votes[0]["attributes"], strict=True)
        sentences = [
            annotations.persona[name].replace("{}", value)
            for name, value in known
            if value is not None and name in annotations.persona
        ]
        personas.append(persona or sentences or None)
    return items.with_columns(pl.Series("persona", personas, dtype=pl.List(pl.String)))


def _without_varying(items: pl.DataFrame, varying: Sequence[set[str]]) -> pl.DataFrame:
    lists = items["annotations"].to_list()
    for vote in (vote for votes in lists for vote in votes or ()):
        vote["attributes"] = [
            None if vote["annotator"] in people else value
            for people, value in zip(varying, vote["attributes"], strict=True)
        ]
    return items.with_columns(pl.Series("annotations", lists, dtype=pl.List(VOTE)))
