"""What reward models did to a policy in each config, in the layout of Personalized RewardBench, Table 5."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.downstream import KEYS, line_of, people_notes
from pluralbench.reports.layout import first_words
from pluralbench.reports.numbers import four_digits
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import Report, long_frame
from pluralbench.results.runs import Downstream, policy_number

RANKED = "Rank: by the overall number alone; intervals that overlap do not tell two reward models apart."


def report_downstream(runs: Sequence[Downstream]) -> Report:
    """The report of some directories; for programs the long frame of their numbers, with the directory."""
    tables = tables_of(runs)
    notes = [f"{line_of(found)}. {' '.join(people_notes(found))}".rstrip(". ") + "." for found in runs]
    if tables:
        notes += [f"Values, judged by {who}: {scale}." for who, scale in dict.fromkeys(_judges(runs))] + [RANKED]
    return Report(tables, notes, long_frame((found.path, found.metrics) for found in runs))


def tables_of(runs: Sequence[Downstream]) -> list[Table]:
    """A table of each judged directory of `best-of-n`, and of those of `optimize` that differ in the reward model."""
    groups: dict[str, list[Downstream]] = {}
    for found in runs:
        result = found.result
        if result.outcome is not None and any(_worth(found, name).value is not None for name in result.rewards):
            groups.setdefault(str(found.path) if found.verb == "best-of-n" else _asked(found), []).append(found)
    return [_table(own) for own in groups.values()]


def _worth(found: Downstream, name: str, config: str | None = None) -> Estimate:
    """What the policy is worth by a reward model: optimised against it, or by the best of the most candidates."""
    if found.verb == "optimize":
        return policy_number(found, "outcome", config=config)
    return policy_number(found, "outcome", model=name, k=found.result.sampling.sizes[-1], config=config)


def _asked(found: Downstream) -> str:
    """What directories of `optimize` share whose policies stand in one table."""
    config, result = found.config, found.result
    settings = (result.optimization or {}).get("settings", {})
    judged = "" if result.outcome is None else f"{result.outcome.judge.name} {config.outcome.measure}"
    made = {name: value for name, value in settings.items() if name != "reward"}
    return repr((result.policy, config.data.digest, config.prompt, judged, made, config.seed))


def _table(runs: Sequence[Downstream]) -> Table:
    config, result = runs[0].config, runs[0].result
    configs = [*config.data.rows] if len(config.data.rows) > 1 else []
    overall = "Mean" if config.benchmark.description.overall != "items" else "All"
    levels = dict(_rows(runs, configs))
    worth = [value for own in levels.values() if (value := own[-1].value) is not None]
    base = [_base(runs[0], name) for name in (*configs, None)]
    rows = [Row("Base", (*base, None), quiet=True)] if base[-1].value is not None else []
    rows += [Row(name, (*own, _rank(own[-1].value, worth))) for name, own in levels.items()]
    columns = [Column(text, four_digits, bounds=False, part=True) for text in first_words(configs)]
    columns += [Column(overall, four_digits), Column("Rank")]
    assert result.outcome is not None  # noqa: S101 - `tables_of` looked
    how = f"best of {result.sampling.sizes[-1]} answers of"
    if result.optimization is not None:
        how = f"{result.optimization['settings']['options']['algorithm'].upper()} of"
    title = f"{config.benchmark.title}: {how} {Path(result.policy.name).name}, {KEYS[config.outcome.measure]}"
    return Table(title, "reward model", columns, rows)


def _rows(runs: Sequence[Downstream], configs: Sequence[str]) -> Iterator[tuple[str, list[Estimate]]]:
    """What the policy is worth by each reward model in each config and overall, under a name that no other row has."""
    names = Counter(name for found in runs for name in found.result.rewards)
    for found in runs:
        for name in found.result.rewards:
            own = [_worth(found, name, config) for config in (*configs, None)]
            yield name if names[name] == 1 else f"{name} ({found.path.name})", own


def _base(found: Downstream, config: str | None) -> Estimate:
    """The policy by itself; of `optimize` the one that it began as."""
    return policy_number(found, "outcome", config=config, start=found.verb == "optimize")


def _rank(value: float | None, values: Sequence[float]) -> int | None:
    return None if value is None else 1 + sum(other > value for other in values)


def _judges(runs: Sequence[Downstream]) -> Iterator[tuple[str, str]]:
    for found in runs:
        if found.result.outcome is not None:
            yield found.result.outcome.judge.name, found.result.outcome.scale
