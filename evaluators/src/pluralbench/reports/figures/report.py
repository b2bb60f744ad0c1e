"""Figures of `report`: by benchmark, across languages, by category, and of verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from pluralbench.data.verdict_tables import read_verdicts
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import benchmarks, languages, verdicts
from pluralbench.reports.figures.categories import calibration, categories
from pluralbench.reports.figures.chart import Chart, names
from pluralbench.reports.figures.files import stem, write
from pluralbench.reports.figures.fonts import readable, unrendered
from pluralbench.reports.figures.series import series_of
from pluralbench.reports.profile_modes import modes_of
from pluralbench.reports.sheets import sheets_of, title_of
from pluralbench.reports.verdicts import verdict_rows
from pluralbench.results.run_files import VERDICTS_FILE
from pluralbench.results.runs import Run


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
    return write(figures_of(runs, families), folder, "no run has a number")


def figures_of(
    runs: Sequence[Run], families: Mapping[str, str] | None = None, among: Sequence[Run] = ()
) -> dict[str, Chart]:
    """Return the chart of each figure that these runs have data for, by file stem.

    Args:
        families: See `draw`.
        among: All runs of the report, which determine the colors. Default: `runs`.
    """
    charts = dict(_charts(runs, families or {}, among or runs))
    return {name: chart for name, chart in charts.items() if not chart.empty}


def _charts(runs: Sequence[Run], families: Mapping[str, str], among: Sequence[Run]) -> Iterator[tuple[str, Chart]]:
    for kind, entry in (("forest", benchmarks.forest), ("position", benchmarks.position)):
        stems: set[str] = set()
        for name in sorted({run.config.benchmark.name for run in runs}):
            models = series_of([run for run in runs if run.config.benchmark.name == name], among)
            yield _unique(stem(kind, Path(name).name.removesuffix(".toml")), stems), entry(models)
    yield from _profile_modes(runs, families)
    models = series_of(_in_languages(runs), among)
    yield from ((name, entry(models)) for name, entry in languages.FIGURES.items() if models)
    models = series_of([run for run in runs if run.config.benchmark.description.by_category], among)
    for config in names(models, "config", "exact_match"):
        yield stem("categories", config), categories(models, config)
    if models:
        yield "calibration", calibration(models)
    table = _verdicts(runs)
    if table is not None:
        title = title_of([run for run in runs if run.config.benchmark.description.persona_items])
        rows = [row | {"title": title} for row in verdict_rows(table)]
        yield from verdicts.figures_of(rows, among=[run.name for run in among]).items()


def _unique(name: str, taken: set[str]) -> str:
    """A file stem that is not taken; two benchmarks may have files of one name."""
    own = f"{name}_{len(taken) + 1}" if name in taken else name
    taken.add(own)
    return own


def _profile_modes(runs: Sequence[Run], families: Mapping[str, str]) -> Iterator[tuple[str, Chart]]:
    """The figure of each sheet with models in several modes."""
    models, stems = dict.fromkeys(run.name for run in runs), set[str]()
    for family, pattern in families.items():
        if not any(benchmarks.matches(name, pattern) for name in models):
            raise EvaluationError(
                f"The pattern {pattern} of the family {family} matches none of the models {', '.join(models)}."
            )
    for sheet in sheets_of(runs):
        own = modes_of(sheet.runs)
        if own:
            name = _unique(stem("profile_modes", Path(sheet.runs[0].config.benchmark.name).stem), stems)
            yield name, benchmarks.profile_modes(sheet, own, families)


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
        labels = benchmarks.labels_of([run for run in runs if run.config.benchmark.title == title])
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
