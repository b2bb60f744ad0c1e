"""`pluralbench rate`: what reward models select goes to people on blind sheets, and comes back as a win rate."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from chat_server import serve
from downstream_runs import MODELS, World, sampled
from pluralbench import load_run
from pluralbench.leaderboard.checks import check_submission
from pluralbench.results import Downstream
from pluralbench_studies import read_rows

Command = Callable[..., tuple[int, str, str]]
KEYS = ["config", "id", "sample"]
PEOPLE = ("an", "bo", "cy")


@pytest.fixture(scope="module")
def best(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Downstream:
    """Best of 4 by two reward models, against a further sample. Not to be changed."""
    with serve(World()) as server:
        return sampled(server, sample, tmp_path_factory.mktemp("best") / "run", MODELS, limit=2, n=4, measure="win")


def filled(folder: Path, left: int = 0) -> None:
    """The sheets, as people who like long answers fill them in; cy likes short ones, and leaves some out."""
    for path in sorted((folder / "sheets").glob("*.csv")):
        rows = read_rows(path)
        longer = pl.col("first").str.len_chars() > pl.col("second").str.len_chars()
        ours, theirs = ("1", "2") if path.stem != "cy" else ("2", "1")
        done = pl.int_range(pl.len()) >= (left if path.stem == "cy" else 0)
        said = pl.when(done).then(pl.when(longer).then(pl.lit(ours)).otherwise(pl.lit(theirs))).otherwise(pl.lit(""))
        rows.with_columns(better=said).write_csv(path)


def test_the_win_rate_is_what_people_said_of_what_was_selected(run: Command, best: Downstream, tmp_path: Path) -> None:
    folder = tmp_path / "sheets"
    words = ["rate", best.path, "--export", folder, *(word for name in PEOPLE for word in ("--annotator", name))]
    status, told, error = run(*words, "--annotators-per-item", "3", "--seed", "5")
    assert (status, error) == (0, "")
    assert "assignments" in told
    texts = best.frame("candidates").select(*KEYS, "text")
    against = texts.filter(sample=4).select("config", "id", against="text")
    chosen = best.frame("selected").filter(k=4).join(texts, on=KEYS).join(against, on=["config", "id"])
    sheet = read_rows(folder / "sheets" / "an.csv")
    key = pl.read_csv(folder / "key.csv", infer_schema=False)
    assert sheet.height == chosen.select(KEYS).n_unique() == key.height
    assert set(key["chosen"]) == {"1", "2"}, "the order is drawn"
    assert sheet.columns == ["item", "annotator", "question", "person", "first", "second", "better", "remark"]
    assert all(sheet["person"]), "what the policy read of the person"
    filled(folder)
    status, told, error = run("rate", best.path, "--import", folder)
    assert (status, error) == (0, "")
    found = load_run(folder / "win-rate")
    # Two of three like the longer one of a pair: 1/3 where it is selected, and -1/3 where it is not.
    longer = pl.col("text").str.len_chars() > pl.col("against").str.len_chars()
    values = chosen.with_columns(value=pl.when(longer).then(1 / 3).otherwise(-1 / 3))
    for name in MODELS:
        own = values.filter(model=name).group_by("config").agg(pl.col("value").mean())
        assert found.estimate("outcome", model=name, k=4).value == pytest.approx(own["value"].mean())
    assert found.result.outcome is not None
    assert (found.config.outcome.measure, found.result.outcome.judge.name) == ("win", "3 people")
    assert found.estimate("agreement").value == pytest.approx(1 / 3)
    assert found.estimate("agreement").n == 3 * sheet.height
    said = " ".join(told.split())
    assert f"of {3 * sheet.height} comparisons with two raters" in said
    assert f"cy: {sheet.height} of {sheet.height}" in said
    assert "win rate" in run("report", folder / "win-rate")[1]
    checked = check_submission(found)
    assert (checked.state, [one.level for one in checked.findings]) == ("consistent", ["note"]), checked.findings
    answers = found.frame("answers")
    answers.with_columns(answer=pl.lit("1")).write_parquet(found.path / "answers.parquet")
    changed = check_submission(load_run(found.path))
    assert "agreement: 0.333333" in changed.findings[0].text, changed.findings
    answers.write_parquet(found.path / "answers.parquet")
    rows = "".join(f"{name},{place}\n" for place, name in enumerate(MODELS))
    (tmp_path / "b.csv").write_text(f"model,score\n{rows}", encoding="utf-8")
    status, _, error = run("correlate", tmp_path / "b.csv", folder / "win-rate")
    assert (status, error) == (0, "")


@pytest.mark.heavy
def test_an_unfinished_study_counts_what_is_there_and_another_run_is_refused(
    run: Command, best: Downstream, sample: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sheets"
    words = ["rate", best.path, "--export", folder, "--annotator", "an", "--annotator", "cy"]
    assert run(*words, "--annotators-per-item", "1", "--limit", "1")[0] == 0
    filled(folder, left=1)
    status, told, _ = run("rate", best.path, "--import", folder)
    assert status == 0
    asked = pl.read_csv(folder / "key.csv").height
    assert f"1 of {asked} candidates have no valid value and are excluded: not answered (1)." in " ".join(told.split())
    found = load_run(folder / "win-rate")
    outcomes = found.frame("outcomes")
    assert (outcomes.height, outcomes["value"].null_count()) == (asked, 1)
    assert outcomes.select("config", "id").n_unique() == 3, "a prompt of each config"
    with serve(World()) as server:
        other = sampled(server, sample, tmp_path / "other", MODELS, limit=1, n=4, measure="win")
    status, _, error = run("rate", other.path, "--import", folder)
    assert (status, error.strip()) == (
        2,
        f"Error: The sheets in {folder} were not made from {other.path}; give the run that they were made from.",
    )
