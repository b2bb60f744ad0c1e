"""`pluralbench rate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_runs.options import Flag
from pluralbench_runs.recipe_options import Overrides, RecipeOptions
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings

from pluralbench.commands.printing import console, print_downstream, print_next
from pluralbench.config.fields import PLACE
from pluralbench.downstream.people import WinRecipe

WIN_RATE_FOLDER = "win-rate"


def rate(
    run: Path,
    files: ReturnedFiles = (),
    *,
    data: Annotated[str | None, Flag(metavar=PLACE)] = None,
    settings: Annotated[Overrides, RecipeOptions(WinRecipe)],
    options: StudyOptions,
) -> None:
    """Let people compare the answers that reward models select with a random sample of the policy (win rate of CHEEMS).

    --export writes blind rating sheets and Label Studio tasks. --import reads them, complete or not, and writes the
    directory `win-rate`, which `report` and `correlate` read like a best-of-n run.

    Args:
        run: Directory of a best-of-n run.
        data: Current location of the run's data, if it has moved.

    Examples:
        pluralbench rate runs/best --export sheets --annotator an --annotator bo --annotator cy
        pluralbench rate runs/best --import sheets
        pluralbench report sheets/win-rate
    """
    options.check(files)
    if options.import_ is not None:
        _import(run, options.import_, files, options)
    elif options.export is not None:
        from pluralbench.downstream.people import export_sheets
        from pluralbench.results.downstream import DownstreamRunConfig
        from pluralbench.results.runs import load_run

        recipe = study_settings(WinRecipe, settings | {"run": str(run)}, "of the comparison")
        loaded = load_run(run, DownstreamRunConfig)
        console.print(export_sheets(loaded, options.export, recipe, data=data, fresh=options.fresh))
        print_next("rate", run, "--import", options.export)


def _import(run: Path, folder: Path, files: Sequence[Path], options: StudyOptions) -> None:
    from pluralbench_studies import progress_rows, read_study

    from pluralbench.downstream.people import FORM, write_ratings
    from pluralbench.results.downstream import DownstreamRunConfig
    from pluralbench.results.runs import load_run

    study, answers = read_study(folder, WinRecipe, FORM, files, options)
    print_downstream(write_ratings(load_run(run, DownstreamRunConfig), study, answers, folder / WIN_RATE_FOLDER))
    for line in (*map(": ".join, progress_rows(study, answers)), *answers.problem_lines):
        console.print(line)
