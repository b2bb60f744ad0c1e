"""What planners and persona syntheses wrote: counts, recall of the true aspects, and cost."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.metrics.plans import EMBEDDINGS, WORDS
from pluralbench.reports.costs import cost_text
from pluralbench.reports.tables import Column, Report, Row, Table, long_frame
from pluralbench.results.names import unique_names
from pluralbench.results.numbers import DASH, with_interval
from pluralbench.results.runs import Plans, Synthesis

NAMED = 5  # users in a note
METHODS = {WORDS: "words", EMBEDDINGS: "embeddings"}


def report_plans(runs: Sequence[Plans]) -> Report:
    """Report directories of `plan`, a row each: recall and precision of the true aspects, in percent.

    JSON and CSV have the long frame of their numbers.
    """
    names = unique_names([Path(run.result.planner.name).name for run in runs], [run.path.name for run in runs])
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


def _number(plans: Plans, metric: str, method: str) -> Estimate:
    return plans.estimate(f"aspect_{metric}", matching=method)


def plan_notes(plans: Plans) -> Iterator[str]:
    """Describe the plans, their recall and precision, and their cost, a line each."""
    record = plans.result
    of = "" if record.listed == record.items else f" of {record.items:,}"
    counts = {
        "without a list, used as plain text": record.as_text,
        f"truncated at {plans.config.sampling.max_tokens:,} tokens": record.cut,
    }
    others = "".join(f"; {what}: {count:,}" for what, count in counts.items() if count)
    yield f"Plans with a list of aspects: {record.listed:,}{of}{others}."
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


def synthesis_notes(synthesis: Synthesis) -> Iterator[str]:
    """Describe the personas, the accuracy of the demonstrations and the cost."""
    record = synthesis.result
    yield (
        f"{synthesis.path / PERSONAS_FILE}: {record.from_choices + record.from_posts:,} personas of {record.people:,} "
        f"users, {record.from_choices:,} from their choices and {record.from_posts:,} from their posts."
    )
    if record.without_persona:
        names = [f"{name} ({reason})" for name, reason in list(record.without_persona.items())[:NAMED]]
        more = ", …" if len(record.without_persona) > NAMED else ""
        yield f"Without a persona: {', '.join(names)}{more}."
    if record.predicted:
        yield f"{record.correct:,} of {record.predicted:,} predictions about earlier pairs were correct."
    if record.accuracy is not None:
        accuracy = f"{100 * record.accuracy:.1f}% (mean over users)"
        yield f"With {record.demonstrations:,} demonstrations, the judge's accuracy on held-out pairs was {accuracy}."
    yield f"Cost: {cost_text([record], [record.cost] if record.cost else [])}."
