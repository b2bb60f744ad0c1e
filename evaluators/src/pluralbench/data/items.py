"""Items of a benchmark: read from a release, a published dataset or any table, checked, and put into one shape."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Tables, content_digest, read_tables
from pluralbench_runs import digest, plural
from pluralbench_schemas import release_columns
from pluralbench_tables import release_memory

from pluralbench.config import DataConfig, OnEmpty, as_data_config
from pluralbench.data.benchmarks import Benchmark, find_benchmark
from pluralbench.data.clusters import Clusters, assign_clusters
from pluralbench.data.columns import answered_prompts, check_columns, check_prompts, config_columns, used_columns
from pluralbench.data.derived import group_rows, named_columns, with_derived_columns
from pluralbench.data.drawing import draw_items
from pluralbench.data.fields import ROW_NUMBER, Columns
from pluralbench.data.history import COLUMNS as HISTORY_COLUMNS
from pluralbench.data.history import History, is_history_row, with_history_length
from pluralbench.data.labels import label_key
from pluralbench.data.right_and_wrong import check_right_and_wrong
from pluralbench.data.rows_to_items import BATCH_ITEMS, empty_items, rows_to_items, with_ids
from pluralbench.data.samples import read_data
from pluralbench.data.strata import Stratum
from pluralbench.data.texts import first_ids, parsed_value
from pluralbench.errors import DataError

ALL = "all"
PLACE = "#place"
"""Column of the row number."""


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
        digest: SHA-256 of the scored content.
        license: License of the data.
        reference: Source of the English original, if it is not in the data.
        ignored: Columns that are not read, apart from those that every release has.
        empty: Ids of items with an empty prompt or response.
        on_empty: Whether these items were kept or dropped.
        answered: Ids of items whose prompt contains the better response; see `answered_prompts`.
        clusters: Clusters of the items, and repeated content.
        history: Pairs that people decided earlier.
        left_out: Number of rows that are not among the benchmark's `rows`, by config.
        strata: Drawn items by subset; empty if the items were not drawn.
        subsets: Subset of each item, drawn or not.
    """

    frame: pl.DataFrame
    location: str
    revision: str | None
    digest: str
    license: str | None = None
    reference: dict[str, Any] | None = None
    ignored: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    on_empty: OnEmpty = "error"
    answered: list[str] = field(default_factory=list)
    clusters: Clusters = field(default_factory=Clusters)
    history: History = field(default_factory=History)
    left_out: dict[str, int] = field(default_factory=dict)
    strata: tuple[Stratum, ...] = ()
    subsets: pl.Series = field(default_factory=pl.Series)

    @property
    def source(self) -> dict[str, Any]:
        """Fields of `DataRecord` that describe the items."""
        return {
            "location": self.location,
            "revision": self.revision,
            "digest": self.digest,
            "license": self.license,
            "reference": self.reference,
            "rows": dict(self.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
            "ignored_columns": self.ignored,
            "empty": self.empty,
            "on_empty": self.on_empty,
            "answered": self.answered,
            "clusters": self.clusters,
            "history": self.history_counts,
            "left_out": self.left_out,
        }

    @property
    def history_counts(self) -> dict[str, int] | None:
        """Number of rows with earlier pairs, and of items whose person has none; None if the benchmark has none."""
        counts = self.frame["earlier"].drop_nulls()
        return {"rows": self.history.frame.height, "items_without": int((counts == 0).sum())} if len(counts) else None


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
        BenchmarkError: If there is no such benchmark.
        DataError: If the data does not have the benchmark's shape.
        TablesError: If the data cannot be read.
    """
    benchmark, data = _resolved(benchmark, as_data_config(data))
    tables = _read(benchmark, data)
    frames, paths, reference = _with_reference(benchmark, tables, data)
    policy = data.on_empty or benchmark.on_empty
    parts: dict[str, pl.DataFrame] = {}
    histories: dict[str, pl.DataFrame] = {}
    empty: dict[str, list[str]] = {}
    answered: dict[str, list[str]] = {}
    ignored: set[str] = set()
    left_out: dict[str, int] = {}
    cluster_columns: dict[str, str | None] = {}
    location, revision, license = tables.location, tables.revision, tables.license
    del tables  # so that each table is freed once its items are made
    for config in list(frames):
        frame = frames.pop(config)
        columns = config_columns(benchmark, config, frame)
        where = paths[config]
        frame = with_derived_columns(frame, named_columns(benchmark, columns), where)
        frame, left_out[config] = _matching_rows(benchmark, frame, where)
        frame = group_rows(frame, columns, where)
        cluster_columns[config] = columns.cluster if columns.cluster in frame.columns else None
        check_columns(benchmark, columns, frame, where)
        used = used_columns(benchmark, columns, frame)
        ignored |= set(frame.columns) - used - release_columns(frame.columns)
        frame = frame.select(name for name in frame.columns if name in used)
        items, history = _table_items(benchmark, config, frame, columns, where, data.limit)
        _check_ids(pl.concat([items["id"], history["id"]]) if history is not items else items["id"], where)
        empty_ids = empty_items(items) + (empty_items(history) if history is not items else [])
        if empty_ids and policy == "error":
            raise DataError(
                f"{where} has {plural(len(empty_ids), 'item')} with an empty prompt or response (ids "
                f"{first_ids(empty_ids)}); "
                'fix them, or choose `on_empty="drop"` or `on_empty="keep"`.'
            )
        empty[config] = empty_ids
        if empty_ids and policy == "drop":
            items, history = (part.filter(~pl.col("id").is_in(empty_ids)) for part in (items, history))
        check_right_and_wrong(benchmark, items, where, complete=data.limit is None)
        answered[config] = [item for part in items.iter_slices(BATCH_ITEMS) for item in answered_prompts(part)]
        check_prompts(items, answered[config], where)
        histories[config] = history.select(HISTORY_COLUMNS)
        items = with_history_length(items, history, benchmark.history)
        parts[config] = _without_responses(items) if benchmark.prompts_only else items
    parts = {config: part for config, part in parts.items() if part.height}
    if not parts:
        raise DataError(f"{location} has no items.")
    every = pl.concat(part.select("config", "id", "subset") for part in parts.values())
    parts, strata = _draw(benchmark.fit_to(every["subset"]), data, parts)
    content = _content_digest(benchmark, parts, histories, drawn=bool(strata))
    frame = pl.concat(parts.values())
    parts.clear()
    frame, clusters = assign_clusters(frame, cluster_columns)
    undrawn = every.join(frame, on=["config", "id"], how="anti")
    release_memory()
    return Items(
        frame,
        location,
        revision,
        content,
        license,
        _with_size(reference, benchmark, frame),
        sorted(ignored),
        _ids_without(empty, undrawn),
        policy,
        _ids_without(answered, undrawn),
        clusters,
        History(pl.concat(histories.values())),
        {config: count for config, count in left_out.items() if count},
        strata,
        every["subset"],
    )


def _draw(
    benchmark: Benchmark, data: DataConfig, parts: dict[str, pl.DataFrame]
) -> tuple[dict[str, pl.DataFrame], tuple[Stratum, ...]]:
    return (parts, ()) if data.items is None else draw_items(benchmark, parts, data.items, data.items_seed)


def _with_size(reference: dict[str, Any] | None, benchmark: Benchmark, items: pl.DataFrame) -> dict[str, Any] | None:
    """Add the number of its items to the record of the original."""
    if reference is None or benchmark.reference is None:
        return None
    return reference | {"rows": items.filter(config=benchmark.reference.config).height}


def _ids_without(ids: Mapping[str, Iterable[str]], undrawn: pl.DataFrame) -> list[str]:
    """Return the ids of all configs that are not among the undrawn items."""
    others = set(undrawn.select("config", "id").iter_rows())
    return [item for config, own in ids.items() for item in own if (config, item) not in others]


def _read(benchmark: Benchmark, data: DataConfig) -> Tables:
    """Read the tables of all splits; several splits are configs of their names."""
    splits = [split.strip() for split in (data.split or benchmark.split).split(",")]
    location = data.location or benchmark.data
    configs = data.configs or (benchmark.configs if data.location is None else ()) or None
    how: dict[str, Any] = {"title": benchmark.title, "sample": benchmark.sample, "dialect": benchmark.dialect}
    read = {split: read_data(location, split=split, configs=configs, **how) for split in splits}
    tables = read[splits[0]]
    if len(splits) > 1:
        frames, paths = {}, {}
        for split, one in read.items():
            # In a folder, the file of another split looks like a config.
            own = [config for config in one.frames if config not in splits]
            for config in own:
                name = split if len(own) == 1 else f"{config} {split}"
                frames[name], paths[name] = one.frames[config], one.paths[config]
        tables = replace(tables, frames=frames, paths=paths)
    if benchmark.join_configs:
        joined = pl.concat(tables.frames.values(), how="diagonal_relaxed")
        where = next(iter(tables.paths.values())) if len(tables.paths) == 1 else tables.location
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


def _table_items(
    benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str, limit: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the items of a table, and its history rows, which may be the same object."""
    earlier = benchmark.history
    if benchmark.group_by_prompt and not benchmark.prompts_only:
        frame = _group_by_prompt(frame, columns, where)
    frame = with_ids(frame, columns, where)
    in_history = is_history_row(frame, earlier)
    scored = frame.filter(~in_history)
    items = rows_to_items(benchmark, config, scored if limit is None else scored.head(limit), columns, where)
    if earlier is None:
        return items, items.clear()
    if earlier.column is None:
        return items, items
    return items, rows_to_items(benchmark, config, frame.filter(in_history), columns, where)


def _without_responses(items: pl.DataFrame) -> pl.DataFrame:
    return items.with_columns(pl.col(name).list.head(0) for name in ("response_ids", "responses", "rank"))


def _content_digest(
    benchmark: Benchmark, items: Mapping[str, pl.DataFrame], histories: Mapping[str, pl.DataFrame], *, drawn: bool
) -> str:
    """Return the SHA-256 of the items and histories, without optional columns that the benchmark lacks."""
    digests = {}
    for config, part in items.items():
        absent = [
            name for name in ("persona", "earlier", "pairs", "compared") if part[name].null_count() == part.height
        ]
        digests[config] = content_digest(part.drop("person", *absent))
    # Items that are their own history contain it, if all are there.
    if benchmark.history is not None and (drawn or benchmark.history.column is not None):
        digests |= {f"before {config}": content_digest(part.with_row_index()) for config, part in histories.items()}
    return digest(digests)


def _resolved(benchmark: str | Benchmark, data: DataConfig) -> tuple[Benchmark, DataConfig]:
    if isinstance(benchmark, str):
        benchmark = find_benchmark(benchmark, data.columns, data.labels, data.dialect, legacy=data.legacy)
    return benchmark, data


def _with_reference(
    benchmark: Benchmark, tables: Tables, data: DataConfig
) -> tuple[dict[str, pl.DataFrame], dict[str, str], dict[str, Any] | None]:
    """Return the tables with the English original as a config, with only the ids that other configs score."""
    reference = benchmark.reference
    if reference is None:
        if data.english is not None:
            raise DataError(f"{benchmark.title} is not translated from English; leave out `english=...`.")
        return tables.frames, tables.paths, None
    place, column = reference.config, benchmark.columns.id
    others = {config: frame for config, frame in tables.frames.items() if config not in benchmark.outside_overall}
    if data.english is None and (place in tables.frames or data.location is not None):
        frames = tables.frames
        if data.limit is not None and place in frames and others:
            frames = frames | {place: _shared_rows(frames[place], others.values(), column, data.limit)}
        return frames, tables.paths, None
    original = read_tables(data.english or reference.data, split=reference.split, dialect=benchmark.dialect)
    parts, where = list(original.frames.values()), next(iter(original.paths.values()))
    # The configs of a published original are its parts; those of a release are languages.
    if place in original.frames:
        parts, where = [original.frames[place]], original.paths[place]
    if any(column not in frame.columns for frame in [*parts, *others.values()]):
        raise DataError(f"{where} cannot be matched with the data; add a column `{column}` of ids to both.")
    frame = _shared_rows(pl.concat(parts, how="diagonal_relaxed"), others.values(), column, data.limit)
    if frame.is_empty():
        raise DataError(f"{where} shares no id with the data; choose the original with `english=...`.")
    record: dict[str, Any] = {"location": original.location, "revision": original.revision}
    return tables.frames | {place: frame}, tables.paths | {place: where}, record


def _shared_rows(english: pl.DataFrame, others: Iterable[pl.DataFrame], column: str, limit: int | None) -> pl.DataFrame:
    """Return the English rows whose ids are among the first `limit` rows of another config."""
    if any(column not in frame.columns for frame in (english, *others)):
        return english
    ids = {str(value) for frame in others for value in (frame[column] if limit is None else frame[column].head(limit))}
    return english.filter(english[column].cast(pl.String).is_in(sorted(ids)))


def _check_ids(ids: pl.Series, where: str) -> None:
    if ids.n_unique() < len(ids):
        duplicates = [item_id for item_id, count in Counter(ids.to_list()).items() if count > 1]
        raise DataError(
            f"{where} has {len(duplicates):,} ids more than once ({first_ids(duplicates)}); make them unique, or "
            f'number the rows with `columns=["id={ROW_NUMBER}"]`.'
        )


def _group_by_prompt(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Merge the rows of one prompt into one row, as CheemsBench's loader does.

    The row has the responses and pairs of all of them, the ranks of the only row with ranks, and other values of the
    first row if all rows have a value.
    """
    prompt = pl.struct(columns.prompt).struct.json_encode()
    numbered = frame.with_row_index(PLACE)
    repeated = numbered.filter(prompt.is_duplicated())
    rank = columns.rank or "rank"
    lists = [name for name in (columns.responses, columns.pairs) if name in frame.columns]
    merged_rows = []
    for _, part in repeated.group_by(prompt, maintain_order=True):
        rows = part.rows(named=True)
        numbers = [str(row[PLACE] + 1) for row in rows]
        ranked = [number for number, row in zip(numbers, rows, strict=True) if row[rank] is not None]
        if len(ranked) > 1:
            raise DataError(
                f"{where} ranks the responses to one prompt more than once (rows {first_ids(ranked)}); keep one of "
                "these rows."
            )
        merged = {
            name: value if all(row[name] is not None for row in rows) else None for name, value in rows[0].items()
        }
        for name in lists:
            try:
                entries = [entry for row in rows for entry in parsed_value(row, name) or ()]
            except ValueError:
                raise DataError(
                    f"{where}: `{name}` is not a list in one of the rows {first_ids(numbers)}; write a JSON list."
                ) from None
            unique = [entry for place, entry in enumerate(entries) if entry not in entries[:place]]
            merged[name] = json.dumps(unique, ensure_ascii=False) if frame.schema[name] == pl.String else unique
        merged_rows.append(merged | {rank: next((row[rank] for row in rows if row[rank] is not None), None)})
    grouped = pl.concat([numbered.filter(~prompt.is_duplicated()), pl.DataFrame(merged_rows, numbered.schema)])
    return grouped.sort(PLACE).drop(PLACE)
