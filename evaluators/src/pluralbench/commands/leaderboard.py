"""`leaderboard`: a static site of many runs."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\
Examples:

pluralbench leaderboard runs --site site

pluralbench leaderboard ORG/our-results --site public     # any static host serves the folder as it is
"""


def leaderboard(
    runs: Annotated[
        str,
        typer.Argument(
            metavar="DIR|ORG/NAME[@REVISION]",
            help="A folder with run directories, or results that were pushed to the Hub.",
        ),
    ],
    site: Annotated[Path, typer.Option(help="A folder for the pages; an older site there is replaced.")],
) -> None:
    """Write a site of many runs: a leaderboard, a page for each benchmark and model, and each run's checks.

    Runs are checked as `pluralbench submit` does, without reading their data again; those that cannot be accepted are
    named with the reasons, and are in no table.
    """
    from pluralbench.commands.terminal import console  # noqa: PLC0415 - `--help` need not wait for figures
    from pluralbench.leaderboard.site import folder_of, write_site  # noqa: PLC0415 - the same
    from pluralbench.leaderboard.telling import lines_of  # noqa: PLC0415 - the same

    done = write_site(folder_of(runs), site)
    for one in done.submissions:
        if not one.accepted:
            for line in lines_of(one.original, [found for found in one.findings if found.level == "refused"]):
                console.print(line)
    if done.left_out:
        console.print(f"{done.left_out:,} directories of best-of-n, optimize or personalize are not part of it.")
    console.print(f"Wrote {done.pages:,} pages; open {done.first}")
