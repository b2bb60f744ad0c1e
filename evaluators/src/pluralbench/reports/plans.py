"""Lines and table of runs of the planner: how many plans could be parsed, and their recall of the true aspects."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.metrics.plans import EMBEDDINGS, WORDS
from pluralbench.reports.costs import cost_text
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import Report, long_frame
from pluralbench.results.numbers import DASH, with_interval
from pluralbench.results.plans import PLANS_FILE
from pluralbench.results.run_files import ITEMS_FILE, METRICS_FILE, RUN_FILE
from pluralbench.results.runs import Plans

METHODS = {WORDS: "words", EMBEDDINGS: "embeddings"}


def report_plans(runs: Sequence[Plans]) -> Report:
    """Report directories of `plan`; JSON and CSV have the long frame of their numbers."""
    names = [f"{name}: " if len(runs) > 1 else "" for name in _names(runs)]
    notes = [f"{name}{line}" for name, run in zip(names, runs, strict=True) for line in plan_notes(run)]
    return Report([plans_table(runs)], notes, long_frame((run.path, run.metrics) for run in runs))


def plans_table(runs: Sequence[Plans]) -> Table:
    """Make a table with a row for each directory of `plan`: recall and precision of the true aspects, in percent."""
    shown = [
        (metric, method)
        for method in METHODS
        for metric in ("recall", "precision")
        if any(_number(run, metric, method).value is not None for run in runs)
    ]
    columns = [
        *(Column(f"{metric} by {METHODS[method]}", part=True) for metric, method in shown),
        Column("plans with a list"),
        Column("items"),
    ]
    rows = [
        Row(name, [*(_number(run, *one) for one in shown), run.result.listed, run.result.items])
        for name, run in zip(_names(runs), runs, strict=True)
    ]
    return Table("Aspects of the users that plans name", "planner", columns, rows)


def _names(runs: Sequence[Plans]) -> list[str]:
    names = [Path(run.result.planner.name).name for run in runs]
    return [
        f"{name} ({run.path.name})" if names.count(name) > 1 else name for name, run in zip(names, runs, strict=True)
    ]


def _number(plans: Plans, metric: str, method: str) -> Estimate:
    return plans.estimate(f"aspect_{metric}", matching=method)


def plan_findings(runs: Sequence[Plans]) -> list[str]:
    """State how many aspects each planner finds, with intervals, a sentence for each way of matching."""
    texts = []
    for name, plans in zip(_names(runs), runs, strict=True):
        for method, how in METHODS.items():
            recall, precision = (_number(plans, metric, method) for metric in ("recall", "precision"))
            if recall.value is not None:
                right = with_interval(precision) or DASH
                texts.append(
                    f"{name} names {with_interval(recall)}% of what the users expect of an answer; {right}% of what "
                    f"it names is expected (matched by {how})."
                )
    return texts


def plan_lines(plans: Plans) -> Iterator[str]:
    """Describe the plans, their recall and precision, their cost and the files, a line each."""
    yield from plan_notes(plans)
    yield f"{plans.path}: {PLANS_FILE}, {ITEMS_FILE}, {METRICS_FILE}, {RUN_FILE}"


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
    yield from _numbers(plans)
    yield f"Cost: {cost_text([record], [record.cost] if record.cost else [])}."


def _numbers(plans: Plans) -> Iterator[str]:
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
    elif plans.result.listed < plans.result.items:
        yield "A plan without a list has a recall of 0 and no precision."
