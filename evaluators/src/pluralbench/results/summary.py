"""Short views of runs for notebooks: one line, a row of numbers, and a small HTML table."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import log_status

from pluralbench.errors import RunError
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.finding import find_runs
from pluralbench.results.runs import Run
from pluralbench.results.suite import SuiteRun

COUNTS = ("ties", "invalid", "dropped", "equal", "truncated")
SUMMARY = pl.Schema(
    dict.fromkeys(("model", "benchmark", "profile"), pl.String())
    | dict.fromkeys(("overall", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "clusters"), pl.Int64())
    | {"coin": pl.Float64()}
    | dict.fromkeys(COUNTS, pl.Int64())
    | {"run": pl.String()}
)
"""Columns of `Run.summary` and `pluralbench.results`."""

BASELINES = {"coin": "coin", "longer": "longer answer", "shorter": "shorter answer"}
RIGHT = 'style="text-align: right"'
MAX_PARTS = 10
"""Largest number of parts in the table of a run."""


def results(folder: str | Path) -> pl.DataFrame:
    """Read the numbers of all benchmark runs in a directory, the best run of a benchmark first.

    Runs of other commands have no overall number; a message on standard error counts them.

    Args:
        folder: Run directory, or a directory that contains some.

    Returns:
        A row for each run: `model`, `benchmark`, `profile` (the user context), `overall` with the 95% interval from
        `low` to `high`, as shares from 0 to 1, `n` and `clusters` (the numbers of items and of prompts or users behind
        it), `coin` (a coin on the same items), the counts `ties`, `invalid`, `dropped`, `equal` and `truncated`, and
        `run`, the directory.

    Raises:
        RunError: The directory has no run, or only shards.
    """
    found = find_runs([Path(folder)])
    others = len(found.downstream) + len(found.personalized)
    if others:
        log_status(f"{others:,} runs in {folder} have no overall number and no row; read them by `load_run`.")
    frames = [summary(run) for run in found.runs]
    return pl.concat(frames or [pl.DataFrame(schema=SUMMARY)]).sort(
        "benchmark", "overall", descending=[False, True], nulls_last=True, maintain_order=True
    )


def summary(run: Run[Any, Any]) -> pl.DataFrame:
    """Return the row of a run; see `results`.

    Raises:
        RunError: The run has no overall number, because it is of a command other than `score` and the judges.
    """
    if not isinstance(run.config, EvaluationRunConfig):
        raise RunError(f"{run.path} is a run of `{run.verb}`, which has no overall number; read its `metrics`.")
    number = run.headline
    row = {
        "model": run.name,
        "benchmark": run.config.benchmark.name,
        "profile": run.config.prompt.profile,
        "overall": number.value,
        "low": number.low,
        "high": number.high,
        "n": run.items_counted,
        "clusters": number.clusters,
        "coin": run.estimate("overall_of_coin", "overall").value,
        **{name: run.count(name) for name in COUNTS},
        "run": str(run.path),
    }
    return pl.DataFrame([row], schema=SUMMARY)


def suite_summary(suite: SuiteRun) -> pl.DataFrame:
    """Return a row for each finished run of a suite, in its order; see `results`."""
    frames = [summary(suite.runs[one.key]) for one in suite.suite.benchmarks if one.key in suite.runs]
    return pl.concat(frames or [pl.DataFrame(schema=SUMMARY)])


def one_line(run: Run[Any, Any]) -> str:
    """Describe a run in one line: model, benchmark, overall number with its interval, items and directory."""
    if not isinstance(run.config, EvaluationRunConfig):
        return f"<Run of {run.verb}: {run.path}>"
    title = run.config.benchmark.title
    return f"<Run of {run.verb}: {run.name} on {title}, {_text(run.headline)}, {run.size}, {run.path}>"


def suite_line(suite: SuiteRun) -> str:
    """Describe a suite in one line: model, mean with its interval, benchmarks and directory."""
    mean = suite.mean
    benchmarks = f"{len(suite.runs)} of {len([*suite.suite.benchmarks])} benchmarks"
    number = f"mean of {mean.columns} of {mean.total} columns {_text(mean.estimate)}"
    return f"<Suite {suite.suite.title}: {suite.model}, {number}, {benchmarks}, {suite.path}>"


def run_html(run: Run[Any, Any]) -> str:
    """Return the table of a run: the overall number, its parts and the baselines on the same items."""
    if not isinstance(run.config, EvaluationRunConfig):
        return f"<p>{escape(one_line(run).strip('<>'))}; its numbers are in <code>metrics</code>.</p>"
    parts = [*_parts(run)]
    left = len(parts) - MAX_PARTS
    numbers = [("overall", run.headline), *parts[:MAX_PARTS], *_baselines(run)]
    counts = [f"{name.capitalize()}: {run.count(name):,}" for name in COUNTS if run.count(name)]
    counts += [f"Further parts, in `metrics`: {left:,}"] if left > 0 else []
    title = f"{run.name}: {run.config.benchmark.title}, {run.size} ({run.path})"
    return _table(title, numbers, ". ".join(["Accuracy in %", *counts]) + ".")


def suite_html(suite: SuiteRun) -> str:
    """Return the table of a suite: the number of each finished run, and their mean."""
    numbers = [(key, run.headline) for key, run in suite.runs.items()]
    mean = suite.mean
    title = f"{suite.model}: {suite.suite.title} ({suite.path})"
    missing = len([*suite.suite.benchmarks]) - len(suite.runs)
    note = f"Overall numbers in %. Benchmarks that are not finished: {missing:,}."
    return _table(title, [*numbers, (f"mean of {mean.columns} of {mean.total} columns", mean.estimate)], note)


def _parts(run: Run) -> Iterator[tuple[str, Estimate]]:
    """The configs; of a single config its sections."""
    configs = [*run.names("config", "config"), *run.names("excluded", "config")]
    if len(configs) > 1:
        yield from ((config, run.of(config)) for config in configs)
    for config in configs if len(configs) == 1 else ():
        for section in run.names("section", "section", config=config):
            yield section, run.estimate("accuracy", "section", config=config, section=section)


def _baselines(run: Run) -> Iterator[tuple[str, Estimate]]:
    for key, name in BASELINES.items():
        number = run.estimate(f"overall_of_{key}", "overall")
        if number.value is not None:
            yield name, number


def _text(number: Estimate) -> str:
    """A share in percent with its interval, as "41.7 % [22.9, 62.5]"."""
    if number.value is None:
        return "no overall number"
    interval = (
        "" if number.low is None or number.high is None else f" [{100 * number.low:.1f}, {100 * number.high:.1f}]"
    )
    return f"{100 * number.value:.1f} %{interval}"


def _table(title: str, numbers: Sequence[tuple[str, Estimate]], note: str) -> str:
    head = "".join(f'<th scope="col" {RIGHT}>{name}</th>' for name in ("accuracy", "95 % interval", "n"))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td {RIGHT}>{cell}</td>" for cell in _cells(number))}</tr>'
        for name, number in numbers
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(note)}</p>"
    )


def _cells(number: Estimate) -> Iterator[str]:
    yield "–" if number.value is None else f"{100 * number.value:.1f}"
    yield "" if number.low is None or number.high is None else f"{100 * number.low:.1f} to {100 * number.high:.1f}"
    yield "" if number.n is None else f"{number.n:,}"
