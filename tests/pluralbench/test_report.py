"""What runs found, in one table: for the terminal, Markdown, JSON and CSV."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench import EvaluationError, Run, RunError, read_run, render, report_frame
from rich.console import Console
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    for config in ("fr", "zh"):
        write(tmp_path / "d" / f"{config}.jsonl", pairs(20, seed=len(config)))
    return tmp_path / "d"


@pytest.fixture
def runs(score: Callable[..., Run], classifiers: Callable[..., str], constant: str, data: Path) -> list[Run]:
    """Three runs, the worst one first."""
    made = [score("pairs", data, by=constant), score("pairs", data), score("pairs", data, by=classifiers(seed=1))]
    return sorted(made, key=lambda run: run.metrics["overall"]["accuracy"])


def test_a_row_for_the_whole_and_each_config_the_best_run_first(runs: list[Run]) -> None:
    frame = report_frame(runs)
    assert frame["config"].to_list() == ["overall", "fr", "zh"] * 3
    overall = frame.filter(config="overall")["accuracy"].to_list()
    assert overall == sorted(overall, reverse=True)
    assert overall[-1] == 0.0
    assert (frame["low"] <= frame["accuracy"]).all()
    assert (frame["accuracy"] <= frame["high"]).all()
    assert frame.filter(config="overall")["n"].to_list() == [40, 40, 40]
    assert frame.filter(config="overall")["ties"].to_list()[-1] == 40


def test_sections_have_rows_of_their_own(score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = [row | {"id": place, "subset": "hep-go"} for place, row in enumerate(pairs(6))]
    write(tmp_path / "hub/filtered.parquet", rows)
    run = score("reward-bench", tmp_path / "hub")
    frame = report_frame([run])
    assert frame["config"].to_list()[:2] == ["overall", "default"]
    assert {f"default: {name}" for name in ("Chat", "Chat Hard", "Safety", "Reasoning")} <= set(frame["config"])
    assert frame.filter(config="overall")["accuracy"].to_list() == [None]
    assert "–" in str(render([run], "markdown")), "what is missing is no number"


def test_each_form_says_the_same(runs: list[Run]) -> None:
    frame = report_frame(runs)
    assert json.loads(str(render(runs, "json"))) == frame.to_dicts()
    parsed = pl.read_csv(io.StringIO(str(render(runs, "csv"))))
    assert parsed.columns == frame.columns
    assert parsed["accuracy"].to_list() == pytest.approx(frame["accuracy"].to_list())
    markdown = str(render(runs, "markdown"))
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == frame.height + 2
    assert len({line.count("|") for line in lines}) == 1
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    console.print(render(runs, "table"))
    table = console.file.getvalue()  # type: ignore[attr-defined]
    best = f"{100 * frame['accuracy'][0]:.1f} [{100 * frame['low'][0]:.1f}, {100 * frame['high'][0]:.1f}]"
    assert best in table
    assert best in markdown


def test_what_a_reader_has_to_know_is_said(
    score: Callable[..., Run], classifiers: Callable[..., str], data: Path
) -> None:
    markdown = str(render([score("pairs", data, by=classifiers(head=float("nan")), limit=3)], "markdown"))
    for part in ("mean over all items", "ties and invalid ones as wrong", "95%", "invalid: ids q0, q1, q2"):
        assert part in markdown


def test_names_with_bars_stay_in_their_cell(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    made = score("pairs", write(tmp_path / "a|b.jsonl", pairs(4)))
    lines = [line for line in str(render([made], "markdown")).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_names_in_brackets_are_shown_as_they_are(
    score: Callable[..., Run], pairs: Callable[..., Rows], run: Command, tmp_path: Path
) -> None:
    made = score("pairs", write(tmp_path / "a [bold].jsonl", pairs(4)))
    assert "a [bold]" in run("report", made.path)[1]


def test_the_command_prints_each_form_and_writes_a_file(runs: list[Run], run: Command, tmp_path: Path) -> None:
    paths = [one.path for one in runs]
    status, said, _ = run("report", *paths)
    assert status == 0
    assert "overall" in said
    assert "Accuracy counts ties and invalid ones as wrong" in said
    status, said, _ = run("report", *paths, "--format", "json")
    assert (status, len(json.loads(said))) == (0, 9)
    status, said, _ = run("report", *paths, "--format", "csv", "--out", tmp_path / "t.csv")
    assert (status, said.strip()) == (0, f"Wrote {tmp_path / 't.csv'}")
    run("report", *paths, "--out", tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("|")


def test_a_written_csv_reads_back_row_by_row(runs: list[Run], run: Command, tmp_path: Path) -> None:
    paths = [one.path for one in runs]
    run("report", *paths, "--format", "csv", "--out", tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv").height == 9
    assert pl.read_csv(io.StringIO(run("report", *paths, "--format", "csv")[1])).height == 9


def test_an_unfinished_run_says_so(score: Callable[..., Run], data: Path, run: Command, tmp_path: Path) -> None:
    (tmp_path / "half.work").mkdir()
    for path, part in ((tmp_path / "half", "run its command again to go on"), (tmp_path / "none", "no run.json")):
        status, _, error = run("report", path)
        assert status == 2
        assert error.count("\n") == 1
        assert f"{path} is no finished run" in error
        assert part in error
    with pytest.raises(EvaluationError, match="no run to report"):
        render([], "table")
    assert score("pairs", data).metrics["items"] == 40


@pytest.mark.parametrize(
    ("name", "text"),
    [("run.json", "{"), ("metrics.json", "nonsense"), ("items.parquet", "PAR"), ("run.json", '{"format": 9}')],
)
def test_a_damaged_run_says_so(score: Callable[..., Run], data: Path, name: str, text: str) -> None:
    made = score("pairs", data)
    (made.path / name).write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"cannot be read|is of format 9") as caught:
        read_run(made.path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", '{"format": 1}', '{"format": 1, "model": {}, "benchmark": {}}'])
def test_a_run_file_of_another_shape_says_so(score: Callable[..., Run], data: Path, run: Command, text: str) -> None:
    made = score("pairs", data)
    (made.path / "run.json").write_text(text, encoding="utf-8")
    status, _, error = run("report", made.path)
    assert (status, error.count("\n")) == (2, 1)


def test_models_whose_folders_have_one_name_can_be_told_apart(
    score: Callable[..., Run], classifiers: Callable[..., str], data: Path, tmp_path: Path
) -> None:
    folders = [shutil.copytree(classifiers(seed=seed), tmp_path / f"step{seed}" / "checkpoint") for seed in (0, 1)]
    markdown = str(render([score("pairs", data, by=str(folder)) for folder in folders], "markdown"))
    assert len({line.split("|")[1] for line in markdown.splitlines() if "| overall" in line}) == 2


def test_a_report_that_cannot_be_written_says_so(runs: list[Run], run: Command, tmp_path: Path) -> None:
    for out in (tmp_path / "nowhere" / "t.md", tmp_path):
        status, _, error = run("report", runs[0].path, "--out", out)
        assert (status, error.count("\n")) == (2, 1)


def test_the_runs_of_a_folder_are_reported_also_when_one_was_asked_for_again(
    score: Callable[..., Run], data: Path, run: Command, tmp_path: Path
) -> None:
    for name in ("a", "b", "a"):
        score("pairs", data, out=tmp_path / "all" / name)
    assert run("report", *sorted((tmp_path / "all").glob("*")))[0] == 0
