"""How often a judge prefers what it sees first: the number with its interval, and the figure of all judges."""

from pathlib import Path

import pytest
from drawn_figures import dots, words
from figure_runs import VERDICTS, places_run
from made_runs import decision, run_of
from pluralbench.reports.figures.draw import draw
from pluralbench.reports.figures.position import position
from pluralbench.reports.figures.series import series_of
from pluralbench.reports.figures.style import drawing


def test_the_share_has_an_interval_over_prompts() -> None:
    run = places_run("even", 0.6)
    said = [one for name in VERDICTS for one in run.items[name] if one not in {None, "invalid"}]
    found = run.estimate("share_of_first", "position")
    assert found.value == pytest.approx(said.count("A") / len(said))
    assert found.n == len(said)
    assert found.low is not None
    assert found.high is not None
    assert 0.45 < found.low < 0.6 < found.high < 0.75


def test_the_figure_has_a_dot_a_judge_and_none_for_other_models(tmp_path: Path) -> None:
    runs = [places_run("last", 0.3), places_run("even", 0.5), run_of([decision(0)], model="scores")]
    paths = draw(runs, tmp_path)
    assert {path.name for path in paths} == {
        f"{kind}_pairs.{form}" for kind in ("forest", "position") for form in ("png", "svg")
    }
    with drawing():
        figure = position(series_of(runs))
        assert position(series_of(runs[2:])) is None
    assert figure is not None
    assert dots(figure) == 2
    said = words(figure)
    assert "Verdicts for the answer shown first (%)" in said
    assert "scores" not in said
    assert "even" in said
