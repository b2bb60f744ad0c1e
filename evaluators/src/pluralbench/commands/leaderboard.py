"""`leaderboard`: a page of many checked runs."""

from pathlib import Path
from typing import Annotated

import typer

from pluralbench.commands.check import DataPlaces
from pluralbench.commands.terminal import console


def leaderboard(
    runs: Annotated[
        str,
        typer.Argument(
            metavar="DIR|ORG/NAME[@REVISION]",
            help="A folder with run directories, or results that were pushed to the Hub.",
        ),
    ],
    site: Annotated[Path, typer.Option(help="A folder for the page; an older one there is replaced.")],
    *,
    data: DataPlaces = None,
    any_data: Annotated[
        bool,
        typer.Option("--any-data", help="Include runs on samples and on other data than a benchmark's published ones."),
    ] = False,
    checked: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What `check --json` printed of some of the runs: those whose files are the same stay as they were "
            "checked there, also by scoring again.",
        ),
    ] = None,
) -> None:
    """Write a page of many runs: a leaderboard, their tables and figures, and what their checks found.

    Runs are checked as `pluralbench check` does; those that are refused, and those whose data cannot be read, are
    named with the reasons, and are in no table. "Verified" are runs of which `check --rescore` scored items again.
    Runs on a benchmark's sample or on other data than its published ones are left out unless --any-data asks for them;
    they then go by the name of their data.

    Examples:

    pluralbench leaderboard runs --site site

    pluralbench leaderboard runs --site site --checked checked.json     # of `pluralbench check --json`

    pluralbench leaderboard runs --site site --any-data     # samples and tables of your own, too

    pluralbench leaderboard ORG/our-results --site public     # any static host serves the folder as it is
    """
    from pluralbench.leaderboard.checks import parse_location_overrides, read_check_results  # noqa: PLC0415 - the same
    from pluralbench.leaderboard.findings import finding_lines  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.leaderboard.site import folder_of, write_site  # noqa: PLC0415 - the same
    from pluralbench.reports.layout import clean  # noqa: PLC0415 - the same

    known = None if checked is None else read_check_results(checked)
    done = write_site(
        folder_of(runs), site, any_data=any_data, places=parse_location_overrides(data or ()), known=known
    )
    for one in done.runs:
        if one.checked is not None and not one.accepted:
            for line in finding_lines(one.original, one.checked._replace(findings=one.checked.rejection_reasons)):
                console.print(line)
    if done.left_out:
        console.print(f"{done.left_out:,} directories of best-of-n, optimize or personalize are not part of it.")
    if done.other_data:
        titles = ", ".join(dict.fromkeys(clean(run.config.benchmark.title) for run in done.other_data))
        console.print(f"Left out {len(done.other_data):,} runs on other data, which --any-data includes: {titles}.")
    console.print(f"Wrote {done.page}")
