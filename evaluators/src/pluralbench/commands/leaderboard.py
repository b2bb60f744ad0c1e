"""`pluralbench leaderboard`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pluralbench_runs import plural
from pluralbench_runs.options import Flag

from pluralbench.commands.printing import File, console


def leaderboard(
    runs: Annotated[str, Flag(metavar="DIR|ORG/NAME[@REVISION]")],
    site: Annotated[Path, Flag("--site")],
    *,
    data: Mapping[str, str],
    any_data: bool = False,
    checked: File = None,
) -> None:
    """Write a leaderboard page of many runs, with their tables, figures and check results.

    Runs are checked as by `pluralbench check`. Rejected runs and runs whose data cannot be read are listed with the
    reasons and appear in no table. A run is "verified" if `check --rescore` scored some of its items again. Runs on
    samples or on data other than the published dataset are left out by default (--any-data includes them).

    Args:
        runs: Directory with run directories, or results that were pushed to the Hub.
        site: Directory of the page; an existing page is replaced.
        data: Current locations of the runs' data, by benchmark.
        any_data: Include runs on samples and on data other than the published dataset.
        checked: Output of `check --json`. Runs whose files are unchanged keep that result, including rescoring.

    Examples:
        pluralbench leaderboard runs --site site
        pluralbench leaderboard runs --site site --checked checked.json     # from `pluralbench check --json`
        pluralbench leaderboard runs --site site --any-data     # also samples and your own tables
        pluralbench leaderboard ORG/our-results --site public     # for any static host
    """
    from pluralbench_runs.console import clean

    from pluralbench.leaderboard.checks import read_check_results
    from pluralbench.leaderboard.site import folder_of, write_site
    from pluralbench.results.checks import finding_lines

    earlier_checks = None if checked is None else read_check_results(checked)
    done = write_site(
        folder_of(runs),
        site,
        any_data=any_data,
        locations=data,
        earlier_checks=earlier_checks,
    )
    for _, run, result in done.runs:
        if result is not None and not result.accepted:
            reasons = result._replace(findings=result.rejection_reasons)
            console.print(*finding_lines(run, reasons), sep="\n")
    if done.left_out:
        console.print(f"Left out {plural(done.left_out, 'run')} of commands other than score and the judges.")
    if done.other_data:
        titles = ", ".join(dict.fromkeys(clean(run.config.benchmark.title) for run in done.other_data))
        console.print(
            f"Left out {plural(len(done.other_data), 'run')} on other data (--any-data includes them): {titles}."
        )
    console.print(f"Wrote {done.page}")
