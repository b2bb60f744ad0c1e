"""What runs found, in one table: for the terminal, Markdown, JSON and CSV."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from made_runs import decision, keep, run_of
from pluralbench import EvaluationError, Run, find_benchmark, render, report_frame
from pluralbench.reports.notes import closing, notes
from pluralbench.reports.report import broken, shown
from pluralbench.results.metrics_frame import METRICS
from rich.console import Console

Command = Callable[..., tuple[int, str, str]]


def a_run(name: str, right: int, *, benchmark: str = "pairs", of: int = 20, path: Path | None = None) -> Run:
    """A run of a model of this name, right in so many of the decisions of two configs."""
    rows = [decision(n, "win" if n < right else "tie", config=config) for config in ("fr", "zh") for n in range(of)]
    return run_of(rows, benchmark, model=name, path=path or Path("runs") / name.replace("/", "-"))


@pytest.fixture
def runs() -> list[Run]:
    """Three runs, the worst one first."""
    return [a_run("org/constant", 0), a_run("org/fair", 9), a_run("org/best", 14)]


def console_text(runs: list[Run], width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(render(runs, "table"))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_frame_has_every_number_of_every_run_the_best_one_first(runs: list[Run]) -> None:
    frame = report_frame(runs)
    assert frame.columns == ["run", "model", "kind", "benchmark", "profile", "setting", "variables", *METRICS]
    assert frame["model"].unique(maintain_order=True).to_list() == ["org/best", "org/fair", "org/constant"]
    assert frame.filter(group="overall")["value"].to_list() == [0.7, 0.45, 0.0]
    own = frame.filter(run="runs/org-fair").select(*METRICS)
    assert own.equals(runs[1].metrics)


def test_each_form_says_the_same(runs: list[Run]) -> None:
    frame = report_frame(runs)
    assert json.loads(str(render(runs, "json"))) == frame.to_dicts()
    parsed = pl.read_csv(io.StringIO(str(render(runs, "csv"))))
    assert parsed.columns == frame.columns
    assert parsed["value"].to_list() == pytest.approx(frame["value"].to_list(), nan_ok=True)
    head = runs[2].headline
    assert head.value
    assert head.low
    assert head.high
    best = f"{100 * head.value:.1f} [{100 * head.low:.1f}, {100 * head.high:.1f}]"
    markdown = str(render(runs, "markdown"))
    assert best in markdown
    assert best.replace(" [", "\n[").split("\n")[1] in console_text(runs)
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == 3 * 3 + 2
    assert len({line.count("|") for line in lines}) == 1


def test_sections_and_what_is_missing_have_rows_of_their_own() -> None:
    rows = [decision(n, subset="hep-go", config="default") for n in range(6)]
    frame = shown([run_of(rows, "reward-bench")])
    assert frame["config"].to_list()[:2] == ["overall", "default"]
    assert {f"default: {name}" for name in find_benchmark("reward-bench").sections} <= set(frame["config"])
    assert frame.filter(config="overall")["accuracy"].to_list() == ["–"], "what is missing is no number"


def test_counts_that_are_all_nothing_are_left_out() -> None:
    table = shown([run_of([decision(0), decision(1, "dropped"), decision(2, "invalid")])])
    assert table.columns == ["model", "config", "accuracy", "n", "invalid", "dropped"]


def test_what_a_reader_has_to_know_is_said() -> None:
    rows = [decision(n, "invalid", margin=None) for n in range(3)] + [
        decision(3, "dropped"),
        decision(4, truncated=True),
    ]
    said = "\n".join(notes([run_of(rows)]))
    for part in (
        "Overall: mean over all items (runs/m).", "ties and invalid ones as wrong", "95%",
        "runs/m: invalid: ids q0, q1, q2.", "dropped: ids q3.", "truncated: ids q4.",
    ):  # fmt: skip
        assert part in said


def test_a_command_that_made_a_run_says_where_it_lies() -> None:
    assert closing(run_of([decision(0)])) == ["runs/m: items.parquet, metrics.json, run.json"]


def test_names_with_bars_and_brackets_are_shown_as_they_are(run: Command, tmp_path: Path) -> None:
    made = keep(run_of([decision(0, config="a|b [bold]")], "personalized"), tmp_path / "run")
    lines = [line for line in str(render([made], "markdown")).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "a|b [bold]" in run("report", made.path)[1]


@pytest.mark.parametrize("benchmark", ["personalized", "chinese", "multilingual"])
def test_the_table_fits_a_narrow_terminal_and_breaks_names_where_their_parts_meet(benchmark: str) -> None:
    names = ["Lifestyle_and_Personal_Development", "Art_and_Entertainment", "eng_Latn"]
    subsets = ["mt-bench-hard", "hep-go", "donotanswer", "alpacaeval-easy"]
    rows = [
        decision(n, outcome, config=config, subset=subsets[n % 4])
        for config in names
        for n, outcome in enumerate(["win", "loss", "tie", "invalid", "dropped"] * 4)
    ]
    runs = [run_of(rows, benchmark, model=f"org/a-model-with-a-long-name-{n}", path=f"runs/{n}") for n in range(2)]
    text = console_text(runs)
    assert max(map(len, text.splitlines())) <= 80
    for word in ("Lifestyle_and_", "Personal_Development", "Art_and_Entertainment", "accuracy"):
        assert word in text
    assert broken("org/a-model-with-a-long-name-0") == "org/a-model-with-a-\nlong-name-0"


def test_runs_of_one_model_can_be_told_apart() -> None:
    pair = [a_run("m", 3, path=Path("runs/a")), a_run("m", 5, path=Path("runs/b"))]
    assert shown(pair)["run"].unique(maintain_order=True).to_list() == ["runs/b", "runs/a"]
    alike = [a_run("a/checkpoint", 3, path=Path("runs/a")), a_run("b/checkpoint", 5, path=Path("runs/b"))]
    assert "run" in shown(alike).columns
    assert "run" not in shown([a_run("a", 3), a_run("b", 5)]).columns


def test_the_command_prints_each_form_and_writes_a_file(runs: list[Run], run: Command, tmp_path: Path) -> None:
    paths = [keep(one, tmp_path / one.path.name).path for one in runs]
    (tmp_path / "half.work").mkdir()
    status, said, _ = run("report", *paths, tmp_path / "half.work")
    assert status == 0
    assert "overall" in said
    assert "Accuracy counts ties and invalid ones as wrong" in said
    rows = report_frame(runs).height
    status, said, _ = run("report", *paths, "--format", "json")
    assert (status, len(json.loads(said))) == (0, rows)
    assert pl.read_csv(io.StringIO(run("report", *paths, "--format", "csv")[1])).height == rows
    status, said, _ = run("report", *paths, "--format", "csv", "--out", tmp_path / "t.csv")
    assert (status, said.strip()) == (0, f"Wrote {tmp_path / 't.csv'}")
    assert pl.read_csv(tmp_path / "t.csv").height == rows
    run("report", *paths, "--out", tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("|")
    for out in (tmp_path / "nowhere" / "t.md", tmp_path):
        status, _, error = run("report", paths[0], "--out", out)
        assert (status, error.count("\n")) == (2, 1)


def test_no_run_and_a_run_that_cannot_be_read_are_one_sentence(run: Command, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no run to report"):
        render([], "table")
    made = keep(run_of([decision(0)]), tmp_path / "run")
    (made.path / "run.json").write_text("[]", encoding="utf-8")
    for path in (made.path, tmp_path / "none"):
        status, _, error = run("report", path)
        assert (status, error.count("\n")) == (2, 1)
