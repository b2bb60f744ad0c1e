"""`study`: run a study from its recipe to its report."""

from pathlib import Path

from pluralbench.downstream.study import Study, run_study
from pluralbench.downstream.study_recipe import StudyRecipe
from pluralbench.reports.sections import write_study_page


def study(recipe: str | Path | StudyRecipe, *, out: str | Path | None = None, fresh: bool = False) -> Study:
    """Run a study: train, score, sample, optimize, judge, correlate, and write the report.

    Finished steps are kept. Call it again with the same arguments to resume an interrupted study.

    Args:
        recipe: Name of a built-in study (`tiny`, `paper`, `cheems-sets`, `cheems-scaling`, `cheems-models`), a TOML
            file, or a recipe.
        out: Directory of the study; its README.md is the report. Default: `studies/NAME`.
        fresh: Start over and replace the contents of `out`.

    Returns:
        The study with its scores and correlations.

    Raises:
        UserError: If the recipe, its data or models, or the directory cannot be used. The message names the fix.
    """
    with run_study(recipe, out=out, fresh=fresh) as done:
        write_study_page(done)
    return done
