"""Policy outcomes by reward model and config, in the layout of Personalized RewardBench, Table 5."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import Estimate

from pluralbench.metrics.metric import START
from pluralbench.reports.downstream import KEYS, invalid_notes, line_of, people_notes
from pluralbench.reports.layout import first_words
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import Report, long_frame
from pluralbench.results.numbers import four_digits
from pluralbench.results.runs import Downstream

RANK, PROMPTS = "Rank", "prompts"
RANKED = "Ranks ignore the intervals; reward models with overlapping intervals may not differ."
UNEVEN = "Where rows are over different prompts, which `prompts` counts, they cannot be compared and have no rank."


def report_downstream(runs: Sequence[Downstream]) -> Report:
    """Report directories of `best-of-n` and `optimize`; JSON and CSV have the long frame of their numbers."""
    tables = tables_of(runs)
    notes = [
        f"{line_of(run)}. {' '.join([*people_notes(run), *invalid_notes(run)])}".rstrip(". ") + "." for run in runs
    ]
    if tables:
        notes += [f"Values, judged by {judge}: {scale}." for judge, scale in dict.fromkeys(_judges(runs))]
    last = {table.columns[-1].text for table in tables}
    notes += [note for heading, note in ((RANK, RANKED), (PROMPTS, UNEVEN)) if heading in last]
    return Report(tables, notes, long_frame((run.path, run.metrics) for run in runs))


def tables_of(runs: Sequence[Downstream]) -> list[Table]:
    """Make a table for each judged directory of `best-of-n`, and one for those of `optimize` that share a policy.

    Directories of `optimize` share a table if they differ in the reward model only.
    """
    groups: dict[str, list[Downstream]] = {}
    for run in runs:
        result = run.result
        if result.outcome is not None and any(_outcome(run, name).value is not None for name in result.rewards):
            groups.setdefault(str(run.path) if run.verb == "best-of-n" else _settings(run), []).append(run)
    return [_table(own) for own in groups.values()]


def _outcome(run: Downstream, name: str, config: str | None = None) -> Estimate:
    """The outcome of the policy optimized against a reward model, or of the largest best of k by it."""
    if run.verb == "optimize":
        return run.estimate("outcome", config=config)
    return run.estimate("outcome", model=name, k=run.result.sampling.sizes[-1], config=config)


def _settings(run: Downstream) -> str:
    """The settings that directories of `optimize` in one table share."""
    config, result = run.config, run.result
    settings = (result.optimization or {}).get("settings", {})
    judged = "" if result.outcome is None else f"{result.outcome.judge.name} {config.outcome.measure}"
    optimization = {name: value for name, value in settings.items() if name != "reward"}
    return repr((result.policy, config.data.digest, config.prompt, judged, optimization, config.seed))


def _table(runs: Sequence[Downstream]) -> Table:
    config, result = runs[0].config, runs[0].result
    configs = [*config.data.rows] if len(config.data.rows) > 1 else []
    overall = "Mean" if config.benchmark.description.overall != "items" else "All"
    levels = dict(_rows(runs, configs))
    overall_values = [value for own in levels.values() if (value := own[-1].value) is not None]
    base = [_base(runs[0], name) for name in (*configs, None)]
    prompts = {one.n for one in (base[-1], *(own[-1] for own in levels.values())) if one.value is not None}
    last = RANK if len(prompts) < 2 else PROMPTS
    rows = (
        [Row("Base", (*base, None if last == RANK else base[-1].n), quiet=True)] if base[-1].value is not None else []
    )
    rows += [
        Row(name, (*own, _rank(own[-1].value, overall_values) if last == RANK else own[-1].n))
        for name, own in levels.items()
    ]
    columns = [Column(text, four_digits, bounds=False, part=True) for text in first_words(configs)]
    columns += [Column(overall, four_digits), Column(last)]
    assert result.outcome is not None  # noqa: S101 - `tables_of` checked it
    method = f"best of {result.sampling.sizes[-1]} answers of"
    if result.optimization is not None:
        method = f"{result.optimization['settings']['options']['algorithm'].upper()} of"
    title = f"{config.benchmark.title}: {method} {Path(result.policy.name).name}, {KEYS[config.outcome.measure]}"
    return Table(title, "reward model", columns, rows)


def _rows(runs: Sequence[Downstream], configs: Sequence[str]) -> Iterator[tuple[str, list[Estimate]]]:
    """The outcomes by each reward model in each config and overall, under a unique row name."""
    names = Counter(name for run in runs for name in run.result.rewards)
    for run in runs:
        for name in run.result.rewards:
            own = [_outcome(run, name, config) for config in (*configs, None)]
            yield name if names[name] == 1 else f"{name} ({run.path.name})", own


def _base(run: Downstream, config: str | None) -> Estimate:
    """The outcome of the policy by itself; for `optimize`, before optimization."""
    return run.estimate("outcome", config=config, policy=START if run.verb == "optimize" else None)


def _rank(value: float | None, values: Sequence[float]) -> int | None:
    return None if value is None else 1 + sum(other > value for other in values)


def _judges(runs: Sequence[Downstream]) -> Iterator[tuple[str, str]]:
    for run in runs:
        if run.result.outcome is not None:
            yield run.result.outcome.judge.name, run.result.outcome.scale
