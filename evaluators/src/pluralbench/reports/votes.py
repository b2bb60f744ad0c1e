"""Tables of runs in which several replies vote: accuracy and cost by number of samples, and by judge of a panel."""

from collections.abc import Iterator, Sequence

from pluralbench_runs import plural

from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.results.names import row_names
from pluralbench.results.numbers import KINDS
from pluralbench.results.runs import MISSING, Run

PANEL = "panel"
SAMPLES = "samples"
TERMS = {
    SAMPLES: "the mean over subsets of k of the run's samples, with k samples of each judge.",
    "tied votes": "a tied vote is a tie, and even numbers of replies tie more often.",
    "tokens": "of all calls, in expectation.",
    "agreement": "pairs of a judge's replies to one question that are the same.",
}
"""What the rows and columns of `votes_tables` are."""
COLUMNS = (
    Column("overall"),
    Column("tied votes", bounds=False),
    Column("tokens", KINDS["count"], bounds=False),
    Column("dollars", bounds=False),
    Column("agreement", bounds=False),
)


def votes_tables(sheet: Sheet) -> Iterator[Table]:
    """Yield a table for each run of a sheet in which several replies vote."""
    runs = [run for run in sheet.runs if run.names("k", "accuracy_of_votes")]
    for name, run in zip(row_names(runs), runs, strict=True):
        rows = [*_rows(run)]
        label = SAMPLES
        if len(vote_sizes(run)) == 1:  # a panel of one sample each: a row for each judge
            label, rows = "judge", [row._replace(name=row.group, group="") for row in rows]
        shown = [place for place in range(len(COLUMNS)) if any(row.values[place] not in {"", MISSING} for row in rows)]
        yield Table(
            f"{sheet.heading}: votes of {name}",
            label,
            [COLUMNS[place] for place in shown],
            [row._replace(values=[row.values[place] for place in shown]) for row in rows],
            "judge" if any(row.group for row in rows) else "",
        )


def votes_terms(tables: Sequence[Table]) -> dict[str, str]:
    """Define the rows and columns of `votes_tables`."""
    shown = {name for table in tables for name in (table.names, *(column.text for column in table.columns))}
    return {f"votes of k {name}" if name == SAMPLES else name: text for name, text in TERMS.items() if name in shown}


def _rows(run: Run) -> Iterator[Row]:
    sizes, panel = vote_sizes(run), run.names("judge", "invalid_replies")
    several = len(panel) > 1
    for judge in [None, *(panel if several else ())]:
        for k in sizes:
            own = {"k": k} if judge is None else {"judge": judge, "k": k}
            alone = judge if several else panel[0]
            last = k == sizes[-1] and alone is not None
            values: list[Value] = [run.estimate("accuracy_of_votes", **own), "", run.estimate("tokens_of_votes", **own)]
            values += ["", run.estimate("agreement_within_judge", judge=alone) if last else ""]
            if judge is None:
                values[1], values[3] = run.estimate("share_of_tied_votes", **own), _dollars(run, k)
            yield Row(plural(k, "sample"), values, group=(judge or PANEL) if several else "", runs=[run])
    for judge in run.names("judge", "accuracy_without_judge"):
        accuracy = run.estimate("accuracy_without_judge", judge=judge)
        yield Row(plural(sizes[-1], "sample"), [accuracy, "", "", "", ""], group=f"without {judge}", runs=[run])


def vote_sizes(run: Run) -> list[int]:
    """Return the numbers of samples that votes of a run are computed for; none if one reply decides."""
    return [key.k or 0 for key in run.keys("accuracy_of_votes", "k") if key.judge is None]


def _dollars(run: Run, k: int) -> str:
    """The expected cost of k samples of each judge, in proportion to their tokens; empty without a price."""
    cost, tokens = run.result.cost, [run.estimate("tokens_of_votes", k=n).value or 0 for n in (k, vote_sizes(run)[-1])]
    return "" if cost is None or not cost.dollars or not tokens[1] else f"{cost.dollars * tokens[0] / tokens[1]:,.4f}"
