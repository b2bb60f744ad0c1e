"""`report --plots`: what runs found, as figures across languages and by category."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import categories, languages
from pluralbench.reports.figures.fonts import unrendered
from pluralbench.reports.figures.style import drawing, series_of
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write the figures that these runs have data for, each as PNG and SVG, and say which files those are.

    Runs of benchmarks without languages and without categories are left out. Raises `EvaluationError` when there is
    nothing to draw, and where nothing can be written.
    """
    across, by_category = series_of(_in_languages(runs)), series_of(_by_category(runs))
    if not across and not by_category:
        raise EvaluationError(
            "There is nothing to draw: none of the runs is of a benchmark with several languages or with categories."
        )
    paths: list[Path] = []
    with drawing():
        for models, figures in ((across, languages.FIGURES), (by_category, categories.figures_of(by_category))):
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
    codes = sorted({code for run in _in_languages(runs) for code in run.names("pooled", "config")})
    lacking = unrendered(codes)
    if lacking:
        notes.append(f"No font here has the script of {', '.join(lacking)}, so figures name them in English alone")
    names = [name for name in categories.categories_of(runs) if categories.named(name).text != name]
    if names:
        notes.append(f"No font here has all characters of {', '.join(names)}, so figures have question marks for them")
    return [f"{note}; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)." for note in notes]


def _in_languages(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.record.benchmark.description.reference is not None]


def _by_category(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.record.benchmark.description.by_category]


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
