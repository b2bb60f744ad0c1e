"""Figures of `report`: by benchmark, across languages, by category, and of verdicts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import polars as pl

from pluralbench.data.rules import rule_of
from pluralbench.data.verdict_tables import read_verdicts
from pluralbench.errors import EvaluationError
from pluralbench.reports.annotations import AGREEMENT
from pluralbench.reports.figures import annotations, benchmarks, languages, verdicts
from pluralbench.reports.figures.chart import Chart, names
from pluralbench.reports.figures.files import stem
from pluralbench.reports.figures.fonts import readable, unrendered
from pluralbench.reports.figures.series import RunSeries, series_of
from pluralbench.reports.sheets import Sheet, sheets_of, title_of
from pluralbench.reports.verdicts import verdict_rows
from pluralbench.results.kinds import VERDICTS_FILE
from pluralbench.results.runs import Run


def _is_annotated(run: Run) -> bool:
    return run.estimate(AGREEMENT).value is not None


def _has_own_calibration(run: Run) -> bool:
    """Whether the verdicts of a run have probabilities, and its benchmark no figure of calibration for all models."""
    return benchmarks.is_soft(run) and not rule_of(run.config.benchmark.description).calibrated


OF_BENCHMARK: Mapping[str, tuple[Callable[[Sequence[RunSeries]], Chart], Callable[[Run], bool]]] = {
    "forest": (benchmarks.forest, lambda _: True),
    "position": (benchmarks.position, lambda _: True),
    "votes": (benchmarks.votes, lambda _: True),
    **{kind: (entry, _is_annotated) for kind, entry in annotations.FIGURES.items()},
    "calibration": (benchmarks.calibration, _has_own_calibration),
}
"""Figures of each benchmark, with the runs that they show, by what their files begin with."""


def figures_of(
    runs: Sequence[Run],
    families: Mapping[str, str] | None = None,
    among: Sequence[Run] = (),
    sheets: Sequence[Sheet] | None = None,
) -> dict[str, Chart]:
    """Return the chart of each figure that these runs have data for, by file stem.

    Args:
        runs: The runs.
        families: Patterns of model names by the name of a family. The figure of profile modes shows family means.
        among: All runs of the report, which determine the colors. Default: `runs`.
        sheets: Sheets of the runs. Default: computed.
    """
    charts: dict[str, Chart] = {}
    for name, chart in _charts(runs, families or {}, among or runs, sheets):
        if not chart.empty:
            # Two benchmarks may have files of one name.
            others = (f"{name}_{number}" for number in count(2))
            charts[name if name not in charts else next(one for one in others if one not in charts)] = chart
    return charts


def _charts(
    runs: Sequence[Run], families: Mapping[str, str], among: Sequence[Run], sheets: Sequence[Sheet] | None
) -> Iterator[tuple[str, Chart]]:
    for kind, (entry, shows) in OF_BENCHMARK.items():
        shown = [run for run in runs if shows(run)]
        for name in sorted({run.config.benchmark.name for run in shown}):
            models = series_of([run for run in shown if run.config.benchmark.name == name], among)
            yield stem(kind, _file(name)), entry(models)
    _check_families(families, [run.name for run in runs])
    for sheet in sheets_of(runs) if sheets is None else sheets:
        if sheet.modes:
            name = stem("profile_modes", _file(sheet.runs[0].config.benchmark.name))
            yield name, benchmarks.profile_modes(sheet, families)
    models = series_of(_in_languages(runs), among)
    yield from ((name, entry(models)) for name, entry in languages.FIGURES.items() if models)
    models = series_of([run for run in runs if rule_of(run.config.benchmark.description).calibrated], among)
    for config in names(models, "config", "exact_match"):
        yield stem("categories", config), benchmarks.categories(models, config)
    if models:
        yield "calibration", benchmarks.calibration(models)
    judged = [run for run in sorted(runs, key=lambda run: str(run.path)) if (run.path / VERDICTS_FILE).exists()]
    if judged:
        title = title_of(judged)
        rows = [row | {"title": title} for row in verdict_rows(_verdicts(judged))]
        yield from verdicts.figures_of(rows, among=[run.name for run in among]).items()


def _file(benchmark: str) -> str:
    return Path(benchmark).name.removesuffix(".toml")


def _check_families(families: Mapping[str, str], models: Sequence[str]) -> None:
    for family, pattern in families.items():
        if not any(benchmarks.matches(name, pattern) for name in models):
            shown = ", ".join(dict.fromkeys(models))
            raise EvaluationError(f"The pattern {pattern} of the family {family} matches none of the models {shown}.")


def _verdicts(runs: Sequence[Run]) -> pl.DataFrame:
    frames, seen = [], set()
    for run in runs:
        key = run.name, run.config.judge_setting("setting"), run.config.judge_setting("variables")
        judge = f"{run.name} ({run.path.name})" if key in seen else run.name
        seen.add(key)
        frames.append(read_verdicts(str(run.path / VERDICTS_FILE)).with_columns(judge=pl.lit(judge)))
    return pl.concat(frames, how="diagonal")


def font_notes(runs: Sequence[Run]) -> list[str]:
    """List what the figures of these runs cannot show because fonts are missing: a sentence, or none."""
    codes = sorted({code for run in _in_languages(runs) for code in run.names("config", "pooled_accuracy")})
    shown = {language.autonym: language.name for language in unrendered(codes)}
    for title in sorted({run.config.benchmark.title for run in runs}):
        shown |= benchmarks.labels_of([run for run in runs if run.config.benchmark.title == title])
    shown |= {run.name: readable(run.name) for run in runs}
    others = ", ".join(f"{label} for {name}" for name, label in shown.items() if label != name)
    noto = "install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)"
    return [f"No installed font has all characters of some names, so figures show {others}; {noto}."] if others else []


def _in_languages(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.config.benchmark.description.reference is not None]
