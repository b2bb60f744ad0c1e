"""Notes below the tables of a report: what changes how their numbers are read, a sentence for all runs concerned.

A note that counts something is on its metric (`Metric.note`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_measures.crossed import MIN_PEOPLE
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.data.credits import CREDITS
from pluralbench.data.rules import rule_of
from pluralbench.metrics.metric import BASELINES, PEOPLE
from pluralbench.metrics.table import METRICS
from pluralbench.reports.costs import cost_summary
from pluralbench.reports.layout import shortened
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Row
from pluralbench.results.numbers import KINDS, with_interval
from pluralbench.results.runs import Run, items_text, ungrouped_votes

Noted = Iterator[tuple[str, str]]
"""How notes on a run begin, and what they say of it; nothing if the text is empty."""
MAX_TITLES = 2  # of benchmarks with one rule in a note; more are "the others"
LONGEST = 44  # columns of a name in a sentence
MANY = 3  # different texts that are listed one by one
NAMED = 5  # names or ids in a note
DIGITS = 8  # of a digest or a commit
VOTES = {
    "signed": "a right verdict with a tie or an invalid one is right (signed vote)",
    "mean": "each order counts by itself, as half of the pair",
}
SCORED = {
    "inputs_with_two_bos": "Inputs that begin with two BOS tokens",
    "inputs_without_bos": "Inputs without the tokenizer's BOS token",
    "inputs_ending_in_padding": "Read at the token before the padding token that ends the input, as the model's class "
    "does",
}
"""How notes on counts of a `score` run begin, by field of its result."""
JUDGED = {
    "failed_calls": "Calls that the server did not answer, which count as invalid; the same command sends them again",
    "uncounted_calls": "Calls without token counts, whose cost is not known",
}
"""How notes on the calls of a judge begin, by field of its result."""


def notes(sheets: Sequence[Sheet], *, detail: bool = False) -> list[str]:
    """Write the notes of sheets, a sentence each; `detail` adds notes on inputs and verdicts, and names each run."""
    texts = [*_reading_notes(sheets)]
    quiet = (row.name for sheet in sheets for row in sheet.rows if row.quiet)
    baselines = [name for name in dict.fromkeys(quiet) if name != BASELINES[PEOPLE]]
    if baselines and not detail:
        unit = " (in characters)" if len(baselines) > 1 else ""
        texts.append(f"Baselines (same items): {', '.join(baselines)}{unit}.")
    if any(sheet.other for sheet in sheets):
        texts.append("Tables of one benchmark on other items cannot be compared with each other.")
    uneven = [sheet for sheet in sheets if len({run.items_counted for run in sheet.runs}) > 1]
    texts += _sentences([_counted_items], uneven, None)
    texts += _sentences([*NOTES, *[_detail_notes] * detail], sheets, None if detail else MANY)
    return [*texts, *_cost_notes([run for sheet in sheets for run in sheet.runs])]


def _reading_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    """How the numbers are computed: units, intervals, and the rule of each benchmark."""
    described = [sheet.runs[0].config.benchmark for sheet in sheets]
    own_ties = any(
        one.description.vote == "mean" or any(CREDITS[name].ties_count for name in one.description.credit.values())
        for one in described
    )
    wrong = (
        "invalid answers are wrong, and ties unless the rule says otherwise"
        if own_ties
        else "ties and invalid answers are wrong"
    )
    yield f"Accuracy in %, with {CONFIDENCE:.0%} intervals over prompts or users; {wrong}."
    rules: dict[str, dict[str, None]] = {}
    for sheet, one in zip(sheets, described, strict=True):
        rules.setdefault(one.rule, {})[sheet.title] = None
    common = max(rules, key=lambda rule: len(rules[rule]))
    others = [common] if len(rules) > 1 and len(rules[common]) > MAX_TITLES else []
    parts = [f"{' and '.join(titles)}: {rule}" for rule, titles in rules.items() if rule not in others]
    parts = [common] if len(rules) == 1 else [*parts, *(f"the others: {rule}" for rule in others)]
    yield f"Overall: {'; '.join(parts)}."


def _cost_notes(runs: Sequence[Run]) -> Iterator[str]:
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        by_model.setdefault(run.name, []).append(run)
    names = shortened([clean(Path(name).name) for name in by_model], LONGEST)
    costs = [(name, text) for name, own in zip(names, by_model.values(), strict=True) if (text := cost_summary(own))]
    if len(by_model) == 1 and costs:
        yield f"Cost: {costs[0][1]}."
    elif costs:
        yield f"Cost: {'; '.join(f'{name} ({text})' for name, text in costs)}."


def _sentences(
    describers: Iterable[Callable[[Run], Noted]], sheets: Sequence[Sheet], most: int | None
) -> Iterator[str]:
    """Write the notes on runs; those with the same text are named together.

    most: Number of different texts; of more, a note has only the number of runs.
    """
    rows = [row for sheet in sheets for row in sheet.rows if not row.quiet]
    for describe in describers:
        by_begin: dict[str, dict[str, list[Row]]] = {}
        for row in rows:
            for begin, text in describe(row.runs[0]):
                if text:
                    by_begin.setdefault(begin, {}).setdefault(text, []).append(row)
        for begin, groups in by_begin.items():
            if most is not None and len(groups) > most:
                yield f"{begin}: in {sum(map(len, groups.values())):,} of {len(rows):,} runs."
                continue
            all_runs = " in each run" if len(rows) > 1 else ""
            parts = [
                f"{text}{all_runs}" if len(own) == len(rows) else f"{_names(own, sheets)}: {text}"
                for text, own in groups.items()
            ]
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


def list_names(names: Sequence[str]) -> str:
    """List the first names and the number of the others, as "a, b, c, d, e, 3 more"."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def _items(count: int) -> str:
    return items_text([count], count) if count else ""


def _counted_items(run: Run) -> Noted:
    yield "Counted in the overall number", "" if run.items_counted == run.items_total else run.size


def _data_notes(run: Run) -> Noted:
    data, strata = run.config.data, run.config.benchmark.description.strata
    if strata:
        drawn, items = (sum(getattr(stratum, name) for stratum in strata) for name in ("drawn", "items"))
        draw = f"{drawn:,} of {items:,} from {plural(len(strata), 'subset')} by seed {data.items_seed}"
        yield "Drawn items, weighted as all items", draw
    if (clusters := data.clusters) is not None:
        if clusters.repeats or clusters.column:
            yield "Intervals are over", clusters.summary(sum(data.rows.values()))
        yield "Repeated in the data", clusters.repeats


def _section_notes(run: Run) -> Noted:
    """What is in no section, and which sections have no items, which leave a run without an overall number."""
    benchmark = run.config.benchmark.description
    if benchmark.sections:
        subset = pl.col("subset")
        items = run.items.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
        items = items.filter(subset.is_null() | ~subset.is_in(list(benchmark.section_of)))
        counts = items.select("config", "id", "subset").unique()["subset"].value_counts(sort=True)
        outside = [f"{name or 'no subset'} ({items_text([n], n)})" for name, n in counts.iter_rows()]
        yield "Subsets outside all sections, not in the overall number", list_names(outside)
        present = set(run.items["subset"])
        absent = [name for name in benchmark.section_of if name not in present]
        yield "Subsets of sections that have no items", list_names(absent)
    if benchmark.sections and run.headline.value is None:
        configs = [one for one in run.names("config", "pooled_accuracy") if one not in benchmark.outside_overall]
        empty = [
            f"{name} of {config}" if len(configs) > 1 else name
            for config in configs
            for name in benchmark.sections
            if run.estimate("accuracy", config=config, section=name).value is None
        ]
        yield "No overall number, because no item counts in", list_names(empty)
    if not run.configs:
        yield "No overall number, because it does not include", list_names([*_excluded_configs(run)])


def _excluded_configs(run: Run) -> Iterator[str]:
    for config in run.excluded_configs:
        number = run.estimate(rule_of(run.config.benchmark.description).metric, config=config)
        accuracy = "" if number.value is None else f"accuracy {with_interval(number)}, "
        count = run.items.filter(config=config)["id"].n_unique()
        yield f"{config} ({accuracy}{items_text([count], count)})"


def _decision_notes(run: Run) -> Noted:
    benchmark, rows, equal = run.config.benchmark.description, run.config.data.left_out, run.count("equal")
    of_config = " of {}" if len(run.config.data.rows) > 1 else ""
    left_out = [plural(n, "row") + of_config.format(config) for config, n in rows.items()]
    yield "Left out because the benchmark does not select them", ", ".join(left_out)
    if (config := benchmark.tune_step_threshold) is not None:
        yield "Threshold tuned on test data", f"the F1 on {config} is the largest that a threshold has there"
    missing = [
        f"{subset} ones of {config}"
        for config in run.configs
        for subset in rule_of(benchmark).parts
        if run.estimate("accuracy", config=config, subset=subset).value is None
    ]
    yield "Answers without which a config has no F1", list_names(missing)
    if not benchmark.ties_break_exact_match:
        equal_ranks = f"; prompts whose responses all share one rank are exact matches: {equal:,}" if equal else ""
        yield "Legacy rules", f"prompts with tied scores can be exact matches{equal_ranks}"
    yield "Unreadable, because most verdicts or scores are invalid", run.unreadable
    ties, invalid = run.count("ties"), run.count("invalid")
    undecided = [*[plural(ties, "tie")] * bool(ties), *[f"{invalid:,} invalid"] * bool(invalid)]
    yield "Pairs without a winner" if benchmark.credits_items else "Counted as wrong", ", ".join(undecided)


def _count_notes(run: Run) -> Noted:
    """The notes that are on metrics."""
    texts: dict[str, list[str]] = {}
    for name, metric in METRICS.items():
        if metric.note:
            begin, *nouns = metric.note
            count = run.count(name) + sum(run.count(name, config=one) for one in run.names("config", name))
            texts.setdefault(begin, []).extend([plural(count, *nouns)] * bool(count))
    yield from ((begin, ", ".join(counts)) for begin, counts in texts.items())


def _judge_notes(run: Run) -> Noted:
    """How verdicts on pairs became decisions, and how they depend on the order of the responses."""
    setting, both = run.config.judge_setting, run.count("asked_in_both_orders")
    if (tie_margin := setting("tie_margin")) is not None:
        yield "Decided by the mean probability of both orders", f"a tie up to {tie_margin:g} from 1/2"
    if setting("logprobs") and (error := run.estimate("ece").value) is not None:
        yield "Expected calibration error of the probabilities", f"{error:.3f}"
    if setting("orders") == "both" or (run.scored and both):
        yield "Verdicts in both orders", VOTES.get(run.config.benchmark.description.vote, "")
    if both:
        yield "Verdict changed with answer order", f"{run.count('changed_with_the_order'):,} of {both:,} pairs"
    mean = run.estimate("accuracy_of_mean_probability")
    yield "Right by the mean probability of both orders, in %", with_interval(mean)
    share, chance = (run.estimate(f"picks_of_first{end}") for end in ("", "_by_chance"))
    if share.value is not None and chance.value is not None:
        picks = f"{share.value:.0%} of {share.n:,} valid picks ({chance.value:.0%} by chance)"
        yield "The judge picked the first response of the list", picks
    if run.judged is None:
        return
    for name, begin in JUDGED.items():
        count = getattr(run.judged, name)
        yield begin, f"{count:,} of {run.judged.calls:,}" if count else ""
    unread = {name: run.count("invalid_replies", judge=name) for name in run.names("judge", "invalid_replies")}
    unread_texts = [f"{count:,} of {name}" for name, count in unread.items() if count]
    yield "Replies that cannot be read, which do not vote", ", ".join(unread_texts)
    reasons = [f"{reason} {count:,}" for reason, count in run.judged.invalid_reasons.items()]
    yield "Reasons for invalid verdicts", list_names(reasons)


def _input_notes(run: Run) -> Noted:
    """What was left out of the inputs, and which inputs are not what the model was trained on."""
    data, scored, benchmark = run.config.data, run.scored, run.config.benchmark.description
    dropped, equal = run.count("dropped"), run.count("equal")
    excluded = []
    without_context = scored.items_without_context if scored else 0
    if scored and without_context:
        dropped = scored.items_dropped
    if dropped:
        excluded.append(plural(dropped, "item too long", "items too long"))
    if without_context:
        whose = "item without what the model reads of its user", "items without what the model reads of their users"
        excluded.append(plural(without_context, *whose))
    if equal and benchmark.ties_break_exact_match:  # by legacy rules these prompts are part of the exact match
        what = "prompt whose responses all share one rank", "prompts whose responses all share one rank"
        if benchmark.annotations is not None:
            what = "item without a majority of votes", "items without a majority of votes"
        excluded.append(plural(equal, *what))
    yield "Excluded from accuracy", ", ".join(excluded)
    if data.on_empty == "drop":
        yield "Dropped for an empty prompt or response", _items(len(data.empty))
    yield "Truncated to fit the model", _items(run.count("truncated"))
    yield "Date that the chat template writes", run.result.model.settings.get("date", "")
    if scored is None:
        return
    for name, begin in SCORED.items():
        yield begin, f"{count:,}" if (count := getattr(scored, name)) else ""
    config: Any = run.config
    model, longest = config.model, config.scoring.max_length
    settings = {  # that change inputs or rounding and are not the model's own
        "chat template": model.chat_template_digest and model.chat_template_digest[:DIGITS],
        "token to read": model.settings.get("read"),
        "date": model.settings.get("date"),
        "dtype": None if model.dtype == "auto" else model.dtype,
        "maximum length": longest and f"{longest:,} tokens",
    }
    texts = [f"{name} {value}" for name, value in settings.items() if value]
    yield "Set in place of the model's own", ", ".join(texts)
    rendered = _items(scored.items_rendered_identically)
    yield "Different responses that the chat template renders to the same tokens (scored as ties)", rendered
    if scored.tolerance is not None and run.close_margins:
        close = f"{run.close_margins} ({scored.tolerance:.2g})"
        yield "Could come out otherwise on another machine or in another mode", close


def _persona_notes(run: Run) -> Noted:
    ties, tasks = (getattr(run.result, name, {}) for name in ("ties_excluded", "tasks_excluded"))
    yield "Excluded because the label is a tie", ", ".join(f"{task} {count:,}" for task, count in ties.items())
    unfit = ", ".join(f"{task} ({why})" for task, why in tasks.items())
    yield "Excluded because the setting or the variables do not fit the task", unfit
    if (bare := getattr(run.result, "without_persona", None)) is not None:
        yield "Judged without a persona because the user has no value for the variables", _items(bare.items)


def _annotation_notes(run: Run) -> Noted:
    if not (votes := run.count("annotations")):
        return
    people, two, alpha, most = run.count("annotators"), *(run.estimate(name) for name in AGREEMENT)
    known = plural(people, "person", "people") if people else "people who are not known"
    yield "Votes of people", f"{votes:,} of {known}"
    agreeing = "" if two.value is None else f"two on an item agree in {with_interval(two)}%"
    if alpha.value is not None:
        agreeing += f", Krippendorff's alpha {with_interval(alpha, KINDS['correlation'])}"
    if most.value is not None:
        agreeing += f"; {with_interval(most)}% of votes are for their item's most frequent response"
    yield "Agreement of people", agreeing
    yield "Votes in no group", ungrouped_votes(run)
    grouped = dict.fromkeys(str(key.attribute) for key in run.keys("annotators", "group"))
    if no_gap := [name for name in grouped if run.estimate("group_gap", attribute=name).value is None]:
        few = f"{', '.join(no_gap)} (fewer than two groups of at least {MIN_PEOPLE} people)"
        yield "No gap between groups", few


AGREEMENT = ("agreement_of_two_annotators", "annotation_alpha", "share_of_most_frequent")


def _detail_notes(run: Run) -> Noted:
    """Notes of the detailed report only; the inputs are the causes of most differences from published numbers."""
    model, data, config = run.result.model, run.config.data, run.config
    work, share = run.scored.work if run.scored else None, run.estimate("share_of_first").value
    if share is not None:
        subject = "judge" if run.judged else "model"
        yield f"The {subject} chose the first response", f"{share:.0%} of its valid verdicts"
    if run.scored is None or work is None:
        return
    if work.seconds:
        settings: Any = config
        differ = (
            "how far scores of other modes differ was not measured, since the run is small and no decision is close"
            if run.scored.tolerance is None
            else f"scores of other modes differ by at most {run.scored.tolerance:.2g}"
        )
        per_token = work.computed_tokens / max(work.unique_tokens, 1)
        computed = f"{work.computed_tokens:,} tokens, {per_token:.2f} per unique token, in {work.seconds:.1f} s"
        yield "Computed", f"mode {settings.scoring.mode}, {computed}; {differ}"
    inputs = {
        "template": model.chat_template_digest and model.chat_template_digest[:DIGITS],
        "dtype": model.dtype,
        "attention": work.attention,
        "at most": f"{work.max_length:,} tokens",
        "model": (model.commit or model.digest or "")[:DIGITS],
        "data": (data.revision or data.digest)[:DIGITS],
    }
    yield "Inputs", ", ".join(f"{name} {value}" for name, value in inputs.items() if value)


NOTES = (
    _data_notes,
    _section_notes,
    _decision_notes,
    _judge_notes,
    _count_notes,
    _input_notes,
    _persona_notes,
    _annotation_notes,
)
"""Notes on runs, in order."""
