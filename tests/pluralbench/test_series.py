"""Who is who in figures: a model looks the same whatever else is drawn, and no two names or looks are alike."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import changed, config_of, made
from pluralbench import find_benchmark
from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.frame import metrics_frame
from pluralbench.reports.figures.series import NAME, series_of, series_of_judges
from pluralbench.results import Run
from pluralbench.results.names import row_names
from pluralbench_measures.bootstrap import Estimate

RECORDS = {name: config_of(find_benchmark(name), name, {}) for name in ("personalized", "pairs")}
NAMES = st.lists(st.text("abc/-模", min_size=1, max_size=8), min_size=1, max_size=20, unique=True)


def a_run(name: str, value: float = 0.5, benchmark: str = "pairs", path: str = "", **prompt: Any) -> Run:
    metrics = metrics_frame([(MetricKey("overall"), Estimate(value))])
    at = path or f"runs/{benchmark}-{name.replace('/', '-')}"
    run = changed(made(at, RECORDS[benchmark], pl.DataFrame(), metrics), model__name=name)
    return changed(run, **{f"prompt__{field}": value for field, value in prompt.items()})


@pytest.mark.heavy
@given(st.data())
def test_a_models_look_goes_by_its_name_and_not_by_its_rank(data: st.DataObject) -> None:
    names = data.draw(NAMES)
    values = st.lists(st.floats(0, 1), min_size=len(names), max_size=len(names))
    ours, theirs = (
        [a_run(name, value, benchmark) for name, value in zip(names, data.draw(values), strict=True)]
        for benchmark in RECORDS
    )
    some = data.draw(st.lists(st.sampled_from(theirs), unique_by=lambda run: run.name, min_size=1))
    among = data.draw(st.permutations([*ours, *theirs]))
    looks = {one.name: (one.color, one.marker) for one in series_of(ours, among)}
    assert len(set(looks.values())) == len(names)
    assert {one.name: (one.color, one.marker) for one in series_of(some, among)}.items() <= looks.items()
    judges = series_of_judges({run.name: run.headline.value for run in some} | {"no run": 0.1}, names)
    known = {one.name: (one.color, one.marker) for one in judges if one.name != "no run"}
    assert known.items() <= looks.items(), "a judge that no run is of changes nobody's look"


def test_runs_of_a_model_share_its_colour_and_have_markers_of_their_own() -> None:
    raw, bare = (a_run("m", profile=profile, path=f"runs/{profile}") for profile in ("raw", "none"))
    other, elsewhere = a_run("n"), a_run("m", benchmark="personalized", profile="raw")
    shown = {one.run.path.name: one for one in series_of([raw, bare, other], [raw, bare, other, elsewhere])}
    assert shown["raw"].color == shown["none"].color != shown["pairs-n"].color
    assert shown["raw"].marker != shown["none"].marker
    assert [shown[name].label for name in shown] == ["m (profile none)", "m (profile raw)", "n (profile none)"]
    [there] = series_of([elsewhere], [raw, bare, other, elsewhere])
    assert (there.marker, there.label) == (shown["raw"].marker, "m"), "the same settings on another benchmark"
    again = a_run("m", profile="raw", path="runs/again")
    assert [one.label for one in series_of([raw, again])] == ["m (again)", "m (raw)"]
    many = series_of([a_run(f"m{n % 24:02}", path=f"runs/{n}") for n in range(88)])
    assert len({(one.color, one.marker) for one in many}) == len({one.label for one in many}) == 88
    curves = series_of_judges({f"m{n:02}": None for n in range(21)})
    assert len({(one.color, one.line) for one in curves}) == 21


@pytest.mark.parametrize(
    ("field", "values", "shown"),
    [
        ("label", ["mean", "logit:0"], ["label mean", "label logit:0"]),
        ("settings", [{}, {"read": "last"}], ["read class", "read last"]),
        ("settings", [{"date": "2024-07-26"}, {"date": "2026-02-02"}], ["date 2024-07-26", "date 2026-02-02"]),
    ],
)
def test_runs_that_read_a_model_in_other_ways_say_how(field: str, values: list[Any], shown: list[str]) -> None:
    runs = [changed(a_run("m", path=f"runs/{value}"), **{f"model__{field}": value}) for value in values]
    assert row_names(runs) == [f"m ({one})" for one in shown]


def test_names_are_short_and_models_of_one_name_can_be_told_apart() -> None:
    names = ["a/checkpoint", "b/checkpoint", "org/model", "c" * 20 + "d" * 40, "c" * 20 + "e" + "d" * 40]
    labels = [one.label for one in series_of_judges(dict.fromkeys(names))]
    assert labels[:2] == ["a/checkpoint", "b/checkpoint"]
    assert "model" in labels
    assert max(map(len, labels)) <= NAME
