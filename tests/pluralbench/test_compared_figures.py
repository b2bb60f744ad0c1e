"""Figures that hold groups against each other: kinds of reward model, translators, sets of persona variables."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from drawn_figures import check_texts, words
from made_runs import decision, run_of
from matplotlib.figure import Figure
from pluralbench import Run, verdict_rows
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.reports.figures import certainty, kinds, translators
from pluralbench.reports.figures.draw import figures_of
from pluralbench.reports.figures.series import series_of
from pluralbench.reports.figures.style import drawing
from written_verdicts import verdicts

SUBSETS = ("alpacaeval-easy", "mt-bench-hard", "donotanswer", "math-prm")
CODES = ("eng_Latn", "deu_Latn", "zho_Hans")
Make = Any


def said(figure: Figure) -> str:
    return " ".join(words(figure).split())


def a_run(
    model: str, kind: str, data: str = "google", *, skill: float = 0.7, first: int = 0, subsets: Sequence[str] = SUBSETS
) -> Run:
    """A run on 24 items in two languages and English, translated by `data`."""
    draw_ = random.Random(f"{model} {data}")
    rows = [
        decision(
            number,
            "win" if draw_.random() < skill + 0.1 * (code == "eng_Latn") else "loss",
            config=code,
            subset=subsets[number % len(subsets)],
            digest=f"{code} {number} {'' if code == 'eng_Latn' else data}",
        )
        for code in CODES
        for number in range(first, first + 24)
    ]
    run = run_of(rows, "multilingual", model=model, path=f"runs/{model}-{data}")
    record = run.record
    said_of = record.data.model_copy(update={"digest": data, "location": f"dist/{data}"})
    of = record.model.model_copy(update={"kind": kind})
    return replace(run, record=record.model_copy(update={"data": said_of, "model": of}))


def made(make: Make, runs: Sequence[Run]) -> Figure | None:
    with drawing():
        figure: Figure | None = make(series_of(runs))
    return figure


RUNS = [
    a_run("org/plain", "classifier"),
    a_run("org/other", "classifier", skill=0.5),
    a_run("org/dpo", "implicit"),
    a_run("judge", "generative", skill=0.8),
]


def test_the_drop_of_each_kind_is_the_mean_over_its_models() -> None:
    figure = made(kinds.drop_by_kind, RUNS)
    assert figure is not None
    check_texts(figure, "drop_by_kind")
    assert {"Classifiers (2)", "Implicit rewards (1)", "Generative judges (1)"} <= {*words(figure).split("\n")}
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "Mean of sections", "Chat", "Chat Hard", "Safety", "Reasoning"
    ]  # fmt: skip
    drops = [100 * (run.estimate("drop", "overall").value or 0.0) for run in RUNS]
    ax: Any = figure.axes[0]
    black = [drawn for drawn in ax.collections if drawn.get_zorder() == 1.5]
    means = [float(path.vertices[0, 0]) for drawn in black for path in drawn.get_paths()]
    assert means == pytest.approx([fmean(drops[:2]), drops[2], drops[3]])


def test_one_kind_has_nothing_to_be_held_against() -> None:
    assert made(kinds.drop_by_kind, RUNS[:2]) is None


def test_translations_of_the_same_items_stand_side_by_side() -> None:
    runs = [*RUNS, *(a_run(run.name, run.record.model.kind, "nllb", skill=0.6) for run in RUNS[1:3])]
    figure = made(translators.translators, runs)
    assert figure is not None
    check_texts(figure, "translators")
    assert {"Classifiers", "Implicit rewards", "google", "nllb", "other", "dpo"} <= {*words(figure).split("\n")}
    assert not {"judge", "plain"} & {*words(figure).split("\n")}, "they were run on one translation"
    assert "against google" in said(figure)
    shown = [
        float(line.get_xdata()[0])  # type: ignore[index, arg-type]
        for ax in figure.axes[1::2]
        for line in ax.lines
        if line.get_marker() != "None"
    ]
    both = [(runs[1], runs[4]), (runs[2], runs[5])]
    expected = [100 * ((nllb.headline.value or 0.0) - (google.headline.value or 0.0)) for google, nllb in both]
    assert sorted(shown) == pytest.approx(sorted(expected))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_run("org/plain", "classifier", "nllb", first=100), id="other items"),
        pytest.param(a_run("org/plain", "classifier", "nllb", subsets=SUBSETS[1:]), id="other subsets"),
        pytest.param(a_run("org/plain", "classifier"), id="the same data"),
        pytest.param(a_run("org/new", "classifier", "nllb"), id="another model"),
    ],
)
def test_what_cannot_be_held_against_each_other_is_not(other: Run) -> None:
    assert made(translators.translators, [RUNS[0], other]) is None


def test_the_report_has_them_and_tells_places_of_one_name_apart() -> None:
    second = a_run("org/plain", "classifier", "nllb")
    data = second.record.data.model_copy(update={"location": "other/google"})
    second = replace(second, record=second.record.model_copy(update={"data": data}))
    makes = dict(figures_of([RUNS[0], RUNS[2], second]))
    with drawing():
        drop, sides = makes["drop_by_kind"](), makes["translators"]()
    assert drop is not None
    assert sides is not None
    assert "Drop from English by kind of reward model" in said(drop)
    assert {"dist/google", "other/google"} <= {*words(sides).split("\n")}


def judged(judges: int, sets: Sequence[str], *, tasks: int = 1, sure: bool = True) -> list[dict[str, Any]]:
    draw_ = random.Random(judges)
    rows = [
        {
            "task": f"task {task}",
            "judge": f"judge {judge}",
            "persona_variables": variables,
            "row": row,
            "answer": draw_.choice("AAB"),
            "certainty": draw_.choice([30, 60, 90]) if sure else None,
            "user": f"u{row % 5}",
        }
        for task in range(tasks)
        for judge in range(judges)
        for variables in sets
        for row in range(10)
    ]
    return verdict_rows(check_verdicts(verdicts(rows)))


@pytest.mark.parametrize(("judges", "tasks", "sets"), [(1, 1, ("none", "least", "all", "key")), (5, 4, ("key", "all"))])
def test_sets_of_persona_variables_are_in_one_figure(judges: int, tasks: int, sets: Sequence[str]) -> None:
    rows = judged(judges, sets, tasks=tasks)
    with drawing():
        figure = certainty.figures_of(rows)["variables_certainty"]()
    check_texts(figure, "variables")
    with drawing():
        named = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert named == [name for name in ("all", "key", "least", "none") if name in sets]
    assert [ax.get_ylabel() for ax in figure.axes[:3]] == ["Accuracy (%)", "≥ 80 (%)", "Certainty"]
    middle = next(row for row in rows if row["persona_variables"] == "all" and row["judge"] == "judge 0")
    sure = sorted(cell["certainty"] for cell in middle["by_certainty"] for _ in range(cell["n"]))
    heights = [line.get_ydata() for line in figure.axes[2].lines if line.get_marker() != "None"]
    assert sure[(len(sure) - 1) // 2] in [float(each[0]) for each in heights]  # type: ignore[index, arg-type]
    assert ("middle half" in said(figure)) == (judges == 1)


def test_without_certainties_the_figure_is_of_accuracy_alone() -> None:
    rows = judged(2, ("all", "key"), sure=False)
    with drawing():
        figure = certainty.figures_of(rows)["variables_certainty"]()
    assert [ax.get_ylabel() for ax in figure.axes] == ["Accuracy (%)"]
    assert "Certainty" not in said(figure)


def test_one_set_of_variables_has_no_such_figure() -> None:
    assert not [stem for stem in certainty.figures_of(judged(1, ("all", "none"))) if stem.startswith("variables")]
