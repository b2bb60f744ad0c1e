"""The directory of a run: per-item results, metrics, and where they come from."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TypeVar

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import Output, Table
from pluralbench_tables import read_json, read_parquet
from pydantic import ValidationError

from pluralbench.errors import RunError
from pluralbench.results.decisions import check_items
from pluralbench.results.metrics_frame import (
    NUMBERS,
    MetricsFile,
    Place,
    check_metrics,
    frame_of_rows,
    metrics_text,
)
from pluralbench.results.record import SCHEMA_VERSION, RunRecord

ITEMS_FILE, METRICS_FILE, RUN_FILE, SETTINGS_FILE = "items.parquet", "metrics.json", "run.json", "settings.toml"
LEDGER_FILE, VERDICTS_FILE = "ledger.parquet", "verdicts.csv"
MISSING = Estimate(None)
File = TypeVar("File", bound=Table)


@dataclass(frozen=True)
class Run:
    """A finished run. path: its directory. items: `items.parquet`, a row a pair, or for rankings a row a response.

    metrics: the long frame of `pluralbench.results.metrics_frame`. record: what `run.json` holds.
    """

    path: Path
    items: pl.DataFrame
    metrics: pl.DataFrame
    record: RunRecord

    @property
    def name(self) -> str:
        """What to call it in tables: its model, or its judge."""
        return self.record.model.name

    @property
    def headline(self) -> Estimate:
        """The overall number."""
        return self.estimate("overall", "overall")

    def estimate(
        self,
        metric: str,
        group: str,
        *,
        config: str | None = None,
        section: str | None = None,
        subset: str | None = None,
    ) -> Estimate:
        """The number at exactly this place, all of it None where the run has none there."""
        return self._numbers.get(Place(group, metric, config, section, subset), MISSING)

    def count(self, metric: str, group: str = "pooled", *, config: str | None = None, subset: str | None = None) -> int:
        """A count at exactly this place, 0 where the run has none there."""
        return int(self.estimate(metric, group, config=config, subset=subset).value or 0)

    def of(self, config: str, metric: str = "accuracy") -> Estimate:
        """A config's own number, whether or not it enters the overall one."""
        found = self.estimate(metric, "config", config=config)
        return self.estimate(metric, "apart", config=config) if found is MISSING else found

    def names(self, group: str, column: str, metric: str = "accuracy", config: str | None = None) -> list[str]:
        """The names of a group's members in `column`, in their order; of one config where one is given."""
        rows = self.metrics.filter(pl.col("group") == group, pl.col("metric") == metric)
        rows = rows if config is None else rows.filter(pl.col("config") == config)
        return rows[column].drop_nulls().unique(maintain_order=True).to_list()

    @cached_property
    def _numbers(self) -> dict[Place, Estimate]:
        return {
            Place(*(row[name] for name in Place._fields)): Estimate(*(row[name] for name in NUMBERS))
            for row in self.metrics.iter_rows(named=True)
        }

    def _repr_html_(self) -> str:
        shown = self.metrics.filter(pl.col("group").is_in(["overall", "config", "apart", "section"]))
        with pl.Config(tbl_rows=-1, fmt_str_lengths=80, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
            table = shown.drop("subset")._repr_html_()
        title = f"{self.name}: {self.record.benchmark.title} ({self.path})"
        return f"<p>{escape(title)}</p>{table}"


def read_run(path: str | Path) -> Run:
    """Read a run's directory.

    Raises `RunError` where it is none, was not finished, is not of this version, or is a shard, which says nothing of
    the whole.
    """
    run = read_part(path)
    if (shard := run.record.data.shard) is not None:
        every = shard.partition("/")[2]
        raise RunError(
            f"{path} is shard {shard} of a run and has no metrics; join all {every} by `pluralbench merge RUN...` and "
            "give what that makes."
        )
    return run


def read_part(path: str | Path) -> Run:
    """Read the directory of a run or of a shard, which has no metrics and may have no items. Raises `RunError`."""
    path = finished(path, RUN_FILE, "run")
    record = read_file(path / RUN_FILE, RunRecord)
    metrics = frame_of_rows(read_file(path / METRICS_FILE, MetricsFile).rows)
    items = read_parquet(path / ITEMS_FILE, error=RunError)
    return Run(
        path,
        check_items(items, str(path / ITEMS_FILE), of_shard=record.data.shard is not None),
        check_metrics(metrics, str(path / METRICS_FILE)),
        record,
    )


def finished(path: str | Path, file: str, what: str) -> Path:
    """The path of a directory that has its record. Raises `RunError` that says of what it is no finished one."""
    path = Path(path)
    if not (path / file).is_file():
        unfinished = path.with_name(path.name + ".work").exists()
        hint = "it is not finished: run its command again to go on" if unfinished else f"it has no {file}"
        raise RunError(f"{path} is no finished {what}: {hint}.")
    return path


def read_file(path: Path, model: type[File]) -> File:
    """A JSON file of this model. Raises `RunError` for another version and for what is not of the model's shape."""
    values = read_json(path, RunError)
    version = values.get("schema_version") if isinstance(values, dict) else None
    if version != SCHEMA_VERSION:
        said = "has no schema_version" if version is None else f"is of schema_version {version}"
        raise RunError(f"{path} {said}, and this version of pluralbench reads {SCHEMA_VERSION}: make the run again.")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"{path} is not of a run's shape: `{place}`: {first['msg']}.") from None


def write_run(output: Output, *, items: pl.DataFrame, metrics: pl.DataFrame, record: RunRecord) -> None:
    """Write a run's files and put its directory in place, with the settings that bind it.

    A judge's ledger and table of verdicts go with it, where they lie in the working directory. Raises `RunError` for
    items or metrics that `read_run` would refuse.
    """
    check_items(items, of_shard=record.data.shard is not None)
    check_metrics(metrics)
    staged = output.staging()
    items.write_parquet(staged / ITEMS_FILE)
    for name, text in ((METRICS_FILE, metrics_text(metrics)), (RUN_FILE, record.model_dump_json(indent=2))):
        (staged / name).write_text(text + "\n", encoding="utf-8")
    (staged / SETTINGS_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
    for made in (output.work / LEDGER_FILE, output.work / VERDICTS_FILE):
        if made.exists():
            made.rename(staged / made.name)
    output.publish(staged)
