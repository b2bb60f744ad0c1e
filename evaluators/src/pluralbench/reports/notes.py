"""Notes below the tables of a report: what changes how their numbers are read, a sentence for all runs concerned."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from pluralbench.reports.costs import cost_summary
from pluralbench.reports.layout import shortened
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.tables import Row
from pluralbench.results.evaluations import PersonaJudgeResult, ScoreRunConfig
from pluralbench.results.numbers import KINDS, with_interval
from pluralbench.results.runs import MISSING, Run, items_text, ungrouped_votes

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
    "without_context": "item without what the model reads of its user|"
    "items without what the model reads of their users",
    "equal": "prompt whose responses all share one rank|prompts whose responses all share one rank",
}
NO_MAJORITY = "item without a majority of votes|items without a majority of votes"


def notes(sheets: Sequence[Sheet], *, detail: bool = False) -> list[str]:
    """Write the notes of sheets, a sentence each; the last is the cost of the runs.

    Args:
        detail: Include notes on inputs and single verdicts, and name each run.
    """
    texts = [*_reading_notes(sheets)]
    quiet = (row.name for sheet in sheets for row in sheet.rows if row.quiet)
    baselines = [name for name in dict.fromkeys(quiet) if name != BASELINES[PEOPLE]]
    if baselines and not detail:
        unit = " (in characters)" if len(baselines) > 1 else ""
        texts.append(f"Baselines (same items): {', '.join(baselines)}{unit}.")
    if any(sheet.other for sheet in sheets):
        texts.append("Tables of one benchmark on other items cannot be compared with each other.")
    uneven = [sheet for sheet in sheets if len({run.items_counted for run in sheet.runs}) > 1]
    sizes = {id(run): "" if run.items_counted == run.items_total else run.size for one in uneven for run in one.runs}
    texts += _sentence("Counted in the overall number", sizes, uneven, None)
    runs = [run for sheet in sheets for run in sheet.runs]
    for describe in (*NOTES, _detail_notes) if detail else NOTES:
        described = {id(run): describe(run) for run in runs}
        for begin in dict.fromkeys(begin for one in described.values() for begin in one):
            own = {run: one.get(begin, "") for run, one in described.items()}
            texts += _sentence(begin, own, sheets, None if detail else MANY)
    return [*texts, *_cost_notes(runs)]


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
    """The cost of the runs of each model, in one sentence."""
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        by_model.setdefault(run.name, []).append(run)
    names = shortened([clean(Path(name).name) for name in by_model], LONGEST)
    costs = [(name, text) for name, own in zip(names, by_model.values(), strict=True) if (text := cost_summary(own))]
    if len(by_model) == 1 and costs:
        yield f"Cost: {costs[0][1]}."
    elif costs:
        yield f"Cost: {'; '.join(f'{name} ({text})' for name, text in costs)}."


def _sentence(begin: str, texts: Mapping[int, str], sheets: Sequence[Sheet], most: int | None) -> Iterator[str]:
    """A note that names runs with the same text together; of more than `most` different texts only their number.

    texts: What it says of each run, by the run's `id`; empty if the run is not concerned.
    """
    rows = [row for sheet in sheets for row in sheet.rows if not row.quiet]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if text := texts[id(row.runs[0])]:
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


def list_names(names: Sequence[str]) -> str:
    """List the first names and the number of the others, as "a, b, c, d, e, 3 more"."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def _number(count: int | None) -> str:
    return f"{count:,}" if count else ""


def _items(count: int) -> str:
    return items_text([count], count) if count else ""


def _verdicts(run: Run, metric: str) -> str:
    count = run.count(metric)
    return plural(count, "verdict") if count else ""


def _calls(run: Run, name: str) -> str:
    count = getattr(run.judged, name, 0)
    return f"{count:,} of {run.judged.calls:,}" if run.judged and count else ""


def _counts(run: Run, nouns: Mapping[str, str]) -> str:
    """The counts of a run by nouns, "singular|plural"."""
    counts = {metric: run.count(metric) for metric in nouns}
    if run.scored is not None and run.scored.items_without_context and "dropped" in nouns:
        counts |= {"dropped": run.scored.items_dropped, "without_context": run.scored.items_without_context}
    if not run.config.benchmark.description.ties_break_exact_match:
        counts.pop("equal", None)  # by legacy rules these prompts are part of the exact match
    if run.config.benchmark.description.annotations is not None and "equal" in nouns:
        nouns = {**nouns, "equal": NO_MAJORITY}
    return ", ".join(f"{n:,} {nouns[metric].split('|')[n != 1]}" for metric, n in counts.items() if n)


def _data_notes(run: Run) -> dict[str, str]:
    """Which items the numbers are over, and what they are resampled by."""
    data, strata = run.config.data, run.config.benchmark.description.strata
    drawn, items = (sum(getattr(stratum, name) for stratum in strata) for name in ("drawn", "items"))
    clusters, draw = data.clusters, ""
    if strata:
        draw = f"{drawn:,} of {items:,} from {plural(len(strata), 'subset')} by seed {data.items_seed}"
    stated = clusters is not None and bool(clusters.repeats or clusters.column)
    return {
        "Drawn items, weighted as all items": draw,
        "Intervals are over": clusters.summary(sum(data.rows.values())) if clusters and stated else "",
        "Repeated in the data": clusters.repeats if clusters else "",
    }


def _section_notes(run: Run) -> dict[str, str]:
    """What is in no section, and which sections have no items, which leave a run without an overall number."""
    benchmark = run.config.benchmark.description
    outside, absent, empty = [], [], []
    if benchmark.sections:
        subset = pl.col("subset")
        items = run.items.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
        items = items.filter(subset.is_null() | ~subset.is_in(list(benchmark.section_of)))
        counts = items.select("config", "id", "subset").unique()["subset"].value_counts(sort=True)
        outside = [f"{name or 'no subset'} ({items_text([n], n)})" for name, n in counts.iter_rows()]
        present = set(run.items["subset"])
        absent = [name for name in benchmark.section_of if name not in present]
    if benchmark.sections and run.headline.value is None:
        configs = [one for one in run.names("config", "pooled_accuracy") if one not in benchmark.outside_overall]
        empty = [
            f"{name} of {config}" if len(configs) > 1 else name
            for config in configs
            for name in benchmark.sections
            if run.estimate("accuracy", config=config, section=name).value is None
        ]
    return {
        "Subsets outside all sections, not in the overall number": list_names(outside),
        "Subsets of sections that have no items": list_names(absent),
        "No overall number, because no item counts in": list_names(empty),
        "No overall number, because it does not include": list_names(_outside_configs(run)),
    }


def _outside_configs(run: Run) -> list[str]:
    """The configs with their accuracy, if none of them is part of the overall number."""
    if run.configs:
        return []
    texts = []
    for config in run.excluded_configs:
        number = run.estimate(rule_of(run.config.benchmark.description).metric, config=config)
        accuracy = "" if number.value is None else f"accuracy {with_interval(number)}, "
        count = run.items.filter(config=config)["id"].n_unique()
        texts.append(f"{config} ({accuracy}{items_text([count], count)})")
    return texts


def _tuning(run: Run) -> str:
    config = run.config.benchmark.description.tune_step_threshold
    return "" if config is None else f"the F1 on {config} is the largest that a threshold has there"


def _missing_answers(run: Run) -> list[str]:
    """The configs of answers in steps that have no erroneous or no correct answer that counts."""
    parts = rule_of(run.config.benchmark.description).parts
    places = [(config, subset) for config in run.configs for subset in parts]
    values = {place: run.estimate("accuracy", config=place[0], subset=place[1]).value for place in places}
    return [f"{subset} ones of {config}" for (config, subset), value in values.items() if value is None]


def _decision_notes(run: Run) -> dict[str, str]:
    """Which decisions count as wrong or not at all."""
    benchmark, rows, equal = run.config.benchmark.description, run.config.data.left_out, run.count("equal")
    of_config = " of {}" if len(run.config.data.rows) > 1 else ""
    legacy = not benchmark.ties_break_exact_match
    equal_ranks = f"; prompts whose responses all share one rank are exact matches: {equal:,}" if equal else ""
    undecided, unpaired = _counts(run, UNDECIDED), run.count("unpaired")
    invalid = [run.count("invalid_responses", config=one) for one in run.names("config", "invalid_responses")]
    return {
        "Left out because the benchmark does not select them": ", ".join(
            plural(n, "row") + of_config.format(config) for config, n in rows.items()
        ),
        "Threshold tuned on test data": _tuning(run),
        "Answers without which a config has no F1": list_names(_missing_answers(run)),
        "Legacy rules": f"prompts with tied scores can be exact matches{equal_ranks}" if legacy else "",
        "Unreadable, because most verdicts or scores are invalid": run.unreadable,
        "Counted as wrong": "" if benchmark.credits_items else undecided,
        "Pairs without a winner": undecided if benchmark.credits_items else "",
        "Responses with an invalid score, which lose in best of k": _number(sum(invalid)),
        "Without credit because the twin has no score": plural(unpaired, "prompt") if unpaired else "",
    }


def _judge_notes(run: Run) -> dict[str, str]:
    """How verdicts on pairs became decisions, and how they depend on the order of the responses."""
    vote = VOTES.get(run.config.benchmark.description.vote, "")
    both, changed = (run.count(name) for name in ("asked_in_both_orders", "changed_with_the_order"))
    share, chance = (run.estimate(f"picks_of_first{end}") for end in ("", "_by_chance"))
    mean = run.estimate("accuracy_of_mean_probability")
    reasons = run.judged.invalid_reasons.items() if run.judged else ()
    picks = ""
    if share.value is not None and chance.value is not None:
        picks = f"{share.value:.0%} of {share.n:,} valid picks ({chance.value:.0%} by chance)"
    unread = {name: run.count("invalid_replies", judge=name) for name in run.names("judge", "invalid_replies")}
    calibration = run.estimate("ece") if run.config.judge_setting("logprobs") else MISSING
    tie_margin = run.config.judge_setting("tie_margin")
    return {
        "Decided by the mean probability of both orders": ""
        if tie_margin is None
        else f"a tie up to {tie_margin:g} from 1/2",
        "Expected calibration error of the probabilities": ""
        if calibration.value is None
        else f"{calibration.value:.3f}",
        "Probability is a bound, because a verdict is not among the likeliest tokens": _verdicts(
            run, "probability_bounds"
        ),
        "No probability, because no single token decides the verdict": _verdicts(run, "without_probability"),
        "Verdicts in both orders": vote
        if run.config.judge_setting("orders") == "both" or (run.scored and both)
        else "",
        "Verdict changed with answer order": f"{changed:,} of {both:,} pairs" if both else "",
        "Right by the mean probability of both orders, in %": "" if mean.value is None else with_interval(mean),
        "The judge picked the first response of the list": picks,
        "Calls that the server did not answer, which count as invalid; the same command sends them again": _calls(
            run, "failed_calls"
        ),
        "Calls without token counts, whose cost is not known": _calls(run, "uncounted_calls"),
        "Replies that cannot be read, which do not vote": ", ".join(
            f"{count:,} of {name}" for name, count in unread.items() if count
        ),
        "Rated, because a pick cannot rank them": _items(run.count("rated")),
        "Reasons for invalid verdicts": list_names([f"{reason} {count:,}" for reason, count in reasons]),
    }


def _input_notes(run: Run) -> dict[str, str]:
    """What was left out of the inputs, and which inputs are not what the model was trained on."""
    config, data, scored = run.config, run.config.data, run.scored
    settings: dict[str, Any] = {}
    if isinstance(config, ScoreRunConfig):  # settings that change inputs or rounding and are not the model's own
        settings = {
            "chat template": config.model.chat_template_digest and config.model.chat_template_digest[:DIGITS],
            "token to read": config.model.settings.get("read"),
            "date": config.model.settings.get("date"),
            "dtype": None if config.model.dtype == "auto" else config.model.dtype,
            "maximum length": config.scoring.max_length and f"{config.scoring.max_length:,} tokens",
        }
    return {
        "Excluded from accuracy": _counts(run, EXCLUDED),
        "Dropped for an empty prompt or response": _items(len(data.empty)) if data.on_empty == "drop" else "",
        "Truncated to fit the model": _counts(run, {"truncated": "item|items"}),
        "Inputs that begin with two BOS tokens": _number(scored.inputs_with_two_bos if scored else 0),
        "Inputs without the tokenizer's BOS token": _number(scored.inputs_without_bos if scored else 0),
        "Read at the token before the padding token that ends the input, as the model's class does": _number(
            scored.inputs_ending_in_padding if scored else 0
        ),
        "Date that the chat template writes": run.result.model.settings.get("date", ""),
        "Set in place of the model's own": ", ".join(f"{name} {value}" for name, value in settings.items() if value),
    }


def _persona_notes(run: Run) -> dict[str, str]:
    """What a judge for personas left out, or judged without a persona."""
    if not isinstance(run.result, PersonaJudgeResult):
        return {}
    ties, tasks, bare = run.result.ties_excluded, run.result.tasks_excluded, run.result.without_persona
    return {
        "Excluded because the label is a tie": ", ".join(f"{task} {count:,}" for task, count in ties.items()),
        "Excluded because the setting or the variables do not fit the task": ", ".join(
            f"{task} ({why})" for task, why in tasks.items()
        ),
        "Judged without a persona because the user has no value for the variables": _items(bare.items if bare else 0),
    }


def _annotation_notes(run: Run) -> dict[str, str]:
    """How many votes of people there are, how far people agree, and which votes do not count."""
    votes, people = run.count("annotations"), run.count("annotators")
    two, alpha = run.estimate("agreement_of_two_annotators"), run.estimate("annotation_alpha")
    agreeing = "" if two.value is None else f"two on an item agree in {with_interval(two)}%"
    if alpha.value is not None:
        agreeing += f", Krippendorff's alpha {with_interval(alpha, KINDS['correlation'])}"
    most = run.estimate("share_of_most_frequent")
    if most.value is not None:
        agreeing += f"; {with_interval(most)}% of votes are for their item's most frequent response"
    known = plural(people, "person", "people") if people else "people who are not known"
    left_out = {
        "tie_annotations": "for a tie",
        "annotations_without_answer": "on items without an answer of the model",
    }
    grouped = dict.fromkeys(key.attribute for key in run.keys("annotators", "group"))
    no_gap = [str(name) for name in grouped if run.estimate("group_gap", attribute=name).value is None]
    return {
        "Votes of people": f"{votes:,} of {known}" if votes else "",
        "Agreement of people": agreeing,
        "Votes in no group": ungrouped_votes(run),
        "No gap between groups": f"{', '.join(no_gap)} (fewer than two groups of at least {MIN_PEOPLE} people)"
        if no_gap
        else "",
        "Votes that do not count": ", ".join(
            f"{count:,} {what}" for metric, what in left_out.items() if (count := run.count(metric))
        ),
    }


def _rounding_notes(run: Run) -> dict[str, str]:
    """Which decisions rest on equal inputs, or on scores that rounding can change."""
    scored = run.scored
    tolerance = scored.tolerance if scored else None
    return {
        "Different responses that the chat template renders to the same tokens (scored as ties)": _items(
            scored.items_rendered_identically if scored else 0
        ),
        "Could come out otherwise on another machine or in another mode": f"{run.close_margins} ({tolerance:.2g})"
        if tolerance is not None and run.close_margins
        else "",
    }


def _computation(run: Run) -> str:
    """How a score run was computed: its mode, tokens and time, and how far scores of other modes differ."""
    scored, config = run.scored, run.config
    if scored is None or not scored.work or not scored.work.seconds or not isinstance(config, ScoreRunConfig):
        return ""
    work = scored.work
    differ = (
        "how far scores of other modes differ was not measured, since the run is small and no decision is close"
        if scored.tolerance is None
        else f"scores of other modes differ by at most {scored.tolerance:.2g}"
    )
    return (
        f"mode {config.scoring.mode}, {work.computed_tokens:,} tokens, "
        f"{work.computed_tokens / max(work.unique_tokens, 1):.2f} per unique token, in {work.seconds:.1f} s; {differ}"
    )


def _detail_notes(run: Run) -> dict[str, str]:
    """Notes of the detailed report only; the inputs are the causes of most differences from published numbers."""
    judging, model, data = run.judged, run.result.model, run.config.data
    work, share = run.scored.work if run.scored else None, run.estimate("share_of_first").value
    inputs = work and {
        "template": model.chat_template_digest and model.chat_template_digest[:DIGITS],
        "dtype": model.dtype,
        "attention": work.attention,
        "at most": f"{work.max_length:,} tokens",
        "model": (model.commit or model.digest or "")[:DIGITS],
        "data": (data.revision or data.digest)[:DIGITS],
    }
    return {
        f"The {'judge' if judging else 'model'} chose the first response": ""
        if share is None
        else f"{share:.0%} of its valid verdicts",
        "Computed": _computation(run),
        "Inputs": ", ".join(f"{name} {value}" for name, value in (inputs or {}).items() if value),
    }


NOTES = (
    _data_notes,
    _section_notes,
    _decision_notes,
    _judge_notes,
    _input_notes,
    _persona_notes,
    _annotation_notes,
    _rounding_notes,
)
"""What notes say of a run, by how they begin; no text, or an empty one, where the run is not concerned."""
