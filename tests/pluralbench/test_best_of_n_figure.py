"""The figure of best-of-N: that it shows what the metrics say, in words that everybody can read."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from drawn_figures import check_texts, drawn, said, words
from pluralbench.contract import Group
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures.best_of_n import curves, draw_best_of_n
from pluralbench.results import Downstream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Command = Callable[..., tuple[int, str, str]]
LONG = "org/奖励模型-with-a-very-long-name-that-has-to-be-broken-v0.2"


class Every:
    """A reward model that likes the letters at every so many places."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[float(sum(map(ord, one[:: self.step])) % 997) for one in group.responses] for group in groups]


@pytest.fixture(scope="module")
def runs(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Downstream]:
    """By what is special about each."""
    folder = tmp_path_factory.mktemp("runs")
    six: dict[str, Any] = {f"model-{step}": Every(step) for step in range(1, 6)} | {LONG: Every(6)}
    options: dict[str, Any] = {"limit": 2, "n": 8, "k": ()}
    with serve(World()) as server:
        whole = sampled(server, sample, folder / "two", MODELS, **options)
        reused = options | {"reuse": whole.path}
        return {
            "two": whole,
            "six": sampled(server, sample, folder / "six", six, **reused),
            "promised": sampled(server, sample, folder / "promised", MODELS, judge=None, **reused),
            "selected": sampled(server, sample, folder / "selected", MODELS, judged="selected", **reused),
            "alone": sampled(server, sample, folder / "alone", {}, limit=1),
        }


def figure_of(found: Downstream) -> "Figure":
    return drawn({"curves": partial(curves, found)})["curves"]


def lines(figure: "Figure", panel: int, points: int) -> list[list[tuple[float, float]]]:
    """The curves of so many points in a panel."""
    found = [line.get_xydata().tolist() for line in figure.axes[panel].lines]  # type: ignore[union-attr]
    return [[(float(x), float(y)) for x, y in one] for one in found if len(one) == points]


@pytest.mark.heavy
@pytest.mark.parametrize("which", ["two", "six", "promised", "selected"])
def test_every_text_can_be_read(runs: dict[str, Downstream], which: str) -> None:
    figure = figure_of(runs[which])
    check_texts(figure, which)
    shown = said(figure)
    assert "Best of k from policy" in shown
    assert "k (number of candidates)" in shown
    assert "6 prompts." in shown
    assert {"1", "2", "4", "8"} <= {*words(figure).split("\n")}


@pytest.mark.parametrize("which", ["two", "six"])
def test_the_curves_are_the_numbers(runs: dict[str, Downstream], which: str) -> None:
    found = runs[which]
    figure = figure_of(found)
    left, right = lines(figure, 0, 4), lines(figure, 1, 4)
    for metric, shown in (("outcome", left), ("realized", right)):
        for model in found.result.rewards:
            ys = [found.estimate(metric, model=model, k=k).value for k in found.result.sampling.sizes]
            xs = list(found.result.sampling.sizes)
            if metric == "realized":
                xs = [found.estimate("promised", model=model, k=k).value for k in found.result.sampling.sizes]  # type: ignore[misc]
            assert any(one == [pytest.approx(point) for point in zip(xs, ys, strict=True)] for one in shown), model
    level = found.estimate("outcome").value
    assert any(list(line.get_ydata()) == [level, level] for line in figure.axes[0].lines)  # type: ignore[arg-type]
    assert "Dashed gray: the policy by itself." in said(figure)
    assert ("Bands: 95% intervals." in said(figure)) == (which == "two")


def test_without_a_judge_the_promise_is_drawn_alone(runs: dict[str, Downstream]) -> None:
    figure = figure_of(runs["promised"])
    assert len([ax for ax in figure.axes if ax.lines]) == 1
    assert "Promised gain (standard deviations)" in said(figure)
    for unsaid in ("Judged by", "Dashed"):
        assert unsaid not in said(figure)


@pytest.mark.heavy
def test_the_report_draws_each_directory_of_best_of_n(
    runs: dict[str, Downstream], run: Command, tmp_path: Path
) -> None:
    one, two = runs["two"], runs["promised"]
    status, out, _ = run("report", one.path, "--plots", tmp_path / "one")
    assert (status, f"Wrote {tmp_path / 'one/best_of_n.svg'}" in out) == (0, True)
    assert run("report", one.path, two.path, "--plots", tmp_path / "both")[0] == 0
    files = {str(path.relative_to(tmp_path)) for path in (tmp_path / "both").rglob("*.png")}
    assert files == {"both/two/best_of_n.png", "both/promised/best_of_n.png"}


def test_without_a_reward_model_there_is_nothing_to_draw(runs: dict[str, Downstream], tmp_path: Path) -> None:
    assert runs["alone"].estimate("outcome").n == 3
    with pytest.raises(EvaluationError) as caught:
        draw_best_of_n(runs["alone"], tmp_path)
    assert str(caught.value) == "There is nothing to draw: the run has no reward model."
