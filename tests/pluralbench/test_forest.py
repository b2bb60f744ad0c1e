"""Forest plots: each benchmark has one that says what its metrics say, and models look alike in all figures."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawn_figures import check_texts, words
from made_runs import decision, run_of
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from pluralbench import Run, find_benchmark
from pluralbench.data.benchmarks import PERSONA_JUDGE, known_benchmarks
from pluralbench.reports.figures import draw as drawing_
from pluralbench.reports.figures.draw import draw
from pluralbench.reports.figures.forest import forests
from pluralbench.reports.figures.style import drawing
from pluralbench.results.metrics_frame import METRICS

LONG = "org/" + "Skywork-Reward-V2-Llama-3.1-8B-finetuned-on-the-preferences-of-people-run-{}-last"
NAMES = ("org/small", LONG.format("alpha"), LONG.format("beta"), "org/奖励模型-七十二亿", "org/نموذج-المكافأة")
TASKS = ("prism", "opinion_qa")
IN_SECTIONS = ["alpacaeval-easy", "mt-bench-hard", "donotanswer", "math-prm"]
PARTS: dict[str, dict[str, Sequence[str | None]]] = {
    "personalized": {"Art_and_Entertainment": [None], "Lifestyle_and_Personal_Development": [None]},
    "pairs": {"default": [None]},
    "reward-bench": {"filtered": IN_SECTIONS},
    "pandalm": {"test": ["Gmail", "推理", "a motivation that has a very long name which goes on and on"]},
    "multilingual": {"zho_Hant": IN_SECTIONS, "arb_Arab": IN_SECTIONS, "eng_Latn": IN_SECTIONS},
}
ROWS = {
    "personalized": {"Overall", "Art and Entertainment", "Lifestyle and Personal Development"},
    "pairs": {"Overall"},
    "reward-bench": {"Overall", "Chat", "Chat Hard", "Safety", "Reasoning"},
    "multilingual": {"Overall", "English", "Arabic", "Chinese (traditional)"},
    "mine": {"Overall", "one", "two"},
    PERSONA_JUDGE: {"Overall", "prism", "opinion qa"},
}
REFERENCES = {"coin": 0.5, "longer": 0.6, "shorter": 0.4}


def name_of(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"org/model-{number}"


def a_run(number: int, benchmark: str, *, items: int = 20) -> Run:
    draws = random.Random(f"{number} {benchmark}")
    skill = draws.uniform(0.5, 0.9)
    places = [
        (config, subset)
        for config, subsets in PARTS.get(benchmark, {"one": [None], "two": [None]}).items()
        for subset in subsets
    ]
    rows = [
        decision(
            n,
            draws.choices(["win", "loss"], [skill, 1 - skill])[0],
            config=config,
            subset=subset,
            id=f"{config}{subset}{n}",
        )
        | {"cluster": f"{config}{subset}{n}"}
        for config, subset in places
        for n in range(items)
    ]
    described = find_benchmark(benchmark if benchmark in PARTS else "pairs")
    run = run_of(rows, described, model=name_of(number), path=f"runs/{benchmark}-{number}")
    return recorded(run, benchmark if benchmark in PARTS else "my/mine.toml")


def persona_run(number: int, folder: Path, variables: str = "all") -> Run:
    draws, rows, verdicts = random.Random(f"{number} {variables}"), [], []
    for task in TASKS:
        for n in range(30):
            truth, right = "AB"[n % 2], draws.random() < 0.7
            said = truth if right else "BA"[n % 2]
            rows.append(decision(n, "win" if right else "loss", config=task, id=f"{task}{n}", cluster=f"u{n % 12}"))
            verdicts.append({"task": task, "judge": name_of(number), "setting": "certainty", "row": n, "answer": said})
            verdicts[-1] |= {"persona_variables": variables, "certainty": draws.randint(30, 99), "truth": truth}
            verdicts[-1] |= {"user": f"u{n % 12}"}
    table = pl.DataFrame(verdicts)
    path = folder / f"persona-{number}-{variables}"
    path.mkdir(parents=True)
    table.write_csv(path / "verdicts.csv")
    run = run_of(rows, known_benchmarks()[PERSONA_JUDGE], model=name_of(number), path=path)
    prompt = run.record.prompt.model_copy(update={"profile": None, "setting": "certainty", "variables": variables})
    return recorded(run, PERSONA_JUDGE, prompt=prompt)


def recorded(run: Run, benchmark: str, **changes: Any) -> Run:
    """The run as one of a benchmark of this name, with changes of its record."""
    about = run.record.benchmark.model_copy(update={"name": benchmark})
    return replace(run, record=run.record.model_copy(update={"benchmark": about, **changes}))


def with_references(run: Run) -> Run:
    """The run with what a coin, the longer and the shorter answer get, the same everywhere."""
    shares = run.metrics.filter(pl.col("metric").is_in(["accuracy", "overall"]))
    rows = [
        row | {"metric": what if row["metric"] == "accuracy" else f"overall_of_{what}", "value": value}
        for row in shares.iter_rows(named=True)
        for what, value in REFERENCES.items()
    ]
    return replace(run, metrics=pl.concat([run.metrics, pl.DataFrame(rows, METRICS)]))


def drawn(runs: Sequence[Run]) -> dict[str, Figure]:
    with drawing():
        made = {stem: make() for stem, make in forests(runs).items()}
    return {stem: figure for stem, figure in made.items() if figure is not None}


def said(figure: Figure) -> str:
    return " ".join(words(figure).split())


@pytest.mark.parametrize("models", [1, 12])
def test_every_benchmark_has_a_forest_plot_that_can_be_read(models: int, tmp_path: Path) -> None:
    benchmarks = (*PARTS, "mine") if models < 12 else ("reward-bench", "pandalm", "multilingual")
    runs = [with_references(a_run(n, benchmark)) for n in range(models) for benchmark in benchmarks]
    figures = drawn([*runs, *(persona_run(n, tmp_path) for n in range(models))])
    assert set(figures) == {f"forest_{benchmark}" for benchmark in (*benchmarks, PERSONA_JUDGE)}
    for stem, figure in figures.items():
        check_texts(figure, stem)
        shown = said(figure)
        assert all(row in shown for row in ROWS.get(stem.removeprefix("forest_"), {"Gmail", "Overall"}))
        assert ("The longer answer" in shown) == (stem != f"forest_{PERSONA_JUDGE}")
        assert max(figure.get_size_inches()) < 14, "inches: it has to fit on a page"


@pytest.mark.parametrize("models", [2, 5])
def test_marks_dots_and_whiskers_are_those_of_the_metrics(models: int) -> None:
    runs = [with_references(a_run(n, "personalized")) for n in range(models)]
    shown: Any = drawn(runs)["forest_personalized"]
    values, ends, marks = set(), set(), set()
    for ax in shown.axes:
        values |= {round(float(line.get_xdata()[0]), 6) for line in ax.lines if line.get_marker() != "None"}
        marks |= {round(float(line.get_xdata()[0]), 6) for line in ax.lines if line.get_marker() == "None"}
        paths = [path for drawn_ in ax.collections for path in drawn_.get_paths()]
        ends |= {tuple(path.vertices[:, 0].round(6).tolist()) for path in paths}
    found = [run.headline for run in runs] + [run.of(name) for run in runs for name in PARTS["personalized"]]
    assert values == {round(100 * (one.value or 0.0), 6) for one in found}
    assert ends == {(round(100 * (one.low or 0.0), 6), round(100 * (one.high or 0.0), 6)) for one in found}
    assert marks == {100 * value for value in REFERENCES.values()}


def test_a_number_of_few_prompts_is_marked() -> None:
    usual, few = a_run(0, "pairs"), a_run(1, "pairs", items=8)
    assert "Hollow" not in said(drawn([usual])["forest_pairs"])
    figure: Any = drawn([usual, few])["forest_pairs"]
    assert "Hollow: from fewer than 10 prompts or users." in said(figure)
    hollow = [line.get_markerfacecolor() == "white" for line in figure.axes[0].lines if line.get_marker() != "None"]
    assert sorted(hollow) == [False, True]


def test_what_is_missing_and_what_is_unlike_is_said() -> None:
    one, other = a_run(0, "personalized"), a_run(1, "personalized")
    other = replace(other, metrics=other.metrics.filter(pl.col("config") != "Art_and_Entertainment"))
    data = other.record.data.model_copy(update={"digest": "another"})
    other = replace(other, record=other.record.model_copy(update={"data": data}))
    shown = said(drawn([one, other])["forest_personalized"])
    assert "–: missing." in shown
    assert "The runs are not of the same data." in shown


def test_a_model_has_one_look_in_all_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ranks differ between the benchmarks, and the first model is only on some of them.
    runs = [a_run(n, benchmark) for benchmark in ("pairs", "personalized", "multilingual") for n in (2, 0, 1)]
    runs = [*runs[1:], *(persona_run(n, tmp_path, name) for n in (1, 2) for name in ("all", "none"))]
    figures: dict[str, Figure] = {}

    def keep(figure: Figure, folder: Path, stem: str) -> list[Path]:
        figures[stem] = figure
        return [folder / stem]

    monkeypatch.setattr(drawing_, "save", keep)
    draw(runs, tmp_path)
    assert {"forest_persona-judge", "certainty_certainty_all", "risk_coverage_certainty_none", "persona"} <= set(
        figures
    )
    looks: dict[str, set[tuple[str, Any]]] = {}
    for stem, figure in figures.items():
        for ax in figure.axes:
            legend = ax.get_legend()
            if legend is None or stem == "forest_persona-judge":
                continue
            for line, text in zip(legend.get_lines(), legend.get_texts(), strict=True):
                looks.setdefault(text.get_text(), set()).add((to_hex(line.get_color()), line.get_marker()))
    assert len(looks) == 3
    assert all(len(found) == 1 for found in looks.values())
    assert len(set().union(*looks.values())) == 3
