"""Every figure: everyone can read it, it shows its values, and the same input makes the same bytes."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from defusedxml import ElementTree
from drawn_figures import check_texts, draw, drawn, markers, texts
from figure_runs import (
    LONG_CATEGORIES,
    benchmark_run,
    chinese_runs,
    judged_rows,
    persona_run,
    places_run,
    runs_in_all_languages,
    translated_runs,
    with_references,
)
from made_personalize import made_items, made_personalized
from made_runs import changed
from pluralbench.downstream.correlate import correlate
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import downstream, verdicts
from pluralbench.reports.figures.chart import Chart, Point
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.report import figures_of
from pluralbench.results.numbers import DASH

Charts = Mapping[str, Chart]


def of_runs(models: int, folder: Path) -> Charts:
    """All figures of a report of some models on benchmarks of every kind."""
    benchmarks = {1: ("personalized", "pairs"), 4: ("multilingual", "mine"), 12: ("reward-bench", "pandalm")}[models]
    own = min(models, 4)
    runs = [with_references(benchmark_run(n, benchmark)) for n in range(own) for benchmark in benchmarks]
    runs += [persona_run(n, folder) for n in range(own)] if models < 12 else []
    runs += chinese_runs(own, renamed=LONG_CATEGORIES)
    # More models have the numbers of these.
    runs += [changed(run, model__name=f"{run.name}-{n}") for n in range(1, models // own) for run in [*runs]]
    runs += [places_run("last", 0.3), places_run("even", 0.5)]
    return figures_of(runs)


def of_scores(folder: Path) -> Charts:
    names = [f"org/a model with a long name, no. {n}" for n in range(26)]
    for stem, step in (("one", 3), ("two", 5)):
        rows = [f'"{name}",{step * n % 7}' for n, name in enumerate(names)]
        (folder / f"{stem}.csv").write_text("\n".join(["model,score", *rows]), encoding="utf-8")
    return downstream.correlation(correlate(folder / "one.csv", folder / "two.csv"))


def of_axis(_: Path) -> Charts:
    models = [SimpleNamespace(name=f"m{n}", position=at) for n, at in enumerate((0, 100, 1000))]
    runs = {name: {one.name: benchmark_run(n, name) for n, one in enumerate(models)} for name in ("pairs", "pandalm")}
    recipe = SimpleNamespace(models=models, axis="Pairs that it learned from", title="A study")
    study: Any = SimpleNamespace(runs=runs, recipe=recipe)
    return downstream.study(study)


def of_personalized(folder: Path) -> Charts:
    return downstream.personalized(
        made_personalized(folder / "personal", made_items(methods=("bt", "gpo"), users=6, seeds=1))
    )


FIGURES: dict[str, Callable[[Path], Charts]] = {
    "one model": lambda folder: of_runs(1, folder),
    "four models": lambda folder: of_runs(4, folder),
    "twelve models": lambda folder: of_runs(12, folder),
    "translations": lambda _: figures_of(translated_runs()),
    "twelve in all languages": lambda _: figures_of(runs_in_all_languages(12)),
    "one judge": lambda _: verdicts.figures_of(judged_rows(1, ("none", "all"))),
    "five judges": lambda _: verdicts.figures_of(judged_rows(5, ("key",), tasks=4)),
    "profiles": of_personalized,
    "scores": of_scores,
    "an axis": of_axis,
}
QUICK = {"one judge", "an axis"}


@pytest.mark.parametrize("what", [pytest.param(one, marks=[pytest.mark.heavy] * (one not in QUICK)) for one in FIGURES])
def test_every_figure_shows_its_values_and_can_be_read(what: str, tmp_path: Path) -> None:
    charts = FIGURES[what](tmp_path)
    figures = drawn(charts)
    assert figures
    for stem, figure in figures.items():
        check_texts(figure, stem)
        check_values(figure, charts[stem])


def check_values(figure: Any, chart: Chart) -> None:
    """Assert that the dots, bars and dashes of a figure are the values of its chart."""
    dots = [mark for mark in chart.marks if mark.kind == "dot" and mark.series.marker]
    written = Counter(text.get_text() for text in texts(figure))
    assert written[DASH] == sum(mark.point.value is None for mark in dots)
    for panel, ax in zip(chart.panels, figure.axes, strict=True):
        shown = [mark for mark in panel.marks if mark.kind == "dot" and mark.series.marker]
        upright = panel.upright or not all(isinstance(mark.at, str) for mark in panel.marks)
        present = [mark.point for mark in shown if mark.point.value is not None]
        drawn_at = [place for dots in markers(ax) for place in zip(*dots.get_data(), strict=True)]
        assert sorted(float(place[upright]) for place in drawn_at) == sorted(one.value or 0.0 for one in present)
        for mark in shown:
            if isinstance(mark.at, Point):
                assert (mark.at.value, mark.point.value) in drawn_at
        whiskers = [tuple(path.vertices[:, int(upright)]) for one in ax.collections for path in one.get_paths()]
        ends = {(one.low, one.high) for one in present if one.low is not None}
        assert {one for one in whiskers if one[0] != one[1]} <= ends
        bars = [mark.point.value or 0.0 for mark in panel.marks if mark.kind == "bar"]
        sizes = [bar.get_height() if upright else bar.get_width() for bar in ax.patches if bar.get_alpha() == 0.35]
        assert sorted(sizes) == sorted(bars)
        low, high = ax.get_ylim() if upright else ax.get_xlim()
        assert all(low <= value <= high for one in present for value in one[:3] if value is not None)


@pytest.mark.heavy
@pytest.mark.parametrize("what", ["one model", "an axis"])
def test_the_same_input_makes_the_same_bytes_whatever_the_users_settings(what: str, tmp_path: Path) -> None:
    import matplotlib as mpl
    from matplotlib import image

    # One figure of each of three entries: the others are drawn and written by the same functions.
    by_entry = {stem.partition("_")[0]: (stem, one) for stem, one in FIGURES[what](tmp_path).items() if not one.empty}
    charts = dict([*by_entry.values()][:3])
    first = write(charts, tmp_path / "a")
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        second = write(charts, tmp_path / "b")
        assert dict(mpl.rcParams) == before
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
        if one.suffix == ".png":
            assert min(image.imread(one).shape[:2]) > 200
            continue
        root = ElementTree.fromstring(one.read_bytes())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        styles = [text.get("style", "") for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert styles, "text is text"
        assert all(", sans-serif" in style for style in styles), "for who has none of the fonts"


def test_errors_name_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"^There is nothing to draw: no run has a number\.$"):
        draw([], tmp_path / "p")
    with pytest.raises(EvaluationError, match=r"^There is nothing to draw: no verdict has a certainty"):
        write(verdicts.figures_of(judged_rows(1, ("all",), sure=False)), tmp_path / "p", "no verdict has a certainty")
    assert not (tmp_path / "p").exists()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"^The figures cannot be written to .+file: .+\.$"):
        write(of_axis(tmp_path), tmp_path / "file")
