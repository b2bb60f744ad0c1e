"""`report --plots`: what runs found, as figures of every benchmark, across languages, by category and of verdicts."""

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
from pluralbench.results.runs import VERDICTS_FILE, Run

Draw = Callable[[Sequence[RunSeries]], Figure | None]
OF_A_BENCHMARK: Mapping[str, Draw] = {"forest": forest, "position": position}
ACROSS_LANGUAGES: Mapping[str, Draw] = languages.FIGURES | {"drop_by_kind": drop_by_kind, "translators": translators}


def draw(runs: Sequence[Run], folder: Path, families: Mapping[str, str] | None = None) -> list[Path]:
    """Write the figures that these runs have data for, each as PNG and SVG, and say which files those are.

    A model has one colour and marker in all of them, by its name. families: patterns of models' names by a family's
    name, of which the figure of profile modes has the mean. Raises `EvaluationError` when there is nothing to
    draw, and where nothing can be written.
    """
    paths = write(dict(figures_of(runs, families)), folder)
    if not paths:
        raise EvaluationError("There is nothing to draw: no run has a number.")
    return paths


def figures_of(
    runs: Sequence[Run], families: Mapping[str, str] | None = None, among: Sequence[Run] = ()
) -> Iterator[tuple[str, Make]]:
    """What draws each figure that these runs have data for, by the stem of its files; None where there is no number.

    To be drawn in `style.drawing`. families: see `draw`. among: all runs of a report that these are a part of, by which
    models have their colours.
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
    """A figure of a kind for the runs of each benchmark, by the stem of its files."""
    made: dict[str, Make] = {}
    for name in sorted({run.config.benchmark.name for run in runs}):
        own = [run for run in runs if run.config.benchmark.name == name]
        stem = style.stem(kind, Path(name).name.removesuffix(".toml"))
        made[f"{stem}_{len(made) + 1}" if stem in made else stem] = partial(draw, series_of(own, among))
    return made


def _verdicts(runs: Sequence[Run]) -> pl.DataFrame | None:
    """The verdicts of the persona judge's runs in one table, each setting of a judge once or under another name."""
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
    """What figures of these runs cannot show for want of a font, a sentence each."""
    notes = []
    codes = sorted({code for run in _in_languages(runs) for code in run.names("pooled", "config")})
    lacking = unrendered(codes)
    if lacking:
        notes.append(f"No font here has the script of {', '.join(lacking)}, so figures name them in English alone")
    for title in sorted({run.config.benchmark.title for run in runs}):
        labels = categories.labels_of(run for run in runs if run.config.benchmark.title == title)
        others = [f"{label} for {name}" for name, label in labels.items() if label != name]
        if others:
            notes.append(
                f"No font here has all characters of some names, so figures of {title} say {', '.join(others)}"
            )
    names = sorted({run.name for run in runs if readable(run.name) != run.name})
    if names:
        notes.append(f"No font here has all characters of {', '.join(names)}, so figures have question marks for them")
    return [f"{note}; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)." for note in notes]


def _in_languages(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.config.benchmark.description.reference is not None]


def _by_category(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.config.benchmark.description.by_category]
