"""The metrics of a run as one long frame: a row a number, with its place and its interval. `metrics.json` holds it.

`group` says of what kind a row's place is, and `config`, `section` and `subset` name the place:

group      config  section  subset      what it holds
overall    -       -        -           `overall`, the one headline, and `items`, the count of those that it is made
                                        of. Of rankings by category also `accuracy` and `exact_match`, of which it is
                                        the mean; of a benchmark in many languages `drop` and `kappa` (means over
                                        languages), `kappa_sd` and `variance`
config     name    -        -           a config's own number as it enters the overall one: `accuracy` (the mean of its
                                        sections or categories where there are some), `exact_match`; of a language
                                        `drop` and `kappa`
excluded   name    -        -           the same of a config that stays out of the overall number
section    name    name     -           `accuracy` of a section, and `drop`
section    -       name     -           the mean of a section over languages, `accuracy` and `drop`
category   name    -        name        pooled numbers of a category of rankings (see below)
subset     name    section  name        pooled numbers of another subset, with the section that it is in
pooled     name    -        -           pooled numbers of all decisions of a config
pooled     -       -        -           of all configs that enter the overall number
resource, class, family, script
           -       -        name        `accuracy`, the mean over the languages of a kind, and how many `languages`
bin        name/-  -        1 to 5      a bin of calibration: `accuracy`, `difference` (mean), `probability`
position   -       -        -           what a judge's verdicts owe to the order (see `metrics.position`)
task       name    -        -           a judge's verdicts on a task of the persona judge (see `metrics.certainty`)
decile     name    -        0, 10, ...  `accuracy` and mean `certainty` of the answers in a decile of certainty
certainty  name    -        1 to 100    `accuracy` and `certainty` of the answers that are equally sure
policy     name/-  -        -           `outcome`: what a judge makes of what a policy answers by itself (of `optimize`
                                        the optimised one, with the section `start` the one it began as, and `gain`)
best-of-n  name/-  model    k           of the best of k by a reward model: `outcome`, `outcome_of_first` (of the first
                                        k candidates, rather than of any k), `reward` (its own estimate), `promised` and
                                        `realised` (what reward and outcome gain, in standard deviations within
                                        prompts), `gain` (of the outcome, at the largest k), `since_best` (what the
                                        largest k lost against this one)
plan       name/-  way      -           `aspect_recall` and `aspect_precision` of plans against the true aspects,
                                        matched in a way ("words" or "embeddings")
best-of-n  name/-  model    -           `agreement`: rank correlation of reward and outcome within prompts, their mean
people     -       -        -           of `rate`: `agreement` of two people on a pair, `alpha` (Krippendorff's), and
                                        of their answers those that say `alike`, of the others `share_of_first`
new, known, scored
           name/-  method   condition   of `personalize`: `accuracy` of a method with, without or with another's profile
                                        (with, without, shuffled), or with the posts alone where
                                        "with" adds the persona (posts), on a set of items, and `seeds_sd`, the standard
                                        deviation over seeds
           name/-  method   with-without
                                        `gain`, the difference; `p_value` of none, and `p_holm`, adjusted over methods
new by words, ...
           -       method   with 1, ...  the same by bins of how much is told: by `posts`, `words` or `distance`
           -       method   1, ...      `least` and `most` of a bin

Where a run has `accuracy`, `exact_match` and `overall`, it also has what references get on the same items: `coin`,
`longer` and `shorter` beside accuracy, and `exact_match_of_coin`, `overall_of_coin` and so on (see
`pluralbench.metrics.references`). Runs recorded before there were any have none.

Pooled numbers are `accuracy`, `accuracy_of_valid`, `mean_margin`, of rankings by category `exact_match` and `ece` (the
expected calibration error), and the counts `items`, `wins`, `losses`, `ties`, `invalid`, `dropped`, `equal` and
`truncated` (items). Of a count `value` is the count.

value: a share from 0 to 1 where nothing else is said; null where it is missing, as the accuracy of no decision.
low, high: the bounds of its interval, null where there is none. n: how many decisions (prompts of an exact match,
verdicts, ids of a kappa, languages of a mean kappa) the value is over; clusters: how many clusters (prompts or users)
these are in; both null for counts and where they say nothing. method: how the interval was made, "effective" or "t"
(see `pluralbench_measures.intervals`), null where there is none.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import FrozenModel
from pydantic import ConfigDict, Field, ValidationError

from pluralbench.errors import RunError
from pluralbench.results.columns import schema_of

METRICS_SCHEMA: Literal["urn:pluralbench:metrics:1"] = "urn:pluralbench:metrics:1"
PLACE = ("config", "section", "subset", "group", "metric")
NUMBERS = ("value", "low", "high", "n", "clusters", "method")
METRICS = schema_of(*PLACE, *NUMBERS)


class Place(NamedTuple):
    """Where a number belongs; see the module."""

    group: str
    metric: str
    config: str | None = None
    section: str | None = None
    subset: str | None = None


Numbers = Iterator[tuple[Place, Estimate]]
"""Numbers at their places, as metrics give them."""


class MetricRow(FrozenModel):
    """A row of the frame."""

    model_config = ConfigDict(allow_inf_nan=False)

    config: str | None = None
    section: str | None = None
    subset: str | None = None
    group: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = Field(None, ge=0)
    clusters: int | None = Field(None, ge=0)
    method: str | None = None


class MetricsFile(FrozenModel):
    """`metrics.json`."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:metrics:1"] = Field(METRICS_SCHEMA, alias="$schema")
    schema_version: Literal[1] = 1
    rows: tuple[MetricRow, ...]


def metrics_frame(numbers: Iterable[tuple[Place, Estimate]]) -> pl.DataFrame:
    """The frame of some numbers, checked by `check_metrics`."""
    rows = [place._asdict() | {name: getattr(found, name) for name in NUMBERS} for place, found in numbers]
    return check_metrics(pl.DataFrame(rows, schema=METRICS))


def check_metrics(frame: pl.DataFrame, where: str = "The metrics") -> pl.DataFrame:
    """The same frame. Raises `RunError` for other columns, a place that is there twice, and a number that is none."""
    if dict(frame.schema) != dict(METRICS):
        raise RunError(f"{where} need the columns {', '.join(METRICS)}, and have {', '.join(frame.columns)}.")
    twice = frame.filter(frame.select(PLACE).is_duplicated())
    if twice.height:
        raise RunError(f"{where} have the row {_named(twice.row(0, named=True))} more than once.")
    for row in frame.iter_rows(named=True):
        try:
            MetricRow.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise RunError(f"{where}: {_named(row)}: `{first['loc'][0]}`: {first['msg']}.") from None
        if (row["low"] is None) != (row["high"] is None):
            raise RunError(f"{where}: {_named(row)} has one bound of an interval without the other.")
    return frame


def metrics_text(frame: pl.DataFrame) -> str:
    """The frame as the text of `metrics.json`, with null for what is missing."""
    return MetricsFile(rows=tuple(MetricRow(**row) for row in frame.iter_rows(named=True))).model_dump_json(indent=1)


def _named(row: dict[str, str | None]) -> str:
    return " ".join(str(row[name]) for name in PLACE if row[name] is not None)


def frame_of_rows(rows: Sequence[MetricRow]) -> pl.DataFrame:
    """The frame of the rows of a `metrics.json`."""
    return pl.DataFrame([row.model_dump() for row in rows], schema=METRICS)
