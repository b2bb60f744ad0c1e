"""`merge`: the shards of a run, joined."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs.options import Fresh

from pluralbench.commands.options import DataNow, Out


def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The directories of all shards of a run.")],
    data: DataNow = None,
    *,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Join the shards that `score`, `judge` or `judge-personas` made with --shard into the whole run.

    Items and metrics are those of a run made at once. Without --out the run goes where the shards are, by their name
    without what tells them apart.

    Examples:

    pluralbench merge runs/mine-shard*

    pluralbench merge runs/mine-shard1of2 runs/mine-shard2of2 --out runs/whole
    """
    from pluralbench.commands.console_output import print_run  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.merge import merge as join  # noqa: PLC0415 - the same

    print_run(join(runs, data=data, out=out, fresh=fresh))
