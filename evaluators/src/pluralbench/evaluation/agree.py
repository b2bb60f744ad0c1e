"""`agree`: compare the scores of a run with those that others have published, item by item."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Array
from pluralbench_runs.options import Flag, Options

from pluralbench.config import RecheckConfig
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import DECISIONS
from pluralbench.data.credits import credit_of, item_credits
from pluralbench.data.credits.pairs import SECOND_ON_TIES
from pluralbench.data.decisions import decide
from pluralbench.data.published_scores import ItemScores, read_published
from pluralbench.data.rules import overall_rule
from pluralbench.data.rules.micro import mean_over_all
from pluralbench.data.texts import LETTERS
from pluralbench.errors import RunError
from pluralbench.evaluation.causes import EXPLAINED, Diagnosis, find_cause
from pluralbench.evaluation.matching import match_items, scores_of_run
from pluralbench.metrics import measure
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.run_files import RUN_FILE
from pluralbench.results.runs import Run, load_run

KEYS = ["config", "id", "chosen", "rejected"]
LEAST_FOR_SCALE = 6  # scores that a line is fitted to
FILES = "Published files"  # heading of options
ROUNDING = 1e-6  # largest difference that needs no explanation, relative to the largest score


@dataclass(frozen=True)
class LargestDifference:
    """The largest difference of two scores of one response: its item, its name, and both scores."""

    id: str
    response: str
    first: float
    second: float


@dataclass(frozen=True)
class Correlation:
    """Correlations of two series; None for fewer than two values, or for equal values on one side."""

    n: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class ChangedDecision:
    """A decision that differs: the item, both responses, and both outcomes."""

    id: str
    chosen: str
    rejected: str
    first: str
    second: str


@dataclass(frozen=True)
class Side:
    """What was compared with the other side.

    Attributes:
        missing: Ids that only this side has.
        unscored: Number of matched responses without a finite score.
        accuracy: Accuracy on the matched items by the rule; None if nothing can be decided.
        stated: Mean of the results that the file itself gives the matched items; None if it gives none.
    """

    where: str
    shape: str
    items: int
    missing: tuple[str, ...]
    unscored: int
    accuracy: float | None
    stated: float | None


@dataclass(frozen=True)
class Agreement:
    """The agreement of two models' scores, item by item.

    Attributes:
        unequal: Ids of items that both have, with different numbers of responses; they are not compared.
        unlabeled: Number of matched items for which neither side says which response is right.
        mean_difference: Mean absolute difference of the scores; None without scores.
        scale: Slope and intercept by which the second scores follow from the first, up to a tenth of their largest
            difference; None if there are none, or if the scores differ by less than rounding.
        rule: Rule of the accuracy, as a phrase.
        second_on_ties: Whether equal scores decide for the response B.
        diagnosis: Likely cause, from scoring items again; None if nothing was scored again.
        not_rescored: Why nothing was scored again; empty if something was.
    """

    first: Side
    second: Side
    items: int
    unequal: tuple[str, ...]
    unlabeled: int
    scores: Correlation
    margins: Correlation
    mean_difference: float | None
    largest: LargestDifference | None
    scale: tuple[float, float] | None
    rule: str
    second_on_ties: bool
    decisions: int
    changed: tuple[ChangedDecision, ...]
    diagnosis: Diagnosis | None = None
    not_rescored: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


def agree(
    run: str | Path | Run,
    published: Annotated[str | Path | Run, Flag("--published", "FILE|RUN", FILES)],
    *,
    where: Annotated[Sequence[str], Flag(metavar="COLUMN=VALUE", panel=FILES)] = (),
    where_run: Annotated[Sequence[str], Flag(metavar="COLUMN=VALUE", panel=FILES)] = (),
    columns: Annotated[Sequence[str], Flag("--score-column", "FIELD=COLUMN", FILES)] = (),
    recheck: Annotated[RecheckConfig | None, Options("Rescoring")] = None,
) -> Agreement:
    """Compare the scores of a run with published ones, item by item, and find out why they differ.

    The result has both accuracies, the correlation of scores and margins, the largest difference, and the decisions
    that differ. If the model is at hand, some items are scored again with other BOS tokens, without the chat template,
    with other maximum lengths and in other dtypes; what comes closest to the published scores is named.

    Args:
        run: A run directory, or a file of scores as `published`.
        published: Scores by item: files of reward-bench and JudgeBench, a table with id and scores, or another run.
        where: Rows of `published` to read, such as model=NAME; repeatable. Default: all.
        where_run: The same for `run`, if it is a file.
        columns: Name of a column of the files, such as id=uid or score=reward; repeatable.
        recheck: How items are scored again, to find the cause of the differences. Default: `RecheckConfig()`, 8 items
            of a model in a directory of this machine.

    Returns:
        The agreement, with the likely cause of the differences if items could be scored again.

    Raises:
        UserError: A file has an unknown shape, no id is in both, or an argument does not apply.

    Examples:
        pluralbench agree runs/a --published scores.jsonl
        pluralbench agree runs/a --published scores.jsonl --where model=org/name --rescore 16
        pluralbench agree ours.csv --published theirs.json --format json > agreement.json
    """
    ours, theirs = _open(run), _open(published)
    first = _scores(ours, where_run, columns, "where_run")
    second = _scores(theirs, where, columns, "where")
    benchmark = (first if isinstance(ours, Run) else second).benchmark
    both, missing, unequal = match_items(first, second)
    agreement = _compare(first, second, benchmark, both, missing, unequal)
    if agreement.largest is None or agreement.largest.first == agreement.largest.second:
        return agreement
    if agreement.scale is not None:
        return replace(agreement, not_rescored="the scores are the same on another scale")
    if not isinstance(ours, Run):
        return replace(agreement, not_rescored="the first scores are a file, not a run")
    diagnosis, why_not = find_cause(ours, both, recheck or RecheckConfig())
    return replace(agreement, diagnosis=diagnosis, not_rescored=why_not)


def _open(place: str | Path | Run) -> Run | str:
    if isinstance(place, Run):
        return place
    path = Path(place)
    return load_run(path, EvaluationRunConfig) if (path / RUN_FILE).is_file() else str(place)


def _scores(place: Run | str, where: Sequence[str], columns: Sequence[str], name: str) -> ItemScores:
    if isinstance(place, str):
        return read_published(place, where=where, columns=columns, argument=name)
    if where:
        raise RunError(f"{place.path} is a run, of which all items are compared; leave out `{name}=...`.")
    return scores_of_run(place)


def _compare(
    first: ItemScores,
    second: ItemScores,
    benchmark: Benchmark,
    both: pl.DataFrame,
    missing: tuple[tuple[str, ...], tuple[str, ...]],
    unequal: tuple[str, ...],
) -> Agreement:
    flat = [_flat(both, name) for name in ("scores", "scores_second")]
    finite = np.isfinite(flat[0]) & np.isfinite(flat[1])
    gaps = np.where(finite, np.abs(flat[0] - flat[1]), -1.0)
    labeled = both.filter(pl.col("rank").list.n_unique() > 1)
    decided = [_decisions(labeled, benchmark, suffix) for suffix in ("", "_second")]
    shared = decided[0].join(decided[1], on=KEYS, how="inner", suffix="_second", maintain_order="left")
    counted = shared.filter(
        ~pl.col("outcome").is_in(["equal", "dropped"]), ~pl.col("outcome_second").is_in(["equal", "dropped"])
    )
    margins = counted.filter(pl.col("margin").is_not_null() & pl.col("margin_second").is_not_null())
    changed = counted.filter(pl.col("outcome") != pl.col("outcome_second"))
    scored = _sorted(flat[0][finite], flat[1][finite])
    accuracies, rule = _accuracies(benchmark, decided)
    sides = [
        Side(
            where=side.where,
            shape=side.shape,
            items=side.items.height,
            missing=missing[place],
            unscored=int((~np.isfinite(flat[place])).sum()),
            accuracy=accuracies[place],
            stated=_mean(both["stated_second" if place else "stated"]),
        )
        for place, side in enumerate((first, second))
    ]
    return Agreement(
        first=sides[0],
        second=sides[1],
        items=both.height,
        unequal=unequal,
        unlabeled=both.filter(pl.col("rank").is_null() | (pl.col("rank").list.len() < 2)).height,
        scores=_correlation(*scored),
        margins=_correlation(*_sorted(margins["margin"].to_numpy(), margins["margin_second"].to_numpy())),
        mean_difference=float(np.abs(scored[0] - scored[1]).mean()) if finite.any() else None,
        largest=_largest(both, gaps, flat) if finite.any() else None,
        scale=_scale(*scored),
        rule=rule,
        second_on_ties=second_on_ties(benchmark),
        decisions=counted.height,
        changed=tuple(
            ChangedDecision(*row)
            for row in changed.select("id", "chosen", "rejected", "outcome", "outcome_second").iter_rows()
        ),
    )


def _flat(both: pl.DataFrame, name: str) -> Array:
    """Return the scores of all responses of one side, NaN where an item has none."""
    return np.array(
        [
            nan if value is None else value
            for own, names in both.select(name, "response_ids").iter_rows()
            for value in (own or [nan] * len(names))
        ]
    )


def _largest(both: pl.DataFrame, gaps: Array, flat: Sequence[Array]) -> LargestDifference:
    names = [(item, name) for item, own in both.select("key", "response_ids").iter_rows() for name in own]
    place = int(gaps.argmax())
    return LargestDifference(*names[place], float(flat[0][place]), float(flat[1][place]))


def _sorted(first: Array, second: Array) -> tuple[Array, Array]:
    """Sort pairs of numbers, since sums depend on their order in their last digits."""
    order = np.lexsort([second, first])
    return first[order], second[order]


def _correlation(first: Array, second: Array) -> Correlation:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(len(first), None, None)
    from scipy.stats import rankdata

    pairs = (first, second), (rankdata(first), rankdata(second))
    return Correlation(len(first), *(float(np.corrcoef(*pair)[0, 1]) for pair in pairs))


def _scale(first: Array, second: Array) -> tuple[float, float] | None:
    """Fit the second scores by a line on the first, with a positive slope; None if it leaves more than a tenth."""
    gap = np.abs(first - second).max(initial=0.0)
    if len(first) < LEAST_FOR_SCALE or np.ptp(first) == 0 or gap <= ROUNDING * np.abs(second).max():
        return None
    slope, intercept = np.polyfit(first, second, 1)
    left = np.abs(slope * first + intercept - second).max()
    return (float(slope), float(intercept)) if slope > 0 and left <= EXPLAINED * gap else None


def _decisions(items: pl.DataFrame, benchmark: Benchmark, suffix: str) -> pl.DataFrame:
    """Return the decisions of one side; a verdict that a file gives takes the place of scores."""
    if items.is_empty():
        return pl.DataFrame(schema=DECISIONS)
    outcomes = items[f"outcome{suffix}"]
    # Verdicts on pairs: their decisions are made of scores that stand for the outcomes.
    stand_in = {"win": [1.0, 0.0], "loss": [0.0, 1.0], "tie": [0.0, 0.0], "invalid": [nan, nan], "equal": [0.0, 0.0]}
    verdicts = [None if outcome is None else stand_in.get(outcome, []) for outcome in outcomes]
    scores = [
        (own or []) if verdict is None else [verdict[rank - 1] for rank in ranks] if verdict else []
        for own, verdict, ranks in zip(
            items[f"scores{suffix}"].to_list(), verdicts, items["rank"].to_list(), strict=True
        )
    ]
    filled = pl.Series(
        [[nan if value is None else value for value in own] for own in scores], dtype=pl.List(pl.Float64)
    )
    decisions = decide(items, filled)
    if outcomes.is_not_null().any():
        return decisions.with_columns(margin=pl.lit(None, pl.Float64))
    if not second_on_ties(benchmark):
        return decisions
    second = pl.when(pl.col("chosen") == LETTERS[1]).then(pl.lit("win")).otherwise(pl.lit("loss"))
    return decisions.with_columns(outcome=pl.when(pl.col("outcome") == "tie").then(second).otherwise("outcome"))


def second_on_ties(benchmark: Benchmark) -> bool:
    """Return whether a benchmark decides equal scores for the response B."""
    return credit_of(benchmark, None) is SECOND_ON_TIES


def _accuracies(benchmark: Benchmark, decided: Sequence[pl.DataFrame]) -> tuple[list[float | None], str]:
    """Return the overall number of each side, as a run of the benchmark has it, and its rule.

    If a part of the benchmark has no matched item, so that the benchmark has no overall number, it is the mean over the
    matched items.
    """
    rule = overall_rule(benchmark)
    if second_on_ties(benchmark):  # equal scores are decided already, and equal votes are not right
        benchmark = benchmark.model_copy(update={"credit": {}})
    credits_of = [item_credits(benchmark, decisions)["credit"] for decisions in decided]
    if any(own.is_empty() for own in credits_of):
        return [None, None], rule
    overall = [measure(benchmark, decisions).filter(metric="overall")["value"].to_list() for decisions in decided]
    if all(values and values[0] is not None for values in overall):
        return [values[0] for values in overall], rule
    return [_mean(own) for own in credits_of], f"{mean_over_all(benchmark)}, since parts of the benchmark have none"


def _mean(values: pl.Series) -> float | None:
    mean = values.mean()
    return float(mean) if isinstance(mean, float) else None
