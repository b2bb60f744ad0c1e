"""Lines about a run of the planner: how many plans could be parsed, and their recall of the true aspects."""

from collections.abc import Iterator

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.planning.aspects import EMBEDDINGS, WORDS
from pluralbench.reports.costs import cost_text
from pluralbench.reports.numbers import DASH, with_interval
from pluralbench.results.plans import PLANS_FILE
from pluralbench.results.runs import ITEMS_FILE, METRICS_FILE, RUN_FILE, Plans


def plan_lines(plans: Plans) -> Iterator[str]:
    """Describe the plans, their recall and precision, their cost and the files, a line each."""
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
        yield f"Items without a plan, which the profile `plan` cannot score: {record.missing:,} ({why})."
    if not record.checked:
        yield "The planner does not record its training data, so it may have been trained on these items."
    yield from _numbers(plans)
    tokens = record.prompt_tokens + record.completion_tokens
    yield f"Cost: {cost_text(record.calls, tokens, [record.cost] if record.cost else [])}."
    yield f"{plans.path}: {PLANS_FILE}, {ITEMS_FILE}, {METRICS_FILE}, {RUN_FILE}"


def _numbers(plans: Plans) -> Iterator[str]:
    matching = plans.config.matching
    thresholds = {
        WORDS: f"word overlap ≥ {matching.min_word_overlap:g}",
        EMBEDDINGS: f"cosine similarity ≥ {matching.min_cosine:g}",
    }
    for method, threshold in thresholds.items():
        recall, precision = (
            plans.estimate(f"aspect_{name}", "plan", section=method) for name in ("recall", "precision")
        )
        if recall.value is not None:
            yield (
                f"Aspects matched by {threshold}: recall {with_interval(recall)}, precision "
                f"{with_interval(precision) or DASH} (%, {CONFIDENCE:.0%} intervals over users)."
            )
    if plans.metrics.is_empty():
        yield "Some items have no true aspects, so recall and precision are not computed."
    elif plans.result.listed < plans.result.items:
        yield "A plan without a list has a recall of 0 and no precision."
