"""`pluralbench compare`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pluralbench_runs.options import AsJson

if TYPE_CHECKING:
    from pluralbench.evaluation.compare import RunComparison


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A run directory.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another run directory, on the same items.")],
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
    *,
    differing_text: Annotated[
        bool,
        typer.Option("--differing-text", help="Allow different texts for the same id, as in two translations."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two runs by paired tests of the overall number and its parts, on the decisions they share.

    Examples:

    pluralbench compare runs/a runs/b

    pluralbench compare runs/google runs/nllb --differing-text      # translations

    pluralbench compare runs/a runs/b --json > comparison.json
    """
    from pluralbench.commands.console_output import print_lines, print_tables  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.evaluation.compare import compare as compare_runs  # noqa: PLC0415 - the same
    from pluralbench.reports.comparison import parts_table  # noqa: PLC0415 - the same
    from pluralbench.reports.sheets import title_of  # noqa: PLC0415 - the same
    from pluralbench.results.evaluations import EvaluationRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    runs = [load_run(path, EvaluationRunConfig) for path in (first, second)]
    comparison = compare_runs(*runs, seed=seed, differing_text=differing_text)
    if as_json:
        typer.echo(json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_lines(_overall_lines(comparison, title_of(runs)))
    if comparison.parts.height:
        print_tables([parts_table(comparison)])
        print_lines(
            [
                f"Holm: p-values adjusted for the {comparison.tested} tested parts. Differences are in percentage "
                "points, with 95% intervals."
            ]
        )


def _overall_lines(comparison: "RunComparison", title: str) -> list[str]:
    head = comparison.headline
    counted = "" if comparison.counted == comparison.decisions else f", over {comparison.counted:,} of these"
    lines = [
        f"{title}: {comparison.decisions:,} decisions on {comparison.clusters:,} {comparison.clustered_by}",
        f"Overall: {comparison.rule}{counted}",
    ]
    for name, value, only in (
        (comparison.first, head.first, comparison.only_first),
        (comparison.second, head.second, comparison.only_second),
    ):
        number = "no overall number" if value is None else f"{value:.1%}"
        lines.append(f"  {name}: {number}; {only:,} decisions that only this run gets right")
    if head.difference is None:
        lines.append("No difference to test: one of the runs has no overall number.")
    else:
        interval = "no interval"
        if head.low is not None and head.high is not None:
            interval = f"95% interval {100 * head.low:+.1f} to {100 * head.high:+.1f}"
        p = "" if head.p_value is None else f", p = {head.p_value:.3g}"
        lines.append(f"Difference {100 * head.difference:+.1f} points, {interval}{p}")
    if comparison.left_out:
        lines.append(f"{comparison.left_out:,} decisions are in only one of the runs and were left out.")
    return lines
