"""Tables of runs on benchmarks with votes of people: by consensus and predicted shares, and by group of people."""

from collections.abc import Iterator, Sequence

from pluralbench_measures.annotators import CONSENSUS
from pluralbench_measures.crossed import MIN_PEOPLE

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.metric import BASELINES, PEOPLE
from pluralbench.reports.sheets import Sheet, number_column
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.names import row_names
from pluralbench.results.numbers import p_value
from pluralbench.results.runs import Run

AGREEMENT = "agreement_with_annotations"
GAP, P_VALUE = "best less worst", "p"
COLUMNS = (
    *(number_column(name, MetricKey("accuracy_by_consensus", consensus=name), part=True) for name in CONSENSUS),
    number_column("margin and consensus", MetricKey("margin_and_consensus")),
    number_column("log loss", MetricKey("annotation_log_loss")),
    number_column("divergence", MetricKey("annotation_divergence")),
    number_column("excess", MetricKey("excess_divergence")),
)
CONSENSUS_TERMS = {
    "unanimous": "accuracy against the majority of items whose votes are all for one response; clear: at least two "
    "thirds; split: fewer.",
    "margin and consensus": "Spearman's correlation of a model's margin with the share of the most frequent vote; "
    "above 0, margins shrink where people differ.",
    "log loss": "in nats, of the shares of votes that the scores predict, with a temperature fitted on other prompts; "
    "people: that of the true shares, which nothing is below.",
    "divergence": "Jensen-Shannon's, in nats, of the same shares.",
    "excess": "the divergence from the true shares, without the scatter of few votes; 0 is the best.",
}
GROUPS_TERMS = {
    "groups of people": "share of the votes of a group's people that are for the response that the model prefers. "
    f"Groups of fewer than {MIN_PEOPLE} people are last, and not ranked.",
    GAP: f"of groups of at least {MIN_PEOPLE} people, with an interval that holds whichever groups these are; p: how "
    "often a gap as large appears if people of the same configs change groups by chance.",
}


def annotations_tables(sheet: Sheet) -> Iterator[Table]:
    """Yield the tables of the runs of a sheet that have votes of people."""
    runs = [run for run in sheet.runs if run.estimate(AGREEMENT).value is not None]
    if not runs:
        return
    named = [*zip(row_names(runs), runs, strict=True)]
    rows = [Row(name, [run.at(column.key) for column in COLUMNS], runs=[run]) for name, run in named]
    people = [runs[0].at(column.key._replace(baseline=PEOPLE)) for column in COLUMNS]
    if any(one.value is not None for one in people):
        values: list[Value] = ["" if one.value is None else one for one in people]
        rows.append(Row(BASELINES[PEOPLE], values, quiet=True, runs=runs[:1]))
    if any(one.value is not None for run in runs for one in [run.at(column.key) for column in COLUMNS]):
        yield Table(f"{sheet.heading}: votes of people", "model", COLUMNS, rows)
    rows = [row for attribute in attributes_of(runs) for row in _group_rows(runs, attribute)]
    if rows:
        columns = [Column("people"), *(Column(name, part=True) for name, _ in named)]
        yield Table(f"{sheet.heading}: groups of people", "group", columns, rows, "attribute")


def annotations_terms(tables: Sequence[Table]) -> dict[str, str]:
    """Define the numbers of the tables of votes of people."""
    shown = {bool(table.groups) for table in tables}
    rows = {row.name for table in tables for row in table.rows}
    grouped = {term: text for term, text in GROUPS_TERMS.items() if term != GAP or GAP in rows}
    return (CONSENSUS_TERMS if False in shown else {}) | (grouped if True in shown else {})


def attributes_of(runs: Sequence[Run]) -> list[str]:
    """Return the attributes of people that runs have numbers by, in order."""
    return list(dict.fromkeys(str(key.attribute) for run in runs for key in run.keys(AGREEMENT, "group")))


def groups_of(runs: Sequence[Run], attribute: str) -> dict[str, int]:
    """Return the number of people of each group, the best served first and those below `MIN_PEOPLE` last."""
    people: dict[str, int] = {}
    values: dict[str, float] = {}
    for run in runs:
        for key in run.keys(AGREEMENT, "group", attribute=attribute):
            name = str(key.group)
            people[name] = max(people.get(name, 0), run.count("annotators", attribute=attribute, group=name))
            values.setdefault(name, run.at(key).value or 0.0)
    order = sorted(
        people, key=lambda name: (people[name] < MIN_PEOPLE, -values[name] * (people[name] >= MIN_PEOPLE), name)
    )
    return {name: people[name] for name in order}


def _group_rows(runs: Sequence[Run], attribute: str) -> Iterator[Row]:
    for name, people in groups_of(runs, attribute).items():
        values = [run.estimate(AGREEMENT, attribute=attribute, group=name) for run in runs]
        yield Row(name, [people, *values], group=attribute, runs=runs)
    gaps = [run.estimate("group_gap", attribute=attribute) for run in runs]
    if any(gap.value is not None for gap in gaps):
        yield Row(GAP, ["", *gaps], group=attribute, runs=runs)
        p_values = [run.estimate("group_gap_p_value", attribute=attribute).value for run in runs]
        yield Row(P_VALUE, ["", *("" if one is None else p_value(one) for one in p_values)], group=attribute, runs=runs)
