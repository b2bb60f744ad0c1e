"""Lines and table of runs of the planner: how many plans could be parsed, and their recall of the true aspects."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.metrics.plans import EMBEDDINGS, WORDS
from pluralbench.reports.costs import cost_text
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import Report, long_frame
from pluralbench.results.numbers import DASH, with_interval
from pluralbench.results.runs import Plans

METHODS = {WORDS: "words", EMBEDDINGS: "embeddings"}


def report_plans(runs: Sequence[Plans]) -> Report:
    """Report directories of `plan`, a row each: recall and precision of the true aspects, in percent.

    JSON and CSV have the long frame of their numbers.
    """
    names = _names(runs)
    shown = [
        (metric, method)
        for method in METHODS
        for metric in ("recall", "precision")
        if any(_number(run, metric, method).value is not None for run in runs)
    ]
    columns = [Column(f"{metric} by {METHODS[method]}", part=True) for metric, method in shown]
    rows = [
        Row(name, [*(_number(run, *one) for one in shown), run.result.listed, run.result.items])
        for name, run in zip(names, runs, strict=True)
    ]
    columns += [Column("plans with a list"), Column("items")]
    begin = "{}: " if len(runs) > 1 else ""
    notes = [begin.format(name) + line for name, run in zip(names, runs, strict=True) for line in plan_notes(run)]
    table = Table("Aspects of the users that plans name", "planner", columns, rows)
    return Report([table], notes, long_frame((run.path, run.metrics) for run in runs))


def _names(runs: Sequence[Plans]) -> list[str]:
    names = [Path(run.result.planner.name).name for run in runs]
    return [
        f"{name} ({run.path.name})" if names.count(name) > 1 else name for name, run in zip(names, runs, strict=True)
    ]


def _number(plans: Plans, metric: str, method: str) -> Estimate:
    return plans.estimate(f"aspect_{metric}", matching=method)


def plan_notes(plans: Plans) -> Iterator[str]:
    """Describe the plans, their recall and precision, and their cost, a line each."""
    record = plans.result
    of = "" if record.listed == record.items else f" of {record.items:,}"
    counts = [f"Plans with a list of aspects: {record.listed:,}{of}"]
    if record.as_text:
        counts.append(f"without a list, used as plain text: {record.as_text:,}")
    if record.cut:
        counts.append(f"truncated at {plans.config.sampling.max_tokens:,} tokens: {record.cut:,}")
    yield f"{'; '.join(counts)}."
    if record.missing:
        why = "; ".join(f"{reason} {count:,}" for reason, count in record.reasons.items())
        yield f"Items without a plan, which cannot be scored with plans: {record.missing:,} ({why})."
    if not record.checked:
        yield "The planner does not record its training data, so it may have been trained on these items."
    matching = plans.config.matching
    thresholds = {
        WORDS: f"word overlap ≥ {matching.min_word_overlap:g}",
        EMBEDDINGS: f"cosine similarity ≥ {matching.min_cosine:g}",
    }
    for method, threshold in thresholds.items():
        recall, precision = (_number(plans, name, method) for name in ("recall", "precision"))
        if recall.value is not None:
            yield (
                f"Aspects matched by {threshold}: recall {with_interval(recall)}, precision "
                f"{with_interval(precision) or DASH} (%, {CONFIDENCE:.0%} intervals over users)."
            )
    if plans.metrics.is_empty():
        yield "Some items have no true aspects, so recall and precision are not computed."
    elif record.listed < record.items:
        yield "A plan without a list has a recall of 0 and no precision."
    yield f"Cost: {cost_text([record], [record.cost] if record.cost else [])}."
