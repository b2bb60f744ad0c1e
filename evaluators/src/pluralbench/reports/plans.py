"""What plans are, for people: how many could be read, and what they have of the true aspects."""

from collections.abc import Iterator

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.planning.aspects import EMBEDDINGS, WORDS
from pluralbench.reports.costs import cost_text
from pluralbench.reports.numbers import DASH, with_interval
from pluralbench.results.plans import PLANS_FILE
from pluralbench.results.runs import ITEMS_FILE, METRICS_FILE, RUN_FILE, Plans


def plan_lines(plans: Plans) -> Iterator[str]:
    """A sentence each: of the plans, of recall and precision, of what they cost, and of the files."""
    record = plans.result
    of = "" if record.listed == record.items else f" of {record.items:,}"
    said = [f"Plans with a list of aspects: {record.listed:,}{of}"]
    if record.as_text:
        said.append(f"without one, told as they were written: {record.as_text:,}")
    if record.cut:
        said.append(f"cut at {plans.config.sampling.max_tokens:,} tokens: {record.cut:,}")
    yield f"{'; '.join(said)}."
    if record.missing:
        why = "; ".join(f"{reason} {count:,}" for reason, count in record.reasons.items())
        yield f"Items without a plan, which cannot be scored by --profile plan: {record.missing:,} ({why})."
    if not record.checked:
        yield "What the planner learned from is not recorded with it, so these items may be among that."
    yield from _numbers(plans)
    tokens = record.prompt_tokens + record.completion_tokens
    yield f"Took {cost_text(record.calls, tokens, [record.cost] if record.cost else [])}."
    yield f"{plans.path}: {PLANS_FILE}, {ITEMS_FILE}, {METRICS_FILE}, {RUN_FILE}"


def _numbers(plans: Plans) -> Iterator[str]:
    matching = plans.config.matching
    ways = {
        WORDS: f"sharing {matching.min_word_overlap:g} of their words",
        EMBEDDINGS: f"a cosine of {matching.min_cosine:g}",
    }
    for way, same in ways.items():
        recall, precision = (plans.estimate(f"aspect_{name}", "plan", section=way) for name in ("recall", "precision"))
        if recall.value is not None:
            yield (
                f"Aspects by {same}: recall {with_interval(recall)}, precision "
                f"{with_interval(precision) or DASH} (%, {CONFIDENCE:.0%} intervals over people)."
            )
    if plans.metrics.is_empty():
        yield "Not every item has true aspects, so the plans are held against none."
    elif plans.result.listed < plans.result.items:
        yield "A plan without a list has a recall of 0 and no precision."
