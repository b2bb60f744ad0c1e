"""`leaderboard --site`: checked runs as the page of a report, in a folder that any static host serves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import Recipe, output_directory
from pluralbench_runs.progress import progress

from pluralbench.errors import RunError
from pluralbench.leaderboard.checks import check_submission, files_digest, find_benchmark_runs, location_override
from pluralbench.leaderboard.findings import UNREAD, CheckResult
from pluralbench.leaderboard.reproduction import DataCache, RunInputs
from pluralbench.reports.html.board import Listed
from pluralbench.reports.html.report import html_report
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

INDEX, RECIPE_FILE = "index.html", "site.toml"


class SiteRecipe(Recipe):
    """What binds a site's folder: that it is one. The page is made anew each time."""

    site: Literal["pluralbench leaderboard"] = "pluralbench leaderboard"


class WrittenSite(NamedTuple):
    """What was written: the page, its runs, and how many directories have no place in it.

    other_data: runs that were left out since they are not of a benchmark's published data.
    """

    page: Path
    runs: list[Listed]
    left_out: int
    other_data: list[Run]


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


def write_site(
    folder: Path,
    out: Path,
    *,
    any_data: bool = False,
    places: Mapping[str, str] | None = None,
    known: Mapping[str, CheckResult] | None = None,
) -> WrittenSite:
    """Write the leaderboard of all runs below a folder; an older one of the same place is replaced when it is whole.

    Runs that are refused, and those that were not checked against their data, are named with the reasons, and are in no
    table of numbers. any_data: also runs that are not of a benchmark's published data, such as its sample, under the
    name of their data. places, known: see `check_runs`. Raises `RunError` for a folder without such a run,
    `OutputError` for a place that holds something else.
    """
    found = find_benchmark_runs([folder])
    other = [] if any_data else [run for run in found.runs if not is_published(run)]
    runs = [run for run in found.runs if any_data or is_published(run)]
    if not runs:
        raise RunError(
            f"{folder} has no run on a benchmark's published data; its {len(other):,} are of samples or other data, "
            "which a leaderboard has with `any_data` alone."
        )
    with output_directory(out, SiteRecipe(), recipe_file=RECIPE_FILE) as output:
        listed = check_runs(runs, folder, places or {}, known or {})
        text, _ = html_report(FoundRuns([], [], []), listed)
        staged = output.staging()
        (staged / INDEX).write_text(text, encoding="utf-8")
        (staged / RECIPE_FILE).write_bytes((output.work / "recipe.toml").read_bytes())
        output.publish(staged)
    return WrittenSite(out / INDEX, listed, len(found.downstream) + len(found.personalized), other)


def is_published(run: Run) -> bool:
    """Whether a run is of the data that its benchmark is published as."""
    data, benchmark = run.config.data, run.config.benchmark.description
    return benchmark.title_for(data.location, data.revision) == benchmark.title


def check_runs(
    runs: Sequence[Run], folder: Path, places: Mapping[str, str], known: Mapping[str, CheckResult]
) -> list[Listed]:
    """The runs of a folder with what their checks found, in the order of their paths, which name no machine.

    places: see `location_override`. known: runs that `submit` checked before, see `read_check_results`; what that
    found of their data and their scores holds while their files are the same.
    """
    found, last = [], DataCache()
    with progress("Checking runs", len(runs)) as meter:
        for run in sorted(runs, key=lambda run: (run.config.benchmark.name, run.config.data.digest)):
            inside = run.path.relative_to(folder)
            shown = replace(run, path=inside if inside.name else Path(folder.resolve().name))
            checked = check_submission(run, runs, files=RunInputs(location_override(places, run)), last=last)
            before = known.get(files_digest(run.path)) if checked.state != "refused" else None
            if before is not None:
                findings = [finding for finding in checked.findings if finding.about != UNREAD]
                checked = CheckResult(before.state, findings, before.rescored)
            # A page names no place on this machine.
            texts = [one.text.replace(str(run.path), shown.path.as_posix()) for one in checked.findings]
            findings = [one._replace(text=text) for one, text in zip(checked.findings, texts, strict=True)]
            found.append((shown, run, checked._replace(findings=findings)))
            meter.advance()
    found.sort(key=lambda one: one[0].path.as_posix())
    return [Listed(f"run-{place}", *one) for place, one in enumerate(found, 1)]
