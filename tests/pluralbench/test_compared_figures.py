"""Figures that hold groups against each other: kinds of reward model, translators, sets of persona variables."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from drawn_figures import drawn, report_figures, said, values, words
from figure_runs import SUBSETS, judged_rows, translated_run, translated_runs
from made_runs import changed
from pluralbench.reports.figures import certainty
from pluralbench.reports.figures.style import drawing
from pluralbench.results import Run


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return list(translated_runs()[:4])


def test_the_drop_of_each_kind_is_the_mean_over_its_models(runs: list[Run]) -> None:
    figure = report_figures(runs, "drop_by_kind")["drop_by_kind"]
    assert {"Classifiers (2)", "Implicit rewards (1)", "Generative judges (1)"} <= {*words(figure).split("\n")}
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "Mean of sections", "Chat", "Chat Hard", "Safety", "Reasoning"
    ]  # fmt: skip
    drops = [100 * (run.estimate("drop").value or 0.0) for run in runs]
    ax: Any = figure.axes[0]
    black = [drawn for drawn in ax.collections if drawn.get_zorder() == 1.5]
    means = [float(path.vertices[0, 0]) for drawn in black for path in drawn.get_paths()]
    assert means == pytest.approx([fmean(drops[:2]), drops[2], drops[3]])


def test_one_kind_has_nothing_to_be_held_against(runs: list[Run]) -> None:
    assert not report_figures(runs[:2], "drop_by_kind")


def test_translations_of_the_same_items_stand_side_by_side() -> None:
    runs = translated_runs()
    figure = report_figures(runs, "translators")["translators"]
    assert {"Classifiers", "Implicit rewards", "google", "nllb", "other", "dpo"} <= {*words(figure).split("\n")}
    assert not {"judge", "plain"} & {*words(figure).split("\n")}, "they were run on one translation"
    assert "difference to google" in said(figure)
    both = [(runs[1], runs[4]), (runs[2], runs[5])]
    expected = [100 * ((nllb.headline.value or 0.0) - (google.headline.value or 0.0)) for google, nllb in both]
    assert sorted(values(*figure.axes[1::2])) == pytest.approx(sorted(expected))


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        pytest.param(("org/plain", "classifier", "nllb"), {"first": 100}, id="other items"),
        pytest.param(("org/plain", "classifier", "nllb"), {"subsets": SUBSETS[1:]}, id="other subsets"),
        pytest.param(("org/plain", "classifier"), {}, id="the same data"),
        pytest.param(("org/new", "classifier", "nllb"), {}, id="another model"),
    ],
)
def test_what_cannot_be_held_against_each_other_is_not(
    runs: list[Run], names: tuple[str, ...], settings: dict[str, Any]
) -> None:
    assert not report_figures([runs[0], translated_run(*names, **settings)], "translators")


@pytest.mark.heavy
def test_the_report_has_them_and_tells_places_of_one_name_apart(runs: list[Run]) -> None:
    second = translated_run("org/plain", "classifier", "nllb")
    second = changed(second, data__location="other/google")
    found = report_figures([runs[0], runs[2], second])
    assert "Drop from English by kind of reward model" in said(found["drop_by_kind"])
    assert {"dist/google", "other/google"} <= {*words(found["translators"]).split("\n")}


@pytest.mark.parametrize(
    ("judges", "tasks", "sets"),
    [(1, 1, ("none", "least", "all", "key")), pytest.param(5, 4, ("key", "all"), marks=pytest.mark.heavy)],
)
def test_sets_of_persona_variables_are_in_one_figure(judges: int, tasks: int, sets: Sequence[str]) -> None:
    rows = judged_rows(judges, sets, tasks=tasks)
    figure = drawn(certainty.figures_of(rows))["variables_certainty"]
    with drawing():
        named = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert named == [name for name in ("all", "key", "least", "none") if name in sets]
    assert [ax.get_ylabel() for ax in figure.axes[:3]] == ["Accuracy (%)", "≥ 80 (%)", "Certainty"]
    middle = next(row for row in rows if row["persona_variables"] == "all" and row["judge"] == "gpt-4o")
    sure = sorted(cell["certainty"] for cell in middle["by_certainty"] for _ in range(cell["n"]))
    assert sure[(len(sure) - 1) // 2] in values(figure.axes[2], upright=True)
    assert ("middle half" in said(figure)) == (judges == 1)


def test_without_certainties_the_figure_is_of_accuracy_alone() -> None:
    rows = judged_rows(2, ("all", "key"), sure=False)
    figure = drawn(certainty.figures_of(rows))["variables_certainty"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["Accuracy (%)"]
    assert "Certainty" not in said(figure)


def test_one_set_of_variables_has_no_such_figure() -> None:
    assert not [stem for stem in certainty.figures_of(judged_rows(1, ("all", "none"))) if stem.startswith("variables")]
