"""Static site of a leaderboard: checked runs as an HTML report, in a directory that any web server can serve."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import Recipe, output_directory, plural
from pluralbench_runs.meters import progress

from pluralbench.data.benchmark_entries import is_published_data
from pluralbench.errors import RunError
from pluralbench.evaluation.reloading import DataCache, RunInputs
from pluralbench.leaderboard.checks import check_submission, location_override
from pluralbench.publishing.results import RUNS, fetch_results
from pluralbench.reports.html.page import Listed, html_report
from pluralbench.results.checks import CheckResult
from pluralbench.results.finding import FoundRuns, find_runs
from pluralbench.results.run_files import files_digest
from pluralbench.results.runs import Run

INDEX, RECIPE_FILE = "index.html", "site.toml"


class SiteRecipe(Recipe):
    """Recipe that marks a directory as a site. The page is written anew each time."""

    site: Literal["pluralbench leaderboard"] = "pluralbench leaderboard"


class WrittenSite(NamedTuple):
    """A written site.

    Attributes:
        left_out: Number of runs without an overall number, such as those of `best-of-n`, which are not on the page.
        other_data: Runs that are left out because they do not use a benchmark's published data.
    """

    page: Path
    runs: list[Listed]
    left_out: int
    other_data: list[Run]


def folder_of(place: str) -> Path:
    """Return the directory of runs at a location; a repository ORG/NAME[@REVISION] is downloaded from the Hub."""
    folder = Path(place)
    name, _, revision = place.partition("@")
    if folder.exists() or not HUB_REPOSITORY.fullmatch(name):
        return folder
    return fetch_results(name, revision or None) / RUNS


def write_site(
    folder: Path,
    out: Path,
    *,
    any_data: bool = False,
    locations: Mapping[str, str] | None = None,
    earlier_checks: Mapping[str, CheckResult] | None = None,
) -> WrittenSite:
    """Write the static site of a leaderboard with all runs below a directory.

    Runs without an earlier result are checked; see `check_submission`. Those that are refused or could not be checked
    against their data are listed with the reasons, but not in the tables of numbers. An existing site in `out` is
    replaced atomically.

    Args:
        folder: Directory with run directories.
        out: Directory of the site.
        any_data: Include runs that do not use a benchmark's published data, such as its sample, under the name of
            their data.
        locations: Locations of moved data by benchmark name; the key "" is for all other benchmarks. Default: the
            locations that the runs record.
        earlier_checks: Earlier results by digest of the run's files, as `read_check_results` reads them. A result holds
            while the files are unchanged. Default: none.

    Returns:
        The page, the listed runs, and the runs that were left out.

    Raises:
        RunError: The directory has no run of a benchmark, or none on published data.
        OutputError: `out` contains other files.
    """
    found_runs = find_runs([folder])
    if not found_runs.runs:
        raise RunError(
            f"{folder} contains no runs of a benchmark, which `pluralbench score` and `judge` write; a leaderboard "
            "needs some."
        )
    other = [] if any_data else [run for run in found_runs.runs if not is_published(run)]
    runs = [run for run in found_runs.runs if any_data or is_published(run)]
    if not runs:
        raise RunError(
            f"{folder} has no run on a benchmark's published data, only {plural(len(other), 'run')} on samples or "
            "other data; to include those, give `any_data=True`."
        )
    with output_directory(out, SiteRecipe(), recipe_file=RECIPE_FILE) as output:
        listed = check_runs(runs, folder, locations or {}, earlier_checks or {})
        text, _ = html_report(FoundRuns([]), listed)
        staged = output.staging()
        (staged / INDEX).write_text(text, encoding="utf-8")
        (staged / RECIPE_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
        output.publish(staged)
    left_out = sum(map(len, found_runs.others.values()))
    return WrittenSite(out / INDEX, listed, left_out, other)


def is_published(run: Run) -> bool:
    """Return whether a run uses the published data of its benchmark."""
    data, benchmark = run.config.data, run.config.benchmark
    return is_published_data(benchmark.name, benchmark.description, data.location, data.revision)


def check_runs(
    runs: Sequence[Run], folder: Path, locations: Mapping[str, str], earlier_checks: Mapping[str, CheckResult]
) -> list[Listed]:
    """Check the runs of a directory, and make the paths in findings relative to it."""
    checked_runs, cache = [], DataCache()
    with progress("Checking runs", len(runs)) as meter:
        for run in sorted(runs, key=lambda run: (run.config.benchmark.name, run.config.data.digest)):
            relative = run.path.relative_to(folder)
            renamed = replace(run, path=relative if relative.name else Path(folder.resolve().name))
            checked = earlier_checks.get(files_digest(run.path)) or check_submission(
                run, files=RunInputs(location_override(locations, run)), cache=cache
            )
            # The page must not contain paths of this machine.
            findings = [
                finding._replace(text=finding.text.replace(str(run.path), renamed.path.as_posix()))
                for finding in checked.findings
            ]
            checked_runs.append(Listed(renamed, run, checked._replace(findings=findings)))
            meter.advance()
    return sorted(checked_runs, key=lambda one: one.run.path.as_posix())
