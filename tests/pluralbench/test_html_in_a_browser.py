"""The page of a report in Chromium: sorting, searching, items, light and dark, narrow and wide, and screen readers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import verbs
from html_runs import ARABIC, IMAGE, SCRIPT, hostile_runs
from made_runs import changed, keep
from pluralbench.contract import Group
from pluralbench.leaderboard.site import INDEX, write_site
from pluralbench.reports.html.page import write_html
from pluralbench.results.finding import find_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    hostile_runs(folder)
    with pytest.MonkeyPatch.context() as patch:
        # An order sorts fewer items than there are; the list still has all of them.
        patch.setattr("pluralbench.reports.html.items.SORTED", 5)
        write_html(find_runs([folder / "runs"]), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The leaderboard of the same runs, of two kinds."""
    folder = tmp_path_factory.mktemp("site")
    for place, run in enumerate(hostile_runs(folder)):
        keep(changed(run, model__kind="generative" if place else "classifier"))
    write_site(folder / "runs", folder / "site", any_data=True)
    return folder / "site" / INDEX


def shorter(groups: Sequence[Group]) -> list[list[float]]:
    return [[-float(len(one)) for one in group.responses] for group in groups]


def expect(found: Any) -> Any:
    from playwright.sync_api import expect

    return expect(found)


def barriers(page: "Page") -> Any:
    """What a screen reader stumbles over."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe().run(page)


def opened(browser: "Browser", report: Path, wrong: list[str], *, width: int = 1400, scheme: str = "light") -> "Page":
    """The page, without a network; what goes wrong is added to a list."""
    dark = "dark" if scheme == "dark" else "light"
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=dark)  # type: ignore[arg-type]
    page.set_default_timeout(120_000)
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    page.context.set_offline(True)
    page.goto(report.as_uri())
    return page


def test_a_reader_sorts_searches_and_reads_items(browser: "Browser", report: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong)
    rows = page.locator("#table-0-table tbody:first-of-type tr")
    head = page.locator("#table-0-table thead th").nth(2)

    def numbers() -> list[float]:
        return [float(text) for text in rows.locator("td:nth-child(3) > span").all_inner_texts()]

    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    first, direction = numbers(), head.get_attribute("aria-sort")
    page.keyboard.press("Enter")
    assert {direction, head.get_attribute("aria-sort")} == {"ascending", "descending"}
    assert [sorted(first), sorted(first, reverse=True)] in ([first, numbers()], [numbers(), first])

    page.get_by_label("Search models").fill("SHORT")
    expect(page.locator("#table-0-table tbody:first-of-type tr:visible")).to_have_count(1)
    expect(page.locator("#table-0 output")).to_have_text("1 of 3 rows")

    page.get_by_role("button", name="Show items").click()
    items = page.locator("#items-0 ol a")
    item = page.locator("#items-0 .item")
    expect(items).to_have_count(12)
    page.get_by_label("Order").select_option("all")
    expect(items.nth(3)).to_contain_text("Question 3?")
    items.nth(0).click()
    expect(item.locator(".text").first).to_have_text(SCRIPT)
    expect(item.locator(".answer").first).to_contain_text(IMAGE)
    expect(item.locator("tbody tr")).to_have_count(3)
    items.nth(2).click()
    arabic = item.locator(".text").first
    expect(arabic).to_have_text(ARABIC)
    assert arabic.evaluate("element => getComputedStyle(element).direction") == "rtl"
    output, search = page.locator("#items-0 output"), page.locator("#items-0 input")
    search.fill("QUESTION 1")
    expect(items).to_have_count(2)
    expect(output).to_have_text("2 of 12 items")
    search.fill("")
    for label, option in (("Lost by", "shorter"), ("Show", "models disagree")):
        page.get_by_label(label).select_option(option)
        expect(output).to_contain_text("of 12 items")
        page.get_by_label(label).select_option("")
    expect(output).to_have_text("12 items")
    assert page.title() != "taken"
    assert wrong == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
def test_it_fits_and_has_no_barrier(browser: "Browser", report: Path, width: int, scheme: str) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong, width=width, scheme=scheme)
    page.get_by_role("button", name="Show items").click()
    page.locator("#items-0 ol a").first.click()
    page.locator("#items-0 .item").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = barriers(page)
    assert found.violations_count == 0, found.generate_report()
    shown = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(shown)
    theme = page.locator("#theme")
    expect(theme).to_have_attribute("aria-pressed", str(scheme == "dark").lower())
    theme.click()
    expect(theme).to_have_attribute("aria-pressed", str(scheme != "dark").lower())
    assert page.evaluate(shown) != before
    assert wrong == []


def test_an_item_has_the_votes_of_people_and_the_side_of_each_model(browser: "Browser", tmp_path: Path) -> None:
    verbs.score(shorter, benchmark="multipref", data="sample", out=tmp_path / "runs" / "a")
    write_html(find_runs([tmp_path / "runs"]), tmp_path / "report.html")
    wrong: list[str] = []
    page = opened(browser, tmp_path / "report.html", wrong)
    page.goto(f"{(tmp_path / 'report.html').as_uri()}#item=multipref/default/c00")
    page.reload()
    table = page.locator("#items-0 .item table").first
    expect(table.locator("tr")).to_have_count(6)
    assert table.locator("tbody tr").first.locator("th, td").all_inner_texts() == ["all", "4", "4", "0"]
    assert table.locator("tbody tr").nth(1).locator("th, td").all_inner_texts() == ["preferred by", "", "", "shorter"]
    assert barriers(page).violations_count == 0
    assert wrong == []


def test_an_item_has_an_address_and_keys_lead_to_the_next(browser: "Browser", report: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong)
    page.goto(f"{report.as_uri()}#item=pairs/pairs/q5")
    page.reload()
    item = page.locator("#items-0 .item")
    expect(item).to_contain_text("Question 5?")
    expect(item).to_be_in_viewport()
    page.get_by_label("Order").select_option("all")
    page.locator("#items-0 ol a").nth(7).click()
    expect(item).to_contain_text("Question 7?")
    expect(page).to_have_url(f"{report.as_uri()}#item=pairs/pairs/q7")
    page.go_back()
    expect(item).to_contain_text("Question 5?")
    page.go_forward()
    expect(item).to_contain_text("Question 7?")
    page.keyboard.press("j")
    expect(item).to_contain_text("Question 8?")
    chosen = page.locator("#items-0 ol a[aria-current]")
    expect(chosen).to_be_focused()
    expect(chosen).to_contain_text("Question 8?")
    page.keyboard.press("k")
    page.keyboard.press("ArrowUp")
    expect(item).to_contain_text("Question 6?")
    expect(page).to_have_url(f"{report.as_uri()}#item=pairs/pairs/q6")
    page.keyboard.press("Escape")
    expect(item).not_to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    page.locator("#items-0 ol a").nth(1).click()
    expect(item).to_contain_text("{{ 7 * 7 }}")
    expect(page.locator("#items-0 ol")).not_to_be_visible()
    item.get_by_role("link", name="Next").click()
    expect(item).to_contain_text(ARABIC)
    item.get_by_role("link", name="All items").click()
    expect(page.locator("#items-0 ol a").nth(2)).to_be_focused()
    assert wrong == []


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("pairs/pairs/%3Cb%3E", "This page has no item “pairs/<b>” of pairs."),
        ("others/x/1", "This page has no items of “others”, only of pairs."),
    ],
)
def test_an_item_that_is_not_there_is_named(browser: "Browser", report: Path, address: str, sentence: str) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong)
    page.goto(f"{report.as_uri()}#item={address}")
    expect(page.get_by_role("alert")).to_have_text(sentence)
    expect(page.get_by_role("alert")).to_be_in_viewport()
    page.goto(f"{report.as_uri()}#item=pairs/pairs/q3")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert wrong == []


def test_rows_of_a_leaderboard_are_filtered_and_lead_to_their_runs(browser: "Browser", board: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, board, wrong, width=400, scheme="dark")
    rows = page.locator("#table-0-table tbody:first-of-type tr:visible")
    expect(rows).to_have_count(3)
    page.get_by_label("Kind").select_option("Classifiers")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("longer")
    expect(page.locator("[data-filters] output")).to_have_text("1 of 3 rows")
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(3)
    # A search within what is filtered.
    page.get_by_label("Kind").select_option("Generative judges")
    page.get_by_label("Search models").fill("shorter")
    expect(rows).to_have_count(1)
    run = page.locator("#run-2")
    expect(run.locator("dl")).not_to_be_visible()
    page.locator("#table-0").get_by_role("link", name="shorter").click()
    expect(run.locator("dl")).to_be_visible()
    expect(run).to_contain_text("Checked: items")
    assert page.title() != "taken"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    found = barriers(page)
    assert found.violations_count == 0, found.generate_report()
    assert wrong == []
