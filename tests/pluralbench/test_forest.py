"""Forest plots: each benchmark has one that says what its metrics say, and models look alike in all figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawn_figures import markers, report_figures, said, values, whiskers
from figure_runs import BASELINES, PARTS, benchmark_run, persona_run, with_references
from made_runs import changed
from pluralbench.data.benchmarks import PERSONA_JUDGE
from pluralbench.reports.figures.theme import PAPER

ROWS = {
    "personalized": {"Overall", "Art and Entertainment", "Lifestyle and Personal Development"},
    "pairs": {"Overall"},
    "reward-bench": {"Overall", "Chat", "Chat Hard", "Safety", "Reasoning"},
    "multilingual": {"Overall", "English", "Arabic", "Chinese (traditional)"},
    "mine": {"Overall", "one", "two"},
    PERSONA_JUDGE: {"Overall", "prism", "opinion qa"},
}


@pytest.mark.parametrize("models", [1, pytest.param(12, marks=pytest.mark.heavy)])
def test_every_benchmark_has_a_forest_plot_of_its_parts(models: int, tmp_path: Path) -> None:
    benchmarks = (*PARTS, "mine") if models < 12 else ("reward-bench", "pandalm", "multilingual")
    runs = [with_references(benchmark_run(n, benchmark)) for n in range(models) for benchmark in benchmarks]
    stems = {f"forest_{benchmark}" for benchmark in (*benchmarks, PERSONA_JUDGE)}
    figures = report_figures([*runs, *(persona_run(n, tmp_path) for n in range(models))], *stems)
    assert set(figures) == stems
    for stem, figure in figures.items():
        shown = said(figure)
        assert all(row in shown for row in ROWS.get(stem.removeprefix("forest_"), {"Gmail", "Overall"}))
        assert ("Longer answer" in shown) == (stem != f"forest_{PERSONA_JUDGE}")


@pytest.mark.parametrize("models", [2, 5])
def test_marks_dots_and_whiskers_are_those_of_the_metrics(models: int) -> None:
    runs = [with_references(benchmark_run(n, "personalized")) for n in range(models)]
    axes: Any = report_figures(runs, "forest_personalized")["forest_personalized"].axes
    found = [run.headline for run in runs] + [
        run.estimate("accuracy", config=name) for run in runs for name in PARTS["personalized"]
    ]
    assert {*values(*axes)} == {100 * (one.value or 0.0) for one in found}
    assert {tuple(ends) for ax in axes for ends in whiskers(ax)} == {
        (100 * (one.low or 0.0), 100 * (one.high or 0.0)) for one in found
    }
    marks = {line.get_xdata()[0] for ax in axes for line in ax.lines if line not in markers(ax)}
    assert marks == {100 * value for value in BASELINES.values()}


def test_a_number_of_few_prompts_is_marked() -> None:
    usual, few = benchmark_run(0, "pairs"), benchmark_run(1, "pairs", items=8)
    assert "Hollow" not in said(report_figures([usual], "forest_pairs")["forest_pairs"])
    figure = report_figures([usual, few], "forest_pairs")["forest_pairs"]
    assert "Hollow: fewer than 10 prompts or users." in said(figure)
    assert sorted(dot.get_markerfacecolor() == PAPER for dot in markers(figure.axes[0])) == [False, True]


def test_what_is_missing_and_what_is_unlike_is_said() -> None:
    one, other = benchmark_run(0, "personalized"), benchmark_run(1, "personalized")
    other = replace(other, metrics=other.metrics.filter(pl.col("config") != "Art_and_Entertainment"))
    other = changed(other, data__digest="another")
    shown = said(report_figures([one, other], "forest_personalized")["forest_personalized"])
    assert "–: missing." in shown
    assert "The runs are on different data." in shown


@pytest.mark.heavy
def test_a_model_has_one_look_in_all_figures(tmp_path: Path) -> None:
    from matplotlib.colors import to_hex

    # Ranks differ between the benchmarks, and the first model is only on some of them.
    runs = [benchmark_run(n, benchmark) for benchmark in ("pairs", "personalized", "multilingual") for n in (2, 0, 1)]
    runs = [*runs[1:], *(persona_run(n, tmp_path, name) for n in (1, 2) for name in ("all", "none"))]
    figures = report_figures(runs)
    assert {"forest_persona-judge", "certainty_certainty_all", "risk_coverage_certainty_none", "persona"} <= {*figures}
    looks: dict[str, set[tuple[str, Any]]] = {}
    for stem, figure in figures.items():
        for ax in figure.axes:
            legend = ax.get_legend()
            if legend is None or stem == "forest_persona-judge":
                continue
            for line, text in zip(legend.get_lines(), legend.get_texts(), strict=True):
                looks.setdefault(text.get_text(), set()).add((to_hex(line.get_color()), line.get_marker()))
    assert len(looks) == 3
    assert all(len(found) == 1 for found in looks.values())
    assert len(set().union(*looks.values())) == 3


def test_a_long_word_above_a_panel_is_whole_and_no_wider_than_its_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.text import Text

    word = "Otorhinolaryngological" * 2
    monkeypatch.setitem(PARTS, "personalized", {word: [None], "two": [None]})
    runs = [benchmark_run.__wrapped__(n, "personalized") for n in range(5)]  # those that are kept have the usual parts
    figure = report_figures(runs, "forest_personalized")["forest_personalized"]
    panels: Any = [ax for ax in figure.axes if word in ax.get_title(loc="left")]
    assert len(panels) == 1
    [title] = [text for text in panels[0].findobj(Text) if text.get_text() == word]
    assert title.get_window_extent().width < 1.2 * panels[0].get_window_extent().width
