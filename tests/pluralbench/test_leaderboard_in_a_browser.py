"""The site of a leaderboard in Chromium: filters, links, a narrow screen, and what the page's policy lets it do."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_runs import decision, keep, run_of
from playwright.sync_api import Browser, expect, sync_playwright
from pluralbench.leaderboard.site import write_site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.heavy, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")]
HOSTILE = "<script>document.title = 'taken'</script>"


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for place, model in enumerate(("org/first", "org/second", HOSTILE)):
        rows = [decision(number, "win" if number % (place + 2) else "loss") for number in range(12)]
        run = run_of(rows, "pairs", model=model, path=tmp_path / "runs" / f"run-{place}")
        kind = run.record.model.model_copy(update={"kind": "generative" if place else "classifier"})
        keep(type(run)(run.path, run.items, run.metrics, run.record.model_copy(update={"model": kind})))
    write_site(tmp_path / "runs", tmp_path / "site")
    return tmp_path / "site"


def test_rows_are_filtered_links_lead_on_and_a_phone_has_room(site: Path, browser: Browser) -> None:
    wrong: list[str] = []
    page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))

    page.goto((site / "index.html").as_uri())
    rows = page.locator("#leaderboard-table-table tbody tr:visible")
    expect(rows).to_have_count(3)
    page.get_by_label("Kind").select_option("Classifiers")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("org/first")
    expect(page.locator("[data-filters] output")).to_have_text("2 of 6 rows")
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(3)
    # A search within what is filtered.
    page.get_by_label("Kind").select_option("Generative judges")
    page.get_by_label("Search models").fill("second")
    expect(rows).to_have_count(1)

    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        assert page.title() != "taken"
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path.name

    page.goto((site / "index.html").as_uri())
    page.locator("#leaderboard").get_by_role("link", name="org/second").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("org/second")
    page.get_by_role("link", name="All benchmarks").click()
    expect(page.get_by_role("heading", name="Benchmarks", exact=True)).to_be_visible()
    assert wrong == []
