"""`report`: what runs found, as the long frame of their metrics or as a table for people."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_release import markdown_table
from rich import box
from rich.console import Group
from rich.table import Table as Grid

from pluralbench.errors import EvaluationError
from pluralbench.reports import Format
from pluralbench.reports.notes import notes, with_interval
from pluralbench.results.metrics_frame import METRICS
from pluralbench.results.runs import MISSING, Run

ABOUT = ("run", "model", "kind", "benchmark", "profile", "setting", "variables")
COUNTS = ("n", "ties", "invalid", "dropped", "equal", "truncated")
OVERALL, MEAN_OF_CONFIGS, LANGUAGES = "overall", "mean of configs", "languages"
NAME = 22  # characters of a name in a line of the terminal
BREAK = re.compile(r"(?<=[-_/ .:])")
BOUNDS = re.compile(r" (\[[^\]]*\])")
WORDY = ("against English", "exact match")  # headings of two words, which may stand on two lines
DASH = "–"


class Line(NamedTuple):
    """A line of the table for people: a place of a run and what is known of it."""

    place: str
    accuracy: Estimate
    counts: dict[str, int]
    exact_match: Estimate = MISSING
    drop: Estimate = MISSING
    kappa: Estimate = MISSING


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """The long frames of some runs in one, the best run of a benchmark first.

    The columns of `pluralbench.results.metrics_frame`, and before them `run` (its directory), `model`, `kind`,
    `benchmark`, `profile`, and of the persona judge `setting` and `variables`.
    """
    if not runs:
        return pl.DataFrame(schema=dict.fromkeys(ABOUT, pl.String) | dict(METRICS))
    frames = []
    for run in sorted(runs, key=_order):
        about = [pl.lit(value, dtype=pl.String).alias(name) for name, value in _about(run).items()]
        frames.append(run.metrics.select(*about, pl.all()))
    return pl.concat(frames)


def _about(run: Run) -> dict[str, str | None]:
    record = run.record
    return {
        "run": str(run.path),
        "model": run.name,
        "kind": record.model.kind,
        "benchmark": record.benchmark.name,
        "profile": record.prompt.profile,
        "setting": record.prompt.setting,
        "variables": record.prompt.variables,
    }


def _order(run: Run) -> tuple[str, str, float]:
    # Settings of the persona judge ask different questions, so their accuracies are no ranking.
    value = run.headline.value
    return run.record.benchmark.name, run.record.prompt.setting or "", -1.0 if value is None else -value


def lines_of(run: Run) -> Iterator[Line]:
    """What the table says of a run: the overall number, then its parts.

    Of 23 languages, four sections each are more than a page, so of these only the means over languages are shown; CSV
    and JSON have them.
    """
    benchmark = run.record.benchmark.description
    yield Line(OVERALL, run.headline, _counts(run, "pooled"))
    configs = [*run.names("pooled", "config")]
    if benchmark.by_category and len(configs) > 1:
        means = [run.estimate(metric, "overall") for metric in ("accuracy", "exact_match")]
        yield Line(MEAN_OF_CONFIGS, means[0], {}, means[1])
    if benchmark.reference:
        for section in benchmark.sections:
            found, drop = (run.estimate(metric, "section", section=section) for metric in ("accuracy", "drop"))
            yield Line(f"{LANGUAGES}: {section}", found, {}, drop=drop)
    for config in configs:
        accuracy, exact, drop, kappa = (run.of(config, m) for m in ("accuracy", "exact_match", "drop", "kappa"))
        yield Line(config, accuracy, _counts(run, "pooled", config), exact, drop, kappa)
        for category in run.names("category", "subset", config=config):
            own, exact = (
                run.estimate(m, "category", config=config, subset=category) for m in ("accuracy", "exact_match")
            )
            yield Line(f"{config}: {category}", own, _counts(run, "category", config, category), exact)
        for section in run.names("section", "section", config=config) if not benchmark.reference else ():
            yield Line(f"{config}: {section}", run.estimate("accuracy", "section", config=config, section=section), {})


def _counts(run: Run, group: str, config: str | None = None, subset: str | None = None) -> dict[str, int]:
    decisions = run.estimate("accuracy", group, config=config, subset=subset).n or 0
    return {"n": decisions} | {name: run.count(name, group, config=config, subset=subset) for name in COUNTS[1:]}


def shown(runs: Sequence[Run]) -> pl.DataFrame:
    """The table as people read it: texts, in per cent with intervals; columns that say nothing are left out."""
    ordered = sorted(runs, key=_order)
    names = [Path(run.name).name for run in ordered]
    about = [_about(run) for run in ordered]
    told = [name for name in ("benchmark", "setting", "variables", "profile") if len({one[name] for one in about}) > 1]
    alike = len({(run.name, run.record.benchmark.name) for run in ordered}) < len(ordered)
    by_path = alike or len(set(names)) < len({run.name for run in ordered})
    rows = []
    for run, name, one in zip(ordered, names, about, strict=True):
        head = {"run": str(run.path), "model": name, **{what: one[what] or "" for what in told}}
        rows += [head | _cells(line) for line in lines_of(run)]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    empty = [name for name in frame.columns[1:] if set(frame[name]) <= {"", "0"} and name not in {"n", *told}]
    return frame.drop(empty, *[] if by_path else ["run"])


def _cells(line: Line) -> dict[str, str]:
    return {
        "config": line.place,
        "accuracy": with_interval(line.accuracy, 100, ".1f") or DASH,
        "exact match": with_interval(line.exact_match, 100, ".1f"),
        "against English": with_interval(line.drop, 100, "+.1f"),
        "kappa": "" if line.kappa.value is None else f"{line.kappa.value:.2f}",
        **{name: f"{line.counts[name]:,}" if name in line.counts else "" for name in COUNTS},
    }


def render(runs: Sequence[Run], form: Format) -> str | Group:
    """The report of some runs; in the terminal a table for each benchmark. Raises `EvaluationError` for none."""
    if not runs:
        raise EvaluationError("There is no run to report; give one or more run directories.")
    match form:
        case "json":
            return json.dumps(report_frame(runs).to_dicts(), indent=1, ensure_ascii=False, allow_nan=False)
        case "csv":
            return report_frame(runs).write_csv()
        case "markdown":
            lines = "\n".join(f"- {note}" for note in notes(runs))
            return f"{markdown_table(shown(runs))}\n\n{lines}"
        case "table":
            names = dict.fromkeys(run.record.benchmark.name for run in sorted(runs, key=_order))
            by_benchmark = ([run for run in runs if run.record.benchmark.name == name] for name in names)
            return Group(*(_grid(shown(ours), ours[0].record.benchmark.title) for ours in by_benchmark))


def _grid(frame: pl.DataFrame, title: str) -> Grid:
    """The table for a terminal: a heading for each run, long names broken, intervals below their values."""
    grid = Grid(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    place = frame.columns.index("config")
    widest = max(len(line) for name in frame["config"] for line in broken(name).split("\n"))
    grid.add_column("", overflow="fold", min_width=min(widest, NAME) + 2)
    for name in frame.columns[place + 1 :]:
        grid.add_column(name, justify="right" if name in COUNTS else "left", no_wrap=name not in WORDY)
    before = None
    for row in frame.iter_rows():
        about = [name for name in row[:place] if name]
        if about != before:
            grid.add_row(broken("\n".join(about)), style="italic")
            before = about
        lines = broken(row[place]).split("\n")
        cells = (BOUNDS.sub(r"\n\1", cell) for cell in row[place + 1 :])
        grid.add_row("\n".join(f"  {line}" for line in lines), *cells)
    return grid


def broken(text: str, width: int = NAME) -> str:
    """A text on lines of at most so many characters, broken after a hyphen, underscore, dot, slash or space."""
    lines = []
    for line in text.split("\n"):
        now = ""
        for part in BREAK.split(line):
            if now and len(now) + len(part.rstrip()) > width:
                lines.append(now.rstrip())
                now = ""
            now += part
        lines.append(now.rstrip())
    return "\n".join(lines)
