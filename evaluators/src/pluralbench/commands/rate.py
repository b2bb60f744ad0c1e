"""`pluralbench rate`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import shell_command
from pluralbench_runs.options import Options, Overrides, RecipeOptions, with_options
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings

from pluralbench.commands.options import DataNow
from pluralbench.commands.terminal import console
from pluralbench.downstream.win_recipe import WinRecipe

WIN_RATE_FOLDER = "win-rate"


@with_options
def rate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a best-of-n run.")],
    files: ReturnedFiles = None,
    data: DataNow = None,
    *,
    settings: Annotated[Overrides, RecipeOptions(WinRecipe)],
    options: Annotated[StudyOptions, Options("Study")],
) -> None:
    """Let people compare the answers that reward models select with a random sample of the policy (win rate of CHEEMS).

    --export writes blind rating sheets and Label Studio tasks. --import reads them, complete or not, and writes the
    directory `win-rate`, which `report` and `correlate` read like a best-of-n run.

    Examples:

    pluralbench rate runs/best --export sheets --annotator an --annotator bo --annotator cy

    pluralbench rate runs/best --import sheets

    pluralbench report sheets/win-rate
    """
    options.check(files)
    if options.import_ is not None:
        _import(run, options.import_, files, options)
    elif options.export is not None:
        from pluralbench.downstream.people import export_sheets  # noqa: PLC0415 - `--help` need not wait for it
        from pluralbench.results.downstream import DownstreamRunConfig  # noqa: PLC0415 - the same
        from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

        recipe = study_settings(WinRecipe, settings | {"run": str(run)}, "of the comparison")
        loaded = load_run(run, DownstreamRunConfig)
        console.print(export_sheets(loaded, options.export, recipe, data=data, fresh=options.fresh))
        console.print(f"\nNext:\n  {shell_command('pluralbench', 'rate', run, '--import', options.export)}")


def _import(run: Path, folder: Path, files: list[Path] | None, options: StudyOptions) -> None:
    from pluralbench_studies import progress_rows, read_study  # noqa: PLC0415 - `--help` need not wait

    from pluralbench.commands.console_output import print_downstream  # noqa: PLC0415 - the same
    from pluralbench.downstream.people import FORM, write_ratings  # noqa: PLC0415 - the same
    from pluralbench.results.downstream import DownstreamRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    study, answers = read_study(folder, WinRecipe, FORM, files, options)
    print_downstream(write_ratings(load_run(run, DownstreamRunConfig), study, answers, folder / WIN_RATE_FOLDER))
    for line in (*map(": ".join, progress_rows(study, answers)), *answers.problem_lines):
        console.print(line)
