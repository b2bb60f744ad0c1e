"""`study`: a study from its recipe to its page."""

from pathlib import Path

from pluralbench.downstream.study import Study, run_study
from pluralbench.downstream.study_recipe import StudyRecipe
from pluralbench.reports.study import write_page


def study(recipe: str | Path | StudyRecipe, *, out: str | Path | None = None, fresh: bool = False) -> Study:
    """Carry out a study: train, score, sample, optimise and judge what is missing, correlate, and write its page.

    recipe: a study of this package (`tiny`, `paper`, ...), a TOML file, or a recipe. out: the directory; without it
    studies/NAME. fresh: start over. `README.md` in it is the page. Raises a `UserError` for a mistake of the caller.
    """
    with run_study(recipe, out=out, fresh=fresh) as found:
        write_page(found)
    return found
