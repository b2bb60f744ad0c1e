"""What a reader of a report has to know beside its numbers, a sentence each."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.results.decisions import decisions_of
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import VERDICTS_FILE, Run

NAMED = 5  # ids in a note
DAGGER = "†"
FEW = 10  # clusters under which an interval is marked
OVERALL = "overall"


def notes(runs: Sequence[Run]) -> list[str]:
    """What a reader of the table has to know, a sentence each."""
    said = [f"Overall: {run.record.benchmark.rule} ({run.path})." for run in runs]
    said.append(
        "Accuracy counts ties and invalid ones as wrong; brackets are "
        f"{CONFIDENCE:.0%} intervals over prompts or users."
    )
    for part in (
        _cluster_notes,
        _language_notes,
        _ranking_notes,
        _persona_notes,
        _position_notes,
        _scoring_notes,
        _shard_notes,
        _id_notes,
    ):
        said += [f"{run.path}: {note}" for run in runs for note in part(run)]
    said += [f"{run.path}: took {told}." for run in runs if (told := took([run]))]
    return said


def with_interval(found: Estimate, scale: float, form: str) -> str:
    """A number with its bounds in brackets, as "55.5 [43.1, 67.0]"; an empty text where it is missing."""
    if found.value is None:
        return ""
    bounds = (
        "" if found.low is None or found.high is None else f" [{scale * found.low:{form}}, {scale * found.high:{form}}]"
    )
    return f"{scale * found.value:{form}}{bounds}"


def mark(found: Estimate) -> str:
    """A dagger where an interval is over few clusters, which `mark_notes` explain."""
    return DAGGER if found.low is not None and found.clusters is not None and found.clusters < FEW else ""


def mark_notes(numbers: Iterable[Estimate]) -> Iterator[str]:
    """What the daggers at some numbers mean."""
    clusters = {found.clusters or 0 for found in numbers if mark(found)}
    if clusters:
        low, high = min(clusters), max(clusters)
        yield f"{DAGGER} Wide, since it is over only {low}{f' to {high}' if high > low else ''} prompts or users."


def took(runs: Sequence[Run]) -> str:
    """What some runs took, as "64 calls, 12,345 tokens, $0.12 at 0.25/2 a million, 31 s"; empty where none says it."""
    judged = [run.record.judging for run in runs if run.record.judging is not None]
    costs = [run.record.cost for run in runs if run.record.cost is not None]
    calls = sum(one.calls for one in judged) if judged else None
    said = work_told(calls, sum(one.prompt_tokens + one.completion_tokens for one in judged), costs)
    return f"{said} in {len(runs)} runs" if said and len(runs) > 1 else said


def work_told(calls: int | None, tokens: int, costs: Sequence[CostRecord]) -> str:
    """Calls, tokens, money and time, as in `took`; calls are None where none were made."""
    priced = [(cost.dollars, cost.price) for cost in costs if cost.dollars is not None and cost.price is not None]
    parts = [] if calls is None else [f"{calls:,} calls", f"{tokens:,} tokens"]
    if priced:
        prices = dict.fromkeys(f"{price.input:g}/{price.output:g}" for _, price in priced)
        parts.append(f"${_money(sum(dollars for dollars, _ in priced))} at {' and '.join(prices)} a million")
    if costs:
        parts.append(f"{_time(sum(cost.seconds for cost in costs))} s")
    return ", ".join(parts)


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 0.1 or not dollars else f"{dollars:.2g}"


def _time(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 1 else "under 1"


def _cluster_notes(run: Run) -> Iterator[str]:
    clusters = run.record.data.clusters
    if clusters is None:
        return
    items = sum(run.record.data.rows.values())
    if clusters.clusters < items or clusters.column is not None:
        yield f"intervals are over {clusters.clusters:,} {clusters.name} of {items:,} items."
    if clusters.repeats:
        yield f"repeated in the data: {clusters.repeats}."


def _language_notes(run: Run) -> Iterator[str]:
    reference = run.record.benchmark.description.reference
    if reference is None:
        return
    drop = run.estimate("drop", "overall")
    if drop.value is not None:
        yield (
            f"on the same ids, {100 * drop.value:+.1f} points{_bounds(drop)} against English, as a mean over languages."
        )
    kappa, deviation = run.estimate("kappa", "overall"), run.estimate("kappa_sd", "overall").value
    if kappa.value is not None:
        spread = "" if deviation is None else f" (standard deviation {deviation:.3f})"
        yield (
            f"its labels agree with its own in English with a mean kappa of {kappa.value:.3f}{spread} over {kappa.n} "
            "languages."
        )
    if reference.config not in run.record.data.rows:
        yield "no items in English, so no drop and no consistency; give them with --english."


def _bounds(found: Estimate) -> str:
    return "" if found.low is None or found.high is None else f" [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _ranking_notes(run: Run) -> Iterator[str]:
    benchmark = run.record.benchmark.description
    if not benchmark.by_category:
        return
    yield (
        "within a category accuracy is over pairs and exact match over prompts; a config has the unweighted means of "
        "its categories."
    )
    equal = run.count("equal")
    if equal:
        done = "are left out" if benchmark.strict else "count as exact matches"
        yield f"prompts whose responses all share one rank: {equal:,}; they {done}."
    if not benchmark.strict:
        yield "legacy rules: a tie of scores does not break an exact match."
    configs = run.names("pooled", "config", "ece")
    errors = {OVERALL: run.estimate("ece", "pooled")} | {c: run.estimate("ece", "pooled", config=c) for c in configs}
    if errors[OVERALL].n is not None:
        told = ", ".join(f"{name} {with_interval(found, 1, '.3f') or '–'}" for name, found in errors.items())
        largest = "in the last bin" if benchmark.strict else "in no bin"
        yield (
            "expected calibration error of the sigmoid of score differences, in five equal bins, the largest "
            f"difference {largest}: {told}."
        )


def _persona_notes(run: Run) -> Iterator[str]:
    setting, judging = run.record.prompt.setting, run.record.judging
    if setting is None or judging is None:
        return
    yield f"setting {setting}, persona variables {run.record.prompt.variables}."
    if judging.ties_left_out:
        ties = ", ".join(f"{task} {count:,}" for task, count in judging.ties_left_out.items())
        yield f"items whose truth is a tie are left out in this setting: {ties}."
    if judging.tasks_left_out:
        tasks = ", ".join(f"{task} ({why})" for task, why in judging.tasks_left_out.items())
        yield f"tasks that cannot be asked about so are left out: {tasks}."
    bare = judging.without_persona
    if bare and bare.items:
        yield (
            f"items that tell nothing of their person in these variables, judged as with none: {bare.items:,} "
            f"(ids {_named(bare.ids, bare.items)})."
        )


def _position_notes(run: Run) -> Iterator[str]:
    first = run.estimate("share_of_first", "position").value
    if first is not None:
        yield f"the judge chose the first response in {first:.0%} of its valid verdicts."
    both, changed = (run.count(name, "position") for name in ("asked_in_both_orders", "changed_with_the_order"))
    if both:
        yield f"{changed:,} of {both:,} pairs of valid verdicts changed with the order."
    reasons = run.record.judging.invalid_reasons if run.record.judging else {}
    if reasons:
        told = "; ".join(f"{reason} {count:,}" for reason, count in reasons.items())
        yield f"why verdicts are invalid: {told}."


def _scoring_notes(run: Run) -> Iterator[str]:
    scoring = run.record.scoring
    if scoring is None:
        return
    if scoring.work and scoring.work.unpackable:
        yield f"scored in padded batches, since {scoring.work.unpackable}."
    if scoring.decisions_within_tolerance:
        yield (
            f"{scoring.decisions_within_tolerance:,} decisions have a margin within the tolerance "
            f"({scoring.tolerance:.2g}), where rounding decides."
        )


def _shard_notes(run: Run) -> Iterator[str]:
    if run.record.shards:
        yield f"joined from {len(run.record.shards):,} shards."
    if differing := differing_shards(run):
        yield f"its shards differ in {differing}."


def differing_shards(run: Run) -> str:
    """In what the processes differed that scored a run's shards, as "numpy (2.3.0, 2.3.1); devices (cpu, cuda)".

    None of it is refused, since a run that goes on elsewhere may differ in it too, and all of it can change digits.
    """
    shards = run.record.shards
    made = [shard.provenance for shard in shards]
    names = dict.fromkeys(name for one in made for name in one.packages)
    found = {name: {one.packages.get(name, "none") for one in made} for name in names}
    found |= {"Python": {one.python for one in made}, "devices": {shard.device for shard in shards if shard.device}}
    found |= {"commits": {one.git.commit[:12] for one in made if one.git is not None}}
    return "; ".join(f"{name} ({', '.join(sorted(values))})" for name, values in found.items() if len(values) > 1)


def _id_notes(run: Run) -> Iterator[str]:
    outside = sorted(run.record.benchmark.description.outside)
    decisions = decisions_of(run.items).filter(~pl.col("config").is_in(outside))
    outcome = pl.col("outcome")
    for what, rows in (
        ("invalid", outcome == "invalid"),
        ("truncated", "truncated"),
        ("dropped", outcome == "dropped"),
    ):
        ids = decisions.filter(rows).select("config", "id").unique(maintain_order=True)["id"].to_list()
        if ids:
            yield f"{what}: ids {_named(ids, len(ids))}."


def _named(ids: Sequence[str], of: int) -> str:
    return ", ".join(ids[:NAMED]) + (", …" if of > NAMED else "")


def closing(run: Run) -> list[str]:
    """What the command that made a run says of it before its row: its work, its data, and its files."""
    said, data, scoring = [], run.record.data, run.record.scoring
    if scoring and scoring.work and scoring.work.seconds:
        work = scoring.work
        saved = work.computed_tokens / max(work.unique_tokens, 1)
        said.append(
            f"Mode {scoring.mode}: {work.computed_tokens:,} tokens computed, {saved:.2f} for each unique one, in "
            f"{work.seconds:.1f} s; scores of other modes lie within {scoring.tolerance:.2g}."
        )
    if data.ignored_columns:
        said.append(f"Columns that are not read: {', '.join(data.ignored_columns)}.")
    if data.empty:
        kept = "dropped" if data.on_empty == "drop" else "kept"
        said.append(
            f"{len(data.empty):,} items with an empty prompt or response were {kept} "
            f"(ids {_named(data.empty, len(data.empty))})."
        )
    clusters = data.clusters
    if clusters is not None and clusters.repeats:
        said.append(
            f"Repeated in the data: {clusters.repeats}; intervals are over {clusters.clusters:,} {clusters.name}."
        )
    if data.shard is not None:
        number = run.items.select("config", "id").n_unique()
        every = data.shard.partition("/")[2]
        said.append(
            f"Shard {data.shard} has {number:,} items and no metrics: `pluralbench merge` joins all {every} shards."
        )
    if run.record.shards:
        said.append(f"Joined from {len(run.record.shards):,} shards.")
    verdicts = run.path / VERDICTS_FILE
    further = f", {VERDICTS_FILE} (see pluralbench judge-metrics {verdicts})" if verdicts.exists() else ""
    return [*said, f"{run.path}: items.parquet, metrics.json, run.json{further}"]
