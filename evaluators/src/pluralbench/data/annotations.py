"""Votes of people on items: one frame of them, and what is known of the people."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
from pluralbench_release import Tables
from pluralbench_runs import plural

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Annotations
from pluralbench.data.texts import as_texts, first_ids
from pluralbench.errors import ColumnMissing, DataError

VOTE: pl.DataType = pl.Struct(
    {"annotator": pl.String, "response": pl.Int64, "grade": pl.Float64, "attributes": pl.List(pl.String)}
)
"""A vote on an item: the person (null: not known), the place of the response (null: a tie), the strength (null: votes
have none), and the person's attributes in the order of `Annotations.attributes`."""
PERSON = "#person"
"""Column of the annotator's id by which the table of the people is joined."""
ATTRIBUTE = "attribute_"
"""What the names of columns with attributes begin with."""


def annotations_schema(annotations: Annotations) -> pl.Schema:
    """Return the columns of `annotations.parquet`."""
    attributes = [f"{ATTRIBUTE}{name}" for name in annotations.attributes]
    kinds = {"config": pl.String, "id": pl.String, "annotator": pl.String, "response": pl.Int64, "grade": pl.Float64}
    return pl.Schema(kinds | dict.fromkeys(attributes, pl.String))


def annotations_of(benchmark: Benchmark, items: pl.DataFrame) -> pl.DataFrame | None:
    """Return the votes on items, with the columns of `annotations_schema`; None if the benchmark has none.

    `annotator` is null if the person is not known; `response` is the place of the response in the item, null for a tie;
    `grade` is the strength of the vote, 0 for a tie, null if votes have none. Votes are in the order of the items, then
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


def with_people(benchmark: Benchmark, tables: Tables) -> Tables:
    """Give each row what the table of the people (`Annotations.people`) has of its annotator, as a column of objects.

    The tables are then without that of the people, whose name the column has. A person who is not in it has null.

    Raises:
        DataError: If there is no such table or column, a person is in it twice, or it has none of the annotators.
    """
    annotations = benchmark.annotations
    if annotations is None or annotations.people is None or annotations.annotator is None:
        return tables
    (name, key), annotator = (annotations.people.table, annotations.people.id), annotations.annotator
    if name not in tables.frames:
        raise DataError(
            f"{tables.location} has no table `{name}` of the people who voted; give the folder or the dataset in which "
            "it is beside the others."
        )
    frames = dict(tables.frames)
    people, where = frames.pop(name), tables.paths[name]
    if key not in people.columns:
        raise ColumnMissing(f"{where} has no column `{key}` of the people's ids; it has {', '.join(people.columns)}.")
    known = people.select(as_texts(people[key]).alias(PERSON), pl.struct(pl.all()).alias(name)).drop_nulls(PERSON)
    twice = known.filter(pl.col(PERSON).is_duplicated())[PERSON].unique().sort().to_list()
    if twice:
        several = plural(len(twice), "person", "people")
        raise DataError(f"{where} has {several} more than once ({first_ids(twice)}); keep one row of each.")
    for config, frame in frames.items():
        if annotator in frame.columns:
            own = frame.drop(name, strict=False).with_columns(as_texts(frame[annotator]).alias(PERSON))
            if not own[PERSON].is_in(known[PERSON].implode()).any():
                raise DataError(f"{where} has none of the people of {tables.paths[config]}; give the table of these.")
            frames[config] = own.join(known, on=PERSON, how="left", maintain_order="left").drop(PERSON)
    return replace(tables, frames=frames)


def check_people(benchmark: Benchmark, items: Mapping[str, pl.DataFrame]) -> tuple[dict[str, pl.DataFrame], int]:
    """Check that the attributes of a person are the same in all votes; a vote without one has that of the others.

    Returns the items by config, without attributes that vary if the benchmark drops these, and the number of people who
    had any.

    Raises:
        DataError: If an attribute of a person varies.
    """
    parts, annotations = dict(items), benchmark.annotations
    if annotations is None or not annotations.attributes:
        return parts, 0
    votes = pl.concat([_votes_of(annotations, part) for part in parts.values()]).drop_nulls("annotator")
    changed, people = [], set[str]()
    for name in annotations.attributes:
        column = pl.col(f"{ATTRIBUTE}{name}")
        values = votes.group_by("annotator").agg(
            column.drop_nulls().unique().sort().alias("values"), column.has_nulls()
        )
        several = values.filter(pl.col("values").list.len() > 1).sort("annotator")
        if several.height and annotations.varying == "error":
            person, own, _ = several.row(0)
            raise DataError(
                f"The attribute {name} of {plural(several.height, 'person', 'people')} varies, such as "
                f'{first_ids(own)} of {person}; correct it, or set `varying` of the annotations to "drop".'
            )
        people |= {*several["annotator"]}
        one = pl.col("values").list.len() == 1
        filled = values.filter(one & column).select("annotator", pl.col("values").list.first())
        changed.append(dict.fromkeys(several["annotator"]) | dict(filled.iter_rows()))
    if any(changed):
        parts = {config: _with_attributes(part, changed) for config, part in parts.items()}
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


def _with_attributes(items: pl.DataFrame, changed: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    lists = items["annotations"].to_list()
    for vote in (vote for votes in lists for vote in votes or ()):
        vote["attributes"] = [
            own.get(vote["annotator"], value) for own, value in zip(changed, vote["attributes"], strict=True)
        ]
    return items.with_columns(pl.Series("annotations", lists, dtype=pl.List(VOTE)))
