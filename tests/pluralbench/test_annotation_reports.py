"""Runs on votes of people end to end: the report's tables, notes and figures, and the comparison of two runs."""

import html
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import verbs
from pluralbench.contract import Group
from pluralbench.errors import RunError
from pluralbench.evaluation.compare import compare
from pluralbench.reports.comparison import comparison_table
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.html.page import html_report
from pluralbench.reports.runs import overview
from pluralbench.reports.tables import Table
from pluralbench.results.finding import find_runs
from pluralbench.results.runs import Run
from polars.testing import assert_frame_equal
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
BENCHMARK = """
title = "Opinions"

[columns]
id = "question"
prompt = ["question"]
first = "yes"
second = "no"

[labels]
first = ["yes"]
second = ["no"]
tie = ["same"]

[annotations]
vote = "vote"
annotator = "person"
attributes = { country = "country" }
"""
QUESTIONS, PEOPLE, EACH = 40, 50, 8
Rows = list[dict[str, str | None]]


def by_ghana(groups: Sequence[Group]) -> list[list[float]]:
    """Prefer what most people in Ghana prefer: "no" for the questions with an odd number."""
    numbers = [int(group.id.split()[-1]) for group in groups]
    return [
        [float(response.startswith("yes") == (number % 2 == 0)) for response in group.responses]
        for group, number in zip(groups, numbers, strict=True)
    ]


def opinions() -> Rows:
    rng = np.random.default_rng(1)
    rows: Rows = []
    for question in range(QUESTIONS):
        for person in rng.choice(PEOPLE, EACH, replace=False).tolist():
            ghana = person < PEOPLE // 2
            likes = (question % 2 == 0) == ghana  # the two countries differ on every question
            if rng.random() < 0.1:
                likes = not likes
            vote = "same" if rng.random() < 0.05 else "yes" if likes else "no"
            rows.append(
                {
                    "question": f"Question {question}",
                    "yes": f"yes to {question}",
                    "no": f"no to {question}",
                    "vote": vote,
                    "person": f"p{person}",
                    "country": "Ghana" if ghana else "Peru",
                }
            )
    return rows


def scored(folder: Path, rows: Rows, model: Any = by_ghana, name: str = "ghana", benchmark: str = BENCHMARK) -> Run:
    (folder / "opinions.toml").write_text(benchmark, encoding="utf-8")
    data = write(folder / "opinions.jsonl", rows)
    return verbs.score(model, benchmark=str(folder / "opinions.toml"), data=data, out=folder / name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("opinions")
    models = [("ghana", by_ghana), ("text", verbs.by_text)]
    return [scored(folder, opinions(), model, name) for name, model in models]


def table(tables: Sequence[Table], end: str) -> Table:
    return next(one for one in tables if one.title.endswith(end))


def test_the_report_has_people_as_a_row_and_each_group(runs: list[Run]) -> None:
    report = overview(runs)
    main = report.tables[0]
    rows = {row.name: dict(zip([one.text for one in main.columns], row.values, strict=True)) for row in main.rows}
    people = runs[0].estimate("agreement_with_annotations", baseline="people")
    assert rows["people"]["single votes"] == people
    assert rows["by_ghana"]["single votes"] == runs[0].estimate("agreement_with_annotations")
    groups = table(report.tables, "groups of people")
    named = {row.name: row.values for row in groups.rows}
    assert [*named] == ["Ghana", "Peru", "best less worst", "p"]
    assert named["Ghana"][0] == PEOPLE // 2
    assert named["best less worst"][1] == runs[0].estimate("group_gap", attribute="country")
    assert named["p"][1] == "<0.001"
    notes = " ".join(report.notes)
    assert (
        f"Excluded from accuracy: {runs[0].count('equal')} items without a majority of votes in each run."
        in report.notes
    )
    for part in ("Votes of people: ", "Agreement of people: ", "for a tie"):
        assert part in notes
    assert {"single votes", "of reachable", "log loss", "groups of people", "best less worst"} <= {*report.definitions}
    shown = " ".join(
        [one.title for one in report.tables]
        + [column.text for one in report.tables for column in one.columns]
        + [row.name for one in report.tables for row in one.rows]
    )
    assert [term for term in report.definitions if term not in shown] == [], "each is a heading, a row or a title"
    assert [row["row"] for row in report.rows or ()][-1] == "people"


@pytest.mark.heavy
def test_a_terminal_says_where_terms_are_defined_and_all_else_defines_them(
    runs: list[Run], run: Command, tmp_path: Path
) -> None:
    report, page, paths = overview(runs), tmp_path / "page.html", [one.path for one in runs]
    status, bare, _ = run("report", *paths, "--html", page)
    assert status == 0
    plain = " ".join(bare.split())
    assert (
        plain.count("Defined by `pluralbench report RUN --notes`: single votes, people, of reachable, unanimous,") == 1
    )
    _, full, _ = run("report", *paths, "--notes")
    files = [full, *(run("report", *paths, "--format", form)[1] for form in ("markdown", "latex"))]
    read = [" ".join(re.sub(r"[\\$]", "", text).split()) for text in files]
    read.append(" ".join(html.unescape(re.sub("<[^>]*>", " ", page.read_text("utf-8"))).split()))
    for text in report.definitions.values():
        own = text.partition(",")[0].partition("'")[0]
        assert own not in plain
        assert [place for place, whole in enumerate(read) if own not in whole] == []
    assert all(note in plain and note in read[0] for note in report.notes), "what is counted is never folded"


def test_a_vote_without_a_country_has_that_of_the_persons_other_votes(runs: list[Run], tmp_path: Path) -> None:
    rows, seen = opinions(), set[str | None]()
    for row in rows:
        if row["person"] in seen:
            row["country"] = None
        seen.add(row["person"])
    run = scored(tmp_path, rows)
    assert run.metrics.equals(runs[0].metrics)
    assert "in no group" not in " ".join(overview([run]).notes)


def test_which_response_comes_first_changes_no_number(runs: list[Run], tmp_path: Path) -> None:
    swapped = BENCHMARK
    for old, new in (('"yes"', '"#"'), ('"no"', '"yes"'), ('"#"', '"no"')):
        swapped = swapped.replace(old, new)
    run = scored(tmp_path, opinions()[::-1], benchmark=swapped)
    assert_frame_equal(run.metrics, runs[0].metrics, abs_tol=1e-12)


def test_people_without_a_country_are_named_and_so_is_why_there_is_no_gap(tmp_path: Path) -> None:
    unknown = {f"p{number}" for number in range(10)}
    rows = [row | ({"country": None} if row["person"] in unknown else {}) for row in opinions()]
    run = scored(tmp_path, rows)
    votes = sum(row["person"] in unknown and row["vote"] != "same" for row in rows)
    notes = overview([run]).notes
    said = f"Votes in no group: {votes} without country (10 people)."
    assert said in notes
    assert "No gap between groups: country (fewer than two groups of at least 20 people)." in notes


def test_one_vote_an_item_says_nothing_of_consensus(tmp_path: Path) -> None:
    run = verbs.score(verbs.by_text, benchmark="community-alignment", data="sample", out=tmp_path / "run")
    assert run.count("single_annotations") == run.count("annotations") > 0
    titles = [one.title.rpartition(": ")[2] for one in overview([run]).tables[1:]]
    assert titles == ["groups of people"]
    assert "unanimous" not in overview([run]).definitions


def test_figures_have_a_row_for_each_group_and_level_of_consensus(runs: list[Run]) -> None:
    charts = figures_of(runs)
    groups = charts["groups_opinions"]
    assert {mark.at for mark in groups.marks} == {"Ghana (25)", "Peru (25)"}
    values = {mark.point.value for mark in groups.marks}
    expected = {
        100 * (run.estimate("agreement_with_annotations", attribute="country", group=name).value or 0)
        for run in runs
        for name in ("Ghana", "Peru")
    }
    assert values == expected
    differ = charts["sides_opinions"].marks
    assert {str(mark.at).partition(" (")[0] for mark in differ} == {"Ghana, not Peru", "Peru, not Ghana"}
    # The first model decides as Ghana does on all items on which the two differ.
    assert {mark.point.value for mark in differ if str(mark.at).startswith("Ghana")} >= {100.0}
    consensus = charts["consensus_opinions"]
    assert {str(mark.at).partition(" ")[0] for mark in consensus.marks} <= {"Unanimous", "Clear", "Split"}
    assert len(charts["shares_opinions"].panels) == len(runs)


@pytest.mark.heavy
def test_the_page_has_the_tables_of_people(runs: list[Run]) -> None:
    page, _ = html_report(find_runs([run.path for run in runs]))
    for part in ("votes of people", "groups of people", "best less worst", "Agreement with groups of people"):
        assert part in page


def test_runs_are_compared_by_group_and_by_gap(runs: list[Run]) -> None:
    found = compare(*runs)
    parts = {(row["metric"], row["group"] or row["attribute"]): row for row in found.parts.iter_rows(named=True)}
    for name in ("Ghana", "Peru"):
        row = parts["agreement_with_annotations", name]
        for side, run in zip(("first", "second"), runs, strict=True):
            own = run.estimate("agreement_with_annotations", attribute="country", group=name)
            assert row[side] == pytest.approx(own.value)
        assert row["p_value"] < 0.001
    gap = parts["group_gap", "country"]
    assert gap["first"] == pytest.approx(runs[0].estimate("group_gap", attribute="country").value)
    assert gap["difference"] == pytest.approx(gap["second"] - gap["first"])
    assert gap["high"] < 0
    names = [(row.group, row.name) for row in comparison_table(found).rows if row.group]
    assert names == [("country, single votes", name) for name in ("Ghana", "Peru", "best less worst")]
    assert compare(runs[0], runs[0]).parts["difference"].to_list() == [0.0] * found.parts.height


def test_runs_with_other_votes_on_the_same_items_are_not_compared(runs: list[Run]) -> None:
    votes = runs[1].annotations
    assert votes is not None
    other = Run(
        runs[1].path,
        runs[1].config,
        runs[1].result,
        runs[1].provenance,
        runs[1].metrics,
        {"items": runs[1].items, "annotations": votes.with_columns(response=pl.lit(0, pl.Int64))},
    )
    with pytest.raises(RunError, match="different votes of people on the same items; score both on the same data"):
        compare(runs[0], other)


def by_place(groups: Sequence[Group]) -> list[list[float]]:
    """Prefer "yes", but "no" for people who are said to live in Peru."""
    return [
        [float(text.startswith("yes") != ("Peru" in str(group.messages))) for text in group.responses]
        for group in groups
    ]


def test_a_persona_helps_the_people_whom_it_sets_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = []
    for number, person in enumerate(np.repeat(np.arange(40), 2).tolist()):
        country = "Ghana" if person < 20 else "Peru"
        usual = bool(rng.random() < 0.9)
        texts = {"question": f"Question {number}", "yes": f"yes to {number}", "no": f"no to {number}"}
        vote = "yes" if usual == (country == "Ghana") else "no"
        rows.append(texts | {"vote": vote, "person": f"p{person}", "country": country})
    described = BENCHMARK.replace("[labels]", 'cluster = "person"\n\n[labels]') + "by_person = true\n"
    benchmark = tmp_path / "opinions.toml"
    benchmark.write_text(f'{described}\n[annotations.persona]\ncountry = "Lives in {{}}."\n', encoding="utf-8")
    data = write(tmp_path / "opinions.jsonl", rows)
    bare, told = (
        verbs.score(by_place, benchmark=str(benchmark), data=data, profile=profile, out=tmp_path / profile)
        for profile in ("none", "persona")
    )
    found = compare(bare, told)
    # Ghana is served as before; in Peru every answer is turned round.
    votes = [row["vote"] for row in rows if row["country"] == "Peru"]
    gained = (votes.count("no") - votes.count("yes")) / len(votes)
    parts = {row["group"]: row for row in found.parts.filter(attribute="country").iter_rows(named=True)}
    assert (parts["Ghana"]["difference"], parts["Ghana"]["p_value"]) == (0, 1)
    assert parts["Peru"]["difference"] == pytest.approx(gained)
    assert parts["Peru"]["p_value"] < 0.001
    assert parts[None]["metric"] == "group_gap"
    assert parts[None]["difference"] < 0
    assert found.headline.difference == pytest.approx(gained / 2)
    context = table(overview([bare, told]).tables, "user context")
    assert [row.name for row in context.rows] == ["by_place (none)", "by_place (persona)"]
    assert [row.name for row in overview([bare, told]).tables[0].rows][:2] == ["by_place (persona)", "by_place (none)"]
