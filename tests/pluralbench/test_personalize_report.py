"""What people are told of personalized reward models: tables, sentences, the page and the figures."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from drawn_figures import check_texts, drawn
from made_personalize import DOMAINS, made_items, made_personalized
from pluralbench import load_run
from pluralbench.errors import RunError
from pluralbench.reports.figures.downstream import personalized
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.writing import format_report
from pluralbench.results import Personalized
from rich.console import Console

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Personalized:
    """All that there can be: three sets, three conditions, two methods of one architecture."""
    items = made_items(methods=("bt", "synthesizeme"), conditions=("without", "with", "shuffled"), users=8)
    return made_personalized(tmp_path_factory.mktemp("runs") / "whole", items)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Personalized:
    """One method without a profile on one set, by one seed."""
    items = made_items(methods=("gpo",), conditions=("without",), seeds=1, users=4, sets={"new": ("c",)})
    return made_personalized(tmp_path_factory.mktemp("runs") / "plain", items)


def printed(*runs: Personalized) -> str:
    console = Console(width=80, record=True, file=StringIO())
    report = report_personalized(runs)
    console.print(format_report(report._replace(notes=report.texts, definitions={}), "table", 80))
    return console.export_text()


def test_the_first_table_has_a_domain_with_and_without_beside_each_other(found: Personalized) -> None:
    said = printed(found).split("\n\n")[0]
    for heading in ("Art:", "Lifestyle:", "Society:", "Mean:"):
        assert said.count(heading) == 2
    row = next(line for line in said.splitlines() if line.startswith("Bradley-Terry")).split()[1:]
    places = [(config, condition) for config in (*DOMAINS, None) for condition in ("without", "with")]
    values = [
        found.estimate("accuracy", config=config, set="scored", method="bt", condition=condition).value
        for config, condition in places
    ]
    assert row == [f"{100 * (value or 0.0):.1f}" for value in values]


def test_every_gain_stands_with_its_interval_and_test(found: Personalized) -> None:
    said = " ".join(printed(found).split()).replace("[ ", "[")
    for name in ("new", "known", "scored"):
        for which in ("with-without", "with-shuffled"):
            for method in ("bt", "synthesizeme"):
                gain = found.estimate("gain", set=name, method=method, condition=which)
                assert gain.low is not None
                assert gain.high is not None
                assert f"{100 * (gain.value or 0):+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]" in said
    assert "p: two-sided, from the interval, adjusted for the 2 methods" in said
    assert all(len(line.rstrip()) <= 80 for line in printed(found).splitlines())


def test_the_sentences_say_what_was_compared(found: Personalized, plain: Personalized) -> None:
    said = " ".join(printed(found).split())
    assert "New users: 16 items of 8 users without training data." in said
    assert "Known users: 16 items of 8 users with training data, on their latest pairs, which were held out." in said
    assert "mean over 2 seeds, with 95% intervals over users; ties are wrong, chance is 50." in said
    assert "w/: the model gets posts of the user (Bradley-Terry); a summary of the user (SynthesizeMe)." in said
    assert "adjusted for the 2 methods of a table (Holm)." in said
    assert "Standard deviation over seeds, in points, new users: Bradley-Terry w/o " in said
    assert "with the same context, their rows are one result." in said
    alone = " ".join(printed(plain).split())
    assert "one seed" in alone
    for unsaid in ("Holm", "gain", "piece of evidence", "w/:", "other's", "Standard deviation"):
        assert unsaid not in alone
    left_out = found.result.model_copy(update={"excluded": {"train": 1200, "new": 3}})
    said = " ".join(printed(replace(found, result=left_out)).split())
    assert "(no user context, or too long): train 1,200, new 3." in said


def test_programs_get_every_number(found: Personalized, plain: Personalized) -> None:
    rows = json.loads(str(format_report(report_personalized([found, plain]), "json", None)))
    assert len(rows) == found.metrics.height + plain.metrics.height
    assert rows[0]["run"] == str(found.path)
    assert {row["run"] for row in rows} == {str(found.path), str(plain.path)}
    assert str(format_report(report_personalized([plain]), "csv", None)).startswith(
        "run,metric,set,method,condition,measure,bin,value,low,high"
    )


def test_report_opens_a_directory_and_draws_it(
    found: Personalized, plain: Personalized, tmp_path: Path, run: Run
) -> None:
    status, said, _ = run("report", plain.path, "--plots", tmp_path)
    assert status == 0
    assert "New users" in said
    assert "GPO" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["user_context_new.png", "user_context_new.svg"]
    out = tmp_path / "report.md"
    assert run("report", found.path, "--out", out)[0] == 0
    assert "| method" in out.read_text(encoding="utf-8")


@pytest.mark.heavy
def test_the_figures_show_each_accuracy(found: Personalized, plain: Personalized) -> None:
    charts = personalized(found)
    new = charts["user_context_new"]
    assert (len(new.panels), len(charts["user_context_scored"].panels)) == (2 * 4, 2 * 3)
    bins = found.metrics.filter(pl.col("bin").is_not_null(), set="new", metric="accuracy").height
    assert len(new.marks) == bins + 2 * 2 * 3
    assert {mark.series.label for mark in new.marks} == {"without a profile", "with the profile", "with another user's"}
    for stem, figure in drawn(charts | {"plain": personalized(plain)["user_context_new"]}).items():
        check_texts(figure, stem)


def test_items_that_are_of_another_shape_are_refused(found: Personalized, tmp_path: Path) -> None:
    shutil.copytree(found.path, tmp_path / "run")
    found.items.drop("words").write_parquet(tmp_path / "run" / "items.parquet")
    with pytest.raises(RunError, match="expected the columns method, condition, seed"):
        load_run(tmp_path / "run")
