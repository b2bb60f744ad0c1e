"""The items of a benchmark: read from a release, an original or any table, checked, and brought into one shape."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from pluralbench_release import Tables, content_digest, read_tables
from pluralbench_runs import digest
from pluralbench_schemas import release_columns
from pluralbench_tables import release_memory

from pluralbench.config import DataConfig, OnEmpty
from pluralbench.data.benchmarks import ROW_NUMBER, Benchmark, Columns
from pluralbench.data.clusters import Clusters, assign_clusters
from pluralbench.data.columns import answered_prompts, check_columns, check_prompts, config_columns, used_columns
from pluralbench.data.history import COLUMNS as OF_HISTORY
from pluralbench.data.history import History, is_history_row, with_history_length
from pluralbench.data.rows_to_items import AT_ONCE, empty_items, rows_to_items, with_ids
from pluralbench.data.samples import read_data
from pluralbench.data.texts import first_ids, parsed_value
from pluralbench.errors import DataError

PLACE = "#place"
"""The number of a row, beside the columns of its table."""


@dataclass(frozen=True)
class Items:
    """The items that are scored.

    frame: a row an item, in the source's order, with the columns of `pluralbench.data.rows_to_items.ITEMS`; a pair's
    responses are "chosen" (rank 1) and "rejected" (rank 2), or share rank 1 where its annotators call them equal;
    `digest` is of prompt, responses and ranks, `person` is who asks: the value of the column of clusters where there is
    one, else the id; `pairs` are the (better, worse) places to train on, where the benchmark names them: then a rank
    may be null; `earlier` counts the rows of `history` that their person decided before, null where the benchmark knows
    of none. location, revision, license: of the data. digest: SHA-256 of the content of what is scored. reference:
    where the English original comes from, if not from the data itself. ignored: columns that nothing here reads, but
    for those that releases have. empty: ids of items with an empty text, of which `on_empty` says whether they were
    kept or dropped. answered: ids of items whose prompt contains the better response (see `answered_prompts`).
    clusters: of the items, and what repeats among them. history: the pairs that people decided before.
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

    @property
    def source(self) -> dict[str, Any]:
        """Where the items come from, as a run records it."""
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
        }

    @property
    def history_counts(self) -> dict[str, int] | None:
        """How many rows are earlier pairs of somebody, and how many items' people have none; None without such."""
        known = self.frame["earlier"].drop_nulls()
        return {"rows": self.history.frame.height, "items_without": int((known == 0).sum())} if len(known) else None


def load_items(benchmark: Benchmark, data: DataConfig) -> Items:
    """Read the items of a benchmark.

    Without a location they are the benchmark's own, on the Hub; the location "sample" is a few rows that come with this
    package. limit: at most so many items of each config, the first
    ones; of the English original those that share an id with them. on_empty: without it as the benchmark says.
    english: where the original of a translated benchmark is; without it in the data, or, for the benchmark's own data,
    where the benchmark says. Of it the items whose ids the data has are read.

    Raises `DataError` for data that is not of the benchmark's shape, and `TablesError` for what cannot be read.
    """
    tables = read_data(
        data.location or benchmark.data,
        title=benchmark.title,
        sample=benchmark.sample,
        split=data.split or benchmark.split,
        configs=data.configs or None,
    )
    frames, paths, reference = _with_reference(benchmark, tables, data)
    policy = data.on_empty or benchmark.on_empty
    parts: dict[str, pl.DataFrame] = {}
    before: dict[str, pl.DataFrame] = {}
    empty: list[str] = []
    answered: list[str] = []
    ignored: set[str] = set()
    by: dict[str, str | None] = {}
    location, revision, license = tables.location, tables.revision, tables.license
    del tables  # so that each table goes once its items are made
    for config in list(frames):
        frame = frames.pop(config)
        columns = config_columns(benchmark, config, frame)
        where, by[config] = paths[config], columns.cluster if columns.cluster in frame.columns else None
        check_columns(benchmark, columns, frame, where)
        read = used_columns(benchmark, columns, frame)
        ignored |= set(frame.columns) - read - release_columns(frame.columns)
        frame = frame.select(name for name in frame.columns if name in read)
        made, history = _table(benchmark, config, frame, columns, where, data.limit)
        _check_ids(pl.concat([made["id"], history["id"]]) if history is not made else made["id"], where)
        bare = empty_items(made) + (empty_items(history) if history is not made else [])
        if bare and policy == "error":
            raise DataError(
                f"{where} has {len(bare):,} items with an empty prompt or response (ids {first_ids(bare)}); mend them, "
                "or choose --on-empty drop or keep."
            )
        empty += bare
        if bare and policy == "drop":
            made, history = (part.filter(~pl.col("id").is_in(bare)) for part in (made, history))
        telling = [item_id for part in made.iter_slices(AT_ONCE) for item_id in answered_prompts(part)]
        answered += telling
        check_prompts(made, telling, where)
        before[config] = history.select(OF_HISTORY)
        made = with_history_length(made, history, benchmark.history)
        parts[config] = _without_responses(made) if benchmark.prompts_only else made
    parts = {config: part for config, part in parts.items() if part.height}
    if not parts:
        raise DataError(f"{location} has no items.")
    content = _content(benchmark, parts, before)
    frame = pl.concat(parts.values())
    parts.clear()
    frame, clusters = assign_clusters(frame, by)
    release_memory()
    return Items(
        frame,
        location,
        revision,
        content,
        license,
        reference,
        sorted(ignored),
        empty,
        policy,
        answered,
        clusters,
        History(pl.concat(before.values())),
    )


def _table(
    benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str, limit: int | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The items of a table, and the rows that tell what people decided before, which may be the same."""
    earlier = benchmark.history
    if benchmark.group_by_prompt and not benchmark.prompts_only:
        frame = _merged(frame, columns, where)
    frame = with_ids(frame, columns, where)
    before = is_history_row(frame, earlier)
    asked = frame.filter(~before)
    made = rows_to_items(benchmark, config, asked if limit is None else asked.head(limit), columns, where)
    if earlier is None:
        return made, made.clear()
    return made, made if earlier.column is None else rows_to_items(
        benchmark, config, frame.filter(before), columns, where
    )


def _without_responses(items: pl.DataFrame) -> pl.DataFrame:
    return items.with_columns(pl.col(name).list.head(0) for name in ("response_ids", "responses", "rank"))


def _content(benchmark: Benchmark, items: Mapping[str, pl.DataFrame], before: Mapping[str, pl.DataFrame]) -> str:
    """SHA-256 of what is scored and of what is known of people; a column that a benchmark does not have is no part."""
    digests = {}
    for config, part in items.items():
        absent = [name for name in ("persona", "earlier", "pairs") if part[name].null_count() == part.height]
        digests[config] = content_digest(part.drop("person", *absent))
    if benchmark.history is not None and benchmark.history.column is not None:  # else they are among the items
        digests |= {f"before {config}": content_digest(part.with_row_index()) for config, part in before.items()}
    return digest(digests)


def _with_reference(
    benchmark: Benchmark, tables: Tables, data: DataConfig
) -> tuple[dict[str, pl.DataFrame], dict[str, str], dict[str, Any] | None]:
    """The data with the English original as a config of its own, cut to the ids that are scored in other configs."""
    reference = benchmark.reference
    if reference is None:
        if data.english is not None:
            raise DataError(f"{benchmark.title} is not translated from English; leave out --english.")
        return tables.frames, tables.paths, None
    place, column = reference.config, benchmark.columns.id
    others = {config: frame for config, frame in tables.frames.items() if config not in benchmark.outside_overall}
    if data.english is None and (place in tables.frames or data.location is not None):
        frames = tables.frames
        if data.limit is not None and place in frames and others:
            frames = frames | {place: _sharing(frames[place], others.values(), column, data.limit)}
        return frames, tables.paths, None
    found = read_tables(data.english or reference.data, split=reference.split)
    parts, where = list(found.frames.values()), next(iter(found.paths.values()))
    # Configs of one original are its parts (as of RewardBench, one); those of a release are languages.
    if place in found.frames:
        parts, where = [found.frames[place]], found.paths[place]
    if any(column not in frame.columns for frame in [*parts, *others.values()]):
        raise DataError(f"{where} cannot be matched with the data: both need a column `{column}` of ids.")
    frame = _sharing(pl.concat(parts, how="diagonal_relaxed"), others.values(), column, data.limit)
    if frame.is_empty():
        raise DataError(f"{where} shares no id with the data, so nothing can be compared with English.")
    record = {
        "location": found.location,
        "revision": found.revision,
        "rows": min(frame.height, data.limit or frame.height),
    }
    return tables.frames | {place: frame}, tables.paths | {place: where}, record


def _sharing(english: pl.DataFrame, others: Iterable[pl.DataFrame], column: str, limit: int | None) -> pl.DataFrame:
    """The rows in English whose ids are among the first `limit` of other configs."""
    if any(column not in frame.columns for frame in (english, *others)):
        return english
    ids = {str(value) for frame in others for value in (frame[column] if limit is None else frame[column].head(limit))}
    return english.filter(english[column].cast(pl.String).is_in(sorted(ids)))


def _check_ids(ids: pl.Series, where: str) -> None:
    if ids.n_unique() < len(ids):
        twice = [item_id for item_id, count in Counter(ids.to_list()).items() if count > 1]
        raise DataError(
            f"{where} has {len(twice):,} ids more than once ({first_ids(twice)}), so scores could not be told apart; "
            f"mend them, or number the rows with --column id={ROW_NUMBER}."
        )


def _merged(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Rows of one prompt as one, the way of CheemsBench's loader: the responses and pairs of all of them, other columns
    as the first has them if all of them have them, and the ranks of the only one that has some."""
    prompt = pl.struct(columns.prompt).struct.json_encode()
    numbered = frame.with_row_index(PLACE)
    alike = numbered.filter(prompt.is_duplicated())
    rank = columns.rank or "rank"
    lists = [name for name in (columns.responses, columns.pairs) if name in frame.columns]
    made = []
    for _, part in alike.group_by(prompt, maintain_order=True):
        rows = part.rows(named=True)
        numbers = [str(row[PLACE] + 1) for row in rows]
        ranked = [number for number, row in zip(numbers, rows, strict=True) if row[rank] is not None]
        if len(ranked) > 1:
            raise DataError(
                f"{where} ranks the responses to one prompt more than once (rows {first_ids(ranked)}), and ranks of "
                "several rows cannot be merged; leave one of these rows."
            )
        merged = {
            name: value if all(row[name] is not None for row in rows) else None for name, value in rows[0].items()
        }
        for name in lists:
            try:
                every = [one for row in rows for one in parsed_value(row, name) or ()]
            except ValueError:
                raise DataError(
                    f"{where} has {name} that are no list (one of the rows {first_ids(numbers)})."
                ) from None
            once = [one for place, one in enumerate(every) if one not in every[:place]]
            merged[name] = json.dumps(once, ensure_ascii=False) if frame.schema[name] == pl.String else once
        made.append(merged | {rank: next((row[rank] for row in rows if row[rank] is not None), None)})
    whole = pl.concat([numbered.filter(~prompt.is_duplicated()), pl.DataFrame(made, numbered.schema)])
    return whole.sort(PLACE).drop(PLACE)
