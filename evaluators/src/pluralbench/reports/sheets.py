"""What a report shows of some runs: for each benchmark, and each set of its items, a row a model.

A sheet has what can be compared: runs of one benchmark on the same items, by one rule. Its columns are the overall
number and the parts it is made of, each a place in the runs' metrics.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.benchmarks import Benchmark, known_benchmarks
from pluralbench.reports.names import asked_differently, row_names
from pluralbench.reports.numbers import Kind, percent, points, two_digits
from pluralbench.results.metrics_frame import Place
from pluralbench.results.runs import MISSING, Run, items_text

REFERENCES = {"coin": "coin", "longer": "longer answer", "shorter": "shorter answer"}
"""Reference points: what these get on the same items, by the words in which a report names them."""

OF_REFERENCE = {"overall": "overall_of_{}", "accuracy": "{}", "exact_match": "exact_match_of_{}"}
PLAIN = "default"
DATA: dict[str, Callable[[Run], str]] = {
    "at {}": lambda run: (run.config.data.revision or "")[:7],
    "limit {} per config": lambda run: f"{run.config.data.limit or ''}",
}
"""What can tell the items of runs apart, and how that is said; where nothing of it does, their content."""


class Column(NamedTuple):
    """A number that each row has. part: of what the overall number is made of. shift: it is a difference."""

    heading: str
    place: Place
    part: bool = False
    shift: bool = False

    @property
    def key(self) -> str:
        """Its name in JSON: the metric, or of a part what is above it."""
        return self.heading if self.part else self.place.metric

    @property
    def kind(self) -> Kind:
        """How its numbers are written."""
        return two_digits if self.place.metric == "kappa" else points if self.shift else percent


class Row(NamedTuple):
    """A row: a run, or a reference point on the items of a run."""

    name: str
    run: Run
    reference: str | None = None

    def number(self, column: Column) -> Estimate:
        """What the row has in a column."""
        place = column.place
        if self.reference is not None:
            if place.metric not in OF_REFERENCE:
                return MISSING
            place = place._replace(metric=OF_REFERENCE[place.metric].format(self.reference))
        return self.run.estimate(
            place.metric, place.group, config=place.config, section=place.section, subset=place.subset
        )


class Sheet(NamedTuple):
    """Runs of a benchmark on the same items, the best one first, and the reference points on these items.

    title: of the benchmark, see `title_of`. items: how many there are. told: what tells the sheet from others of its
    benchmark. other: its items are other ones than those of the benchmark's first sheet in this setting, so its numbers
    cannot be held against that one's.
    """

    title: str
    items: int
    told: tuple[str, ...]
    other: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    references: tuple[Row, ...]

    @property
    def runs(self) -> list[Run]:
        """The runs, in the order of the rows."""
        return [row.run for row in self.rows]

    @property
    def size(self) -> str:
        """How many items there are, and how many of them count towards the overall numbers, if not all."""
        text = items_text([run.items_counted for run in self.runs], self.items)
        return text.replace(" item", " other item") if self.other else text

    @property
    def heading(self) -> str:
        """The benchmark, what tells the sheet apart, and how many items it is on."""
        return ", ".join([self.title, *self.told, self.size])


def sheets_of(runs: Sequence[Run]) -> list[Sheet]:
    """The sheets of some runs, benchmark by benchmark; of one benchmark those on the most items first."""
    found = []
    for ours in _grouped(runs, lambda run: (run.config.benchmark.name, run.config.benchmark.description.title)):
        by_setting = list(_grouped(ours, lambda run: run.config.judge_setting("setting") or ""))
        for same in by_setting:
            parts = sorted(_grouped(same, _comparable), key=lambda part: (-_items(part[0]).height, str(part[0].path)))
            first = _content(parts[0][0])
            for part in parts:
                told = tuple(_apart(part, parts))
                found.append(_sheet(part, told, other=_content(part[0]) != first))
    return found


def _grouped(runs: Sequence[Run], by: Callable[[Run], Any]) -> Iterator[list[Run]]:
    keys = {id(run): by(run) for run in runs}
    for key in sorted(set(keys.values())):
        yield [run for run in runs if keys[id(run)] == key]


def _comparable(run: Run) -> tuple[tuple[str, str], bytes]:
    """Alike for runs whose numbers can be compared: made by one rule of the same items."""
    return _rule(run), _content(run)


def _items(run: Run) -> pl.DataFrame:
    """What names the items that enter the overall number, a row an item."""
    outside = sorted(run.config.benchmark.description.outside_overall)
    return run.items.filter(~pl.col("config").is_in(outside)).select("config", "id", "digest").unique()


def _content(run: Run) -> bytes:
    """The same for runs on the same items, in this process."""
    return _items(run).hash_rows().sort().to_numpy().tobytes()


def _apart(runs: Sequence[Run], sheets: Sequence[Sequence[Run]]) -> Iterator[str]:
    """What tells a sheet from others of its benchmark and setting, in words, and what stands in its names' brackets."""
    run = runs[0]
    setting, benchmark = run.config.judge_setting("setting"), run.config.benchmark.description
    if setting is not None:
        yield f"setting {setting}"
        if len({other.config.judge_setting("variables") for other in runs}) == 1:
            yield f"variables {run.config.judge_setting('variables')}"
    differ = asked_differently(runs)
    if differ:
        yield f"in brackets the {' and '.join(differ)}"
    inside = [config for config in run.names("pooled", "config") if config not in benchmark.outside_overall]
    if len(inside) == 1 and inside[0] not in {PLAIN, run.config.benchmark.name}:
        yield inside[0]
    others = [sheet[0] for sheet in sheets]
    sources = {how: of for how, of in DATA.items() if len({of(other) for other in others}) > 1}
    yield from (how.format(of(run)) for how, of in sources.items() if of(run))
    alike = [sheet[0] for sheet in sheets if title_of(sheet) == title_of(runs)]
    if not sources and len({_content(other) for other in alike}) > 1:
        yield f"content {run.config.data.digest[:7]}"
    if len({_rule(other) for other in others}) > 1:
        yield "legacy rules" if _is_legacy(benchmark) else "its own rules"


def _rule(run: Run) -> tuple[str, str]:
    """How the overall number is made, weights included."""
    return run.config.benchmark.rule, str(run.config.benchmark.description.sections)


def _is_legacy(benchmark: Benchmark) -> bool:
    older = known_benchmarks()[benchmark.legacy].sections if benchmark.legacy else None
    return not benchmark.ties_break_exact_match or benchmark.sections == older


def _sheet(runs: Sequence[Run], told: tuple[str, ...], *, other: bool) -> Sheet:
    ordered = sorted(runs, key=_order)
    names = row_names(ordered)
    rows = tuple(Row(name, run) for name, run in zip(names, ordered, strict=True))
    columns = tuple(dict.fromkeys(column for run in ordered for column in columns_of(run)))
    return Sheet(
        title=title_of(ordered),
        items=ordered[0].items_total,
        told=told,
        other=other,
        columns=columns,
        rows=rows,
        references=tuple(_references(ordered)),
    )


def title_of(runs: Sequence[Run]) -> str:
    """What to call the benchmark of some runs: by all their data, of which copies of the published ones are some."""
    published, titles = runs[0].config.benchmark.description.title, {run.config.benchmark.title for run in runs}
    copies = published in titles and len({run.config.data.digest for run in runs}) == 1
    return published if copies else " / ".join(sorted(titles))


def _order(run: Run) -> float:
    return float("inf") if run.headline.value is None else -run.headline.value


def _references(runs: Sequence[Run]) -> Iterator[Row]:
    """Reference points, of the first run that has them: all are on the same items."""
    for reference, name in REFERENCES.items():
        metric = OF_REFERENCE["overall"].format(reference)
        run = next((run for run in runs if run.estimate(metric, "overall").value is not None), None)
        if run is not None:
            yield Row(name, run, reference)


def columns_of(run: Run) -> Iterator[Column]:
    """The overall number and what it is made of, as the benchmark makes it; of a run without one what there is."""
    benchmark = run.config.benchmark.description
    yield Column("overall", Place("overall", "overall"))
    every = run.names("pooled", "config")
    if every and set(every) <= benchmark.excluded_configs.keys():
        yield from _of_apart(run)
        return
    if benchmark.reference is not None:
        yield from _of_languages(run)
        return
    configs = [config for config in every if config not in benchmark.outside_overall]
    metrics = {"accuracy": "accuracy"}
    if benchmark.by_category:
        metrics["exact_match"] = "exact match"
        for metric, name in metrics.items():
            yield Column(name, Place("overall", metric))
    if len(configs) > 1:
        for config in configs:
            for metric, name in metrics.items():
                heading = f"{config}: {name}" if benchmark.by_category else config
                yield Column(heading, Place("config", metric, config), part=True)
    elif benchmark.sections and configs:
        for section in benchmark.sections:
            yield Column(section, Place("section", "accuracy", configs[0], section), part=True)


def _of_apart(run: Run) -> Iterator[Column]:
    """The configs that stay out of the overall number, and their subsets."""
    for config in run.names("excluded", "config"):
        yield Column(config, Place("excluded", "accuracy", config), part=True)
        for subset in run.names("subset", "subset", config=config):
            yield Column(subset, Place("subset", "accuracy", config, None, subset), part=True)


def _of_languages(run: Run) -> Iterator[Column]:
    """Of languages their means: 23 of four sections each are more than a table holds."""
    benchmark = run.config.benchmark.description
    if run.estimate("drop", "overall").value is not None:
        yield Column("against English", Place("overall", "drop"), shift=True)
    if run.estimate("kappa", "overall").value is not None:
        yield Column("kappa", Place("overall", "kappa"))
    for section in benchmark.sections:
        yield Column(section, Place("section", "accuracy", section=section), part=True)
    if not benchmark.sections:
        for level in run.names("resource", "subset"):
            yield Column(f"{level} resource", Place("resource", "accuracy", subset=level), part=True)
