"""The figure of best-of-N: that it shows what the metrics say, in words that everybody can read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from drawn_figures import check_texts, words
from matplotlib import image
from matplotlib.figure import Figure
from pluralbench import Downstream, EvaluationError, Group
from pluralbench.reports.figures.best_of_n import curves, draw_best_of_n
from pluralbench.reports.figures.style import drawing
from pluralbench.results.runs import policy_number

Command = Callable[..., tuple[int, str, str]]
LONG = "org/奖励模型-with-a-very-long-name-that-has-to-be-broken-v0.2"


class Every:
    """A reward model that likes the letters at every so many places."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[float(hash_of(response, self.step)) for response in group.responses] for group in groups]


def hash_of(text: str, step: int) -> int:
    """A number that a text has whenever it is asked for."""
    return sum(map(ord, text[::step])) % 997


@pytest.fixture(scope="module")
def runs(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Downstream]:
    """By what is special about each."""
    folder = tmp_path_factory.mktemp("runs")
    six: dict[str, Any] = {f"model-{step}": Every(step) for step in range(1, 6)} | {LONG: Every(6)}
    options: dict[str, Any] = {"limit": 2, "n": 8, "k": ()}
    with serve(World()) as server:
        whole = sampled(server, sample, folder / "two", MODELS, **options)
        reused = options | {"reuse_from": whole.path}
        return {
            "two": whole,
            "six": sampled(server, sample, folder / "six", six, **reused),
            "promised": sampled(server, sample, folder / "promised", MODELS, judge=None, **reused),
            "selected": sampled(server, sample, folder / "selected", MODELS, judged="selected", **reused),
        }


def drawn(found: Downstream) -> Figure:
    with drawing():
        return curves(found)


def lines(figure: Figure, panel: int, points: int) -> list[list[tuple[float, float]]]:
    """The curves of so many points in a panel."""
    found = [line.get_xydata().tolist() for line in figure.axes[panel].lines]  # type: ignore[union-attr]
    return [[(float(x), float(y)) for x, y in one] for one in found if len(one) == points]


@pytest.mark.parametrize("which", ["two", "six", "promised", "selected"])
def test_every_text_can_be_read(runs: dict[str, Downstream], which: str) -> None:
    figure = drawn(runs[which])
    check_texts(figure, which)
    said = words(figure)
    assert "Best of k from policy" in said
    assert "k, candidates to choose from" in said
    assert "6 prompts." in said
    for k in (1, 2, 4, 8):
        assert f"\n{k}\n" in f"\n{said}\n"


@pytest.mark.parametrize("which", ["two", "six"])
def test_the_curves_are_the_numbers(runs: dict[str, Downstream], which: str) -> None:
    found = runs[which]
    figure = drawn(found)
    left, right = lines(figure, 0, 4), lines(figure, 1, 4)
    for metric, shown in (("outcome", left), ("realised", right)):
        for model in found.result.rewards:
            ys = [policy_number(found, metric, model=model, k=k).value for k in found.result.sampling.sizes]
            xs = list(found.result.sampling.sizes)
            if metric == "realised":
                xs = [policy_number(found, "promised", model=model, k=k).value for k in found.result.sampling.sizes]  # type: ignore[misc]
            assert any(one == [pytest.approx(point) for point in zip(xs, ys, strict=True)] for one in shown), model
    level = policy_number(found, "outcome").value
    assert any(list(line.get_ydata()) == [level, level] for line in figure.axes[0].lines)  # type: ignore[arg-type]
    said = words(figure)
    assert "Grey, dashed: the policy by itself." in said.replace("\n", " ")
    assert ("Bands: 95% intervals." in said) == (which == "two")


def test_without_a_judge_the_promise_is_drawn_alone(runs: dict[str, Downstream]) -> None:
    figure = drawn(runs["promised"])
    assert len([ax for ax in figure.axes if ax.lines]) == 1
    said = words(figure)
    assert "Promised gain (standard deviations)" in said
    assert "Judged by" not in said
    assert "Dashed" not in said


def test_it_is_written_as_png_and_svg(runs: dict[str, Downstream], tmp_path: Path) -> None:
    png, svg = draw_best_of_n(runs["two"], tmp_path / "plots")
    assert (png.name, svg.name) == ("best_of_n.png", "best_of_n.svg")
    pixels = image.imread(png)
    assert pixels.std() > 0.05
    assert svg.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    again = draw_best_of_n(runs["two"], tmp_path / "again")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]


def test_the_report_draws_each_directory_of_best_of_n(
    runs: dict[str, Downstream], run: Command, tmp_path: Path
) -> None:
    one, two = runs["two"], runs["promised"]
    status, said, _ = run("report", one.path, "--plots", tmp_path / "one")
    assert (status, f"Wrote {tmp_path / 'one/best_of_n.svg'}" in said) == (0, True)
    status, said, _ = run("report", one.path, two.path, "--plots", tmp_path / "both")
    assert status == 0
    drawn_files = {str(path.relative_to(tmp_path)) for path in (tmp_path / "both").rglob("*.png")}
    assert drawn_files == {"both/two/best_of_n.png", "both/promised/best_of_n.png"}


def test_without_a_reward_model_there_is_nothing_to_draw(sample: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(server, sample, tmp_path / "run", {}, limit=1)
    assert policy_number(found, "outcome").n == 3
    with pytest.raises(EvaluationError) as caught:
        draw_best_of_n(found, tmp_path)
    assert str(caught.value) == "There is nothing to draw: no reward model selected anything."
