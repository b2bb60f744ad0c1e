"""How often a judge prefers what it sees first: the number with its interval, and the figure of all judges."""

import pytest
from drawn_figures import dots, report_figures, words
from figure_runs import VERDICTS, places_run
from made_runs import decision, run_of


def test_the_share_has_an_interval_over_prompts() -> None:
    run = places_run("even", 0.6)
    said = [one for name in VERDICTS for one in run.items[name] if one not in {None, "invalid"}]
    found = run.estimate("share_of_first")
    assert found.value == pytest.approx(said.count("A") / len(said))
    assert found.n == len(said)
    assert found.low is not None
    assert found.high is not None
    assert 0.45 < found.low < 0.6 < found.high < 0.75


def test_the_figure_has_a_dot_a_judge_and_none_for_other_models() -> None:
    runs = [places_run("last", 0.3), places_run("even", 0.5), run_of([decision(0)], model="scores")]
    figures = report_figures(runs)
    assert {*figures} == {"forest_pairs", "position_pairs"}
    assert not report_figures(runs[2:], "position_pairs")
    assert dots(figures["position_pairs"]) == 2
    shown = words(figures["position_pairs"])
    assert "Verdicts for the answer shown first (%)" in shown
    assert "scores" not in shown
    assert "even" in shown
