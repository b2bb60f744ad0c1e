"""Ranks of the models of a table, which of them differ significantly, and their means over benchmarks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, zip_longest
from typing import NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_measures.independent import independent_mean
from pluralbench_measures.paired import Pair, RankInterval, distinct_pairs, ranks
from pluralbench_runs.console import clean

from pluralbench.errors import RunError
from pluralbench.evaluation.compare import overall_difference
from pluralbench.evaluation.shared_decisions import counted_decisions
from pluralbench.metrics.metric import SHOWN_COUNTS
from pluralbench.reports.sheets import Sheet, Subject, table_of
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.names import short_names
from pluralbench.results.numbers import Kind, number, percent, points
from pluralbench.results.runs import MISSING

RANKS = (
    "Models share a rank unless their overall numbers on the same items differ significantly (p < 0.05, "
    "Holm-corrected over all pairs of the table). A range lists every rank that a model may have."
)
MEAN = (
    "Mean: unweighted mean over the benchmarks, for models that have all of them. Its interval assumes that the "
    "benchmarks are independent; its ranks use the mean of the differences on each benchmark."
)
DEFAULTS = {"profile": "none", "variables": "all"}  # values that a name does not show
NAMED = 3  # models that a sentence names


class Ranking(NamedTuple):
    """The ranks of some numbers; None for one that is not ranked.

    Differences are by the indices of two numbers; `problem` says why they cannot be ranked.
    """

    names: Sequence[str]
    numbers: Sequence[Estimate]
    ranks: Sequence[RankInterval | None]
    differences: Mapping[Pair, Estimate]
    problem: str = ""

    def difference(self, one: int, other: int) -> Estimate:
        """Return the first one's number minus that of the other; no value if they were not compared."""
        if other < one:
            return self.differences.get((other, one), MISSING)
        gap = self.differences.get((one, other), MISSING)
        value, high, low = (None if end is None else -end for end in (gap.value, gap.low, gap.high))
        return Estimate(value, low, high, gap.n, gap.clusters, gap.method)

    @property
    def sentence(self) -> str:
        """Which is the best, and from which it cannot be told apart."""
        at = {row: self.numbers[row].value or 0.0 for row, rank in enumerate(self.ranks) if rank is not None}
        if not at:
            return self.problem or "No model has an overall number."
        best = max(at, key=lambda row: at[row])
        distinct = {frozenset(pair) for pair in distinct_pairs(self.differences)}
        others = sorted((row for row in at if row != best), key=lambda row: -at[row])
        same = [row for row in others if frozenset((best, row)) not in distinct]
        text = f"{self.names[best]} has {_in_words(self.numbers[best])}"
        if not others:
            return f"{text}."
        if not same:
            gap = _in_words(self.difference(best, others[0]), points)
            return f"{text} and is best, {gap} points against {self.names[others[0]]}."
        better = len(others) - len(same)
        rest = f" It is better than {'the other model' if better == 1 else f'the other {better} models'}."
        return f"{text}, the most, but cannot be told apart from {self._listed(same)}.{rest if better else ''}"

    def _listed(self, rows: Sequence[int]) -> str:
        names = [self.names[row] for row in rows]
        *first, last = names if len(names) <= NAMED + 1 else [*names[:NAMED], f"{len(names) - NAMED} more"]
        return f"{', '.join(first)} and {last}" if first else last


def _in_words(estimate: Estimate, kind: Kind = percent) -> str:
    value, low, high, _ = number(estimate, kind)
    return f"{value} ({low} to {high})" if low else value


def rank_sheet(sheet: Sheet) -> Ranking:
    """Rank the runs of a sheet that have an overall number and whose verdicts can be read."""
    runs, numbers = sheet.runs, [run.headline for run in sheet.runs]
    names = [clean(row.name) for row in sheet.rows if not row.quiet]
    scored = [at for at, one in enumerate(numbers) if one.value is not None]
    decisions = {at: counted_decisions(runs[at]) for at in scored}
    try:
        differences = {
            (one, other): overall_difference(runs[one], runs[other], decisions[one], decisions[other])
            for one, other in combinations(scored, 2)
        }
    except RunError as error:
        return Ranking(names, numbers, [None] * len(runs), {}, f"The models are not ranked. {error}")
    return _ranking(names, numbers, differences)


def _ranking(names: Sequence[str], numbers: Sequence[Estimate], differences: Mapping[Pair, Estimate]) -> Ranking:
    scored = [at for at, one in enumerate(numbers) if one.value is not None]
    place = {index: position for position, index in enumerate(scored)}
    intervals = ranks(len(scored), {(place[one], place[other]): gap for (one, other), gap in differences.items()})
    every = [intervals[place[at]] if at in place else None for at in range(len(numbers))]
    return Ranking(names, numbers, every, differences)


def ranked_table(sheet: Sheet, ranking: Ranking) -> Table:
    """Make the table of a sheet with all intervals, ranks, and the number of items and what is counted beside them."""
    plain, runs = table_of(sheet, wide=True), sheet.runs
    counted = [name for name in SHOWN_COUNTS if name == "invalid" or any(run.count(name) for run in runs)]
    rows = []
    for row, rank in zip_longest(plain.rows, ranking.ranks):  # baselines have no rank
        counts: list[Value] = [""] * (1 + len(counted))
        if not row.quiet:
            (run,) = row.runs
            counts = [run.items_counted, *(run.count(name) for name in counted)]
        rows.append(row._replace(values=["" if rank is None else rank, *row.values, *counts]))
    columns = [Column("rank"), *plain.columns, *map(Column, ("items", *counted))]
    return plain._replace(columns=columns, rows=rows)


def standings(sheets: Sequence[Sheet], rankings: Sequence[Ranking]) -> tuple[Table, Ranking | None]:
    """Make the table of all models on all benchmarks, those with the best mean first, and rank the means, if any.

    A model with other prompt settings has a row of its own. The first sheet of a subject represents it in the mean.
    """
    main: dict[Subject, int] = {}
    for at, sheet in enumerate(sheets):
        if not sheet.other:
            main.setdefault(sheet.subject, at)
    entries = _entries(sheets)
    rows = [{at: sheets[at].runs[row] for at, row in own.items()} for own in entries.values()]
    data = [sheets[at].runs[0].config.data.digest for at in main.values()]
    means = [
        independent_mean([own[at].headline for at in main.values()], data=data)
        if {*main.values()} <= own.keys()
        else MISSING
        for own in rows
    ]
    ranking = None
    if len(main) > 1 and any(mean.value is not None for mean in means):
        places = list(entries.values())
        scored = [at for at, mean in enumerate(means) if mean.value is not None]
        differences = {
            (one, other): independent_mean(
                [rankings[at].difference(places[other][at], places[one][at]) for at in main.values()], data=data
            )
            for one, other in combinations(scored, 2)
        }
        ranking = _ranking(short_names([clean(name) for name in entries]), means, differences)
    shown = [at for at, sheet in enumerate(sheets) if not sheet.other]
    titles = [sheets[at].title for at in shown]
    columns = [
        Column(", ".join([sheets[at].title, *(sheets[at].qualifiers if titles.count(sheets[at].title) > 1 else ())]))
        for at in shown
    ]
    table_rows = []
    for place, (name, own) in enumerate(zip(entries, rows, strict=True)):
        values: list[Value] = [
            "" if at not in own else f"unreadable: {own[at].unreadable}" if own[at].unreadable else own[at].headline
            for at in shown
        ]
        if ranking is not None:
            values = [ranking.ranks[place] or "", means[place], *values]
        table_rows.append(Row(name, values, runs=list(own.values())))
    table_rows.sort(
        key=lambda row: [-value.value for value in row.values if isinstance(value, Estimate) and value.value]
    )
    table_rows.sort(key=lambda row: ranking is not None and row.values[0] == "")
    ranked = [] if ranking is None else [Column("rank"), Column("mean")]
    title = f"Overall numbers in %, with {CONFIDENCE:.0%} intervals"
    return Table(title, "model", [*ranked, *columns], table_rows), ranking


def _entries(sheets: Sequence[Sheet]) -> dict[str, dict[int, int]]:
    """The rows of each model and prompt setting, by the index of a sheet; a second such run of a sheet is another."""
    entries: dict[str, dict[int, int]] = {}
    for at, sheet in enumerate(sheets):
        for index, run in enumerate([] if sheet.other else sheet.runs):
            settings = {"profile": run.config.prompt.profile, "variables": run.config.judge_setting("variables")}
            shown = [f"{name} {value}" for name, value in settings.items() if value not in {None, DEFAULTS[name]}]
            name = f"{run.name} ({', '.join(shown)})" if shown else run.name
            key = sheet.rows[index].name if at in entries.get(name, {}) else name
            entries.setdefault(key, {})[at] = index
    return entries


def overview_sentence(sheet: Sheet, ranking: Ranking) -> Iterator[str]:
    """Say which model of a sheet is best, whether it beats a coin, and which models cannot be read."""
    yield ranking.sentence
    ranked = [run for run, rank in zip(sheet.runs, ranking.ranks, strict=True) if rank is not None]
    coin = ranked[0].estimate("overall", baseline="coin").value if ranked else None
    best = max((run.headline for run in ranked), key=lambda one: one.value or 0.0, default=MISSING)
    if coin is not None and best.low is not None and best.low <= coin:
        yield f"A coin has {percent(coin)}."
    for row, run in zip(sheet.rows, sheet.runs, strict=False):
        if run.mostly_close_margins:
            yield f"{clean(row.name)}: {run.mostly_close_margins}."
        if run.unreadable:
            yield f"Most verdicts or scores of {clean(row.name)} are invalid."
