"""`pluralbench compare`."""

from pathlib import Path
from typing import Any

import typer
from pluralbench_runs.console import terminal_json

from pluralbench.commands.printing import AsJson, print_lines, print_tables


def compare(
    first: Path, second: Path, *, differing_text: bool = False, wide: bool = False, as_json: AsJson = False
) -> None:
    """Compare two runs by paired tests of the overall number and its parts, on the decisions they share.

    The result is a table and a sentence that says which model is better, or that they cannot be told apart. Of two
    suites, the overall numbers of their benchmarks and the means are compared.

    Args:
        first: Directory of a run or a suite.
        second: Another run or suite, on the same items.
        differing_text: Allow different texts for the same id, as in two translations.
        wide: Use as many columns as needed instead of 80.
        as_json: Print JSON.

    Examples:
        pluralbench compare runs/a runs/b
        pluralbench compare runs/google runs/nllb --differing-text      # translations
        pluralbench compare runs/a runs/b --json > comparison.json
    """
    from pluralbench.evaluation.compare import compare as compare_runs
    from pluralbench.evaluation.compare_suites import compare_suites
    from pluralbench.reports.comparison import (
        comparison_notes,
        comparison_table,
        heading_lines,
        suites_notes,
        suites_table,
    )
    from pluralbench.reports.sheets import title_of
    from pluralbench.results.evaluations import EvaluationRunConfig
    from pluralbench.results.runs import load_run
    from pluralbench.results.suite import SUITE_FILE, load_suite

    result: Any
    if all((path / SUITE_FILE).is_file() for path in (first, second)):
        result = compare_suites(load_suite(first), load_suite(second), differing_text=differing_text)
        heading, table, notes = [], suites_table(result), suites_notes(result)
    else:
        runs = [load_run(path, EvaluationRunConfig) for path in (first, second)]
        result = compare_runs(*runs, differing_text=differing_text)
        heading, table = [*heading_lines(result, title_of(runs))], comparison_table(result)
        notes = comparison_notes(result)
    if as_json:
        typer.echo(terminal_json(result.as_dict()))
        return
    print_lines(heading)
    print_tables([table], wide=wide)
    print_lines([*notes, "", result.sentence])
