"""The metrics of a run as one long frame, stored in `metrics.json`: one row per number.

A row has the metric, the dimensions of the number, and:

value: in the unit of the metric; null if missing, such as the accuracy of no decision. low, high: bounds of the
interval; null without one. n: number of decisions (prompts of an exact match, verdicts, ids of a kappa, languages of a
mean kappa) behind the value. clusters: number of their clusters (prompts or users). n and clusters are null for counts
and where they do not apply. interval: method of the interval, "effective" or "t" (see
`pluralbench_measures.intervals`) or "two-way" (see `pluralbench_measures.crossed`); null without an interval.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import FrozenModel
from pydantic import ConfigDict, Field, ValidationError, create_model, model_validator

from pluralbench.data.metric_key import DIMENSIONS, MetricKey
from pluralbench.errors import RunError
from pluralbench.metrics.table import METRICS

METRICS_SCHEMA: Literal["urn:pluralbench:metrics:2"] = "urn:pluralbench:metrics:2"
KEY = MetricKey._fields
NUMBERS = ("value", "low", "high", "n", "clusters", "interval")
_POLARS = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}
_OPTIONAL = {name: get_args(MetricKey.__annotations__[name])[0] for name in DIMENSIONS}
_KINDS = {name: get_args(kind)[0] for name, kind in _OPTIONAL.items()}
_NUMBER_KINDS = {"n": int, "clusters": int, "interval": str}
COLUMNS = pl.Schema(
    {name: _POLARS[_KINDS.get(name, str)] for name in KEY}
    | {name: _POLARS[_NUMBER_KINDS.get(name, float)] for name in NUMBERS}
)
"""Columns of the metrics frame."""
OWN_DIMENSIONS = tuple(name for name in DIMENSIONS if name != "baseline")
MAX_COUNT, MAX_NUMBER = 2**53, 1e100
"""Largest count that every reader of JSON reads exactly, and largest number whose axis a figure can draw."""


class _Numbers(FrozenModel):
    model_config = ConfigDict(allow_inf_nan=False)

    metric: str = Field(
        json_schema_extra={
            "oneOf": [
                {"const": name, "title": one.heading, "description": one.definition} for name, one in METRICS.items()
            ]
        }
    )
    value: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    low: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    high: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    n: int | None = Field(None, ge=0, le=MAX_COUNT)
    clusters: int | None = Field(None, ge=0, le=MAX_COUNT)
    interval: str | None = None

    @model_validator(mode="after")
    def _check(self) -> "_Numbers":
        if self.metric not in METRICS:
            raise ValueError(f"`{self.metric}` is not a metric")
        values = self.__dict__  # a run has thousands of rows, and pydantic's attributes take longer
        own = " ".join([name for name in OWN_DIMENSIONS if values[name] is not None])
        if own not in METRICS[self.metric].dimensions:
            raise ValueError(f"the metric has no numbers by {own or 'run'}")
        if METRICS[self.metric].unit == "count" and not 0 <= (self.value or 0) <= MAX_COUNT:
            raise ValueError(f"a count is between 0 and {MAX_COUNT}")
        return self


_FIELDS: dict[str, Any] = {name: (_OPTIONAL[name], Field(None, description=text)) for name, text in DIMENSIONS.items()}
MetricRow: Any = create_model("MetricRow", __base__=_Numbers, **_FIELDS)
"""A row of the metrics frame."""


class MetricsFile(FrozenModel):
    """Contents of `metrics.json`."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:metrics:2"] = Field(METRICS_SCHEMA, alias="$schema")
    schema_version: Literal[2] = 2
    rows: tuple[MetricRow, ...]


def metrics_frame(numbers: Iterable[tuple[MetricKey, Estimate]]) -> pl.DataFrame:
    """Build the metrics frame, and check it with `check_metrics`."""
    rows = [key._asdict() | number_fields(estimate) for key, estimate in numbers]
    return check_metrics(pl.DataFrame(rows, schema=COLUMNS))


def number_fields(estimate: Estimate) -> dict[str, Any]:
    """Return the columns `NUMBERS` of a number."""
    return {name: getattr(estimate, "method" if name == "interval" else name) for name in NUMBERS}


def check_metrics(frame: pl.DataFrame, where: str = "The metrics") -> pl.DataFrame:
    """Check a metrics frame, and return it; raises `RunError` for other columns, or a number twice or not valid."""
    if dict(frame.schema) != dict(COLUMNS):
        raise RunError(f"{where} need the columns {', '.join(COLUMNS)}, but have {', '.join(frame.columns)}.")
    duplicates = frame.filter(frame.select(KEY).is_duplicated())
    if duplicates.height:
        raise RunError(f"{where} have the row {key_text(duplicates.row(0, named=True))} more than once.")
    for row in frame.iter_rows(named=True):
        try:
            MetricRow.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            name = f"`{first['loc'][0]}`: " if first["loc"] else ""
            if first["type"] in {"less_than_equal", "greater_than_equal"} and isinstance(first["input"], float):
                first["msg"] = f"{first['input']:.2g} is beyond ±{MAX_NUMBER:g}; scale the scores down"
            raise RunError(f"{where}: {key_text(row)}: {name}{first['msg'].removeprefix('Value error, ')}.") from None
        if (row["low"] is None) != (row["high"] is None):
            raise RunError(f"{where}: {key_text(row)} has only one bound of an interval.")
    return frame


def metrics_text(frame: pl.DataFrame) -> str:
    """Return the text of `metrics.json`; dimensions that a number does not have and missing values are left out."""
    rows = tuple(MetricRow(**row) for row in frame.iter_rows(named=True))
    return MetricsFile(rows=rows).model_dump_json(indent=1, exclude_none=True)


def key_text(row: dict[str, Any]) -> str:
    """Name a number in a sentence: its metric and its dimensions, as "accuracy of human, Reasoning"."""
    own = ", ".join(str(row[name]) for name in DIMENSIONS if row[name] is not None)
    return f"{row['metric']} of {own}" if own else str(row["metric"])


def frame_of_rows(rows: Sequence[Any]) -> pl.DataFrame:
    """Build the frame from the rows of `metrics.json`."""
    return pl.DataFrame([row.model_dump() for row in rows], schema=COLUMNS)
