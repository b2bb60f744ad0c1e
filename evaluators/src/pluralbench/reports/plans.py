"""What plans are, for people: how many could be read, and what they have of the true aspects."""

from collections.abc import Iterator

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.planning.aspects import EMBEDDINGS, WORDS
from pluralbench.reports.notes import with_interval
from pluralbench.results.plans import ITEMS_FILE, PLANS_FILE, RECORD_FILE, Plans
from pluralbench.results.runs import METRICS_FILE


def plan_lines(plans: Plans) -> Iterator[str]:
    """A sentence each: of the plans, of recall and precision, of what they cost, and of the files."""
    record = plans.record
    said = [f"Plans with a list of aspects: {record.listed:,} of {record.items:,}"]
    if record.as_text:
        said.append(f"without one, told as they were written: {record.as_text:,}")
    if record.cut:
        said.append(f"cut at {record.sampling.max_tokens:,} tokens: {record.cut:,}")
    yield f"{'; '.join(said)}."
    if record.missing:
        why = "; ".join(f"{reason} {count:,}" for reason, count in record.reasons.items())
        yield f"Items without a plan, which cannot be scored by --profile plan: {record.missing:,} ({why})."
    yield from _numbers(plans)
    cost = record.cost
    money = "" if cost.dollars is None else f", ${cost.dollars:,.2f}"
    tokens = record.prompt_tokens + record.completion_tokens
    yield f"Took {record.calls:,} calls, {tokens:,} tokens{money}, {cost.seconds:,.0f} s."
    yield f"{plans.path}: {PLANS_FILE}, {ITEMS_FILE}, {METRICS_FILE}, {RECORD_FILE}"


def _numbers(plans: Plans) -> Iterator[str]:
    matching = plans.record.matching
    ways = {WORDS: f"sharing {matching.words:g} of their words", EMBEDDINGS: f"a cosine of {matching.cosine:g}"}
    for way, same in ways.items():
        recall, precision = (plans.estimate(f"aspect_{name}", way) for name in ("recall", "precision"))
        if recall.value is not None:
            yield (
                f"Aspects by {same}: recall {with_interval(recall, 100, '.1f')}, precision "
                f"{with_interval(precision, 100, '.1f') or '–'} (%, {CONFIDENCE:.0%} intervals over people)."
            )
    if plans.metrics.is_empty():
        yield "Not every item has true aspects, so the plans are held against none."
    elif plans.record.listed < plans.record.items:
        yield "A plan without a list has a recall of 0 and no precision."
