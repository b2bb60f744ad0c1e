"""What every figure holds: everybody can read it, the same input makes the same bytes, and nothing to draw is said."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from defusedxml import ElementTree
from drawn_figures import check_texts, drawn
from figure_runs import (
    LONG_CATEGORIES,
    PARTS,
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
from pluralbench.downstream.correlate import correlate
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import axis, certainty, correlation, personalize
from pluralbench.reports.figures.draw import draw, figures_of
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.series import series_of_judges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Makes = Mapping[str, Callable[[], "Figure | None"]]


def of_runs(models: int, folder: Path) -> Makes:
    """All that a report draws of some models on benchmarks of every kind."""
    benchmarks = (*PARTS, "mine") if models < 12 else ("reward-bench", "pandalm")
    runs = [with_references(benchmark_run(n, benchmark)) for n in range(models) for benchmark in benchmarks]
    runs += [persona_run(n, folder, name) for n in range(models) for name in ("all", "none")] if models < 12 else []
    runs += chinese_runs(models, renamed=LONG_CATEGORIES)
    runs += [places_run("last", 0.3), places_run("even", 0.5)]
    return dict(figures_of(runs))


def of_one_model(folder: Path) -> Makes:
    """The first figure of each function that draws for a report."""
    first: dict[Any, tuple[str, Callable[[], Figure | None]]] = {}
    for stem, make in of_runs(1, folder).items():
        first.setdefault(getattr(make, "func", stem), (stem, make))
    return dict(first.values())


def of_translations(_: Path) -> Makes:
    return dict(figures_of(translated_runs()))


def of_scripts(_: Path) -> Makes:
    return dict(figures_of(runs_in_all_languages()))


def of_verdicts(judges: int, tasks: int, sets: tuple[str, ...], _: Path) -> Makes:
    return certainty.figures_of(judged_rows(judges, sets, tasks=tasks))


def of_profiles(folder: Path) -> Makes:
    found = made_personalized(folder / "personal", made_items(methods=("bt", "gpo"), users=6, seeds=1))
    return {name: partial(personalize.context_figure, found, name) for name in personalize.drawn_sets(found)}


def of_scores(folder: Path) -> Makes:
    names = [f"org/a model with a long name, no. {n}" for n in range(7)]
    for stem, step in (("one", 3), ("two", 5)):
        rows = [f'"{name}",{step * n % 7}' for n, name in enumerate(names)]
        (folder / f"{stem}.csv").write_text("\n".join(["model,score", *rows]), encoding="utf-8")
    found = correlate(folder / "one.csv", folder / "two.csv")
    models = series_of_judges(dict.fromkeys(found.names))
    return {of.__name__: partial(of, found, models) for of in (correlation.slopes, correlation.scatter)}


def of_axis(_: Path) -> Makes:
    models = [SimpleNamespace(name=f"m{n}", position=at) for n, at in enumerate((0, 100, 1000))]
    runs = {name: {one.name: benchmark_run(n, name) for n, one in enumerate(models)} for name in ("pairs", "pandalm")}
    recipe = SimpleNamespace(models=models, axis="Pairs that it learned from", title="A study")
    study: Any = SimpleNamespace(runs=runs, recipe=recipe)
    return {"axis": partial(axis.curves, study)}


FIGURES: dict[str, Callable[[Path], Makes]] = {
    "one model": partial(of_runs, 1),
    "four models": partial(of_runs, 4),
    "twelve models": partial(of_runs, 12),
    "translations": of_translations,
    "all languages": of_scripts,
    "one judge": partial(of_verdicts, 1, 1, ("none", "all")),
    "five judges": partial(of_verdicts, 5, 4, ("key", "least")),
    "profiles": of_profiles,
    "scores": of_scores,
    "an axis": of_axis,
}


MANY = ("one model", "four models", "twelve models", "translations", "all languages", "five judges", "profiles")


@pytest.mark.parametrize("what", [pytest.param(what, marks=[pytest.mark.heavy] * (what in MANY)) for what in FIGURES])
def test_every_figure_can_be_read(what: str, tmp_path: Path) -> None:
    figures = drawn(FIGURES[what](tmp_path))
    assert figures
    for stem, figure in figures.items():
        check_texts(figure, stem)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "makes_of",
    [of_one_model, FIGURES["one judge"], of_scores, of_axis],
    ids=["one model", "one judge", "scores", "an axis"],
)
def test_the_same_input_makes_the_same_bytes_whatever_the_users_settings(
    makes_of: Callable[[Path], Makes], tmp_path: Path
) -> None:
    import matplotlib as mpl
    from matplotlib import image

    makes = makes_of(tmp_path)
    first = write(makes, tmp_path / "a")
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        before = dict(mpl.rcParams)
        second = write(makes, tmp_path / "b")
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


def test_nothing_to_draw_and_nowhere_to_write_are_said(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"^There is nothing to draw: no run has a number\.$"):
        draw([], tmp_path / "p")
    with pytest.raises(EvaluationError, match=r"^There is nothing to draw: no verdict has a certainty"):
        certainty.draw_verdicts(judged_rows(1, ("all",), sure=False), tmp_path / "p")
    assert not (tmp_path / "p").exists()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"^The figures cannot be written to .+file: .+\.$"):
        write(of_axis(tmp_path), tmp_path / "file")
