"""Measure the size of the HTML report of many generated runs, and the time to write and to open it.

    uv run --group test python benchmarks/html_report.py --models 20 --items 66000

Scores and texts are random. Opening is timed in Chromium, from the first byte to the page's `load` event, and then
until the first item is shown with its texts.
"""

import argparse
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from pluralbench.results.finding import find_runs
from pluralbench.results.runs import Run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from made_runs import scored
from some_words import WORDS

CHROMIUM = "/usr/bin/chromium"


def made_data(folder: Path, items: int, characters: int) -> Path:
    """Write pairs of random texts, with a number of characters in prompt and responses together."""
    draw = random.Random(0)
    words = characters // 18

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=words))

    rows = {"id": [f"item-{number}" for number in range(items)]}
    rows |= {name: [f"{text()} {number}" for number in range(items)] for name in ("prompt", "chosen", "rejected")}
    path = folder / "pairs.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def made_runs(folder: Path, data: Path, models: int) -> list[Run]:
    """Write runs with random scores; later runs are better."""
    runs = []
    for number in range(models):
        draw = random.Random(number)

        def by(_: str, responses: object, draw: random.Random = draw, number: int = number) -> list[float]:
            return [draw.gauss(number / models, 1), draw.gauss(0, 1)]

        runs.append(scored("pairs", data, folder / f"model-{number:02}", by, model=f"model-{number:02}"))
    return runs


def time_opening(page: Path) -> tuple[float, float]:
    """Measure the seconds until the page is loaded, and from a click until an item's texts are shown."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shown = browser.new_page()
        shown.goto(page.as_uri())
        loaded = shown.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
        begun = time.perf_counter()
        shown.locator("[data-open]").click()
        shown.locator(".items ol a").first.click()
        shown.locator(".item").first.wait_for()
        unfolded = time.perf_counter() - begun
        browser.close()
    return loaded, unfolded


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--items", type=int, default=66_000)
    parser.add_argument("--characters", type=int, default=1_500)
    parser.add_argument("--keep", type=Path, help="file for the page")
    options = parser.parse_args()
    from pluralbench.reports.html.page import write_html

    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made_runs(folder / "runs", made_data(folder, options.items, options.characters), options.models)
        page = options.keep or folder / "report.html"
        runs = find_runs([folder / "runs"])
        started = time.process_time()
        write_html(runs, page)
        seconds = time.process_time() - started
        loaded, first_item = time_opening(page)
        size = page.stat().st_size / 1e6
    print(f"{options.models} models x {options.items:,} items, {options.characters:,} characters of text per item")
    print(f"{size:.1f} MB, written in {seconds:.0f} CPU seconds")
    print(f"loaded in {loaded:.2f} s, first item shown in {first_item:.2f} s")


if __name__ == "__main__":
    main()
