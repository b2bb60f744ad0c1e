"""The items of a benchmark: read from a release, an original or any table, checked, and brought into one shape."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import polars as pl
from pluralbench_release import Tables, content_digest, read_tables
from pluralbench_runs import digest
from pluralbench_schemas import POST, RUBRIC_ASPECT, release_columns
from pluralbench_tables import release_memory, typed_frame

from pluralbench.data.benchmarks import LISTS, ROW_NUMBER, Benchmark, Columns
from pluralbench.data.clusters import Clusters, clustered
from pluralbench.data.earlier import COLUMNS as OF_HISTORY
from pluralbench.data.earlier import History, counted, is_earlier
from pluralbench.data.profiles import posts, sentences, structs
from pluralbench.data.samples import read_data
from pluralbench.data.texts import Responses, Row, messages_of, named, no_responses, responses_of, value_of
from pluralbench.descriptions import Data, OnEmpty
from pluralbench.errors import DataError

AT_ONCE = 1024  # items that are objects of Python at a time
MESSAGE: pl.DataType = pl.Struct({"role": pl.String, "content": pl.String})
_ITEM_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "config": pl.String,
    "id": pl.String,
    "cluster": pl.String,
    "person": pl.String,
    "subset": pl.String,
    "prompt": pl.List(MESSAGE),
    "response_ids": pl.List(pl.String),
    "responses": pl.List(pl.String),
    "rank": pl.List(pl.Int64),
    "profile": pl.List(POST),
    "aspects": pl.List(RUBRIC_ASPECT),
    "persona": pl.List(pl.String),
    "earlier": pl.UInt32,
    "digest": pl.String,
}
ITEMS = pl.Schema(_ITEM_TYPES)


@dataclass(frozen=True)
class Items:
    """The items that are scored.

    frame: a row an item, in the source's order, with the columns of `ITEMS`; a pair's responses are "chosen" (rank 1)
    and "rejected" (rank 2), or share rank 1 where its annotators call them equal; `digest` is of prompt, responses
    and ranks, `person` is who asks: the value of the column of clusters where there is one, else the id;
    `earlier` counts the rows of `history` that their person decided before, null where the benchmark knows of none.
    location, revision, licence: of the data. digest: SHA-256 of the content of what is scored.
    reference: where the English original comes from, if not from the data itself.
    ignored: columns that nothing here reads, but for those that releases have. empty: ids of items with an empty text,
    of which `on_empty` says whether they were kept or dropped. clusters: of the items, and what repeats among them.
    history: the pairs that people decided before.
    """

    frame: pl.DataFrame
    location: str
    revision: str | None
    digest: str
    licence: str | None = None
    reference: dict[str, Any] | None = None
    ignored: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    on_empty: OnEmpty = "error"
    clusters: Clusters = field(default_factory=Clusters)
    history: History = field(default_factory=History)

    @property
    def source(self) -> dict[str, Any]:
        """Where the items come from, as a run records it."""
        return {
            "location": self.location,
            "revision": self.revision,
            "digest": self.digest,
            "licence": self.licence,
            "reference": self.reference,
            "rows": dict(self.frame["config"].value_counts(sort=False).sort("config").iter_rows()),
            "ignored_columns": self.ignored,
            "empty": self.empty,
            "on_empty": self.on_empty,
            "clusters": self.clusters,
            "earlier": self.earlier,
        }

    @property
    def earlier(self) -> dict[str, int] | None:
        """How many rows are earlier pairs of somebody, and how many items' people have none; None without such."""
        known = self.frame["earlier"].drop_nulls()
        return {"rows": self.history.frame.height, "items_without": int((known == 0).sum())} if len(known) else None


def load_items(benchmark: Benchmark, data: Data) -> Items:
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
    ignored: set[str] = set()
    by: dict[str, str | None] = {}
    location, revision, licence = tables.location, tables.revision, tables.licence
    del tables  # so that each table goes once its items are made
    for config in list(frames):
        frame = frames.pop(config)
        columns = _columns_of(benchmark, config, frame)
        where, by[config] = paths[config], columns.cluster if columns.cluster in frame.columns else None
        _check_columns(frame, columns, where, _needed(benchmark, columns))
        read = _read_columns(columns, frame) | ({benchmark.earlier.column or ""} if benchmark.earlier else set())
        ignored |= set(frame.columns) - read - release_columns(frame.columns)
        frame = frame.select(name for name in frame.columns if name in read)
        made, history, bare = _table(benchmark, config, frame, columns, where, data.limit)
        _check_ids(pl.concat([made["id"], history["id"]]) if history is not made else made["id"], where)
        if bare and policy == "error":
            raise DataError(
                f"{where} has {len(bare):,} items with an empty prompt or response (ids {named(bare)}); mend them, or "
                "choose --on-empty drop or keep."
            )
        empty += bare
        if bare and policy == "drop":
            made, history = (part.filter(~pl.col("id").is_in(bare)) for part in (made, history))
        before[config] = history.select(OF_HISTORY)
        made = counted(made, history, benchmark.earlier)
        parts[config] = _without_responses(made) if benchmark.prompts else made
    parts = {config: part for config, part in parts.items() if part.height}
    if not parts:
        raise DataError(f"{location} has no items.")
    content = _content(benchmark, parts, before)
    frame = pl.concat(parts.values())
    parts.clear()
    frame, clusters = clustered(frame, by)
    release_memory()
    return Items(
        frame,
        location,
        revision,
        content,
        licence,
        reference,
        sorted(ignored),
        empty,
        policy,
        clusters,
        History(pl.concat(before.values())),
    )


def _table(
    benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str, limit: int | None
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The items of a table, the rows that tell what people decided before, and the ids of those with an empty text."""
    earlier = benchmark.earlier
    merged = benchmark.merged and not benchmark.prompts

    def rows(shape: Callable[[Row, Columns], Responses], *, told: bool) -> Iterator[dict[str, Any]]:
        every = _merged(frame, columns, where) if merged else frame.iter_rows(named=True)
        chosen = ((number, row) for number, row in enumerate(every) if is_earlier(row, earlier) is told)
        return (_item(config, number, row, columns, where, shape) for number, row in chosen)

    if earlier is None:
        made, bare = _frame_of(islice(rows(no_responses if benchmark.prompts else responses_of, told=False), limit))
        return made, made.clear(), bare
    made, bare = _frame_of(islice(rows(responses_of, told=False), limit))
    if earlier.column is None:
        return made, made, bare
    history, bare_before = _frame_of(rows(responses_of, told=True))
    return made, history, bare + bare_before


def _without_responses(items: pl.DataFrame) -> pl.DataFrame:
    return items.with_columns(pl.col(name).list.head(0) for name in ("response_ids", "responses", "rank"))


def _content(benchmark: Benchmark, items: Mapping[str, pl.DataFrame], before: Mapping[str, pl.DataFrame]) -> str:
    """SHA-256 of what is scored and of what is known of people; a column that a benchmark does not have is no part."""
    digests = {}
    for config, part in items.items():
        absent = [name for name in ("persona", "earlier") if part[name].null_count() == part.height]
        digests[config] = content_digest(part.drop("person", *absent))
    if benchmark.earlier is not None and benchmark.earlier.column is not None:  # else they are among the items
        digests |= {f"before {config}": content_digest(part.with_row_index()) for config, part in before.items()}
    return digest(digests)


def _with_reference(
    benchmark: Benchmark, tables: Tables, data: Data
) -> tuple[dict[str, pl.DataFrame], dict[str, str], dict[str, Any] | None]:
    """The data with the English original as a config of its own, cut to the ids that are scored in other configs."""
    reference = benchmark.reference
    if reference is None:
        if data.english is not None:
            raise DataError(f"{benchmark.title} is not translated from English; leave out --english.")
        return tables.frames, tables.paths, None
    place, column = reference.config, benchmark.columns.id
    others = {config: frame for config, frame in tables.frames.items() if config not in benchmark.outside}
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


def _columns_of(benchmark: Benchmark, config: str, frame: pl.DataFrame) -> Columns:
    columns = benchmark.columns_of(config)
    if benchmark.reference is None or config != benchmark.reference.config:
        return columns
    changed = {what: name for what, name in benchmark.reference.columns.items() if name in frame.columns}
    return columns.model_copy(update=changed)


def _read_columns(columns: Columns, frame: pl.DataFrame) -> set[str]:
    named = columns.model_dump(exclude={"prompt", "labels", "named"})
    return {name for name in (*named.values(), *columns.prompt, *columns.labels) if name in frame.columns}


def _of_responses(columns: Columns) -> dict[str, tuple[str, ...]]:
    """The columns that hold responses and which is better, by what they are."""
    if columns.responses:
        return {"responses": (columns.responses,), "rank": (columns.rank or "rank",)}
    if columns.first and columns.second:
        return {"first": (columns.first,), "second": (columns.second,), "labels": columns.labels}
    return {"chosen": (columns.chosen,), "rejected": (columns.rejected,)}


def _needed(benchmark: Benchmark, columns: Columns) -> dict[str, tuple[str, ...]]:
    """The columns that there have to be beside the prompt, by what they are."""
    if benchmark.earlier is None:
        return {} if benchmark.prompts else _of_responses(columns)
    user = {"cluster": (columns.cluster,)} if columns.cluster else {}
    which = {"earlier": (benchmark.earlier.column,)} if benchmark.earlier.column else {}
    return _of_responses(columns) | user | which


def _check_columns(
    frame: pl.DataFrame, columns: Columns, where: str, of_responses: Mapping[str, tuple[str, ...]]
) -> None:
    chosen = {what: getattr(columns, what) for what in columns.named if what not in LISTS}
    needed = {what: (name,) for what, name in chosen.items() if name != ROW_NUMBER} | {"prompt": columns.prompt}
    needed |= of_responses
    for what, names in needed.items():
        for name in names:
            if name not in frame.columns:
                mend = f"name the right one with --column {what}=COLUMN"
                if what not in Columns.model_fields:
                    mend = "it says which rows are earlier pairs of their user; add it, or describe the data in a file"
                raise DataError(f"{where} has no column `{name}`; it has {', '.join(frame.columns)}: {mend}.")


def _frame_of(items: Iterable[dict[str, Any]]) -> tuple[pl.DataFrame, list[str]]:
    """The items as a frame, and the ids of those with an empty text.

    It is made of some at a time: as objects of Python they take several times the memory.
    """
    left = iter(items)
    parts, empty = [pl.DataFrame(schema=ITEMS)], []
    while some := list(islice(left, AT_ONCE)):
        parts.append(typed_frame(some, ITEMS))
        empty += [item["id"] for item in some if _is_empty(item)]
    return pl.concat(parts, rechunk=True), empty


def _check_ids(ids: pl.Series, where: str) -> None:
    if ids.n_unique() < len(ids):
        twice = [item_id for item_id, count in Counter(ids.to_list()).items() if count > 1]
        raise DataError(
            f"{where} has {len(twice):,} ids more than once ({named(twice)}), so scores could not be told apart; "
            f"mend them, or number the rows with --column id={ROW_NUMBER}."
        )


def _merged(frame: pl.DataFrame, columns: Columns, where: str) -> Iterator[Row]:
    """Rows of one prompt as one, the way of CheemsBench's loader: the responses of all of them, other columns as the
    first has them if all of them have them, and the ranks of the only one that has some."""
    alike: dict[str, list[tuple[int, Row]]] = {}
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        alike.setdefault(json.dumps([row[name] for name in columns.prompt], default=str), []).append((number, row))
    responses, rank = str(columns.responses), columns.rank or "rank"
    for parts in alike.values():
        rows = [row for _, row in parts]
        if len(rows) == 1:
            yield rows[0]
            continue
        ranked = [str(number) for number, row in parts if row[rank] is not None]
        if len(ranked) > 1:
            raise DataError(
                f"{where} ranks the responses to one prompt more than once (rows {named(ranked)}), and ranks of "
                "several rows cannot be merged; leave one of these rows."
            )
        try:
            every = [response for row in rows for response in value_of(row[responses]) or ()]
        except ValueError:
            numbers = [str(number) for number, _ in parts]
            raise DataError(f"{where} has responses that are no list (one of the rows {named(numbers)}).") from None
        merged = {name: value for name, value in rows[0].items() if all(row[name] is not None for row in rows)}
        merged |= {responses: [one for place, one in enumerate(every) if one not in every[:place]]}
        yield merged | {rank: next((row[rank] for row in rows if row[rank] is not None), None)}


def _item(
    config: str, number: int, row: Row, columns: Columns, where: str, responses_of: Callable[[Row, Columns], Responses]
) -> dict[str, Any]:
    given = row.get(columns.id)
    item_id = str(number) if columns.id == ROW_NUMBER or columns.id not in row else str(given)
    if given is None and columns.id in row:
        raise DataError(f"{where} has a row without an id (row {number + 1}).")
    try:
        names, responses, rank = responses_of(row, columns)
        prompt = messages_of(row, columns)
        profile = posts(row, columns.profile)
        persona = sentences(row, columns.persona)
        aspects = structs(row, columns.aspects, "aspect")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"{where} is not of the benchmark's shape at id {item_id}: {error}.") from None
    subset = row.get(columns.subset) if columns.subset else None
    own = _own_cluster(config, item_id, row, columns)
    return {
        "config": config,
        "id": item_id,
        "cluster": own,
        "person": own,
        # CheemsBench has a list of categories, of which the first one counts.
        "subset": str(subset[0]) if isinstance(subset, list) and subset else None if subset is None else str(subset),
        "prompt": prompt,
        "response_ids": names,
        "responses": responses,
        "rank": rank,
        "profile": profile,
        "aspects": aspects,
        "persona": persona,
        "digest": digest([[[m["role"], m["content"]] for m in prompt], [*zip(names, responses, rank, strict=True)]])[
            :16
        ],
    }


def _own_cluster(config: str, item_id: str, row: Mapping[str, Any], columns: Columns) -> str:
    if columns.cluster and columns.cluster in row:
        return str(row[columns.cluster])
    # An id may be shared across configs (a prompt in several languages); the number of a row never is.
    return item_id if columns.id in row else f"{config}, row {item_id}"


def _is_empty(item: Mapping[str, Any]) -> bool:
    texts = [*item["responses"], *(message["content"] for message in item["prompt"] if message["role"] == "user")]
    return not all(text.strip() for text in texts)
