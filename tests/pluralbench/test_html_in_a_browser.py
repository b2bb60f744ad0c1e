"""The page of a report in Chromium: sorting, searching, items, light and dark, narrow and wide, and screen readers."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from forged_runs import change_config, change_record
from html_runs import ARABIC, IMAGE, SCRIPT, hostile_runs
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pluralbench.leaderboard.site import INDEX, write_site
from pluralbench.reports.html.report import write_html
from pluralbench.results.finding import find_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.heavy, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    hostile_runs(folder)
    write_html(find_runs([folder / "runs"]), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The leaderboard of the same runs, of two kinds."""
    folder = tmp_path_factory.mktemp("site")
    for place, run in enumerate(hostile_runs(folder)):
        kind = {"kind": "generative" if place else "classifier"}
        change_config(run, model=kind)
        change_record(run, model=kind)
    write_site(folder / "runs", folder / "site", any_data=True)
    return folder / "site" / INDEX


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(browser: Browser, report: Path, wrong: list[str], *, width: int = 1400, scheme: str = "light") -> Page:
    """The page, without a network; what goes wrong is added to a list."""
    dark = "dark" if scheme == "dark" else "light"
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=dark)  # type: ignore[arg-type]
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    page.context.set_offline(True)
    page.goto(report.as_uri())
    return page


def test_a_reader_sorts_searches_and_reads_items(browser: Browser, report: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong)
    rows = page.locator("#leaderboard-table-table tbody tr")
    head = page.locator("#leaderboard-table-table thead th").last

    def numbers() -> list[float]:
        return [float(text) for text in rows.locator("td.number > span").all_inner_texts()]

    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    first, direction = numbers(), head.get_attribute("aria-sort")
    page.keyboard.press("Enter")
    assert {direction, head.get_attribute("aria-sort")} == {"ascending", "descending"}
    assert [sorted(first), sorted(first, reverse=True)] in ([first, numbers()], [numbers(), first])

    page.get_by_label("Search models").fill("SHORT")
    expect(page.locator("#leaderboard-table-table tbody tr:visible")).to_have_count(1)
    expect(page.locator("#leaderboard-table output")).to_have_text("1 of 3 rows")

    page.get_by_role("button", name="Show items").click()
    items = page.locator("#items-0 > ol > li")
    expect(items).to_have_count(12)
    page.get_by_label("Order").select_option("all")
    items.nth(0).get_by_role("button").click()
    expect(items.nth(0).locator(".text").first).to_have_text(SCRIPT)
    expect(items.nth(0).locator(".answer").first).to_contain_text(IMAGE)
    expect(items.nth(0).locator("tbody tr")).to_have_count(3)
    items.nth(2).get_by_role("button").click()
    arabic = items.nth(2).locator(".text").first
    expect(arabic).to_have_text(ARABIC)
    assert arabic.evaluate("element => getComputedStyle(element).direction") == "rtl"
    page.locator("#items-0 input").fill("q1")
    expect(items).to_have_count(2)
    page.locator("#items-0 [data-wrong]").select_option("wrong by shorter")
    page.get_by_label("Order").select_option("contested")
    expect(page.locator("#items-0 output")).to_contain_text("item")
    assert page.title() != "taken"
    assert wrong == []


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_has_no_barrier(browser: Browser, report: Path, width: int, scheme: str) -> None:
    wrong: list[str] = []
    page = opened(browser, report, wrong, width=width, scheme=scheme)
    page.get_by_role("button", name="Show items").click()
    page.locator("#items-0 > ol > li > button").first.click()
    page.locator("#items-0 .item").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    shown = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(shown)
    theme = page.locator("#theme")
    expect(theme).to_have_attribute("aria-pressed", str(scheme == "dark").lower())
    theme.click()
    expect(theme).to_have_attribute("aria-pressed", str(scheme != "dark").lower())
    assert page.evaluate(shown) != before
    assert wrong == []


def test_rows_of_a_leaderboard_are_filtered_and_lead_to_their_runs(browser: Browser, board: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, board, wrong, width=400, scheme="dark")
    rows = page.locator("#leaderboard-table-table tbody tr:visible")
    expect(rows).to_have_count(3)
    page.get_by_label("Kind").select_option("Classifiers")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("org/longer")
    expect(page.locator("[data-filters] output")).to_have_text("3 of 9 rows")
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(3)
    # A search within what is filtered.
    page.get_by_label("Kind").select_option("Generative judges")
    page.get_by_label("Search models").fill("shorter")
    expect(rows).to_have_count(1)
    run = page.locator("#run-2")
    expect(run).not_to_be_visible()
    page.locator("#runs-table").get_by_role("link", name="run-1").click()
    expect(run).to_be_visible()
    expect(run).to_contain_text("Checked: items")
    assert page.title() != "taken"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert wrong == []


def test_on_paper_all_is_unfolded(browser: Browser, report: Path) -> None:
    page = opened(browser, report, [])
    assert page.locator("#theme").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print")
    assert not page.locator("#theme").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
