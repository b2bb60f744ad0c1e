"""Sheets: the comparable runs of a report, one row for each model.

Its runs are of one benchmark on the same items with the same rule, and its columns the overall number and its parts.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import polars as pl

from pluralbench.data.benchmark_entries import known_benchmarks, legacy_sections
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules import rule_of
from pluralbench.metrics.metric import BASELINES, PEOPLE
from pluralbench.metrics.responses import LEVELS
from pluralbench.metrics.table import METRICS
from pluralbench.reports.profile_modes import ModeRun, modes_of
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.names import differing_prompt_settings, row_names
from pluralbench.results.numbers import KINDS, p_value, points
from pluralbench.results.runs import MISSING, Run, items_text

UNREADABLE = "unreadable"
"""Text in place of a number that rests on a minority of the verdicts; see `Run.unreadable`."""
PLAIN = "default"
DATA: dict[str, Callable[[Run], str]] = {
    "at {}": lambda run: (run.config.data.revision or "")[:7],
    "limit {} per config": lambda run: f"{run.config.data.limit or ''}",
    "drawn by seed {}": lambda run: "" if run.config.data.items is None else f"{run.config.data.items_seed}",
}
"""Data settings that can distinguish sheets, by the format of their text; sheets that agree in all show a digest."""


def number_column(heading: str, key: MetricKey, *, part: bool = False) -> Column:
    """Make the column of a number that each run has, in the format of its metric."""
    return Column(heading, KINDS[METRICS[key.metric].unit], part=part, key=key)


Subject = tuple[str, str | None]
"""The name of a benchmark, and the location of its data if it has none of its own."""


def subject_of(run: Run) -> Subject:
    """Return what a run measures: two tables of one's own are as different as two benchmarks."""
    benchmark = run.config.benchmark
    return benchmark.name, str(run.config.data.location) if benchmark.description.data is None else None


class Sheet(NamedTuple):
    """Runs of a benchmark on the same items, the best one first, and the baselines on these items.

    Attributes:
        qualifiers: Texts that distinguish the sheet from others of its benchmark.
        other: The items differ from those of the first sheet of this subject in this setting, so the numbers of the
            two cannot be compared.
        rows: A row for each run, then the quiet ones of the baselines.
        modes: The runs of each model that has runs without and with user context; see `modes_of`.
    """

    title: str
    items: int
    qualifiers: tuple[str, ...]
    other: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    modes: Sequence[Sequence[ModeRun]]

    @property
    def runs(self) -> list[Run]:
        """The runs, in the order of their rows."""
        return [run for row in self.rows if not row.quiet for run in row.runs]

    @property
    def subject(self) -> Subject:
        """What the numbers are about; see `subject_of`."""
        return subject_of(self.runs[0])

    @property
    def size(self) -> str:
        """Number of items, and how many of them count in the overall numbers if not all do."""
        text = items_text([run.items_counted for run in self.runs], self.items)
        text = text.replace(" item", " other item") if self.other else text
        return f"{text}, stratified" if self.runs[0].config.data.items is not None else text

    @property
    def heading(self) -> str:
        """Title of the sheet: the benchmark, the qualifiers and the number of items."""
        return ", ".join([self.title, *self.qualifiers, self.size])


def sheets_of(runs: Sequence[Run]) -> list[Sheet]:
    """Group runs into sheets, benchmark by benchmark; within a benchmark those on the most items come first."""
    sheets = []
    for benchmark_runs in _grouped(
        runs, lambda run: (run.config.benchmark.name, run.config.benchmark.description.title)
    ):
        by_setting = list(_grouped(benchmark_runs, lambda run: run.config.judge_setting("setting") or ""))
        for same in by_setting:
            # Runs can be compared that have the same rule on the same items.
            parts = list(_grouped(same, lambda run: (_rule(run), _content(run))))
            parts.sort(key=lambda part: (-len(_content(part[0])), str(part[0].path)))
            firsts: dict[Subject, bytes] = {}
            for part in parts:
                content, subjects = _content(part[0]), dict.fromkeys(map(subject_of, part))
                first = next((firsts[one] for one in subjects if one in firsts), content)
                firsts = dict.fromkeys(subjects, first) | firsts
                best = sorted(part, key=lambda run: inf if run.headline.value is None else -run.headline.value)
                columns = tuple(dict.fromkeys(column for run in best for column in columns_of(run)))
                rows = (*_rows(best, columns), *_baselines(best, columns))
                about = tuple(_qualifiers(part, parts)), content != first
                sheets.append(Sheet(title_of(best), best[0].items_total, *about, columns, rows, modes_of(best)))
    return sheets


def _grouped(runs: Sequence[Run], by: Callable[[Run], Any]) -> Iterator[list[Run]]:
    keys = {id(run): by(run) for run in runs}
    for key in sorted(set(keys.values())):
        yield [run for run in runs if keys[id(run)] == key]


def _content(run: Run) -> bytes:
    """The sorted hashes of the items that count in the overall number, stable only within this process."""
    outside = sorted(run.config.benchmark.description.outside_overall)
    items = run.items.filter(~pl.col("config").is_in(outside)).select("config", "id", "digest").unique()
    return items.hash_rows().sort().to_numpy().tobytes()


def _qualifiers(runs: Sequence[Run], sheets: Sequence[Sequence[Run]]) -> Iterator[str]:
    """What distinguishes a sheet from others of its benchmark and setting, and what the brackets in its names mean."""
    run = runs[0]
    setting, benchmark = run.config.judge_setting("setting"), run.config.benchmark.description
    if setting is not None:
        yield f"setting {setting}"
        if len({other.config.judge_setting("variables") for other in runs}) == 1:
            yield f"variables {run.config.judge_setting('variables')}"
    differ = differing_prompt_settings(runs)
    if differ:
        yield f"{' and '.join(differ)} in brackets"
    inside = [config for config in run.names("config", "pooled_accuracy") if config not in benchmark.outside_overall]
    if len(inside) == 1 and inside[0] not in {PLAIN, run.config.benchmark.name} and not benchmark.join_configs:
        yield inside[0]
    others = [sheet[0] for sheet in sheets]
    sources = {how: of for how, of in DATA.items() if len({of(other) for other in others}) > 1}
    yield from (how.format(of(run)) for how, of in sources.items() if of(run))
    alike = [sheet[0] for sheet in sheets if title_of(sheet) == title_of(runs)]
    if not sources and len({_content(other) for other in alike}) > 1:
        yield f"content {run.config.data.digest[:7]}"
    if len({_rule(other) for other in others}) > 1:
        older = legacy_sections(benchmark.legacy) if benchmark.legacy in known_benchmarks() else None
        is_legacy = not benchmark.ties_break_exact_match or benchmark.sections == older
        yield "legacy rules" if is_legacy else "its own rules"


def _rule(run: Run) -> tuple[str, str]:
    """How the overall number is computed, including the weights."""
    return run.config.benchmark.rule, str(run.config.benchmark.description.sections)


def _rows(runs: Sequence[Run], columns: Sequence[Column]) -> Iterator[Row]:
    for name, run in zip(row_names(runs), runs, strict=True):
        values: list[Value] = [MISSING if run.unreadable else run.at(column.key) for column in columns]
        if run.unreadable and columns[0].key.metric == "overall":
            values[0] = UNREADABLE
        yield Row(name, values, runs=[run])


def _baselines(runs: Sequence[Run], columns: Sequence[Column]) -> Iterator[Row]:
    """The baselines of the first run that has them; all runs are on the same items."""
    for baseline, name in BASELINES.items():
        metric = "agreement_with_annotations" if baseline == PEOPLE else "overall"
        run = next((run for run in runs if run.estimate(metric, baseline=baseline).value is not None), None)
        if run is not None:
            numbers = [run.at(column.key._replace(baseline=baseline)) for column in columns]
            yield Row(name, ["" if one.value is None else one for one in numbers], quiet=True, runs=[run])


def table_of(sheet: Sheet, *, wide: bool) -> Table:
    """Make the table of a sheet; with `wide` every number has its interval, otherwise only the overall one."""
    columns = [one._replace(bounds=wide or not place) for place, one in enumerate(sheet.columns)]
    several = len(sheet.runs) > 1
    close = [
        f"{row.name}: {text}" if several else text
        for row, run in zip(sheet.rows, sheet.runs, strict=False)
        if (text := run.mostly_close_margins)
    ]
    return Table("; ".join([sheet.heading, *close]), "model", columns, sheet.rows)


def modes_table(sheet: Sheet) -> Table:
    """Make a row for each model and profile mode: the overall number, and the paired difference to no user context."""
    modes = [mode for own in sheet.modes for mode in own]
    rows = []
    for name, (run, _, gain) in zip(row_names([mode.run for mode in modes]), modes, strict=True):
        values: list[Value] = ["", ""]
        if gain is not None and gain.difference is not None:
            values = [gain.estimate, gain.p_value]
        rows.append(Row(name, [run.headline, *values]))
    columns = (Column("overall"), Column("against none", points), Column("p", p_value))
    return Table(f"{sheet.heading}: user context", "model", columns, rows)


def title_of(runs: Sequence[Run]) -> str:
    """Return the title of the runs' benchmark: the published one if all are on copies of its data, else their own."""
    published, titles = runs[0].config.benchmark.description.title, {run.config.benchmark.title for run in runs}
    copies = published in titles and len({run.config.data.digest for run in runs}) == 1
    return published if copies else " / ".join(sorted(titles))


def columns_of(run: Run) -> Iterator[Column]:
    """Yield the columns of a run: the overall number, other metrics, and its parts, as the benchmark defines them.

    A run that has only configs outside the overall number gets those configs and their subsets.
    """
    benchmark = run.config.benchmark.description
    yield number_column("overall", MetricKey("overall"))
    every = run.names("config", "pooled_accuracy")
    if every and set(every) <= benchmark.excluded_configs.keys():
        yield from _of_excluded(run)
        return
    shown = [metric for metric in METRICS.values() if metric.in_tables]
    yield from (
        number_column(one.heading, MetricKey(one.name)) for one in shown if run.estimate(one.name).value is not None
    )
    if benchmark.reference is not None:
        yield from _of_languages(run)
        return
    configs = [config for config in every if config not in benchmark.outside_overall]
    rule = rule_of(benchmark)
    own = [one for one in shown if one.name in {rule.metric, *rule.pooled}]
    for key in run.keys("accuracy", "subset", config=None):
        yield number_column(str(key.subset), key, part=True)
    if len(configs) > 1:
        for config in configs:
            for one in own:
                heading = f"{config}: {one.heading}" if len(own) > 1 else config
                yield number_column(heading, MetricKey(one.name, config), part=True)
    elif benchmark.sections and configs:
        for section in benchmark.sections:
            yield number_column(section, MetricKey("accuracy", configs[0], section=section), part=True)
        if not rule.by_config:
            yield number_column("mean of sections", MetricKey("accuracy", configs[0]), part=True)
    for level in levels_of(run):
        yield number_column(level, MetricKey("style_accuracy", level=level), part=True)
    if len(configs) == 1:
        yield from _of_config(run, configs[0])


def _of_config(run: Run, config: str) -> Iterator[Column]:
    for k in run.names("k", "best_of_k", config=config)[-1:]:
        yield number_column(f"best of {k}", MetricKey("best_of_k", config, k=k), part=True)
    for metric in METRICS.values():
        if metric.in_tables and "" not in metric.dimensions and run.estimate(metric.name, config=config) is not MISSING:
            yield number_column(metric.heading, MetricKey(metric.name, config), part=True)


def levels_of(run: Run) -> list[str]:
    """Return the levels of difficulty that a run has numbers of, the easiest first."""
    present = run.names("level", "style_accuracy")
    return [level for level in LEVELS if level in present]


def _of_excluded(run: Run) -> Iterator[Column]:
    for config in run.excluded_configs:
        yield number_column(config, MetricKey("accuracy", config), part=True)
        for key in run.keys("accuracy", "subset", config=config):
            yield number_column(str(key.subset), key, part=True)


def _of_languages(run: Run) -> Iterator[Column]:
    """Means over languages: 23 languages with four sections each are too many columns."""
    sections = run.config.benchmark.description.sections
    for section in sections:
        yield number_column(section, MetricKey("accuracy", section=section), part=True)
    for level in () if sections else run.names("resource"):
        yield number_column(f"{level} resource", MetricKey("accuracy", resource=level), part=True)


def language_tables(sheet: Sheet) -> Iterator[Table]:
    """Yield tables by language, of the difference from English by section, and by subset outside the overall number.

    They have the layout of M-RewardBench's Tables 2 to 4. A benchmark in one language has none.
    """
    benchmark = sheet.runs[0].config.benchmark.description
    if benchmark.reference is None:
        return
    languages = dict.fromkeys(code for run in sheet.runs for code in run.configs)
    every = {
        "accuracy by language": [
            number_column("overall", MetricKey("overall")),
            number_column(METRICS["variance"].heading, MetricKey("variance")),
            *(number_column(code, MetricKey("accuracy", code), part=True) for code in languages),
        ],
        "accuracy minus that in English, in points": [
            number_column("overall", MetricKey("drop")),
            *(number_column(name, MetricKey("drop", section=name), part=True) for name in benchmark.sections),
        ],
    }
    for column in dict.fromkeys(column for run in sheet.runs for column in _of_excluded(run)):
        if (config := str(column.key.config)) != benchmark.reference.config:
            short = column._replace(text=column.text.removeprefix(f"{config}-"))
            every.setdefault(f"accuracy on {config}", []).append(short)
    for title, columns in every.items():
        if any(run.at(column.key).value is not None for run in sheet.runs if not run.unreadable for column in columns):
            rows = tuple(_rows(sheet.runs, columns))
            own = table_of(sheet._replace(columns=tuple(columns), rows=rows), wide=False)
            yield own._replace(title=", ".join([f"{sheet.title}: {title}", *sheet.qualifiers]))


def definitions_of(sheets: Sequence[Sheet]) -> dict[str, str]:
    """Return the definitions of the metrics that sheets show."""
    shown = {column.key.metric for sheet in sheets for column in sheet.columns}
    shown |= {name for sheet in sheets for name in sheet.runs[0].config.benchmark.description.metrics}
    return {term: text for name, metric in METRICS.items() if name in shown for term, text in metric.terms.items()}
