"""Figures by category: which there are, that they say what the metrics say, and that everybody can read them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from drawn_figures import dots, report_figures, said, values, whiskers, words
from figure_runs import CATEGORIES, chinese_run, chinese_runs
from made_runs import by, changed
from pluralbench.reports.figures import fonts
from pluralbench.reports.figures.draw import draw, font_notes
from pluralbench.results import Run
from pluralbench_measures.bootstrap import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

needs_han = pytest.mark.usefixtures("_han")


@pytest.fixture
def _han() -> None:
    if fonts.part_labels(["理解"])["理解"] != "理解":
        pytest.skip("fonts-noto-cjk is not installed, so no font has Han characters")


def drawn(runs: Sequence[Run], stem: str) -> "Figure":
    return report_figures(runs, stem)[stem]


def test_a_figure_for_each_config_and_one_of_the_calibration() -> None:
    assert [*report_figures(chinese_runs(1))] == [
        "forest_chinese",
        "categories_open",
        "categories_human",
        "calibration",
    ]


@pytest.mark.heavy
@needs_han
def test_categories_are_named_in_their_own_script() -> None:
    for models in (2, 12):
        figure = drawn(chinese_runs(models), "categories_human")
        for name in CATEGORIES["human"]:
            assert name in words(figure)
    labels = {
        label.get_text(): label.get_fontfamily()
        for label in drawn(chinese_runs(1), "categories_open").axes[0].get_yticklabels()
    }
    assert labels["推理"] == ["DejaVu Sans", "Noto Sans CJK SC", "sans-serif"], "as they are written in China"
    assert font_notes(chinese_runs(1)) == []


def shares(run: Run, config: str, category: str | None = None) -> tuple[Estimate, Estimate]:
    accuracy, exact = (run.estimate(name, config=config, category=category) for name in ("accuracy", "exact_match"))
    return accuracy, exact


def best_first(runs: list[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: -(run.headline.value or 0.0))


def per_cent(value: float | None) -> float:
    assert value is not None
    return 100 * value


def test_bars_dots_and_whiskers_are_those_of_the_metrics() -> None:
    runs = best_first(chinese_runs(3))
    figure = drawn(runs, "categories_open")
    names = sorted(CATEGORIES["open"], key=lambda n: -sum(shares(run, "open", n)[0].value or 0.0 for run in runs))
    rows = [[shares(run, "open", name) for run in runs] for name in (None, *names)]
    for panel, ax in enumerate(figure.axes):
        shown: Any = ax
        expected = [pair[panel] for row in rows for pair in row]
        bars = [bar.get_width() for bar in shown.patches if bar.get_alpha() == 0.35]
        assert bars == values(ax) == pytest.approx([per_cent(found.value) for found in expected])
        assert whiskers(ax) == [pytest.approx([per_cent(found.low), per_cent(found.high)]) for found in expected]
    assert "Whiskers: 95% intervals." in said(figure)


def test_cells_of_many_models_are_those_of_the_metrics() -> None:
    runs = best_first(chinese_runs(9))
    figure = drawn(runs, "categories_open")
    written = [text.get_text() for text in figure.axes[0].texts]
    for run in runs:
        for name in (None, *CATEGORIES["open"]):
            for found in shares(run, "open", name):
                assert f"{per_cent(found.value):.1f}" in written
    assert len(written) == 9 * 2 * 3
    assert "Intervals: see the table." in said(figure)


@pytest.mark.heavy
def test_the_calibration_has_a_panel_for_each_model_that_scores() -> None:
    bounded = changed(chinese_run(4, model="a-rating"), model__kind="function")
    probability = changed(chinese_run(5, model="a-softmax"), model__label="softmax:-1")
    runs = [*chinese_runs(3), chinese_run(3, scored=False, model="a-judge"), bounded, probability]
    figure = drawn(runs, "calibration")
    assert len(figure.axes) == 3
    for run in runs[:3]:
        assert f"ECE {run.estimate('ece').value:.3f}" in words(figure)
    bins = pl.col("config").is_null() & (pl.col("metric") == "bin_accuracy")
    assert dots(figure) == sum(run.metrics.filter(bins).height for run in runs[:3])
    assert "No panel, since there are no scores: a-judge." in said(figure)
    assert re.search(r"since the scores are not log-odds: (a-rating, a-softmax|a-softmax, a-rating)\.", said(figure))
    assert "calibration" not in report_figures([bounded])
    assert {*report_figures(runs[3:])} == {"forest_chinese", "categories_open", "categories_human"}


def without(run: Run, gone: pl.Expr) -> Run:
    return replace(run, metrics=run.metrics.remove(gone))


@pytest.mark.heavy
def test_what_is_missing_is_a_dash() -> None:
    one, other = chinese_runs(2)
    in_open = (pl.col("config") == "open") & (pl.col("category") == "推理")
    runs = [without(one, in_open), without(other, pl.col("config") == "human")]
    made = report_figures(runs)
    assert words(made["categories_open"]).split("\n").count("–") == 2
    assert words(made["categories_human"]).split("\n").count("–") == 2 * (1 + len(CATEGORIES["human"]))
    for stem in ("categories_open", "categories_human"):
        assert "–: missing." in said(made[stem])
    bare = [
        without(run, (by("config") & ~pl.col("metric").str.starts_with("pooled")) | by("category") | by("bin"))
        for run in runs
    ]
    assert {*report_figures(bare)} == {"forest_chinese"}


@pytest.mark.heavy
def test_a_config_of_any_name_is_a_file(tmp_path: Path) -> None:
    run = without(chinese_run(0), pl.col("config") == "human")
    run = replace(run, metrics=run.metrics.with_columns(pl.col("config").replace("open", "../人 a")))
    made = [path.name for path in draw([run], tmp_path / "p")][::2]
    assert made == ["forest_chinese.png", "categories_.._人_a.png", "calibration.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p"]


@pytest.mark.heavy
def test_a_category_that_no_font_has_is_named_in_english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fonts, "_installed", list)
    monkeypatch.setattr(fonts, "_newly_installed", list)
    runs = chinese_runs(1, renamed={"其他": "我的类别"})
    assert draw(runs, tmp_path)
    shown = said(drawn(runs, "categories_open"))
    assert "Reasoning" in shown
    assert "Part 1" in shown, "it has no English name"
    [note] = font_notes(runs)
    assert note == (
        "No installed font has all characters of some names, so figures of CheemsBench show Reasoning for 推理, Part 1 "
        "for 我的类别, Comprehension for 理解, Complex instructions for 复杂指令, Creative writing for 创作, Knowledge "
        "questions for 知识问答, Mathematics for 数学; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)."
    )
    assert "org/奖励模型-七十二亿, so figures show question marks" in font_notes(chinese_runs(3))[-1]
