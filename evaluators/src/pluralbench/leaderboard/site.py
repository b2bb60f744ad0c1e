"""`leaderboard --site`: a folder of pages over many runs, which opens from a disk and from any static host."""

from pathlib import Path
from typing import Literal, NamedTuple

from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import Recipe, output_directory
from pluralbench_runs.progress import progress

from pluralbench.leaderboard.pages import INDEX, Site, benchmark_page, file_names, index_page, model_page
from pluralbench.leaderboard.submission import runs_at
from pluralbench.leaderboard.submissions import Submission, checked_runs
from pluralbench.reports.ranking import ranked
from pluralbench.reports.sheets import sheets_of

RECIPE_FILE = "site.toml"


class SiteRecipe(Recipe):
    """What binds a site's folder: that it is one. The pages are made anew each time."""

    site: Literal["pluralbench leaderboard"] = "pluralbench leaderboard"


class Written(NamedTuple):
    """What was written: the first page, how many there are, the runs, and how many directories have no place in it."""

    first: Path
    pages: int
    submissions: list[Submission]
    left_out: int


def folder_of(place: str) -> Path:
    """The folder of runs at a place: a directory, or ORG/NAME[@REVISION] on the Hub, which is fetched.

    Raises a `UserError` for what is not there.
    """
    folder = Path(place)
    name, _, revision = place.partition("@")
    if folder.exists() or not HUB_REPOSITORY.fullmatch(name):
        return folder
    from pluralbench.publishing.results import RUNS, fetch_results  # noqa: PLC0415 - the Hub's client is slow to import

    return fetch_results(name, revision or None) / RUNS


def write_site(folder: Path, out: Path) -> Written:
    """Write the site of all runs below a folder; an older one of the same place is replaced when it is whole.

    Runs whose files do not agree are named with the reasons, and are in no table. Raises `RunError` for a folder
    without a run, `OutputError` for a place that holds something else.
    """
    found = runs_at([folder])
    with output_directory(out, SiteRecipe(), recipe_file=RECIPE_FILE) as output:
        submissions = checked_runs(found.runs, folder)
        pages = pages_of(submissions)
        staged = output.staging()
        for name, text in pages.items():
            path = staged / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (staged / RECIPE_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
        output.publish(staged)
    return Written(out / INDEX, len(pages), submissions, len(found.downstream) + len(found.personalized))


def pages_of(submissions: list[Submission]) -> dict[str, str]:
    """The pages of a site by their file's name, which has no more than one folder."""
    accepted = [one for one in submissions if one.accepted]
    sheets = sheets_of([one.run for one in accepted])
    with progress("Comparing models", len(sheets)) as meter:
        ranks = []
        for sheet in sheets:
            ranks.append(ranked(sheet))
            meter.advance()
    models = file_names((one.run.name for one in accepted), "models")
    benchmarks = file_names((one.run.record.benchmark.name for one in accepted), "benchmarks")
    site = Site(submissions, sheets, ranks, models, benchmarks)
    among = [one.original for one in accepted]
    pages = {INDEX: index_page(site)}
    with progress("Writing pages", len(models) + len(benchmarks)) as meter:
        for name, path in benchmarks.items():
            pages[path] = benchmark_page(site, name, among)
            meter.advance()
        for name, path in models.items():
            pages[path] = model_page(site, name)
            meter.advance()
    return pages
