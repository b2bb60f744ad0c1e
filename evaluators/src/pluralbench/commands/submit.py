"""`submit`: checks runs before they go to a leaderboard."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pluralbench.commands.options import AsJson, DataNow

EXAMPLES = """\
Examples:

pluralbench submit runs/a

pluralbench submit runs/a runs/b --json

pluralbench submit runs/a --data dist/personalized-rewardbench
"""


def submit(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or folders with some.")],
    data: DataNow = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check runs as a leaderboard does: that all their files agree, and what is unusual about them.

    Metrics are computed again from the items, outcomes from scores and recorded replies, and the texts' digests from
    the data, which is read again. The exit status is 1 where a run cannot be accepted.
    """
    from pluralbench.leaderboard.findings import is_refused  # noqa: PLC0415 - `--help` need not wait for the metrics
    from pluralbench.leaderboard.submission import check_data, check_submission, runs_at  # noqa: PLC0415 - the same

    found = runs_at(runs).runs
    checked = {run.path: sorted([*check_submission(run, found), *check_data(run, data)]) for run in found}
    if as_json:
        told = [
            {
                "run": str(path),
                "accepted": not is_refused(findings),
                "findings": [finding._asdict() for finding in findings],
            }
            for path, findings in checked.items()
        ]
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        from pluralbench.commands.terminal import console  # noqa: PLC0415 - as above
        from pluralbench.leaderboard.telling import lines_of  # noqa: PLC0415 - the same

        for run in found:
            for line in lines_of(run, checked[run.path]):
                console.print(line)
    if any(is_refused(findings) for findings in checked.values()):
        raise typer.Exit(1)
