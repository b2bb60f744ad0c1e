"""`report --plots`: what runs found, as figures: across languages (`plots`) and by category (`category_plots`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import categories as category_plots
from pluralbench.reports.figures import languages as plots
from pluralbench.reports.figures.style import drawing, models_of, unrendered
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the figures that these runs have data for, each as PNG and SVG, and say which files those are.

    Runs of benchmarks without languages and without categories are left out. Raises `EvaluationError` when there is
    nothing to draw, and where nothing can be written.
    """
    across, by_category = models_of(runs, "languages"), models_of(runs, "rankings")
    if not across and not by_category:
        raise EvaluationError(
            "There is nothing to draw: none of the runs is of a benchmark with several languages or with categories."
        )
    paths: list[Path] = []
    with drawing():
        for models, figures in ((across, plots.FIGURES), (by_category, category_plots.figures_of(by_category))):
            for stem, make in figures.items() if models else ():
                figure = make(models)
                if figure is not None:
                    paths += save(figure, folder, stem)
    if not paths:
        raise EvaluationError("There is nothing to draw: the runs have no number for any language or category.")
    return paths


def font_notes(runs: Sequence[Run]) -> list[str]:
    """What figures of these runs cannot show for want of a font, a sentence each."""
    notes = []
    languages = unrendered(
        sorted({code for run in runs if run.metrics.get("languages") for code in run.metrics["configs"]})
    )
    if languages:
        notes.append(f"No font here has the script of {', '.join(languages)}, so figures name them in English alone")
    names = [name for name in category_plots.categories_of(runs) if category_plots.named(name).text != name]
    if names:
        notes.append(f"No font here has all characters of {', '.join(names)}, so figures have question marks for them")
    return [f"{note}; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)." for note in notes]


def save(figure: "Figure", folder: Path, stem: str) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes each time; the paths."""
    paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
    box: Any = {"bbox_inches": "tight", "pad_inches": 0.1}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(paths[0], dpi=200, **box)
        figure.savefig(paths[1], metadata={"Date": None}, **box)
    except OSError as error:
        raise EvaluationError(f"The figures cannot be written to {folder}: {error.strerror}.") from None
    return paths
