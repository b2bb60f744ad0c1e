"""Items of a benchmark: read from a release, a published dataset or any table, checked, and put into one shape."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import Tables, concat_tables, content_digest
from pluralbench_runs import digest, plural
from pluralbench_schemas import release_columns
from pluralbench_tables import release_memory

from pluralbench.config import DataConfig, as_data_config
from pluralbench.data.annotated_rows import read_votes
from pluralbench.data.annotations import check_people, with_people, with_personas
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import assign_clusters
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
FLAGS = ("empty", "missing", "answered")
"""What a run says of items, by their ids: an empty text, one such as "nan", which programs write for a missing value,
or a prompt that contains the better response (see `answered_prompts`)."""


@dataclass(frozen=True)
class Items:
    """The items of a benchmark and where they come from.

    Attributes:
        frame: One row per item in the order of the data, with the columns of `pluralbench.data.rows_to_items.ITEMS`.
            The responses of a pair are "chosen" (rank 1) and "rejected" (rank 2); both have rank 1 in a tie. `person`
            is the value of the cluster column, or else the id. `digest` covers prompt, responses and ranks. `pairs` are
            the (better, worse) positions to train on, if the benchmark has such a column; then ranks may be null.
            `earlier` is the number of rows of `history` that the person decided before; null if the benchmark has none.
        source: Fields of `DataRecord` that describe the items.
        split: The split, or several joined by commas; None for tables of no split.
        history: Pairs that people decided earlier.
        strata: Drawn items by subset; empty if the items were not drawn.
        subsets: Subset of each item, drawn or not.
    """

    frame: pl.DataFrame
    source: dict[str, Any]
    split: str | None
    history: History
    strata: tuple[Stratum, ...]
    subsets: pl.Series

    @property
    def location(self) -> str:
        """Directory, file, or dataset on the Hub."""
        return str(self.source["location"])

    @property
    def revision(self) -> str | None:
        """Commit of the dataset on the Hub."""
        revision: str | None = self.source["revision"]
        return revision

    @property
    def digest(self) -> str:
        """SHA-256 of the scored content."""
        return str(self.source["digest"])


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
    read = _read_items(benchmark, tables, data)
    subsets = pl.concat(table.items["subset"] for table in read)
    if subsets.is_empty():
        raise DataError(f"{tables.location} has no items.")
    read, strata = _draw(benchmark.fit_to(subsets), read, data)
    parts, varying = check_people(benchmark, {table.config: table.items for table in read if table.items.height})
    parts = {config: with_personas(benchmark, part) for config, part in parts.items()}
    content = _content_digest(benchmark, parts, read, drawn=bool(strata))
    short = pl.concat_str(pl.col("digest").str.head(DIGEST_DIGITS))  # a copy, which does not keep the other digits
    frame = pl.concat(parts.values()).with_columns(digest=short)
    parts, read = {}, [table._replace(items=table.items.clear()) for table in read]  # the frame has them
    frame, clusters = assign_clusters(frame, {table.config: table.cluster for table in read})
    release_memory()
    if reference is not None and benchmark.reference is not None:
        reference |= {"rows": frame.filter(config=benchmark.reference.config).height}
    history = History(pl.concat(table.history for table in read))
    left_out = Counter(varying=varying)
    for table in read:
        left_out.update(table.votes)  # keeps counts of 0
    source = {
        "location": tables.location,
        "revision": tables.revision,
        "digest": content,
        "license": tables.license,
        "reference": reference,
        "rows": dict(frame["config"].value_counts(sort=False).sort("config").iter_rows()),
        "ignored_columns": sorted({column for table in read for column in table.ignored}),
        **{name: [one for table in read for one in table.flagged[name]] for name in FLAGS},
        "on_empty": data.on_empty,
        "clusters": clusters,
        "history": _earlier_counts(frame, history),
        "annotations": _vote_counts(frame, left_out),
        "left_out": {table.config: table.left_out for table in read if table.left_out},
    }
    return Items(frame, source, tables.split, history, strata, subsets)


class _TableItems(NamedTuple):
    """What a table holds: its items and earlier pairs, and what `Items` says of them."""

    config: str
    items: pl.DataFrame
    history: pl.DataFrame
    cluster: str | None
    ignored: set[str]
    flagged: dict[str, list[str]]
    left_out: int
    votes: dict[str, int]


def _read_items(benchmark: Benchmark, tables: Tables, data: DataConfig) -> list[_TableItems]:
    read: list[_TableItems] = []
    for config in list(tables.frames):  # each table is freed once its items are made
        try:
            read.append(_table_items(benchmark, config, tables.frames.pop(config), tables.paths[config], data))
        except ColumnMissing as error:
            if data.configs or not read:
                raise
            others = ", ".join(f'"{table.config}"' for table in read)
            raise DataError(f"{error} To leave this config out, name the others with `configs=[{others}]`.") from None
    return read


def _draw(
    benchmark: Benchmark, read: list[_TableItems], data: DataConfig
) -> tuple[list[_TableItems], tuple[Stratum, ...]]:
    """Leave out the items that are not drawn, and their flags."""
    if data.items is None:
        return read, ()
    configs = {table.config: table.items for table in read if table.items.height}
    parts, strata = draw_items(benchmark, configs, data.items, data.items_seed)
    drawn = []
    for table in read:
        items = parts.get(table.config, table.items.clear())
        others = {*table.items["id"]}.difference(items["id"])
        flagged = {name: [one for one in ids if one not in others] for name, ids in table.flagged.items()}
        drawn.append(table._replace(items=items, flagged=flagged))
    return drawn, strata


def _earlier_counts(frame: pl.DataFrame, history: History) -> dict[str, int] | None:
    counts = frame["earlier"].drop_nulls()
    return {"rows": history.frame.height, "items_without": int((counts == 0).sum())} if len(counts) else None


def _vote_counts(frame: pl.DataFrame, left_out: Mapping[str, int]) -> dict[str, int] | None:
    votes = frame["annotations"].drop_nulls().explode()
    if votes.is_empty():
        return None
    people = votes.struct.field("annotator").drop_nulls().n_unique()
    return {"votes": len(votes), "annotators": people, **left_out}


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
    flagged = dict(zip(FLAGS, (empty, missing, answered), strict=True))
    return _TableItems(config, items, history, cluster, ignored, flagged, left_out, voted.left_out)


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
    benchmark: Benchmark, items: Mapping[str, pl.DataFrame], tables: Sequence[_TableItems], *, drawn: bool
) -> str:
    """Return the SHA-256 of the items and histories; columns without a value count as absent ones."""
    digests = {}
    for config, part in items.items():
        nulls = part.drop("config", "person", *CONTENT).null_count()  # the items' digests stand for the content
        digests[config] = content_digest(part.select(one.name for one in nulls if one[0] < part.height))
    # Items that are their own history contain it, if all are there.
    if benchmark.history is not None and (drawn or benchmark.history.column is not None):
        digests |= {f"before {table.config}": content_digest(table.history.with_row_index()) for table in tables}
    return digest(digests)


def _check_ids(ids: pl.Series, where: str) -> None:
    if ids.n_unique() < len(ids):
        duplicates = [item_id for item_id, count in Counter(ids.to_list()).items() if count > 1]
        raise DataError(
            f"{where} has {plural(len(duplicates), 'id')} more than once ({first_ids(duplicates)}); make them unique, "
            f'or number the rows with `columns=["id={ROW_NUMBER}"]`.'
        )
