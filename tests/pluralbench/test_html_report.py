"""`report --html`: one page that holds what runs found, asks for nothing, and takes no text for markup."""

import re
import shutil
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from html_runs import ARABIC, IMAGE, NAMES, SCRIPT, Read, hostile_runs
from made_personalize import made_items, made_personalized
from made_runs import changed, decision, keep, run_of
from pluralbench import compare
from pluralbench.errors import EvaluationError
from pluralbench.reports.html.items import browse, decided_items, orders_of
from pluralbench.reports.html.page import html_report, write_html
from pluralbench.reports.html.parts import page as whole_page
from pluralbench.reports.html.parts import table
from pluralbench.reports.ranking import rank_sheet, ranked_table, standings
from pluralbench.reports.runs import overview
from pluralbench.reports.sheets import UNREADABLE, sheets_of
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.results import Run
from pluralbench.results.finding import FoundRuns, find_runs
from pluralbench.results.numbers import change, percent, points, signed, two_digits, whole_percent
from pluralbench_measures.bootstrap import Estimate
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
REFERS = ("aria-labelledby", "aria-describedby", "data-search", "for")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on twelve pairs, and a directory of `personalize`."""
    folder = tmp_path_factory.mktemp("runs")
    hostile_runs(folder)
    made_personalized(folder / "runs" / "personal", made_items(methods=("bt",), users=6, seeds=1))
    return folder / "runs"


@pytest.fixture(scope="module")
def page(folder: Path) -> Read:
    text, missing = html_report(find_runs([folder]))
    assert missing == []
    return Read(text)


def test_no_text_becomes_markup(page: Read) -> None:
    assert {tag for tag, _ in page.elements} & {"img", "iframe", "link", "object", "b"} == set()
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    codes = [text for attributes, text in page.scripts if "type" not in attributes]
    policy = next(attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes)
    hashes = [f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" for code in codes]
    assert policy == (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src {' '.join(hashes)}"
    )
    assert not any("taken" in code for code in codes)
    assert NAMES[2] in "".join(page.words)


def test_a_page_has_no_control_characters() -> None:
    text = whole_page("a\x1b[31m\x00\x9b b\té", {}, lead="c\x07\r\nd")
    assert not {sign for sign in text if not sign.isprintable()} - {"\n", "\t", "\r"}
    assert "é" in text


def test_items_hold_their_texts_as_they_are(page: Read) -> None:
    index = page.block("items-0-index")
    assert set(index["models"]) == {"longer", "shorter", "<b>by chance"}
    first = page.block("items-0-texts-0")
    item = first[str(index["id"].index("q0"))]
    assert item["prompt"] == [["user", SCRIPT]]
    assert [one["text"] for one in item["answers"]] == [IMAGE, "]]>-->" + SCRIPT]
    assert first[str(index["id"].index("q2"))]["prompt"][0][1] == ARABIC
    assert SCRIPT in index["id"]
    assert index["title"][:4] == [SCRIPT, "{{ 7 * 7 }}", ARABIC, "Question 3?"]
    assert len(index["texts"]) == len(index["id"]) == index["items"] == 12
    assert "All 12 items are here, with their texts." in page.words


def test_a_long_list_keeps_what_tells_most_and_says_how_many_it_keeps(folder: Path) -> None:
    (sheet,) = sheets_of(find_runs([folder]).runs)
    browsed = browse("items", "pairs", sheet, 10**6, listed=5)
    page = Read(str(browsed.shown) + "".join(map(str, browsed.blocks)))
    whole = decided_items(sheet.runs)
    index = page.block("items-index")
    assert whole["id"][orders_of(whole)["worst"][0]] in index["id"]
    assert (len(index["id"]), len(index["title"]), index["items"]) == (5, 5, 12)
    assert all(max(places) < 5 for places in index["orders"].values())
    assert "5 of 12 items are here, the most informative, with their texts." in page.words
    none = browse("items", "pairs", sheet, 0)
    assert "12 of them" not in str(none.shown)
    assert "All 12 items are here, none with its text." in str(none.shown)


@pytest.mark.heavy
def test_a_judges_verdicts_are_shown_in_both_orders(tmp_path: Path, pairs: Callable[..., Any]) -> None:
    data = write(tmp_path / "p.jsonl", pairs(3))
    with serve(lambda *_: Reply("The first is better. [[A]]")) as server:
        run = verbs.judge("j", data=data, base_url=server.base_url, out=tmp_path / "run", benchmark="pairs")
    index, texts = (
        Read(html_report(find_runs([run.path]))[0]).block(f"items-0-{name}") for name in ("index", "texts-0")
    )
    assert index["flags"] == {"tie": [0, 1, 2], "invalid": [], "truncated": []}
    (model,) = texts["0"]["models"]
    assert model["orders"] == {"chosen": "prefers chosen", "rejected": "prefers rejected"}
    assert [title for title, _ in model["replies"]] == [
        "chosen shown first: prefers chosen", "rejected shown first: prefers rejected",
    ]  # fmt: skip
    assert model["credit"] == 0.0
    with serve(lambda *_: Reply("[[A]]")) as server:
        options: dict[str, Any] = {"samples": 2, "temperature": 0.7, "orders": "one", "limit": 1}
        run = verbs.judge(
            "j", data=data, base_url=server.base_url, out=tmp_path / "votes", benchmark="pairs", **options
        )
    [(first, _), (second, _)] = Read(html_report(find_runs([run.path]))[0]).block("items-0-texts-0")["0"]["models"][0][
        "replies"
    ]
    assert re.fullmatch(r"(\w+) shown first: (prefers \1) \(votes: \2 2\); Reply 1 of 2 \(sample 1\), \2", first)
    assert second.endswith("; Reply 2 of 2 (sample 2), prefers " + first.split()[0])


def test_the_page_asks_for_nothing_and_every_reference_is_on_it(page: Read) -> None:
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for name in REFERS:
        assert {one for value in page.values(name) for one in value.split()} <= set(ids)
    links = page.values("href") + page.values("xlink:href")
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert page.values("src") == []
    assert {one for value in page.values("clip-path") for one in re.findall(r"url\(#(.+?)\)", value)} <= set(ids)


def test_tables_and_figures_are_told_to_screen_readers(page: Read) -> None:
    tags = [tag for tag, _ in page.elements]
    assert {"header", "nav", "main", "footer", "h1"} <= set(tags)
    assert tags.count("table") == tags.count("caption") > 3
    assert all(attributes.get("scope") in {"col", "row"} for tag, attributes in page.elements if tag == "th")
    drawn = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("class") != "bar"]
    assert drawn
    assert all(one["role"] == "img" and one["aria-labelledby"] for one in drawn)
    assert any(word.startswith("Overall and parts (%), 3 models on Pairs (") for word in page.words)
    assert any("profile" in word for word in page.words), "the section of `personalize`"
    assert page.words.count("Software") == 4, "the provenance of each run"
    assert any(word.startswith("New users: ") and " points." in word for word in page.words)


def a_run(name: str, right: int, of: int = 40) -> Run:
    return run_of([decision(n, "win" if n < right else "loss") for n in range(of)], model=name, path=f"runs/{name}")


def test_models_share_a_rank_unless_their_difference_is_beyond_chance() -> None:
    runs = [a_run("best", 39), a_run("good", 37), a_run("poor", 5)]
    (sheet,) = sheets_of(runs)
    found = rank_sheet(sheet)
    assert [(rank.best, rank.worst) for rank in found.ranks if rank] == [(1, 2), (1, 2), (3, 3)]
    compared = compare(runs[0], runs[2]).headline
    assert (found.differences[0, 2].value, found.differences[0, 2].low, found.differences[0, 2].high) == (
        compared.difference, compared.low, compared.high,
    )  # fmt: skip


def page_of(*runs: Run) -> Read:
    text, _ = html_report(FoundRuns([*runs]))
    return Read(text)


def test_the_overview_says_which_model_is_best_and_which_cannot_be_told_apart() -> None:
    text = page_of(a_run("best", 39), a_run("good", 37), a_run("poor", 5)).text
    assert "best has 97.5 (" in text
    assert "the most, but cannot be told apart from good. It is better than the other model." in text
    text = page_of(changed(a_run("best", 39), tolerance=1.0, decisions_within_tolerance=9), a_run("poor", 5)).text
    assert "best: 9 of 40 margins within rounding error." in text
    assert "and is best, +85.0 (+" in text
    assert "points against poor." in text
    text = page_of(a_run("one", 20), a_run("two", 20), a_run("three", 20)).text
    assert "the most, but cannot be told apart from two and three." in text


def a_judge(name: str, unreadable: int, of: int = 40) -> Run:
    rows = [decision(n, "invalid" if n < unreadable else "win") for n in range(of)]
    return run_of(rows, model=name, path=f"runs/{name}")


def test_a_judge_whose_verdicts_cannot_be_read_has_no_number_and_no_rank() -> None:
    runs = [a_run("good", 30), a_judge("mute", 40), a_judge("mumbling", 21), a_judge("hoarse", 20)]
    page = page_of(*runs)
    assert "Most verdicts or scores of mute are invalid." in page.text
    assert "mute: 40 of 40; mumbling: 21 of 40" in page.text
    (sheet,) = sheets_of(runs)
    ranks = dict(zip([run.name for run in sheet.runs], rank_sheet(sheet).ranks, strict=True))
    assert [name for name, rank in ranks.items() if rank is None] == ["mute", "mumbling"]
    assert [run.headline.value for run in runs[1:]] == [None, None, 0.5]
    assert "unreadable (40 of 40 invalid)" in repr(runs[1])
    assert runs[1].summary()["overall"].to_list() == [None]
    (table_of_report, *_) = overview(runs).tables
    shown = {row.name: row.values[0] for row in table_of_report.rows}
    assert (shown["mute"], shown["mumbling"]) == (UNREADABLE, UNREADABLE)


def test_a_page_has_no_heading_twice_and_no_negative_zero(page: Read) -> None:
    assert len(page.headings) == len(set(page.headings)) > 5
    assert "-0.0 " not in page.text
    assert [kind(-0.00001) for kind in (percent, points, whole_percent, two_digits, signed, change)] == [
        "0.0", "+0.0", "0", "0.00", "+0.00", "+0.000",
    ]  # fmt: skip


def test_orders_begin_with_what_models_got_wrong_and_what_divides_them() -> None:
    def run(name: str, outcomes: str, margins: list[float]) -> Run:
        words = {"w": "win", "l": "loss"}
        rows = [decision(n, words[one], margin=m) for n, (one, m) in enumerate(zip(outcomes, margins, strict=True))]
        return run_of(rows, model=name, path=f"runs/{name}")

    runs = [run("a", "wlwl", [3, -1, 0.1, -2]), run("b", "wllw", [3, -2, -0.1, 2]), run("c", "wlwl", [3, -1, 0.1, -2])]
    orders = orders_of(decided_items(runs))
    assert (orders["worst"][0], orders["worst"][-1]) == (1, 0)
    assert orders["closest"][0] == 2
    assert set(orders["contested"][:2]) == {2, 3}
    assert "contested" not in orders_of(decided_items(runs[:1]))
    ranking = run_of([decision(0), decision(0, "dropped", rejected="other"), decision(1, "dropped")])
    assert decided_items([ranking]).select("of", "right 0").rows() == [(2, 1.0), (1, None)]


def test_without_its_data_the_page_has_no_texts_and_says_why(folder: Path, tmp_path: Path, run: Command) -> None:
    shutil.copytree(folder.parent, tmp_path / "own")
    moved = next((tmp_path / "own").rglob("run-0"))
    record = moved / "run.json"
    record.write_text(record.read_text(encoding="utf-8").replace("pairs.jsonl", "gone.jsonl"), encoding="utf-8")
    status, said, _ = run("report", str(moved), "--html", str(tmp_path / "page" / "report.html"))
    assert status == 0
    assert "contains no texts, and its data cannot be read" in " ".join(said.split())
    assert said.rstrip().endswith("report.html")
    page = Read((tmp_path / "page" / "report.html").read_text(encoding="utf-8"))
    assert page.block("items-0-index")["texts"] == {}
    assert any("Texts are not shown." in word for word in page.words)


def test_of_changed_data_the_page_has_the_texts_that_were_scored_and_says_so(tmp_path: Path, run: Command) -> None:
    runs = hostile_runs(tmp_path)
    data = tmp_path / "pairs.jsonl"
    data.write_text(data.read_text(encoding="utf-8").replace("Question 5?", "Another question?"), encoding="utf-8")
    status, said, _ = run("report", str(runs[0].path), "--html", str(tmp_path / "report.html"))
    assert status == 0
    assert "pairs.jsonl has changed since" in " ".join(said.split())
    page = Read((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert len(page.block("items-0-index")["texts"]) == 11
    assert "All 12 items are here, 11 of them with their texts." in page.text


def test_a_page_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError) as caught:
        write_html(FoundRuns([]), tmp_path / "page.html")
    assert str(caught.value) == "There are no runs to report; name at least one run directory."


def test_runs_without_a_number_have_a_page(tmp_path: Path) -> None:
    run = keep(run_of([decision(1, "equal")], path=tmp_path / "run"))
    text, _ = html_report(find_runs([run.path]))
    assert "No model has an overall number." in text


def test_numbers_have_bars_with_a_line_at_the_coin_and_are_sorted_by_their_values() -> None:
    numbers = [Estimate(0.4, 0.2, 0.6, clusters=5), Estimate(0.1), Estimate(None)]
    rows = [
        *(Row(f"m{place}", [one, one]) for place, one in enumerate(numbers)),
        Row("coin", [Estimate(0.5)] * 2, quiet=True),
    ]
    text = str(table("t", Table("Shares", "model", [Column("overall"), Column("part", part=True)], rows)))
    page = Read(text)
    orders = [attributes.get("data-order") for tag, attributes in page.elements if tag == "td"]
    assert orders == ["0.4", "0.4", "0.1", "0.1", "", "", "0.5", "0.5"]
    bars = [attributes["d"] for tag, attributes in page.elements if tag == "path"]
    assert bars == ["M80.0 0V12", "M20.0 6H100.0", "M60.0 6h0", "M80.0 0V12", "M0.0 6h0", "M80.0 0V12", "M80.0 6h0"]
    assert "40.0 20.0 to 60.0†" in page.text
    assert page.text.endswith(
        "† Wide interval: only 5 prompts or users. The line across a bar: a coin, or 0 for differences."
    )
    assert "The line across" not in str(table("t", Table("", "model", [Column("n")], [Row("m", [1])])))


def test_the_standings_have_a_row_for_each_model_and_rank_those_with_all_benchmarks() -> None:
    both = [run_of([decision(n) for n in range(12)], "rankings", model=name, path=f"runs/{name}-2") for name in "ab"]
    runs = [a_run("a", 30), a_run("b", 20), a_run("c", 40), *both]
    sheets = sheets_of(runs)
    summary, ranking = standings(sheets, [rank_sheet(sheet) for sheet in sheets])
    assert ranking is not None
    assert ranking.sentence.startswith("a has 87.5 (")
    assert [(row.name, len(row.runs)) for row in summary.rows] == [("a", 2), ("b", 2), ("c", 1)]
    assert [column.text for column in summary.columns] == ["rank", "mean", "Pairs", "Rankings"]
    assert (summary.rows[2].values[0], summary.rows[2].values[3]) == ("", "")
    page = page_of(*runs)
    assert "5 runs, 3 models, 2 benchmarks." in page.text
    assert "Mean : a has 87.5" in page.text
    columns = [column.text for column in ranked_table(sheets[0], rank_sheet(sheets[0])).columns]
    assert columns == ["rank", "overall", "items", "invalid"]


def test_two_tables_of_ones_own_are_two_benchmarks_of_the_overview() -> None:
    rows = [decision(n, "win" if n < 8 else "loss", digest="second") for n in range(11)]
    of_second = {"data__location": "second", "benchmark__title": "Pairs (second)"}
    second = [changed(run_of(rows, model=name, path=f"runs/{name}-2"), **of_second) for name in "ab"]
    part = changed(run_of(rows[:8], model="a", path="runs/part"), **of_second, data__limit=8)
    runs = [a_run("a", 30), a_run("b", 20), part, *second]
    sheets = sheets_of(runs)
    summary, _ = standings(sheets, [rank_sheet(sheet) for sheet in sheets])
    assert [column.text for column in summary.columns] == ["rank", "mean", "Pairs", "Pairs (second)"]
    assert [sheet.other for sheet in sheets] == [False, False, True], "some of the items are no third benchmark"
    page = page_of(*runs)
    assert "5 runs, 2 models, 2 benchmarks." in page.text
    assert "Pairs (second) : a has 72.7" in page.text
