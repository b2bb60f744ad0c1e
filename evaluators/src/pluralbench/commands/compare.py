"""`compare`: two runs on the decisions they share, by paired tests."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pluralbench_runs.options import AsJson

from pluralbench.commands.terminal import console

if TYPE_CHECKING:
    from pluralbench.evaluation.compare import RunComparison


def compare(
    first: Annotated[Path, typer.Argument(help="A run directory.")],
    second: Annotated[Path, typer.Argument(help="Another one, on the same items.")],
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
    *,
    differing_text: Annotated[
        bool,
        typer.Option("--differing-text", help="Compare items of one id whose texts differ, as two translations do."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs on the decisions they share, by paired tests of the overall number and each of its parts.

    Examples:

    pluralbench compare runs/a runs/b

    pluralbench compare runs/google runs/nllb --differing-text      # the same items in other words

    pluralbench compare runs/a runs/b --json > comparison.json
    """
    from pluralbench.commands.console_output import print_tables  # noqa: PLC0415 - `--help` need not wait for the tests
    from pluralbench.evaluation.compare import compare as compare_runs  # noqa: PLC0415 - the same
    from pluralbench.reports.comparison import parts_table  # noqa: PLC0415 - the same
    from pluralbench.reports.sheets import title_of  # noqa: PLC0415 - the same
    from pluralbench.results.evaluations import EvaluationRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    runs = [load_run(path, EvaluationRunConfig) for path in (first, second)]
    found = compare_runs(*runs, seed=seed, differing_text=differing_text)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    for line in _lines(found, title_of(runs)):
        console.print(line)
    if found.parts.height:
        print_tables([parts_table(found)])
        console.print(
            f"Holm: p adjusted for the {found.tested} parts that were tested. Differences are in points, with "
            "95% intervals."
        )


def _lines(found: "RunComparison", title: str) -> list[str]:
    """The sentences about the overall number."""
    head = found.headline
    lines = [
        f"{title}: {found.decisions:,} decisions on {found.clusters:,} {found.clustered_by}",
        f"Overall: {found.rule}" + ("" if found.counted == found.decisions else f", over {found.counted:,} of these"),
    ]
    for name, value, only in (
        (found.first, head.first, found.only_first),
        (found.second, head.second, found.only_second),
    ):
        said = "no overall number" if value is None else f"{value:.1%}"
        lines.append(f"  {name}: {said}, {only:,} that only it gets right")
    if head.difference is None:
        lines.append("There is no difference to test, since the overall number of one of them is missing.")
    else:
        interval = "no interval"
        if head.low is not None and head.high is not None:
            interval = f"95% interval {100 * head.low:+.1f} to {100 * head.high:+.1f}"
        p = "" if head.p_value is None else f", p = {head.p_value:.3g}"
        lines.append(f"Difference {100 * head.difference:+.1f} points, {interval}{p}")
    if found.left_out:
        lines.append(f"{found.left_out:,} decisions are only in one of the two runs and were left out.")
    return lines
