"""`contamination`: prompts and responses of benchmarks that are in a training set, or in another benchmark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
from pluralbench_release import read_tables
from pluralbench_runs import Seed, UserError, check_output, output_file, progress
from pluralbench_runs.options import Flag
from pluralbench_tables import write_jsonl
from pydantic import Field

from pluralbench.config import DataConfig
from pluralbench.data.benchmark_entries import benchmark_entries, find_benchmark, known_benchmarks, title_for
from pluralbench.data.items import load_items
from pluralbench.data.layouts import layout_of
from pluralbench.data.overlap import KINDS, NGRAM, Kind, TextIndex, normalize
from pluralbench.data.training_texts import PARTS, Part, may_have_texts, table_texts, text_columns
from pluralbench.errors import BenchmarkError, DataError

BATCH_ROWS = 4096  # rows of the training set that are compared at a time
CONTAMINATED = pl.Schema(
    {
        "benchmark": pl.String(),
        "config": pl.String(),
        "id": pl.String(),
        "part": pl.String(),
        "response": pl.String(),
        "kind": pl.String(),
        "overlap": pl.Float64(),
        "excerpt": pl.String(),
        "table": pl.String(),
        "row": pl.Int64(),
        "column": pl.String(),
    }
)
"""Columns of `Contamination.items`, and of the file of `contamination --out`."""

ITEM = ["benchmark", "config", "id"]


class ComparedBenchmark(NamedTuple):
    """A benchmark that was compared.

    Attributes:
        name: Name of the benchmark, or the stem of its file.
        revision: Commit of a dataset on the Hub; None for other data.
        with_responses: Number of items with a response that is long enough to be compared.
        short_responses: Number of responses with fewer words than an n-gram, which are not compared.
    """

    name: str
    title: str
    location: str
    revision: str | None
    items: int
    with_responses: int
    short_responses: int


@dataclass(frozen=True)
class Contamination:
    """Items of benchmarks whose prompts or responses are in a dataset.

    Attributes:
        dataset: Location of the dataset, or name of the benchmark.
        rows_without_text: Number of rows without a prompt or response.
        texts: Number of its prompts and responses; each turn of a conversation counts.
        skipped: Benchmarks that could not be read, with the reason.
        items: One row per item, part (prompt or response) and kind, with the columns `CONTAMINATED`. `overlap` and
            `excerpt` are as in `TextIndex.matches`, of the response with the largest overlap. `table`, `row` (from 0)
            and `column` name the first place in the dataset.
    """

    dataset: str
    rows: int
    rows_without_text: int
    columns: tuple[str, ...]
    texts: dict[Part, int]
    ngram: int
    seed: int
    benchmarks: tuple[ComparedBenchmark, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    items: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CONTAMINATED))

    def count(self, benchmark: str, part: Part | None = None, kind: Kind | None = None) -> int:
        """Count the contaminated items of a benchmark. Default: by any part and kind."""
        own = self.items.filter(pl.col("benchmark") == benchmark)
        own = own if part is None else own.filter(pl.col("part") == part)
        own = own if kind is None else own.filter(pl.col("kind") == kind)
        return own.select(ITEM).n_unique()


def contamination(
    dataset: str | Path,
    benchmarks: Annotated[Sequence[str], Flag("--benchmark", "NAME|FILE.toml")] = (),
    *,
    data: Mapping[str, str] | None = None,
    columns: Annotated[Sequence[str], Flag("--column", "FIELD=COLUMN")] = (),
    split: str = "all",
    ngram: Annotated[int, Field(ge=2), Flag(metavar="N")] = NGRAM,
    seed: Seed = 0,
) -> Contamination:
    """Find prompts and responses of benchmarks in a training set, or in another benchmark.

    Prompts are compared with prompts, responses with responses: texts are equal (same words), near-duplicates (MinHash,
    verified) or share n-grams of words; see `pluralbench.data.overlap`. Pairs, conversations, instructions and the
    transcripts of HH-RLHF are read. `report --without` reads the file of --out.

    Args:
        dataset: Directory, file or ORG/NAME on the Hub; or the name or TOML file of a benchmark.
        benchmarks: Benchmark to look for; repeatable. Default: all that are published on the Hub or named in `data`;
            those that cannot be read are skipped.
        data: Location of the data of each benchmark, by its name; "" is for all others.
        columns: Column of the dataset with prompts, responses or conversations, such as prompt=text; repeatable.
            Default: common names.
        split: Split of the dataset; all: every split.
        ngram: Number of words of a shared n-gram.
        seed: Random seed, of MinHash.

    Returns:
        The contaminated items and what was compared.

    Raises:
        UserError: If an argument or the data cannot be used.

    Examples:
        pluralbench contamination my-pairs.jsonl --benchmark reward-bench --out contaminated.jsonl
        pluralbench contamination ORG/NAME --split train      # all benchmarks on the Hub
        pluralbench contamination train.parquet --benchmark my-benchmark.toml --column conversation=dialog
        pluralbench contamination reward-bench --benchmark pairs --data pairs=my-pairs.jsonl
        pluralbench report runs --without contaminated.jsonl
    """
    dataset, data = str(dataset), data or {}
    is_benchmark = _is_benchmark(dataset)
    names = list(dict.fromkeys(benchmarks or _default_benchmarks(data)))
    if is_benchmark and not benchmarks:
        names = [name for name in names if name != dataset]
    _check_names(dataset, names, data, is_benchmark=is_benchmark)
    if is_benchmark:
        tables = _benchmark_tables(dataset, data)
    else:
        tables = read_tables(dataset, split=split, needed=may_have_texts(columns)).frames
    fields = {table: text_columns(frame, columns, f"{dataset} ({table})") for table, frame in tables.items()}
    compared, skipped, texts = _read_benchmarks(names, data, ngram, optional=not benchmarks)
    own = {part: texts.filter(pl.col("part") == part) for part in PARTS}
    unique = {part: frame["text"].unique(maintain_order=True) for part, frame in own.items()}
    indices = {part: TextIndex(series.to_list(), ngram=ngram) for part, series in unique.items()}
    places: list[pl.DataFrame] = []
    batches = [
        (table, first, frame[first : first + BATCH_ROWS])
        for table, frame in tables.items()
        for first in range(0, frame.height, BATCH_ROWS)
    ]
    scanned = 0
    with progress("batches of rows", len(batches)) as meter:
        for table, first, frame in batches:
            batch = table_texts(frame, fields[table], f"{dataset} ({table})", first)
            batch = batch.with_row_index("place", offset=scanned).with_columns(table=pl.lit(table))
            scanned += batch.height
            places.append(batch.drop("text"))
            for part, index in indices.items():
                of_part = batch.filter(pl.col("part") == part)
                index.scan(of_part["text"], of_part["place"].cast(pl.Int64).to_numpy())
            meter.advance()
    where = pl.concat(places).with_columns(pl.col("place").cast(pl.Int64))
    parts = [
        own[part]
        .join(pl.DataFrame({"text": unique[part]}).with_row_index("number"), on="text")
        .drop("text")
        .join(indices[part].matches(seed=seed), left_on=pl.col("number").cast(pl.Int64), right_on="text")
        .join(where.drop("part"), on="place")
        for part in PARTS
    ]
    rows = sum(frame.height for frame in tables.values())
    return Contamination(
        dataset,
        rows,
        rows - where.select("table", "row").n_unique(),
        tuple(dict.fromkeys(name for of in fields.values() for own_names in of.values() for name in own_names)),
        {part: where.filter(pl.col("part") == part).height for part in PARTS},
        ngram,
        seed,
        tuple(compared),
        skipped,
        _one_row_each(pl.concat(parts)),
    )


def _one_row_each(matches: pl.DataFrame) -> pl.DataFrame:
    """Keep the response with the largest overlap of each item and kind."""
    order = pl.Series("kind", KINDS)
    ranked = matches.sort("overlap", descending=True, maintain_order=True)
    return (
        ranked.unique([*ITEM, "part", "kind"], keep="first", maintain_order=True)
        .sort("order", "part", pl.col("kind").replace_strict(order, np.arange(len(order))), maintain_order=True)
        .select(pl.col(name).cast(kind) for name, kind in CONTAMINATED.items())
    )


def _is_benchmark(dataset: str) -> bool:
    return dataset.endswith(".toml") or (not Path(dataset).exists() and dataset in known_benchmarks())


def _default_benchmarks(data: Mapping[str, str]) -> Iterator[str]:
    for name, benchmark in known_benchmarks().items():
        if (benchmark.data is not None or name in data) and layout_of(benchmark).responses is not None:
            yield name
    yield from (name for name in data if name.endswith(".toml"))


def _check_names(dataset: str, names: Sequence[str], data: Mapping[str, str], *, is_benchmark: bool) -> None:
    benchmark_entries(names)  # raises an error for an unknown name before anything is read
    if is_benchmark and dataset in names:
        raise BenchmarkError(f"{dataset} is the dataset and one of the benchmarks; compare it with others.")
    unknown = next((name for name in data if name and name not in {*names, dataset}), None)
    if unknown is not None:
        raise BenchmarkError(
            f"`data={unknown}={data[unknown]}` is the data of a benchmark that is not compared; the benchmarks are "
            f"{', '.join(names)}."
        )
    if "" in data and len(names) > 1:
        raise BenchmarkError(
            f"`data={data['']}` does not say whose data it is; write NAME=LOCATION, such as {names[0]}={data['']}."
        )


def _read_items(name: str, data: Mapping[str, str]) -> tuple[ComparedBenchmark, pl.DataFrame]:
    benchmark = find_benchmark(name)
    location = data.get(name, data.get("") if name not in data else None)
    items = load_items(benchmark, DataConfig(location=location, on_empty="keep"))
    title = title_for(Path(name).stem, benchmark, items.location, items.revision)
    own = ComparedBenchmark(Path(name).stem, title, items.location, items.revision, items.frame.height, 0, 0)
    return own, items.frame


def _benchmark_tables(name: str, data: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """Return the items of a benchmark as tables of a dataset."""
    _, items = _read_items(name, {own: location for own, location in data.items() if own})
    tables = items.select("config", messages="prompt", responses="responses").partition_by("config", as_dict=True)
    return {str(config): frame.drop("config") for (config,), frame in tables.items()}


def _read_benchmarks(
    names: Sequence[str], data: Mapping[str, str], ngram: int, *, optional: bool
) -> tuple[list[ComparedBenchmark], dict[str, str], pl.DataFrame]:
    """Read benchmarks and their texts; with `optional`, skip those that cannot be read."""
    compared: list[ComparedBenchmark] = []
    skipped: dict[str, str] = {}
    texts: list[pl.DataFrame] = []
    for name in names:
        try:
            own, items = _read_items(name, data)
        except UserError as error:
            if not optional or name in data:
                raise
            skipped[name] = str(error)
            continue
        short, frame = _item_texts(own.name, items, ngram)
        with_responses = frame.filter(pl.col("part") == "response").select(ITEM).n_unique()
        compared.append(own._replace(with_responses=with_responses, short_responses=short))
        texts.append(frame)
    if not compared:
        reason = next(iter(skipped.values()), "")
        raise DataError(f"No benchmark could be read; give the location of one with `data=NAME=LOCATION`. {reason}")
    all_texts = pl.concat(texts).with_row_index("order")
    return compared, skipped, all_texts.with_columns(order=pl.col("order").min().over(ITEM))


def _item_texts(name: str, items: pl.DataFrame, ngram: int) -> tuple[int, pl.DataFrame]:
    """Return the number of responses that are too short, and the prompts and other responses of items."""
    message = pl.element().struct
    shown = pl.col("prompt").list.eval(message.field("content").filter(message.field("role") != "system"))
    keys = items.select(pl.lit(name).alias("benchmark"), "config", "id", text=shown.list.join("\n\n"))
    prompts = keys.with_columns(part=pl.lit("prompt"), response=pl.lit(None, pl.String))
    listed = items.select(
        pl.lit(name).alias("benchmark"), "config", "id", response="response_ids", text="responses"
    ).explode("response", "text")
    responses = listed.drop_nulls("text").with_columns(part=pl.lit("response")).select(prompts.columns)
    long = pl.Series(normalize(responses["text"]).sizes >= ngram, dtype=pl.Boolean)
    return int((~long).sum()), pl.concat([prompts, responses.filter(long)])


def check_item_file(path: Path) -> None:
    """Check the file for contaminated items."""
    check_output(path)
    if path.suffix not in {".jsonl", ".parquet"}:
        raise DataError(f"`out={path}` ends in neither .jsonl nor .parquet; name the file CONTAMINATED.jsonl.")


def write_contaminated(result: Contamination, path: Path) -> None:
    """Write the contaminated items as JSON Lines or Parquet, with the columns `CONTAMINATED`."""
    check_item_file(path)
    with output_file(path) as new:
        if path.suffix == ".jsonl":
            write_jsonl(result.items.iter_rows(named=True), new)
        else:
            result.items.write_parquet(new)
