"""The metrics of a run as one long frame, stored in `metrics.json`: one row per number, with its place and interval.

`group` is the kind of a row's place; `config`, `section` and `subset` name the place:

group      config  section  subset      numbers
overall    -       -        -           `overall`, the headline, and `items`, the number of items behind it. Rankings by
                                        category also have `accuracy` and `exact_match`, of which it is the mean;
                                        benchmarks in many languages `drop` and `kappa` (means over languages),
                                        `kappa_sd` and `variance`; benchmarks of right and wrong responses
                                        `reciprocal_rank`, `accuracy_with_ties` and `unpaired` (see `metrics.responses`)
config     name    -        -           a config's own number, as it enters the overall one: `accuracy` (the mean of its
                                        sections or categories, if it has any), `exact_match`; of a language also `drop`
                                        and `kappa`
excluded   name    -        -           the same for a config that does not enter the overall number
section    name    name     -           `accuracy` of a section, and `drop`
section    -       name     -           mean of a section over languages, `accuracy` and `drop`
category   name    -        name        pooled numbers of a category of rankings (see below)
subset     name    section  name        pooled numbers of another subset, with its section
pooled     name    -        -           pooled numbers over all decisions of a config
pooled     -       -        -           pooled numbers over all configs that enter the overall number
resource, class, family, script
           -       -        name        `accuracy`, the mean over the languages of a kind, and the number of `languages`
level      -       name/-   easy, ...   `accuracy` of pairs by the styles of their responses (see `metrics.responses`)
style      -       name/-   0 against 2 the same by the style of the right and of the wrong response
best-of-k  name    -        k           `accuracy` of the best of k responses
best-of-k  name    -        -           `max`, `loss` and `auc`, and the number of `invalid` responses (see
                                        `metrics.responses`)
bin        name/-  -        1 to 5      a bin of calibration: `accuracy`, `difference` (mean), `probability`
position   -       -        -           position bias of a judge's verdicts (see `metrics.position`)
task       name    -        -           a judge's verdicts on a task of the persona judge (see `metrics.certainty`)
decile     name    -        0, 10, ...  `accuracy` and mean `certainty` of the answers in a decile of certainty
certainty  name    -        1 to 100    `accuracy` and `certainty` of the answers with equal certainty
policy     name/-  -        -           `outcome`: mean outcome of a policy's own answers (of `optimize`, the optimized
                                        policy; the initial one has the section `start`), and `gain`
best-of-n  name/-  model    k           best of k by a reward model: `outcome`, `outcome_of_first` (of the first k
                                        candidates instead of all sets of k), `reward` (its own estimate), `promised`
                                        and `realized` (gain of reward and of outcome, in standard deviations within
                                        prompts), `gain` (of the outcome, at the largest k), `since_best` (loss of the
                                        largest k against this one)
plan       name/-  way      -           `aspect_recall` and `aspect_precision` of plans against the true aspects, by the
                                        way of matching ("words" or "embeddings")
best-of-n  name/-  model    -           `agreement`: rank correlation of reward and outcome within prompts, averaged
people     -       -        -           of `rate`: `agreement` of two annotators on a pair, `alpha` (Krippendorff's),
                                        share of answers `alike`, and `share_of_first` among the others
new, known, scored
           name/-  method   condition   of `personalize`: `accuracy` of a method under a condition (with, without,
                                        shuffled, or posts: the posts alone if "with" adds the persona) on a set of
                                        items, and `seeds_sd`, the standard deviation over seeds
           name/-  method   with-without
                                        `gain`, the difference; `p_value` of no difference, and `p_holm`, adjusted over
                                        methods
new by words, ...
           -       method   with 1, ...  the same by bins of the user context: by `posts`, `words` or `distance`
           -       method   1, ...      `least` and `most` of a bin

Where a run has `accuracy`, `exact_match` and `overall`, it also has the numbers of baselines on the same items: `coin`,
`longer` and `shorter` for accuracy, and `exact_match_of_coin`, `overall_of_coin` and so on (see
`pluralbench.metrics.references`). Runs recorded by versions without baselines lack them.

Pooled numbers are `accuracy`, `accuracy_of_valid`, `mean_margin`, for rankings by category `exact_match` and `ece` (the
expected calibration error), and the counts `items`, `wins`, `losses`, `ties`, `invalid`, `dropped`, `equal` and
`truncated` (items). The `value` of a count is the count.

value: a share from 0 to 1 unless stated otherwise; null if missing, such as the accuracy of no decision. low, high:
bounds of the interval; null without one. n: number of decisions (prompts of an exact match, verdicts, ids of a kappa,
languages of a mean kappa) behind the value. clusters: number of their clusters (prompts or users). n and clusters are
null for counts and where they do not apply. method: method of the interval, "effective" or "t" (see
`pluralbench_measures.intervals`); null without an interval.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import FrozenModel
from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from pluralbench.data.column_types import schema_of
from pluralbench.errors import RunError
from pluralbench.results.summary import COUNTS

METRICS_SCHEMA: Literal["urn:pluralbench:metrics:1"] = "urn:pluralbench:metrics:1"
PLACE = ("config", "section", "subset", "group", "metric")
NUMBERS = ("value", "low", "high", "n", "clusters", "method")
METRICS = schema_of(*PLACE, *NUMBERS)


class Place(NamedTuple):
    """Place of a number; see the module."""

    group: str
    metric: str
    config: str | None = None
    section: str | None = None
    subset: str | None = None


Numbers = Iterator[tuple[Place, Estimate]]
"""Numbers with their places, as metrics yield them."""


MAX_COUNT, MAX_NUMBER = 2**53, 1e100
"""Largest count that every reader of JSON reads exactly, and largest number whose axis a figure can draw."""


class MetricRow(FrozenModel):
    """A row of the metrics frame."""

    model_config = ConfigDict(allow_inf_nan=False)

    config: str | None = None
    section: str | None = None
    subset: str | None = None
    group: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    value: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    low: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    high: float | None = Field(None, ge=-MAX_NUMBER, le=MAX_NUMBER)
    n: int | None = Field(None, ge=0, le=MAX_COUNT)
    clusters: int | None = Field(None, ge=0, le=MAX_COUNT)
    method: str | None = None

    @field_validator("value")
    @classmethod
    def _check_count(cls, value: float | None, info: ValidationInfo) -> float | None:
        if info.data.get("metric") in {"items", *COUNTS} and not 0 <= (value or 0) <= MAX_COUNT:
            raise ValueError(f"a count is between 0 and {MAX_COUNT}")
        return value


class MetricsFile(FrozenModel):
    """Contents of `metrics.json`."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:metrics:1"] = Field(METRICS_SCHEMA, alias="$schema")
    schema_version: Literal[1] = 1
    rows: tuple[MetricRow, ...]


def metrics_frame(numbers: Iterable[tuple[Place, Estimate]]) -> pl.DataFrame:
    """Build the metrics frame, and check it with `check_metrics`."""
    rows = [place._asdict() | {name: getattr(estimate, name) for name in NUMBERS} for place, estimate in numbers]
    return check_metrics(pl.DataFrame(rows, schema=METRICS))


def check_metrics(frame: pl.DataFrame, where: str = "The metrics") -> pl.DataFrame:
    """Check a metrics frame, and return it.

    Raises:
        RunError: The columns differ from `METRICS`, a place occurs twice, or a number is not valid.
    """
    if dict(frame.schema) != dict(METRICS):
        raise RunError(f"{where} need the columns {', '.join(METRICS)}, but have {', '.join(frame.columns)}.")
    duplicates = frame.filter(frame.select(PLACE).is_duplicated())
    if duplicates.height:
        raise RunError(f"{where} have the row {_place_text(duplicates.row(0, named=True))} more than once.")
    for row in frame.iter_rows(named=True):
        try:
            MetricRow.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise RunError(f"{where}: {_place_text(row)}: `{first['loc'][0]}`: {first['msg']}.") from None
        if (row["low"] is None) != (row["high"] is None):
            raise RunError(f"{where}: {_place_text(row)} has only one bound of an interval.")
    return frame


def metrics_text(frame: pl.DataFrame) -> str:
    """Return the text of `metrics.json`; missing numbers are null."""
    return MetricsFile(rows=tuple(MetricRow(**row) for row in frame.iter_rows(named=True))).model_dump_json(indent=1)


def _place_text(row: dict[str, str | None]) -> str:
    return " ".join(str(row[name]) for name in PLACE if row[name] is not None)


def frame_of_rows(rows: Sequence[MetricRow]) -> pl.DataFrame:
    """Build the frame from the rows of `metrics.json`."""
    return pl.DataFrame([row.model_dump() for row in rows], schema=METRICS)
