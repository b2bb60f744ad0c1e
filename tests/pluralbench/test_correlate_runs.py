"""A benchmark against a downstream result: runs with the noise of their items, and what is drawn."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_figures import check_texts, drawn, words
from made_runs import decision, keep, run_of
from pluralbench.downstream.correlate import correlate
from pluralbench.downstream.score_series import ScoreSeries, read_series, runs_series
from pluralbench.errors import DataError, RunError
from pluralbench.reports.figures import downstream
from pluralbench_measures.rank_intervals import reliability

Command = Callable[..., tuple[int, str, str]]
LONG = "a reward model with a name that goes on and on, and then on-v2.1-of-2026"
STRANGE = ["价值对齐奖励模型-7B", "नमस्ते-3B", "مدل پاداش", "$x_1$ and $", LONG, "Ünïcödé"]


def side(names: Sequence[str], scores: Sequence[float], resampled: Any = None) -> ScoreSeries:
    return ScoreSeries("made", "score", list(names), np.array(scores, dtype=np.float64), resampled)


def table(path: Path, scores: dict[str, float]) -> Path:
    path.write_text(
        "model,score\n" + "".join(f'"{name}",{value}\n' for name, value in scores.items()), encoding="utf-8"
    )
    return path


def runs_of(folder: Path, models: int, items: int, spread: float = 0.6) -> dict[str, float]:
    """Runs of models of rising quality in a folder; their qualities by name."""
    draw = np.random.default_rng(models)
    difficulty = draw.normal(size=items)
    qualities = {f"org/m{place}": float(value) for place, value in enumerate(np.linspace(-1, 1, models))}
    for place, (name, quality) in enumerate(qualities.items()):
        right = draw.random(items) < 1 / (1 + np.exp(difficulty - spread * quality - 0.5))
        rows = [decision(number, "win" if one else "loss") for number, one in enumerate(right)]
        keep(run_of(rows, path=folder / f"run{place}", model=name))
    return qualities


@pytest.mark.heavy
def test_runs_bring_the_noise_of_their_items(tmp_path: Path, run: Command) -> None:
    qualities = runs_of(tmp_path / "runs", 7, 150)
    path = table(tmp_path / "downstream.csv", qualities)
    (tmp_path / "runs" / "run9.work").mkdir()
    benchmark = read_series(tmp_path / "runs")
    assert list(benchmark.names) == list(qualities)
    assert benchmark.resampled is not None
    assert benchmark.resampled.shape == (2001, 7)
    assert benchmark.resampled[0] == pytest.approx(benchmark.scores)
    # The noise that the items leave a mean of so many, by the formula for independent ones.
    noise = np.mean(benchmark.scores * (1 - benchmark.scores) / 150)
    assert benchmark.resampled[1:].std(0) == pytest.approx(np.sqrt(noise), rel=0.15)
    share = reliability(benchmark.resampled)
    assert share == pytest.approx(1 - noise / benchmark.scores.var(ddof=1), abs=0.12)
    found = correlate(tmp_path / "runs", path)
    plain = correlate(side(benchmark.names, benchmark.scores.tolist()), path)
    assert found.reliabilities == {"benchmark": share, "downstream": None}
    (rho, alone) = (one.statistics["spearman"] for one in (found, plain))
    assert rho.value == alone.value
    assert alone.without_noise is None
    assert None not in {rho.without_noise, rho.low, alone.low}
    status, out, _ = run("correlate", str(tmp_path / "runs" / "*"), path)
    assert status == 0
    assert f"The noise of the items is removed: {100 * share:.0f}% (benchmark) of the variance" in " ".join(out.split())
    assert "without noise" in out


def test_items_that_only_some_runs_have_are_left_out_of_the_noise() -> None:
    first = run_of([decision(n, "win" if n % 3 else "loss") for n in range(30)], model="a", path="a")
    second = run_of([decision(n, "win" if n % 2 else "loss") for n in range(20)], model="b", path="b")
    found = runs_series([first, second], "runs")
    assert found.scores.tolist() == [20 / 30, 0.5]
    assert found.resampled is not None
    assert found.resampled[0].tolist() == [13 / 20, 0.5]
    assert found.warnings == ["runs: 10 decisions are not in all runs; the noise of the items excludes them."]
    apart = run_of([decision(n, "win") for n in range(50, 60)], model="c", path="c")
    alone = runs_series([first, apart], "runs")
    assert alone.resampled is None
    assert alone.warnings == ["runs: the runs share no items, so the intervals do not include the noise of the items."]


def test_runs_that_make_no_side_are_refused(tmp_path: Path) -> None:
    rows = [decision(n) for n in range(3)]
    one, other = run_of(rows, model="m", path="x"), run_of(rows, model="m", path="y")
    with pytest.raises(RunError) as refused:
        runs_series([one, other], "runs")
    assert str(refused.value) == "x and y both have the model m; remove one of them."
    with pytest.raises(RunError, match="z is a run of the benchmark pairs and"):
        runs_series([run_of(rows, model="a", path="z"), run_of(rows, "personalized", model="b", path="w")], "runs")
    nothing = run_of([decision(0, "dropped")], model="n", path="v")
    with pytest.raises(RunError) as refused:
        runs_series([nothing], "runs")
    assert str(refused.value) == "v has no overall number, so its model n has no score."
    keep(one, tmp_path / "run")
    with pytest.raises(DataError) as not_read:
        read_series(tmp_path / "run", ["score"])
    assert str(not_read.value) == (
        f"{tmp_path / 'run'} holds runs, whose score is their overall number; leave out `columns=...`."
    )


def test_scores_that_are_nothing_but_noise_have_no_interval() -> None:
    draw = np.random.default_rng(0)
    names = [f"m{place}" for place in range(8)]
    scores = draw.normal(size=8)
    noise = np.concatenate([scores[None], scores + 3 * draw.normal(size=(500, 8))])
    found = correlate(side(names, scores.tolist(), noise), side(names, scores.tolist()))
    assert found.statistics["spearman"].value == 1
    assert found.statistics["spearman"].low is found.statistics["spearman"].without_noise is None
    assert found.warnings == [
        "No intervals: the models' scores in made differ by no more than the noise of its items, so their order "
        "carries no information."
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("count", [2, 26])
def test_every_name_can_be_read_in_the_figures(count: int) -> None:
    draw = np.random.default_rng(count)
    names = [*STRANGE, *(f"org/reward-model-{place}b" for place in range(20))][:count]
    scores = draw.integers(0, 12, size=count).astype(float)
    items = np.concatenate([scores[None], scores + draw.normal(size=(60, count))])
    found = correlate(side(names, scores.tolist(), items), side(names, draw.normal(size=count).tolist()))
    charts = downstream.correlation(found)
    for stem, figure in drawn(charts).items():
        check_texts(figure, stem)
        assert all(mark.series.label in words(figure) for mark in charts["scores"].marks)
    assert "Whiskers: 95% intervals." in words(figure)


@pytest.mark.heavy
def test_the_command_draws(run: Command, tmp_path: Path) -> None:
    sides: dict[str, list[float]] = {"benchmark": [3, 1, 2, 6, 5, 4], "downstream": [0.19, 0.18, 0.2, 0.22, 0.23, 0.17]}
    paths = [
        table(tmp_path / f"{name}.csv", {f"m{n}": score for n, score in enumerate(scores)})
        for name, scores in sides.items()
    ]
    status, out, _ = run("correlate", *paths, "--plots", tmp_path / "figures")
    assert status == 0
    made = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert made == ["scores.png", "scores.svg"]
    assert all(f"Wrote {tmp_path / 'figures' / name}" in out for name in made)
    status, out, err = run("correlate", *paths, "--plots", tmp_path / "figures", "--json")
    assert json.loads(out)["n"] == 6
    assert "Wrote" in err
