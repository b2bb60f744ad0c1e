"""Entries of figures: which there are of which runs, and that their marks are the numbers of the metrics."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from drawn_figures import chart_of, draw, values
from figure_runs import (
    BASELINES,
    CATEGORIES,
    PARTS,
    SUBSETS,
    benchmark_run,
    chinese_run,
    chinese_runs,
    judged_rows,
    language_run,
    persona_run,
    places_run,
    translated_run,
    translated_runs,
    with_references,
)
from made_runs import changed, decision, run_of, with_items
from pluralbench.data.persona_items import PERSONA_JUDGE
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.reports.figures import languages, verdicts
from pluralbench.reports.figures.downstream import best_of_n
from pluralbench.reports.figures.fonts import part_labels
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.figures.series import series_of
from pluralbench.reports.verdicts import verdict_rows
from pluralbench_measures.bootstrap import Estimate
from pluralbench_schemas import ENGLISH, LANGUAGES
from written_verdicts import Rows
from written_verdicts import verdicts as written

ROWS = {
    "personalized": {"Overall", "Art and Entertainment", "Lifestyle and Personal Development"},
    "pairs": {"Overall"},
    "reward-bench": {"Overall", "Chat", "Chat Hard", "Safety", "Reasoning"},
    "mine": {"Overall", "one", "two"},
    PERSONA_JUDGE: {"Overall", "prism", "opinion qa"},
}
SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")
SOME = ("arb_Arab", "spa_Latn", "zho_Hans")


def percent(number: Estimate) -> float:
    assert number.value is not None
    return 100 * number.value


@pytest.mark.parametrize("models", [2, pytest.param(5, marks=pytest.mark.heavy)])
def test_a_forest_plot_has_the_parts_of_its_benchmark_with_baselines(models: int, tmp_path: Path) -> None:
    benchmarks = [*PARTS, "mine"]
    runs = [with_references(benchmark_run(n, name)) for n in range(models) for name in benchmarks]
    charts = figures_of([*runs, *(persona_run(n, tmp_path) for n in range(models))])
    for name in (*benchmarks, PERSONA_JUDGE):
        chart = charts[f"forest_{name}"]
        rows = {mark.at for mark in chart.marks} if models == 2 else {panel.title for panel in chart.panels}
        assert ROWS.get(name, {"Overall"}) <= rows
        assert len({mark.series.label for mark in chart.marks if mark.kind == "dot"}) == models
    own = [run for run in runs if run.config.benchmark.name == "personalized"]
    chart = charts["forest_personalized"]
    numbers = [run.headline for run in own] + [
        run.estimate("accuracy", config=name) for run in own for name in PARTS["personalized"]
    ]
    assert {mark.point.value for mark in chart.marks if mark.kind == "dot"} == {percent(one) for one in numbers}
    assert {mark.point.value for mark in chart.marks if mark.kind == "tick"} == {
        100 * one for one in BASELINES.values()
    }
    for settings, differ in (({"data__digest": "another"}, True), ({"data__limit": 1000}, False)):
        note = chart_of([own[0], changed(own[1], **settings)], "forest_personalized").note
        assert ("The runs are on different data." in note) == differ  # a limit may leave nothing out


def test_the_figure_of_position_bias_has_a_row_for_each_judge() -> None:
    runs = [places_run("last", 0.3), places_run("even", 0.5), run_of([decision(0)], model="scores")]
    assert {*figures_of(runs)} == {"forest_pairs", "position_pairs"}
    assert "position_pairs" not in figures_of(runs[2:])
    [panel] = chart_of(runs, "position_pairs").panels
    expected = {run.name: percent(run.estimate("share_of_first")) for run in runs[:2]}
    assert {at: value for (at, _), value in values(panel).items()} == expected


@pytest.mark.heavy
def test_figures_by_category_are_the_numbers_of_each_category(tmp_path: Path) -> None:
    runs = sorted(chinese_runs(3), key=lambda run: -percent(run.headline))
    charts = figures_of(runs)
    assert [*charts] == ["forest_chinese", "categories_human", "categories_open", "calibration"]
    for panel, metric in zip(charts["categories_open"].panels, ("accuracy", "exact_match"), strict=True):
        found = list(values(panel).items())
        assert found[0][0][0] == "Mean of categories"
        for place, run in enumerate(runs):
            own = {at: value for (at, _), value in found[place::3]}
            assert own.pop("Mean of categories") == percent(run.estimate(metric, config="open"))
            for name, label in part_labels(CATEGORIES["open"]).items():  # in English if no font has Han
                assert own[label] == percent(run.estimate(metric, config="open", category=name))
    renamed = replace(runs[0], metrics=runs[0].metrics.with_columns(pl.col("config").replace("open", "../人 a")))
    assert "categories_.._人_a.png" in {path.name for path in draw([renamed], tmp_path / "p")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p"]


def test_the_calibration_has_a_panel_for_each_model_that_scores() -> None:
    bounded = changed(chinese_run(4, model="a-rating"), model__kind="function")
    runs = [*chinese_runs(3), chinese_run(3, scored=False, model="a-judge"), bounded]
    chart = chart_of(runs, "calibration")
    assert len(chart.panels) == 3
    for run in runs[:3]:
        [panel] = [one for one in chart.panels if f"ECE {run.estimate('ece').value:.3f}" in one.title]
        shown = [mark.point.value for mark in panel.marks if mark.series.marker]
        assert shown == [percent(run.estimate("bin_accuracy", bin=name)) for name in run.names("bin", "bin_accuracy")]
    assert "No panel, since there are no scores: a-judge." in chart.note
    assert "since the scores are not log-odds: a-rating." in chart.note
    assert "calibration" not in figures_of([bounded])


@pytest.mark.heavy
def test_figures_of_languages_are_the_numbers_of_the_metrics() -> None:
    runs = sorted((language_run(n) for n in range(3)), key=lambda run: -percent(run.headline))
    codes = [code for code in LANGUAGES if code != ENGLISH]
    charts = figures_of(runs)
    assert {*charts} == {"forest_multilingual", *languages.FIGURES} - {"translators"}
    [points] = charts["english_and_multilingual"].panels
    both = {(at.value, value) for (at, label), value in values(points).items() if label}
    assert both == {(percent(run.estimate("accuracy", config=ENGLISH)), percent(run.headline)) for run in runs}
    groups, *_ = charts["dimensions"].panels
    found = {label: value for (row, label), value in values(groups).items() if str(row).startswith("Class 5")}
    assert {*found.values()} == {percent(run.estimate("accuracy", joshi_class="5")) for run in runs}
    [kappas] = charts["consistency"].panels
    of_kappa = [[run.estimate("kappa", config=code).value for run in runs] for code in codes]
    shown = [mark.point.value for mark in kappas.marks if mark.kind == "dot"]
    assert sorted(shown[place : place + 3] for place in range(0, len(shown), 3)) == sorted(of_kappa)


def test_models_of_different_languages_are_pointed_out() -> None:
    charts = figures_of([language_run(0, SOME), language_run(1)])
    assert "instances" not in charts, "it needs three models"
    for stem in ("english_and_multilingual", "dimensions"):
        assert "cover different languages" in charts[stem].note
    rows = {mark.at for mark in charts["dimensions"].marks}
    assert "Class 5 (1–4)" in rows
    assert not any(str(row).startswith("Class 0") for row in rows)
    without_english = [language_run(n, SOME, english=False) for n in range(3)]
    assert {*figures_of(without_english)} == {"forest_multilingual", "dimensions"}


def test_correlations_need_three_models_that_differ() -> None:
    runs = [language_run(n, SOME) for n in range(3)]
    overall = (pl.col("metric") == "overall") & pl.col("baseline").is_null()
    alike = [
        replace(run, metrics=run.metrics.with_columns(value=pl.when(overall).then(0.7).otherwise("value")))
        for run in runs
    ]
    titles = [chart_of(some, "english_and_multilingual").title for some in (runs, runs[:2], alike)]
    assert re.search(r"Pearson's\sr\s=\s-?\d\.\d\d,\sSpearman's\sρ\s=\s-?\d\.\d\d", titles[0])
    assert not any("Pearson" in title for title in titles[1:])


def kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """The textbook definition."""
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum((first.count(label) / n) * (second.count(label) / n) for label in set(first))
    return None if chance == 1 else (same - chance) / (1 - chance)


def test_the_kappa_of_an_item_is_over_the_models_that_labeled_it_twice() -> None:
    runs = [language_run(n, SOME) for n in range(6)]
    labels = [
        {(config, item): outcome for config, item, outcome in run.items.select("config", "id", "outcome").iter_rows()}
        for run in runs
    ]
    expected = []
    for code, item in {(code, item) for code, item in labels[0] if code in SOME}:
        valid = [pair for own in labels if "invalid" not in (pair := (own[code, item], own[ENGLISH, item]))]
        expected += [kappa([a for a, _ in valid], [b for _, b in valid])] if len(valid) >= 3 else []
    found = languages.item_kappas(series_of(runs))["kappa"]
    defined = sorted(value for value in expected if value is not None)
    assert found.drop_nulls().sort().to_list() == pytest.approx(defined)
    assert found.null_count() == len(expected) - len(defined)
    chart = chart_of(runs, "instances")
    assert sum(mark.point.value or 0.0 for mark in chart.marks) == len(defined)
    assert f"{len(defined)} items in 3 languages" in chart.note
    alike = [with_items(run, run.items.with_columns(outcome=pl.lit("win"))) for run in runs]
    assert "instances" not in figures_of(alike), "every kappa is undefined"


@pytest.mark.heavy
def test_translations_of_the_same_items_are_side_by_side() -> None:
    runs = translated_runs()
    chart = chart_of(runs, "translators")
    assert [panel.title for panel in chart.panels[::2]] == ["Classifiers", "Implicit rewards"]
    for left, panel, google, nllb in zip(chart.panels[::2], chart.panels[1::2], runs[1:3], runs[4:], strict=True):
        change = percent(nllb.headline) - percent(google.headline)
        assert values(panel) == pytest.approx({(google.name.removeprefix("org/"), "nllb"): change})
        assert left.labels == panel.labels
    second = changed(translated_run("org/plain", "classifier", "nllb"), data__location="other/google")
    named = chart_of([runs[0], second], "translators")
    assert {mark.series.label for mark in named.marks if mark.kind == "dot"} == {"dist/google", "other/google"}


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        pytest.param(("org/plain", "classifier", "nllb"), {"first": 100}, id="other items"),
        pytest.param(("org/plain", "classifier", "nllb"), {"subsets": SUBSETS[1:]}, id="other subsets"),
        pytest.param(("org/plain", "classifier"), {}, id="the same data"),
        pytest.param(("org/new", "classifier", "nllb"), {}, id="another model"),
    ],
)
def test_runs_that_cannot_be_compared_are_not(names: tuple[str, ...], settings: dict[str, Any]) -> None:
    assert "translators" not in figures_of([translated_runs()[0], translated_run(*names, **settings)])


def test_certainty_and_risk_are_those_of_the_verdicts() -> None:
    rows = judged_rows(1, ("all",), threshold=55)
    charts = verdicts.figures_of(rows)
    assert {*charts} == {"certainty_certainty_all", "risk_coverage_certainty_all"}
    above, below = charts["certainty_certainty_all"].panels
    cells = [cell for row in rows for cell in row["deciles"]]
    assert sorted(value or 0.0 for value in values(above).values()) == pytest.approx(
        sorted(100 * cell["accuracy"] for cell in cells)
    )
    assert sorted(value or 0.0 for value in values(below, "bar").values()) == pytest.approx(
        sorted(100 * cell["n"] / 60 for cell in cells)
    )
    [panel] = charts["risk_coverage_certainty_all"].panels
    curve = [(float(mark.at), mark.point.value) for mark in panel.marks if not mark.series.marker]  # type: ignore[arg-type]
    xs, ys = (np.array(side) for side in zip(*curve, strict=True))
    assert (xs[-1], ys[-1]) == (pytest.approx(100), pytest.approx(100 * (1 - rows[0]["parsed_accuracy"])))
    assert (np.diff(xs) > 0).all()
    assert xs[0] == pytest.approx(100 * 10 / 60), "the risk of fewer than ten answers is noise"
    [certain] = [mark for mark in panel.marks if mark.series.marker]
    assert certain.at == pytest.approx(100 * rows[0]["coverage"])
    assert certain.point.value == pytest.approx(100 * (1 - rows[0]["high_accuracy"]))
    assert float(np.interp(certain.at, xs, ys)) == pytest.approx(certain.point.value)  # type: ignore[arg-type]


def test_verdicts_have_figures_by_setting_and_set_of_variables() -> None:
    rows: Rows = [{"certainty": 70}, {"certainty": 70, "persona_variables": "key/paper"}]
    rows += [{"certainty": None, "setting": "tie", "truth": "C", "answer": "C"}]
    assert {*verdicts.figures_of(verdict_rows(check_verdicts(written(rows))))} == {
        "variables_certainty",
        *(f"{what}_certainty_{which}" for what in ("certainty", "risk_coverage") for which in ("all", "key_paper")),
    }
    judged = judged_rows(2, ("none", "least", "all", "key"), tasks=2)
    chart = verdicts.figures_of(judged)["variables_certainty"]
    assert [panel.label for panel in chart.panels[:3]] == ["Accuracy (%)", "≥ 80 (%)", "Certainty"]
    assert [*dict.fromkeys(mark.at for mark in chart.panels[0].marks)] == ["all", "key", "least", "none"]
    row = next(row for row in judged if row["persona_variables"] == "all" and row["judge"] == "gpt-4o")
    sure = sorted(cell["certainty"] for cell in row["by_certainty"] for _ in range(cell["n"]))
    assert sure[(len(sure) - 1) // 2] in values(chart.panels[2]).values()
    unrated = verdicts.figures_of(judged_rows(2, ("all", "key"), sure=False))["variables_certainty"]
    assert [panel.label for panel in unrated.panels] == ["Accuracy (%)"]


@pytest.mark.heavy
def test_the_curves_of_best_of_n_are_its_numbers(sample: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        judged = sampled(server, sample, tmp_path / "two", MODELS, limit=1, n=4, k=())
        promised = sampled(
            server, sample, tmp_path / "promised", MODELS, judge=None, limit=1, n=4, k=(), reuse=judged.path
        )
        alone = sampled(server, sample, tmp_path / "alone", {}, limit=1)
    left, right = best_of_n(judged)["best_of_n"].panels
    for model in MODELS:
        numbers = {k: judged.estimate("outcome", model=model, k=k).value for k in judged.result.sampling.sizes}
        assert {at: value for (at, label), value in values(left).items() if label == model} == {
            f"{k}": value for k, value in numbers.items()
        }
        gains = [
            tuple(judged.estimate(what, model=model, k=k).value for what in ("promised", "realized"))
            for k in judged.result.sampling.sizes
        ]
        assert [(mark.at, mark.point.value) for mark in right.marks if mark.series.label == model] == gains
    assert [*left.lines] == [judged.estimate("outcome").value]
    [panel] = best_of_n(promised)["best_of_n"].panels
    assert panel.label == "Promised gain (standard deviations)"
    assert best_of_n(alone) == {}


def test_a_model_has_one_look_in_all_figures(tmp_path: Path) -> None:
    # Ranks differ between the benchmarks, and the first model is only on some of them.
    runs = [benchmark_run(n, benchmark) for benchmark in ("pairs", "personalized", "multilingual") for n in (2, 0, 1)]
    runs = [*runs[1:], *(persona_run(n, tmp_path, name) for n in (1, 2) for name in ("all", "none"))]
    looks: dict[str, set[tuple[str, str]]] = {}
    for stem, chart in figures_of(runs).items():
        for mark in chart.marks if stem != "forest_persona-judge" else ():
            if mark.series.marker and mark.series.label:
                looks.setdefault(mark.series.label, set()).add((mark.series.color, mark.series.marker))
    assert len(looks) == 3
    assert all(len(found) == 1 for found in looks.values())
    assert len(set().union(*looks.values())) == 3
