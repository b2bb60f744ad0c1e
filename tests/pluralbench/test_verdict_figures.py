"""Figures of verdicts: which there are, that nothing lies on anything else, and that they say nothing untrue."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from drawn_figures import check_texts, drawn, said, values, words
from figure_runs import TASKS, judged_rows
from pluralbench.data.verdict_tables import check_verdicts, read_verdicts
from pluralbench.reports.figures import certainty
from pluralbench.reports.figures.theme import PAPER
from pluralbench.reports.verdicts import verdict_rows
from written_verdicts import Rows, verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "persona_judge" / "recorded_verdicts.csv"
needs_shared = pytest.mark.skipif(not RECORDED.is_file(), reason=f"the recorded verdicts are not at {RECORDED}")


def figures(rows: Any) -> dict[str, "Figure"]:
    return drawn(certainty.figures_of(rows))


@pytest.mark.parametrize(("judges", "tasks"), [(1, 1), pytest.param(8, 3, marks=pytest.mark.heavy)])
def test_figures_name_tasks_and_judges(judges: int, tasks: int) -> None:
    rows = judged_rows(judges, tasks=tasks)
    made = figures(rows)
    assert set(made) == {
        "certainty_certainty_all",
        "certainty_certainty_none",
        "risk_coverage_certainty_all",
        "risk_coverage_certainty_none",
        "persona",
    }
    for figure in made.values():
        shown = words(figure)
        assert all(task in shown for task in TASKS[:tasks])
        assert ("gpt-4o" if judges == 1 else f"{judges} judges") in shown
        assert "%" in shown


def test_the_dots_are_the_accuracies_of_the_deciles_and_the_bars_their_sizes() -> None:
    rows = judged_rows(2, ("all",))
    above, below = figures(rows)["certainty_certainty_all"].axes
    cells = [cell for row in rows for cell in row["deciles"]]
    assert {*values(above, upright=True)} == {100 * cell["accuracy"] for cell in cells}
    bars = [float(bar.get_height()) for container in below.containers for bar in container]
    assert sorted(bars) == pytest.approx(sorted(100 * cell["n"] / 60 for cell in cells))


def test_a_line_joins_no_deciles_of_few_verdicts() -> None:
    sure = [15] * 3 + [45] * 12 + [55] * 12 + [85] * 12
    rows = verdict_rows(check_verdicts(verdicts([{"certainty": value} for value in sure])))
    figure = figures(rows)["certainty_certainty_all"]
    above, _ = figure.axes
    (joined,) = (line for line in above.lines if len(np.asarray(line.get_xdata())) == 10)
    there = ~np.isnan(np.asarray(joined.get_ydata(), dtype=float))
    assert there.tolist() == [False, False, False, False, True, True, False, False, True, False]
    hollow = [line for line in above.lines if line.get_markerfacecolor() == PAPER]
    assert len(hollow) == 1
    assert "Hollow: fewer than 10 verdicts." in said(figure)


def test_the_curve_ends_at_the_share_of_errors_and_passes_the_threshold() -> None:
    rows = judged_rows(1, ("all",), threshold=55)
    (ax,) = figures(rows)["risk_coverage_certainty_all"].axes
    curve = max(ax.lines, key=lambda line: len(np.asarray(line.get_xdata())))
    xs, ys = (np.asarray(data, dtype=float) for data in curve.get_data())
    assert (xs[-1], ys[-1]) == (pytest.approx(100), pytest.approx(100 * (1 - rows[0]["parsed_accuracy"])))
    assert (np.diff(xs) > 0).all()
    assert xs[0] == pytest.approx(100 * 10 / 60), "of fewer than ten answers there is nothing to see"
    ([across], [up]) = values(ax), values(ax, upright=True)
    assert across == pytest.approx(100 * rows[0]["coverage"])
    assert up == pytest.approx(100 * (1 - rows[0]["high_accuracy"]))
    assert float(np.interp(across, xs, ys)) == pytest.approx(up)


def test_settings_and_sets_have_figures_of_their_own_and_ties_none() -> None:
    rows: Rows = [{"certainty": 70}, {"certainty": 70, "persona_variables": "key/paper"}]
    rows += [{"certainty": None, "setting": "tie", "truth": "C", "answer": "C"}]
    assert set(figures(verdict_rows(check_verdicts(verdicts(rows))))) == {
        "variables_certainty",
        *(f"{what}_certainty_{which}" for what in ("certainty", "risk_coverage") for which in ("all", "key_paper")),
    }


@pytest.mark.heavy
def test_the_tasks_of_one_judge_share_a_panel() -> None:
    one, two = (figures(judged_rows(judges, tasks=2))["persona"] for judges in (1, 2))
    assert (len(one.axes), len(two.axes)) == (2, 2 * 2)
    assert [label.get_text() for label in one.axes[0].get_yticklabels()] == sorted(TASKS[:2])
    assert all(ax.get_title(loc="left") in TASKS for ax in two.axes[::2])


def test_pairs_that_are_not_of_the_same_items_are_said() -> None:
    rows: Rows = [{"row": row, "truth": "AB"[row % 2]} for row in range(4)]
    rows += [{"row": row, "truth": "A", "persona_variables": "none"} for row in range(4)]
    shown = said(figures(verdict_rows(check_verdicts(verdicts(rows))))["persona"])
    assert "1 of 1 pairs are on different items" in shown


@pytest.mark.heavy
@needs_shared
def test_figures_of_the_recorded_verdicts() -> None:
    made = figures(verdict_rows(read_verdicts(str(RECORDED))))
    assert set(made) == {"certainty_certainty_all", "risk_coverage_certainty_all"}
    for stem, figure in made.items():
        check_texts(figure, stem)
        assert "4 judges" in words(figure)
