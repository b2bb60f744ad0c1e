"""Notes below the tables of a report: what changes how their numbers are read, a sentence for all runs concerned."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.credits import TIES_COUNT
from pluralbench.metrics.table import METRICS
from pluralbench.reports.costs import cost_summary
from pluralbench.reports.layout import shortened
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Row
from pluralbench.results.evaluations import PersonaJudgeResult, ScoreRunConfig
from pluralbench.results.numbers import three_digits, with_interval
from pluralbench.results.runs import Run, items_text

MAX_TITLES = 2  # of benchmarks with one rule in a note; more are "the others"
LONGEST = 44  # columns of a name in a sentence
MANY = 3  # different texts that are listed one by one
NAMED = 5  # names or ids in a note
DIGITS = 8  # of a digest or a commit
VOTES = {
    "signed": "a right verdict with a tie or an invalid one is right (signed vote)",
    "mean": "each order counts by itself, as half of the pair",
}
UNDECIDED = {"ties": "tie|ties", "invalid": "invalid|invalid"}
EXCLUDED = {
    "dropped": "item too long|items too long",
    "equal": "prompt whose responses all share one rank|prompts whose responses all share one rank",
}
Describe = Callable[[Run], str]


def notes(sheets: Sequence[Sheet], *, detail: bool = False) -> list[str]:
    """Write the notes of sheets, a sentence each; the last is the cost of the runs.

    Args:
        detail: Include notes on inputs and single verdicts, and name each run.
    """
    texts = [
        f"Accuracy in %, with {CONFIDENCE:.0%} intervals over prompts or users; {_wrong(sheets)}.",
        _rules(sheets),
        *_metric_notes(sheets),
        *([] if detail else _baseline_notes(sheets)),
    ]
    if any(sheet.other for sheet in sheets):
        texts.append("Tables of one benchmark on other items cannot be compared with each other.")
    uneven = [sheet for sheet in sheets if len({run.items_counted for run in sheet.runs}) > 1]
    texts += _sentence("Counted in the overall number", _counted_items, uneven, None)
    for begin, describe in (NOTES | DETAILS if detail else NOTES).items():
        texts += _sentence(begin, describe, sheets, None if detail else MANY)
    return [*texts, *_cost_notes(sheets)]


def _wrong(sheets: Sequence[Sheet]) -> str:
    if any(_benchmark(sheet).vote == "mean" or TIES_COUNT & {*_benchmark(sheet).credit.values()} for sheet in sheets):
        return "invalid answers are wrong, and ties unless the rule says otherwise"
    return "ties and invalid answers are wrong"


def _rules(sheets: Sequence[Sheet]) -> str:
    rules: dict[str, dict[str, None]] = {}
    for sheet in sheets:
        rules.setdefault(sheet.runs[0].config.benchmark.rule, {})[sheet.title] = None
    if len(rules) == 1:
        return f"Overall: {next(iter(rules))}."
    common = max(rules, key=lambda rule: len(rules[rule]))
    others = [common] if len(rules[common]) > MAX_TITLES else []
    parts = [f"{' and '.join(titles)}: {rule}" for rule, titles in rules.items() if rule not in others]
    return "Overall: " + "; ".join([*parts, *(f"the others: {rule}" for rule in others)]) + "."


def _metric_notes(sheets: Sequence[Sheet]) -> list[str]:
    shown = {column.key.metric for sheet in sheets for column in sheet.columns}
    shown |= {name for sheet in sheets for name in _benchmark(sheet).metrics}
    return [metric.note for name, metric in METRICS.items() if name in shown and metric.note]


def _baseline_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    names = dict.fromkeys(row.name for sheet in sheets for row in sheet.rows if row.quiet)
    if names:
        yield f"Baselines (same items): {', '.join(names)}{' (in characters)' if len(names) > 1 else ''}."


def _cost_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    """The cost of the runs of each model, in one sentence."""
    by_model: dict[str, list[Run]] = {}
    for run in (run for sheet in sheets for run in sheet.runs):
        by_model.setdefault(run.name, []).append(run)
    names = shortened([clean(Path(name).name) for name in by_model], LONGEST)
    costs = [(name, text) for name, own in zip(names, by_model.values(), strict=True) if (text := cost_summary(own))]
    if len(by_model) == 1 and costs:
        yield f"Cost: {costs[0][1]}."
    elif costs:
        yield f"Cost: {'; '.join(f'{name} ({text})' for name, text in costs)}."


def _sentence(begin: str, describe: Describe, sheets: Sequence[Sheet], most: int | None) -> Iterator[str]:
    """A note that names runs with the same text together; of more than `most` different texts only their number."""
    rows = [row for sheet in sheets for row in sheet.rows if not row.quiet]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if text := describe(row.runs[0]):
            groups.setdefault(text, []).append(row)
    if most is not None and len(groups) > most:
        yield f"{begin}: in {sum(map(len, groups.values())):,} of {len(rows):,} runs."
        return
    parts = []
    for text, own in groups.items():
        if len(own) == len(rows):
            parts.append(f"{text} in each run" if len(rows) > 1 else text)
        else:
            parts.append(f"{_names(own, sheets)}: {text}")
    if parts:
        yield f"{begin}: {'; '.join(parts)}."


def _names(rows: Sequence[Row], sheets: Sequence[Sheet]) -> str:
    """The names of rows, or of a benchmark in place of all its rows."""
    names = []
    titles = Counter(sheet.title for sheet in sheets)
    for sheet in sheets:
        where = ", ".join([sheet.title, *(sheet.qualifiers if titles[sheet.title] > 1 else ())])
        own_rows = [row for row in rows if any(row is own for own in sheet.rows)]
        if own_rows and len(own_rows) == len(sheet.runs) and len(sheets) > 1:
            names.append(clean(where))
        elif own_rows:
            models = ", ".join(shortened([clean(row.name) for row in own_rows], LONGEST))
            names.append(f"{models} on {clean(where)}" if len(sheets) > 1 else models)
    return ", ".join(names)


def _benchmark(sheet: Sheet) -> Benchmark:
    return sheet.runs[0].config.benchmark.description


def list_names(names: Sequence[str]) -> str:
    """List the first names and the number of the others, as "a, b, c, d, e, 3 more"."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def _number(count: int | None) -> str:
    return f"{count:,}" if count else ""


def _items(count: int) -> str:
    return items_text([count], count) if count else ""


def _counts(nouns: Mapping[str, str], run: Run, *, credits_items: bool | None = None) -> str:
    """The counts of a run by nouns, "singular|plural"; with `credits_items` only for benchmarks that give credit so."""
    benchmark = run.config.benchmark.description
    if credits_items is not None and benchmark.credits_items != credits_items:
        return ""
    counts = {metric: run.count(metric) for metric in nouns}
    if not benchmark.ties_break_exact_match:
        counts.pop("equal", None)  # by legacy rules these prompts are part of the exact match
    return ", ".join(f"{n:,} {nouns[metric].split('|')[n != 1]}" for metric, n in counts.items() if n)


def _counted_items(run: Run) -> str:
    return "" if run.items_counted == run.items_total else run.size


def _drawn(run: Run) -> str:
    data, strata = run.config.data, run.config.benchmark.description.strata
    drawn, items = (sum(getattr(stratum, name) for stratum in strata) for name in ("drawn", "items"))
    return f"{drawn:,} of {items:,} from {plural(len(strata), 'subset')} by seed {data.items_seed}" if strata else ""


def _clusters(run: Run) -> str:
    clusters, items = run.config.data.clusters, sum(run.config.data.rows.values())
    return "" if clusters is None or not (clusters.repeats or clusters.column) else clusters.summary(items)


def _repeats(run: Run) -> str:
    clusters = run.config.data.clusters
    return "" if clusters is None else clusters.repeats


def _unsectioned(run: Run) -> str:
    """The subsets that are in no section, the largest first, as "new (297 items), newer (3 items)"."""
    benchmark = run.config.benchmark.description
    if not benchmark.sections:
        return ""
    items = run.items.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
    own = items.filter(pl.col("subset").is_null() | ~pl.col("subset").is_in(list(benchmark.section_of)))
    counts = own.select("config", "id", "subset").unique()["subset"].value_counts(sort=True)
    return list_names([f"{name or 'no subset'} ({items_text([n], n)})" for name, n in counts.iter_rows()])


def _unmatched(run: Run) -> str:
    present = set(run.items["subset"])
    return list_names([name for name in run.config.benchmark.description.section_of if name not in present])


def _empty_sections(run: Run) -> str:
    """The sections without a number, which leave the run without an overall number."""
    benchmark = run.config.benchmark.description
    if run.headline.value is not None:
        return ""
    configs = [config for config in run.names("config", "pooled_accuracy") if config not in benchmark.outside_overall]
    several = len(configs) > 1
    places = [(config, name) for config in configs for name in benchmark.sections]
    empty = [
        (config, name) for config, name in places if run.estimate("accuracy", config=config, section=name).value is None
    ]
    return list_names([f"{name} of {config}" if several else name for config, name in empty])


def left_out(run: Run) -> str:
    """Return how many rows the benchmark does not select, by config if there are several."""
    several = len(run.config.data.rows) > 1
    counts = run.config.data.left_out
    return ", ".join(f"{plural(n, 'row')}{f' of {config}' * several}" for config, n in counts.items())


def _legacy_ties(run: Run) -> str:
    benchmark, equal = run.config.benchmark.description, run.count("equal")
    if benchmark.ties_break_exact_match or not benchmark.by_category:
        return ""
    equal_ranks = f"; prompts whose responses all share one rank are exact matches: {equal:,}" if equal else ""
    return f"prompts with tied scores can be exact matches{equal_ranks}"


def _invalid_responses(run: Run) -> str:
    configs = run.names("config", "invalid_responses")
    return _number(sum(run.count("invalid_responses", config=config) for config in configs))


def _unpaired(run: Run) -> str:
    count = run.count("unpaired")
    return plural(count, "prompt") if count else ""


def _vote(run: Run) -> str:
    both = run.config.judge_setting("orders") == "both"
    return VOTES.get(run.config.benchmark.description.vote, "") if both else ""


def _changed(run: Run) -> str:
    both, changed = (run.count(name) for name in ("asked_in_both_orders", "changed_with_the_order"))
    return f"{changed:,} of {both:,} pairs" if both else ""


def _first_picks(run: Run) -> str:
    share, chance = (run.estimate(f"picks_of_first{end}") for end in ("", "_by_chance"))
    if share.value is None or chance.value is None:
        return ""
    return f"{share.value:.0%} of {share.n:,} valid picks ({chance.value:.0%} by chance)"


def _chosen_settings(run: Run) -> str:
    """The settings of a local model that change its inputs or its rounding and are not the model's own."""
    config = run.config
    if not isinstance(config, ScoreRunConfig):
        return ""
    settings = {
        "chat template": config.model.chat_template_digest and config.model.chat_template_digest[:DIGITS],
        "dtype": None if config.model.dtype == "auto" else config.model.dtype,
        "maximum length": config.scoring.max_length and f"{config.scoring.max_length:,} tokens",
    }
    return ", ".join(f"{name} {value}" for name, value in settings.items() if value)


def _empty(run: Run) -> str:
    data = run.config.data
    return _items(len(data.empty)) if data.on_empty == "drop" else ""


def _excluded_ties(run: Run) -> str:
    ties = run.result.ties_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} {count:,}" for task, count in ties.items())


def _excluded_tasks(run: Run) -> str:
    tasks = run.result.tasks_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} ({why})" for task, why in tasks.items())


def _without_persona(run: Run) -> str:
    bare = run.result.without_persona if isinstance(run.result, PersonaJudgeResult) else None
    return plural(bare.items, "item") if bare and bare.items else ""


def _close(run: Run) -> str:
    tolerance = run.scored.tolerance if run.scored else None
    return f"{run.close_margins} ({tolerance:.2g})" if tolerance is not None and run.close_margins else ""


def _differing_shards(run: Run) -> str:
    """The versions and devices in which a run's shards differ, as "numpy (2.3.0, 2.3.1); devices (cpu, cuda)".

    A merge accepts such shards, as a resumed run may differ too; but each difference can change the last digits.
    """
    shards = run.result.shards
    origins = [shard.provenance for shard in shards]
    packages = dict.fromkeys(name for origin in origins for name in origin.packages)
    values = {name: {origin.packages.get(name, "none") for origin in origins} for name in packages}
    values["Python"] = {origin.python for origin in origins}
    values["devices"] = {shard.device for shard in shards if shard.device}
    values["commits"] = {origin.git.commit[:12] for origin in origins if origin.git is not None}
    return "; ".join(f"{name} ({', '.join(sorted(own))})" for name, own in values.items() if len(own) > 1)


def _reasons(run: Run) -> str:
    judging = run.judged
    return ", ".join(f"{reason} {count:,}" for reason, count in judging.invalid_reasons.items()) if judging else ""


def _first(run: Run) -> str:
    share = run.estimate("share_of_first").value
    return "" if share is None else f"{share:.0%} of its valid verdicts"


def _kappa(run: Run) -> str:
    kappa, deviation = run.estimate("kappa"), run.estimate("kappa_sd").value
    return "" if kappa.value is None or deviation is None else f"{deviation:.3f} over {kappa.n} languages"


def _calibration(run: Run) -> str:
    own = {config: run.estimate("ece", config=config) for config in [None, *run.names("config", "ece")]}
    errors = {config or "overall": with_interval(one, three_digits) for config, one in own.items()}
    return ", ".join(f"{name} {text}" for name, text in errors.items() if text)


def _inputs(run: Run) -> str:
    """The causes of most differences from published numbers: template, dtype, attention, length and revisions."""
    model, data, work = run.result.model, run.config.data, run.scored.work if run.scored else None
    if work is None:
        return ""
    parts = {
        "template": model.chat_template_digest and model.chat_template_digest[:DIGITS],
        "dtype": model.dtype,
        "attention": work.attention,
        "at most": f"{work.max_length:,} tokens",
        "model": (model.commit or model.digest or "")[:DIGITS],
        "data": (data.revision or data.digest)[:DIGITS],
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


NOTES: dict[str, Describe] = {
    "Drawn items, weighted as all items": _drawn,
    "Intervals are over": _clusters,
    "Repeated in the data": _repeats,
    "Subsets outside all sections, not in the overall number": _unsectioned,
    "Subsets of sections that have no items": _unmatched,
    "No overall number, because no item counts in": _empty_sections,
    "Left out because the benchmark does not select them": left_out,
    "Legacy rules": _legacy_ties,
    "Unreadable, because most verdicts or scores are invalid": lambda run: run.unreadable,
    "Counted as wrong": partial(_counts, UNDECIDED, credits_items=False),
    "Pairs without a winner": partial(_counts, UNDECIDED, credits_items=True),
    "Responses with an invalid score, which lose in best of k": _invalid_responses,
    "Without credit because the twin has no score": _unpaired,
    "Verdicts in both orders": _vote,
    "Verdict changed with answer order": _changed,
    "The judge picked the first response of the list": _first_picks,
    "Rated, because a pick cannot rank them": lambda run: _items(run.count("rated")),
    "Excluded from accuracy": partial(_counts, EXCLUDED),
    "Dropped for an empty prompt or response": _empty,
    "Truncated to fit the model": partial(_counts, {"truncated": "item|items"}),
    "Inputs that begin with two BOS tokens": lambda run: _number(run.scored.inputs_with_two_bos if run.scored else 0),
    "Inputs without the tokenizer's BOS token": lambda run: _number(run.scored.inputs_without_bos if run.scored else 0),
    "Set in place of the model's own": _chosen_settings,
    "Excluded because the label is a tie": _excluded_ties,
    "Excluded because the setting or the variables do not fit the task": _excluded_tasks,
    "Judged without a persona because the user has no value for the variables": _without_persona,
    "Different responses that the chat template renders to the same tokens (scored as ties)": lambda run: _items(
        run.scored.items_rendered_identically if run.scored else 0
    ),
    "Could come out otherwise on another machine or in another mode": _close,
    "Shards differ in": _differing_shards,
}
"""What a note says of a run, by how it begins; nothing if the run is not concerned."""
DETAILS: dict[str, Describe] = {
    "Reasons for invalid verdicts": _reasons,
    "The judge chose the first response": _first,
    "Standard deviation of kappa": _kappa,
    "Expected calibration error of the sigmoid of score differences, in five equal bins": _calibration,
    "Inputs": _inputs,
}
"""Notes of the detailed report only."""
