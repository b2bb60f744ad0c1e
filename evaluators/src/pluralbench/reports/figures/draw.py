"""Figures of `report`: by benchmark, across languages, by category, and of verdicts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from pluralbench.data.verdict_tables import read_verdicts
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import Figure, Make, categories, certainty, languages, profile_modes, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable, unrendered
from pluralbench.reports.figures.forest import forest
from pluralbench.reports.figures.kinds import drop_by_kind
from pluralbench.reports.figures.position import position
from pluralbench.reports.figures.series import RunSeries, series_of
from pluralbench.reports.figures.translators import translators
from pluralbench.reports.sheets import title_of
from pluralbench.reports.verdicts import verdict_rows
from pluralbench.results.run_files import VERDICTS_FILE
from pluralbench.results.runs import Run

Draw = Callable[[Sequence[RunSeries]], Figure | None]
OF_A_BENCHMARK: Mapping[str, Draw] = {"forest": forest, "position": position}
ACROSS_LANGUAGES: Mapping[str, Draw] = languages.FIGURES | {"drop_by_kind": drop_by_kind, "translators": translators}


def draw(runs: Sequence[Run], folder: Path, families: Mapping[str, str] | None = None) -> list[Path]:
    """Write the figures that these runs have data for, each as PNG and SVG.

    A model has the same color and marker in all figures.

    Args:
        families: Patterns of model names by the name of a family. The figure of profile modes shows family means.

    Returns:
        The paths of the files.

    Raises:
        EvaluationError: There is nothing to draw, or the files cannot be written.
    """
    paths = write(dict(figures_of(runs, families)), folder)
    if not paths:
        raise EvaluationError("There is nothing to draw: no run has a number.")
    return paths


def figures_of(
    runs: Sequence[Run], families: Mapping[str, str] | None = None, among: Sequence[Run] = ()
) -> Iterator[tuple[str, Make]]:
    """Yield the file stem of each figure that these runs have data for, and the function that draws it.

    Call the functions within `style.drawing`.

    Args:
        families: See `draw`.
        among: All runs of the report, which determine the colors. Default: `runs`.
    """
    among = among or runs
    for kind, make in OF_A_BENCHMARK.items():
        yield from _by_benchmark(kind, make, runs, among).items()
    yield from profile_modes.mode_figures(runs, families or {}).items()
    across, by_category = series_of(_in_languages(runs), among), series_of(_by_category(runs), among)
    for models, figures in ((across, ACROSS_LANGUAGES), (by_category, categories.figures_of(by_category))):
        yield from ((stem, partial(make, models)) for stem, make in figures.items() if models)
    verdicts = _verdicts(runs)
    if verdicts is not None:
        names = [run.name for run in among]
        title = title_of([run for run in runs if run.config.benchmark.description.persona_items])
        rows = [row | {"title": title} for row in verdict_rows(verdicts)]
        yield from certainty.figures_of(rows, among=names).items()


def _by_benchmark(kind: str, draw: Draw, runs: Sequence[Run], among: Sequence[Run]) -> dict[str, Make]:
    """A figure of one kind for each benchmark, by file stem."""
    figures: dict[str, Make] = {}
    for name in sorted({run.config.benchmark.name for run in runs}):
        own = [run for run in runs if run.config.benchmark.name == name]
        stem = style.stem(kind, Path(name).name.removesuffix(".toml"))
        figures[f"{stem}_{len(figures) + 1}" if stem in figures else stem] = partial(draw, series_of(own, among))
    return figures


def _verdicts(runs: Sequence[Run]) -> pl.DataFrame | None:
    """The verdicts of the persona judge's runs in one table; a repeated setting of a judge gets another name."""
    frames, seen = [], set()
    for run in sorted(runs, key=lambda run: str(run.path)):
        if not run.config.benchmark.description.persona_items or not (run.path / VERDICTS_FILE).exists():
            continue
        key = run.name, run.config.judge_setting("setting"), run.config.judge_setting("variables")
        judge = f"{run.name} ({run.path.name})" if key in seen else run.name
        seen.add(key)
        frames.append(read_verdicts(str(run.path / VERDICTS_FILE)).with_columns(judge=pl.lit(judge)))
    return pl.concat(frames, how="diagonal") if frames else None


def font_notes(runs: Sequence[Run]) -> list[str]:
    """List what the figures of these runs cannot show because fonts are missing, a sentence each."""
    notes = []
    codes = sorted({code for run in _in_languages(runs) for code in run.names("config", "pooled_accuracy")})
    lacking = unrendered(codes)
    if lacking:
        notes.append(f"No installed font has the script of {', '.join(lacking)}, so figures show only English names")
    for title in sorted({run.config.benchmark.title for run in runs}):
        labels = categories.labels_of(run for run in runs if run.config.benchmark.title == title)
        others = [f"{label} for {name}" for name, label in labels.items() if label != name]
        if others:
            notes.append(
                f"No installed font has all characters of some names, so figures of {title} show {', '.join(others)}"
            )
    names = sorted({run.name for run in runs if readable(run.name) != run.name})
    if names:
        notes.append(f"No installed font has all characters of {', '.join(names)}, so figures show question marks")
    return [f"{note}; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)." for note in notes]


def _in_languages(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.config.benchmark.description.reference is not None]


def _by_category(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.config.benchmark.description.by_category]
