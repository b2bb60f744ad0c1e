"""The record of a run: typed, read back as it was written, and refused in a sentence where it is not of its shape."""

import json
import runpy
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from made_runs import decision, for_persons, keep, run_of
from pluralbench import load_run
from pluralbench.data.column_types import OUTCOMES
from pluralbench.data.metric_key import MetricKey
from pluralbench.errors import RunError
from pluralbench.metrics.frame import (
    COLUMNS,
    MAX_NUMBER,
    MetricsFile,
    check_metrics,
    frame_of_rows,
    metrics_text,
)
from pluralbench.metrics.table import METRICS
from pluralbench.results import schemas as schemas_module
from pluralbench.results.evaluations import WithoutPersona
from pluralbench.results.run_files import ANY_FILE, FILES
from pluralbench.results.schemas import json_schemas

names = st.none() | st.text(min_size=1, max_size=8)
numbers = st.none() | st.floats(-MAX_NUMBER, MAX_NUMBER)
sizes = st.none() | st.integers(0, 2**53)


@st.composite
def keys(draw: st.DrawFn) -> MetricKey:
    metric = draw(st.sampled_from([one for one in METRICS.values() if one.unit != "count"]))
    values = {
        pl.String(): st.text(min_size=1, max_size=8),
        pl.Int64(): st.integers(0, 99),
        pl.Float64(): st.floats(0, 99),
    }
    own: dict[str, Any] = {
        name: draw(values[COLUMNS[name]]) for name in draw(st.sampled_from(metric.dimensions)).split()
    }
    return MetricKey(metric.name, **own, baseline=draw(names))


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    rows = []
    for key in draw(st.lists(keys(), unique=True, max_size=6)):
        bounds = draw(st.tuples(numbers, numbers))
        bounds = bounds if None not in bounds else (None, None)
        rows.append((*key, draw(numbers), *bounds, draw(sizes), draw(sizes), draw(names)))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


@given(frames())
def test_metrics_are_read_as_they_were_written(frame: pl.DataFrame) -> None:
    text = metrics_text(check_metrics(frame))
    json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert frame_of_rows(MetricsFile.model_validate_json(text).rows).equals(frame)


@pytest.mark.heavy
@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.sampled_from("ab")), min_size=1, max_size=9))
def test_a_run_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, str]]) -> None:
    run = run_of([decision(n, outcome, config=config) for n, (outcome, config) in enumerate(made)])
    back = keep(run, tmp_path_factory.mktemp("runs") / "run")
    assert (back.config, back.result) == (run.config, run.result)
    assert back.metrics.equals(run.metrics)
    assert back.items.equals(run.items)


@pytest.mark.heavy
def test_a_run_is_of_the_schemas_that_a_command_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["schemas", str(tmp_path)])
    runpy.run_path(str(schemas_module.__file__), run_name="__main__")
    schemas = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert schemas == json_schemas()
    bare = WithoutPersona(items=1, ids=("x",))
    for run in (
        run_of([decision(0)]),
        for_persons(run_of([decision(0)]), readings={"strict": 1}, without_persona=bare),
    ):
        of = FILES[run.verb](verb=run.verb, config=run.config, result=run.result, provenance=run.provenance)
        values = json.loads(of.model_dump_json())
        Draft202012Validator(json.loads(schemas["run.schema.json"])).validate(values)
        assert (values["$schema"], values["schema_version"]) == ("urn:pluralbench:run:2", 2)
        assert ANY_FILE.validate_python(values) == of


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("run.json", "{", "{run}/run.json: this is not JSON ("),
        (
            "run.json",
            "[]",
            "{run}/run.json has no schema_version, but this version of pluralbench reads 2; repeat",
        ),
        ("run.json", '{"format": 1}', "{run}/run.json has no schema_version"),
        ("run.json", '{"schema_version": 9}', "{run}/run.json has schema_version 9, but this version of pluralbench"),
        ("run.json", '{"schema_version": 2}', "{run}/run.json is not a valid file of a run: ``: "),
        ("metrics.json", "nonsense", "{run}/metrics.json: this is not JSON ("),
        ("metrics.json", '{"schema_version": 1, "rows": []}', "{run}/metrics.json has schema_version 1"),
        (
            "metrics.json",
            '{"schema_version": 2, "rows": [{}]}',
            "{run}/metrics.json is not a valid file of a run: `rows.0",
        ),
        ("items.parquet", "PAR", "{run}/items.parquet cannot be read: "),
    ],
)
def test_a_damaged_run_is_refused_in_a_sentence(tmp_path: Path, file: str, text: str, said: str) -> None:
    made = keep(run_of([decision(0)]), tmp_path / "run")
    (made.path / file).write_text(text, encoding="utf-8")
    with pytest.raises(RunError) as caught:
        load_run(made.path)
    assert str(caught.value).startswith(said.format(run=made.path))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("credit", {"*": "guess"}), ("overall", "guess")])
def test_a_run_by_a_rule_that_does_not_exist_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    made = keep(run_of([decision(0)]), tmp_path / "run")
    file = made.path / "run.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    values["config"]["benchmark"]["description"][field] = value
    file.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(RunError, match=rf"run.json is not a valid .*: `{field}` must be one of .*; it is `guess`\.$"):
        load_run(made.path)


def test_items_and_metrics_of_another_shape_are_refused(tmp_path: Path) -> None:
    run = run_of([decision(0), decision(1), decision(2)])
    for items, said in (
        (run.items.drop("cluster"), "the column `cluster` is missing"),
        (run.items.with_columns(margin=pl.lit("x")), "the column `margin` is of type String, not Float64"),
        (
            run.items.with_columns(tokens_chosen=pl.lit(timedelta(-9))),
            r"the column `tokens_chosen` is of type Duration",
        ),
        (run.items.with_columns(outcome=None), "the column `outcome` is empty in some rows"),
        (run.items.with_columns(cluster=None), "the column `cluster` is empty in some rows"),
        (run.items.with_columns(digest=None), "the column `digest` is empty in some rows"),
        (run.items.with_columns(chosen=None), "the column `chosen` is empty in some rows that are not equal"),
        (run.items.with_columns(margin=pl.lit(float("inf"))), "a margin is not a finite number"),
        (run.items.with_columns(id=pl.lit("q0"), subset=pl.col("id")), "the rows of id q0 differ in cluster, subset"),
        (run.items.with_columns(outcome=pl.lit("won")), "the outcome 'won' is not one of win, loss, tie, invalid, "),
        (run.items.clear(), "the table has no rows"),
    ):
        items.write_parquet(keep(run, tmp_path / "run").path / "items.parquet")
        with pytest.raises(RunError, match=f"items.parquet: {said}"):
            load_run(tmp_path / "run")
    first = run.metrics.head(1)
    for metrics, said in (
        (pl.concat([first, first]), r"have the row overall more than once"),
        (first.with_columns(value=pl.lit(float("nan"))), "overall: `value`: .*finite"),
        (first.with_columns(low=pl.lit(None, pl.Float64)), "has only one bound of an interval"),
        (first.drop("n"), "need the columns metric, config"),
    ):
        with pytest.raises(RunError, match=said):
            check_metrics(metrics)


def test_a_run_that_is_not_there_or_not_finished_says_so(tmp_path: Path) -> None:
    (tmp_path / "half.work").mkdir()
    for name, part in (("half", "to resume it, run its command again"), ("none", "no run.json")):
        with pytest.raises(RunError, match=f"{name} is not a finished run; .*{part}"):
            load_run(str(tmp_path / name))


def test_numbers_are_found_by_their_place() -> None:
    run = run_of([decision(n, "win" if n < 3 else "tie", config="ab"[n % 2]) for n in range(4)], "personalized")
    assert run.headline.value == run.estimate("overall").value == 0.75
    assert (run.estimate("accuracy", config="a").value, run.estimate("accuracy", config="b").value) == (1.0, 0.5)
    assert (run.count("ties"), run.count("ties", config="a"), run.count("nothing")) == (1, 0, 0)
    assert run.configs == ["a", "b"]
    assert run.estimate("accuracy", config="c").value is None
    assert (run.estimate("accuracy", config="a").n, run.estimate("accuracy", config="a").clusters) == (2, 2)


def test_a_notebook_shows_the_numbers_of_a_run_and_no_markup_of_its_name() -> None:
    shown = run_of([decision(0)], model="<b>m</b>")._repr_html_()
    assert "<table" in shown
    assert "overall" in shown
    assert "&lt;b&gt;m&lt;/b&gt; on Pairs" in shown
    assert "<b>" not in shown
