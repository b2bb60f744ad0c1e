"""The table of metrics: what runs, tables, notes, the JSON Schema and benchmark files read."""

import json
from importlib import import_module
from itertools import chain

import polars as pl
import pytest
from made_runs import decision, run_of
from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.metric_key import DIMENSIONS, MetricKey
from pluralbench.errors import BenchmarkError, RunError
from pluralbench.metrics.frame import check_metrics, metrics_frame
from pluralbench.metrics.table import METRICS, MODULES, named_metrics
from pluralbench.results.schemas import json_schemas
from pluralbench_measures.bootstrap import Estimate


def test_each_metric_is_named_once_and_described() -> None:
    named = [name for module in MODULES for name in import_module(f"pluralbench.metrics.{module}").METRICS]
    assert len(METRICS) == len(named)
    for metric in METRICS.values():
        assert metric.heading
        assert metric.definition.endswith(".")
        for names in map(str.split, metric.dimensions):
            assert names == [name for name in DIMENSIONS if name in names], metric.name
    used = set(chain.from_iterable(names.split() for metric in METRICS.values() for names in metric.dimensions))
    assert used | {"baseline"} == {*DIMENSIONS} == {*MetricKey._fields[1:]}


def test_the_schema_has_each_metric_and_dimension() -> None:
    row = json.loads(json_schemas()["metrics.schema.json"])["$defs"]["MetricRow"]["properties"]
    assert [one["const"] for one in row["metric"]["oneOf"]] == [*METRICS]
    assert {name: row[name]["description"] for name in DIMENSIONS} == DIMENSIONS


@pytest.mark.parametrize(
    ("key", "problem"),
    [(MetricKey("nothing"), "`nothing` is not a metric"), (MetricKey("kappa", k=3), "the metric has no numbers by k")],
)
def test_a_number_that_no_metric_has_is_refused(key: MetricKey, problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        metrics_frame([(key, Estimate(0.5))])


def test_a_number_beyond_any_scale_says_what_to_do() -> None:
    with pytest.raises(RunError) as caught:
        metrics_frame([(MetricKey("mean_margin"), Estimate(-2e300))])
    assert str(caught.value) == "The metrics: mean_margin: `value`: -2e+300 is beyond ±1e+100; scale the scores down."


def test_benchmarks_name_optional_metrics() -> None:
    named = {metric.name for one in known_benchmarks().values() for metric in named_metrics(one)}
    assert named == {name for name, metric in METRICS.items() if metric.optional}
    wrong = known_benchmarks()["pairs"].model_copy(update={"metrics": ("accuracy",)})
    with pytest.raises(BenchmarkError, match="`accuracy`, which is not one of style_accuracy, "):
        named_metrics(wrong)


def test_numbers_by_dimensions_are_a_frame_of_their_own() -> None:
    run = run_of([decision(n, "win" if n < 3 else "tie", config="ab"[n % 2]) for n in range(4)], "personalized")
    own = run.numbers("accuracy", "config")
    assert own.columns[:2] == ["config", "value"]
    assert own.select("config", "value").rows() == [("a", 1.0), ("b", 0.5)]
    assert check_metrics(run.metrics).filter(pl.col("config") == "c").is_empty()
