"""`pluralbench merge`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status
from pluralbench_runs.options import Fresh

from pluralbench.commands.options import DataNow, Out


def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of all shards of a run.")],
    data: DataNow = None,
    *,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Join the shards of `score`, `judge` or `judge-personas` (--shard) into one run.

    Items and metrics equal those of a run without shards. The default --out is the name of the shards without the shard
    number.

    Examples:

    pluralbench merge runs/mine-shard*

    pluralbench merge runs/mine-shard1of2 runs/mine-shard2of2 --out runs/whole
    """
    log_status("Joining shards...")
    from pluralbench.commands.console_output import print_run  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.merge import merge as merge_runs  # noqa: PLC0415 - the same

    print_run(merge_runs(runs, data=data, out=out, fresh=fresh))
