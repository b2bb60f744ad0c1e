"""A sample and a table of one's own never go by the name of the published benchmark alone."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from defusedxml import ElementTree
from drawn_figures import draw
from pluralbench import write_site
from pluralbench.data.benchmark_entries import known_benchmarks, title_for
from pluralbench.data.samples import FOLDER
from pluralbench.errors import RunError
from pluralbench.publishing.model_card import eval_results
from pluralbench.reports.html.page import html_report
from pluralbench.results import Run
from pluralbench.results.checks import CheckResult, finding_lines
from pluralbench.results.finding import FoundRuns
from rendered import render

Score = Callable[..., Run]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file with the sample's rows."""
    [rows] = (FOLDER / "reward-bench").glob("*.jsonl")
    return Path(shutil.copy(rows, tmp_path / "mine.jsonl"))


def test_every_heading_names_the_data(score: Score, own: Path, tmp_path: Path) -> None:
    run = score("reward-bench", own, out=tmp_path / "runs" / "a")
    title = "RewardBench (mine.jsonl)"
    assert run.config.benchmark.title == title
    texts = {form: str(render([run], form)) for form in ("markdown", "latex", "json", "csv")}
    texts |= {f"{form} in detail": str(render([run], form, detail=True)) for form in ("markdown", "latex")}
    texts |= {
        "html": html_report(FoundRuns([run]))[0],
        "submit": next(finding_lines(run, CheckResult("consistent", []))),
    }
    texts |= {"card": str(eval_results(run)[0].dataset_name), "notebook": run._repr_html_()}
    for path in draw([run], tmp_path / "figures"):
        if path.suffix == ".svg":
            texts[path.name] = "".join(part.text or "" for part in ElementTree.parse(path).iter())
    write_site(tmp_path / "runs", tmp_path / "site", any_data=True)
    texts |= {page.name: page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html")}
    assert {name: text for name, text in texts.items() if title not in text} == {}


def test_a_leaderboard_is_of_published_data_unless_asked(run: Command, score: Score, own: Path, tmp_path: Path) -> None:
    entry = tmp_path / "published.toml"
    entry.write_text(f'title = "Published"\ndata = "{own.as_posix()}"\n', encoding="utf-8")
    runs, site = tmp_path / "runs", tmp_path / "site"
    score("reward-bench", "sample", out=runs / "sampled")
    score("pairs", own, out=runs / "own")
    with pytest.raises(RunError) as caught:
        write_site(runs, site)
    assert str(caught.value) == (
        f"{runs} has no run on a benchmark's published data, only 2 runs on samples or other data; to include those, "
        "give `any_data=True`."
    )
    score(str(entry), None, out=runs / "published")
    status, said, _ = run("leaderboard", runs, "--site", site)
    assert status == 0
    assert "Left out 2 runs on other data (--any-data includes them): Pairs (mine.jsonl), RewardBench (sample)." in said
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "Published, " in index
    assert "RewardBench" not in index


def test_copies_of_the_same_items_are_one_table_under_both_names(score: Score, own: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER / "reward-bench", tmp_path / "copy")
    copies = [score("reward-bench", data) for data in ("sample", copy)]
    assert str(render(copies, "markdown")).startswith("**RewardBench (copy) / RewardBench (sample), 12 items**")
    others = str(render([copies[0], score("reward-bench", own)], "markdown"))
    assert "**RewardBench (sample), 12 items**" in others
    assert "**RewardBench (mine.jsonl), mine, 12 other items**" in others


@pytest.mark.parametrize(
    ("name", "changes", "location", "revision", "title"),
    [
        ("reward-bench", {}, "allenai/reward-bench", "a" * 40, "RewardBench"),
        ("reward-bench", {}, "allenai/reward-bench", None, "RewardBench (reward-bench)"),
        ("reward-bench", {"data": "other/copy"}, "other/copy", "a" * 40, "RewardBench (other/copy)"),
        ("mine", {"data": "other/copy"}, "other/copy", "a" * 40, "RewardBench (other/copy)"),
        ("mine", {"data": "other/copy", "title": "Mine"}, "other/copy", "a" * 40, "Mine"),
    ],
)
def test_only_published_data_has_the_title_alone(
    name: str, changes: dict[str, str], location: str, revision: str | None, title: str
) -> None:
    described = known_benchmarks()["reward-bench"].model_copy(update=changes)
    assert title_for(name, described, location, revision) == title
