"""Items of a benchmark: read from a release, a published dataset or any table, checked, and put into one shape."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import Tables, concat_tables, content_digest
from pluralbench_runs import digest, plural
from pluralbench_schemas import release_columns
from pluralbench_tables import release_memory

from pluralbench.config import DataConfig, OnEmpty, as_data_config
from pluralbench.data.annotated_rows import read_votes
from pluralbench.data.annotations import check_people, with_people, with_personas
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Clusters, assign_clusters
from pluralbench.data.columns import answered_prompts, check_columns, check_prompts, config_columns
from pluralbench.data.credits import check_credits
from pluralbench.data.derived import named_columns, needed_columns, with_derived_columns
from pluralbench.data.drawing import draw_items
from pluralbench.data.fields import ROW_NUMBER, Columns, Stratum
from pluralbench.data.history import COLUMNS as HISTORY_COLUMNS
from pluralbench.data.history import History, is_history_row, with_history_length
from pluralbench.data.labels import label_key
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.steps import STEPS
from pluralbench.data.merged_rows import group_prompts, group_responses
from pluralbench.data.message_keys import unread_keys
from pluralbench.data.originals import with_original
from pluralbench.data.rows_to_items import (
    BATCH_ITEMS,
    CONTENT,
    empty_items,
    items_with_missing,
    rows_to_items,
    with_ids,
)
from pluralbench.data.samples import read_data
from pluralbench.data.texts import first_ids
from pluralbench.data.turns import turn_rows
from pluralbench.errors import BenchmarkError, ColumnMissing, DataError

ALL = "all"
DIGEST_DIGITS = 16  # of an item's digest in a run
SOURCE = (
    *("location", "revision", "digest", "license", "reference"),
    *("empty", "on_empty", "missing", "answered", "clusters", "left_out"),
)


@dataclass(frozen=True)
class Items:
    """The items of a benchmark and where they come from.

    Attributes:
        frame: One row per item in the order of the data, with the columns of `pluralbench.data.rows_to_items.ITEMS`.
            The responses of a pair are "chosen" (rank 1) and "rejected" (rank 2); both have rank 1 in a tie. `person`
            is the value of the cluster column, or else the id. `digest` covers prompt, responses and ranks. `pairs` are
            the (better, worse) positions to train on, if the benchmark has such a column; then ranks may be null.
            `earlier` is the number of rows of `history` that the person decided before; null if the benchmark has none.
        location: Directory, file, or dataset on the Hub.
        revision: Commit of the dataset on the Hub.
        split: The split, or several joined by commas; None for tables of no split.
        digest: SHA-256 of the scored content.
        license: License of the data.
        reference: Source of the English original, if it is not in the data.
        ignored: Columns that are not read, apart from those that every release has.
        empty: Ids of items with an empty prompt or response.
        on_empty: Whether these items were kept or dropped.
        missing: Ids of items with a response or a user message such as "nan", the text of a missing value.
        answered: Ids of items whose prompt contains the better response; see `answered_prompts`.
        clusters: Clusters of the items, and repeated content.
        history: Pairs that people decided earlier.
        left_out: Number of rows that are not among the benchmark's `rows`, by config.
        votes_left_out: What is not among the votes of people; see `pluralbench.data.annotated_rows.Voted`.
        strata: Drawn items by subset; empty if the items were not drawn.
        subsets: Subset of each item, drawn or not.
    """

    frame: pl.DataFrame
    location: str
    revision: str | None
    split: str | None
    digest: str
    license: str | None
    reference: dict[str, Any] | None
    ignored: list[str]
    empty: list[str]
    on_empty: OnEmpty
    missing: list[str]
    answered: list[str]
    clusters: Clusters
    history: History
    left_out: dict[str, int]
    votes_left_out: dict[str, int]
    strata: tuple[Stratum, ...]
    subsets: pl.Series

    @property
    def source(self) -> dict[str, Any]:
        """Fields of `DataRecord` that describe the items."""
        counts = self.frame["earlier"].drop_nulls()
        earlier = {"rows": self.history.frame.height, "items_without": int((counts == 0).sum())}
        return {name: getattr(self, name) for name in SOURCE} | {
            "rows": dict(self.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
            "ignored_columns": self.ignored,
            "history": earlier if len(counts) else None,
            "annotations": self._votes,
        }

    @property
    def _votes(self) -> dict[str, int] | None:
        votes = self.frame["annotations"].drop_nulls().explode()
        if votes.is_empty():
            return None
        people = votes.struct.field("annotator").drop_nulls().n_unique()
        return {"votes": len(votes), "annotators": people} | self.votes_left_out


def described_benchmark(name: str, data: DataConfig, *, for_training: bool = False) -> Benchmark:
    """Return a benchmark with the changes that the options of its data name; see `find_benchmark`."""
    changed = {field: getattr(data, field) for field in ("legacy", "step_threshold", "tune_step_threshold")}
    return find_benchmark(name, data.columns, data.labels, data.dialect, **changed, for_training=for_training)


def load_items(benchmark: str | Benchmark, data: str | Path | DataConfig | None = None) -> Items:
    """Read the items of a benchmark.

    The English original of a translated benchmark is read from `data.english`, or else from the data, or else from
    where the benchmark's entry says; only items whose ids the data has are kept.

    Args:
        benchmark: Name of a benchmark, or the benchmark from `find_benchmark`.
        data: Directory, file, or ORG/NAME on the Hub; "sample" is a few bundled rows. A `DataConfig` also selects:
            `limit` keeps the first items of each config; `items` draws some, see `draw_items`. `on_empty` defaults to
            the benchmark's. Default: the benchmark's dataset on the Hub.

    Returns:
        The items of all configs.

    Raises:
        BenchmarkError: If there is no such benchmark, or another command reads its items (the persona judge).
        DataError: If the data does not have the benchmark's shape.
        TablesError: If the data cannot be read.
    """
    data = as_data_config(data)
    if isinstance(benchmark, str):
        benchmark = described_benchmark(benchmark, data)
    layout = layout_of(benchmark)
    if layout.responses is None:
        raise BenchmarkError(f"{benchmark.title} has no responses to score; run `pluralbench {layout.commands[0]}`.")
    tables, reference = with_original(benchmark, with_people(benchmark, _read(benchmark, data)), data)
    data = data.model_copy(update={"on_empty": data.on_empty or benchmark.on_empty})
    release_memory()
    read = {}
    for config in list(tables.frames):  # each table is freed once its items are made
        try:
            read[config] = _table_items(benchmark, config, tables.frames.pop(config), tables.paths[config], data)
        except ColumnMissing as error:
            if data.configs or not read:
                raise
            others = ", ".join(f'"{name}"' for name in read)
            raise DataError(f"{error} To leave this config out, name the others with `configs=[{others}]`.") from None
    parts = {config: table.items for config, table in read.items() if table.items.height}
    if not parts:
        raise DataError(f"{tables.location} has no items.")
    every = pl.concat(part.select("config", "id", "subset") for part in parts.values())
    strata: tuple[Stratum, ...] = ()
    undrawn: set[tuple[str, str]] = set()
    if data.items is not None:
        parts, strata = draw_items(benchmark.fit_to(every["subset"]), parts, data.items, data.items_seed)
        undrawn_rows = every.join(pl.concat(parts.values()), on=["config", "id"], how="anti")
        undrawn.update(undrawn_rows.select("config", "id").iter_rows())
    histories = {config: table.history for config, table in read.items()}
    parts, varying = check_people(benchmark, parts)
    parts = {config: with_personas(benchmark, part) for config, part in parts.items()}
    content = _content_digest(benchmark, parts, histories, drawn=bool(strata))
    short = pl.concat_str(pl.col("digest").str.head(DIGEST_DIGITS))  # a copy, which does not keep the other digits
    frame = pl.concat(parts.values()).with_columns(digest=short)
    read = {config: table._replace(items=table.items.clear()) for config, table in read.items()}
    parts.clear()
    frame, clusters = assign_clusters(frame, {config: table.cluster for config, table in read.items()})
    release_memory()
    if reference is not None and benchmark.reference is not None:
        reference |= {"rows": frame.filter(config=benchmark.reference.config).height}
    return Items(
        frame=frame,
        location=tables.location,
        revision=tables.revision,
        split=tables.split,
        digest=content,
        license=tables.license,
        reference=reference,
        ignored=sorted(set[str]().union(*(table.ignored for table in read.values()))),
        empty=[one for config, table in read.items() for one in table.empty if (config, one) not in undrawn],
        on_empty=data.on_empty or "error",
        missing=[one for config, table in read.items() for one in table.missing if (config, one) not in undrawn],
        answered=[one for config, table in read.items() for one in table.answered if (config, one) not in undrawn],
        clusters=clusters,
        history=History(pl.concat(histories.values())),
        left_out={config: table.left_out for config, table in read.items() if table.left_out},
        votes_left_out=_votes_left_out(table.votes for table in read.values()) | {"varying": varying},
        strata=strata,
        subsets=every["subset"],
    )


class _TableItems(NamedTuple):
    """What a table holds: its items and earlier pairs, and what `Items` says of them."""

    items: pl.DataFrame
    history: pl.DataFrame
    cluster: str | None
    ignored: set[str]
    empty: list[str]
    missing: list[str]
    answered: list[str]
    left_out: int
    votes: dict[str, int]


def _votes_left_out(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for table in tables:
        counts.update(table)  # keeps counts of 0
    return dict(counts)


def _table_items(benchmark: Benchmark, config: str, frame: pl.DataFrame, where: str, data: DataConfig) -> _TableItems:
    columns = config_columns(benchmark, config, frame)
    layout = layout_of(benchmark, columns)
    frame, left_out = (frame, 0) if benchmark.turns is None else turn_rows(frame, benchmark.turns, where)
    frame = with_derived_columns(frame, named_columns(benchmark, columns), where)
    frame, other_rows = _matching_rows(benchmark, frame, where)
    left_out += other_rows
    frame = group_responses(frame, columns, where)
    check_columns(benchmark, columns, frame, where)
    used = [name for name in frame.columns if name in named_columns(benchmark, columns)]
    ignored = {*frame.columns} - {*used} - release_columns(frame.columns)
    plain = {name for name in used if frame[name].dtype == pl.String} - {*(columns.json_texts or ())}
    ignored |= {key for name in {*used} - plain for key in unread_keys(frame[name])}
    voted = read_votes(benchmark, columns, frame.select(used), where)
    items, history = _items_and_history(benchmark, config, voted.frame, columns, where, data.limit)
    separate = history is not items
    _check_ids(pl.concat([items["id"], history["id"]]) if separate else items["id"], where)
    empty = empty_items(items) + (empty_items(history) if separate else [])
    if empty and data.on_empty == "error":
        raise DataError(
            f"{where} has {plural(len(empty), 'item')} with an empty prompt or response (ids {first_ids(empty)}); "
            'fix them, or choose `on_empty="drop"` or `on_empty="keep"`.'
        )
    if empty and data.on_empty == "drop":
        items, history = (part.filter(~pl.col("id").is_in(empty)) for part in (items, history))
    layout.check_items(benchmark, columns, items, where)
    check_credits(benchmark, items, where, complete=data.limit is None)
    missing = [one for part in items.iter_slices(BATCH_ITEMS) for one in items_with_missing(part)]
    parts = [] if layout is STEPS else items.iter_slices(BATCH_ITEMS)  # a step may repeat the problem
    answered = [item for part in parts for item in answered_prompts(part)]
    check_prompts(items, answered, where)
    history = history.select(HISTORY_COLUMNS)
    items = with_history_length(items, history, benchmark.history)
    if benchmark.prompts_only:
        items = items.with_columns(pl.col(name).list.head(0) for name in ("response_ids", "responses", "rank"))
    cluster = columns.cluster if columns.cluster in used else None
    return _TableItems(items, history, cluster, ignored, empty, missing, answered, left_out, voted.left_out)


def _read(benchmark: Benchmark, data: DataConfig) -> Tables:
    """Read the tables of all splits; several splits are configs of their names, and a file of no split is read once."""
    splits = [split.strip() for split in (data.split or benchmark.split).split(",")]
    location = data.location or benchmark.data
    wanted = data.configs or (benchmark.configs if data.location is None else ())
    people = benchmark.annotations.people if benchmark.annotations else None
    if wanted and people is not None:
        wanted = (*wanted, people.table)
    are_splits = len(splits) > 1 and bool(wanted) and {*wanted} <= {*splits}
    configs = None if are_splits else wanted or None
    how: dict[str, Any] = {"title": benchmark.title, "sample": benchmark.sample, "dialect": benchmark.dialect}
    how["needed"] = needed_columns(benchmark)
    read = {split: read_data(location, split=split, configs=configs, **how) for split in splits}
    tables = read[splits[0]]
    if len(splits) > 1:
        shared = set.intersection(*({*one.paths.items()} for one in read.values()))
        of_none = [config for config, path in tables.paths.items() if (config, path) in shared]
        frames = {config: tables.frames[config] for config in of_none}
        paths = {config: tables.paths[config] for config in of_none}
        for split, one in read.items():
            # In a folder, the file of another split looks like a config.
            tables_of_split = [config for config, path in one.paths.items() if (config, path) not in shared]
            own = [config for config in tables_of_split if config not in splits]
            for config in own:
                name = split if len(own) == 1 else f"{config} {split}"
                frames[name], paths[name] = one.frames[config], one.paths[config]
        if are_splits:
            frames = {config: frames[config] for config in wanted if config in frames}
        tables = replace(tables, frames=frames, paths=paths, split=data.split or benchmark.split)
    if benchmark.join_configs:
        where = next(iter(tables.paths.values())) if len(tables.paths) == 1 else tables.location
        joined = concat_tables(tables.frames, where)
        tables = replace(tables, frames={ALL: joined}, paths={ALL: where})
    return tables


def _matching_rows(benchmark: Benchmark, frame: pl.DataFrame, where: str) -> tuple[pl.DataFrame, int]:
    """Return the benchmark's rows of a table, and the number of other rows."""
    kept = pl.Series([True]).new_from_index(0, frame.height)
    for column, values in benchmark.rows.items():
        if column not in frame.columns:
            raise DataError(f"{where} has no column `{column}`, by which the benchmark selects its rows.")
        keys = [label_key(value) for value in frame[column]]
        present = dict.fromkeys(key for key in keys if key is not None)
        if not present.keys() & set(values):
            raise DataError(
                f"{where}: no row has {' or '.join(values)} in `{column}`; its values are {first_ids([*present])}."
            )
        kept = kept & pl.Series([key in values for key in keys])
    return frame.filter(kept), frame.height - int(kept.sum())


def _items_and_history(
    benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str, limit: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the items of a table, and its history rows, which may be the same object."""
    earlier = benchmark.history
    if benchmark.group_by_prompt and not benchmark.prompts_only:
        frame = group_prompts(frame, columns, where)
    frame = with_ids(frame, columns, where)
    in_history = is_history_row(frame, earlier)
    items = rows_to_items(benchmark, config, frame.filter(~in_history).head(limit or frame.height), columns, where)
    if earlier is None:
        return items, items.clear()
    if earlier.column is None:
        return items, items
    return items, rows_to_items(benchmark, config, frame.filter(in_history), columns, where)


def _content_digest(
    benchmark: Benchmark, items: Mapping[str, pl.DataFrame], histories: Mapping[str, pl.DataFrame], *, drawn: bool
) -> str:
    """Return the SHA-256 of the items and histories; columns without a value count as absent ones."""
    digests = {}
    for config, part in items.items():
        nulls = part.drop("config", "person", *CONTENT).null_count()  # the items' digests stand for the content
        digests[config] = content_digest(part.select(one.name for one in nulls if one[0] < part.height))
    # Items that are their own history contain it, if all are there.
    if benchmark.history is not None and (drawn or benchmark.history.column is not None):
        digests |= {f"before {config}": content_digest(part.with_row_index()) for config, part in histories.items()}
    return digest(digests)


def _check_ids(ids: pl.Series, where: str) -> None:
    if ids.n_unique() < len(ids):
        duplicates = [item_id for item_id, count in Counter(ids.to_list()).items() if count > 1]
        raise DataError(
            f"{where} has {plural(len(duplicates), 'id')} more than once ({first_ids(duplicates)}); make them unique, "
            f'or number the rows with `columns=["id={ROW_NUMBER}"]`.'
        )
