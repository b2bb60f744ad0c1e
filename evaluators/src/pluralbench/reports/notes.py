"""Notes below the tables of a report: one sentence for all runs that it applies to."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import decisions_of
from pluralbench.metrics.calibration import scores_log_odds
from pluralbench.metrics.credits import TIES_COUNT
from pluralbench.metrics.table import METRICS
from pluralbench.reports import data_notes, input_notes, judge_notes
from pluralbench.reports.costs import cost_summary
from pluralbench.reports.data_notes import NAMED
from pluralbench.reports.layout import shortened
from pluralbench.reports.sheets import RunRow, Sheet
from pluralbench.results.evaluations import PersonaJudgeResult
from pluralbench.results.numbers import DASH, three_digits, with_interval
from pluralbench.results.runs import Run
from pluralbench.results.summary import items_text

MAX_TITLES = 2  # of benchmarks with one rule in a note; more are "the others"
LONGEST = 44  # columns of a name in a sentence
MANY = 3  # different counts that are listed one by one
Describe = Callable[[Run], str]


class Note(NamedTuple):
    """A sentence about runs.

    Attributes:
        begin: How the sentence begins.
        content: A function that describes a run, or counts by name with their nouns as "singular|plural".
        of_data: The note is about the data, so the runs of a table that agree are not named.
        detail: Only the detailed report has the note.
        by_item: The note is only about benchmarks that give credit by item, or, if false, only about others.
    """

    begin: str
    content: Describe | Mapping[str, str]
    of_data: bool = False
    detail: bool = False
    by_item: bool | None = None


def notes(sheets: Sequence[Sheet], *, detail: bool = False) -> list[str]:
    """Write the notes of sheets, a sentence each; the last is the cost of the runs.

    Args:
        detail: Include the ids of items and notes on single verdicts and scores.
    """
    texts = [
        f"Accuracy in %, with {CONFIDENCE:.0%} intervals over prompts or users; {_wrong(sheets)}.",
        _rules(sheets),
        *_metric_notes(sheets),
        *_language_notes(sheets),
        *([] if detail else _baseline_notes(sheets)),
    ]
    if any(sheet.other for sheet in sheets):
        texts.append("Tables of one benchmark on other items cannot be compared with each other.")
    uneven = [sheet for sheet in sheets if len({run.items_counted for run in sheet.runs}) > 1]
    texts += _sentence("Counted in the overall number", _rows_by_text(_counted_items, uneven), uneven)
    for note in NOTES:
        if detail or not note.detail:
            texts += _format_note(note, sheets, detail=detail)
    return [*texts, *_cost_notes(sheets)]


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


def _format_note(note: Note, sheets: Sequence[Sheet], *, detail: bool) -> Iterator[str]:
    """A note that names runs with the same text together; if there are many different counts, only the largest."""
    content = note.content
    if note.by_item is not None:
        sheets = [sheet for sheet in sheets if _benchmark(sheet).credits_items == note.by_item]
    if callable(content):
        groups = _rows_by_text(content, sheets)
    else:
        groups = _rows_by_text(partial(_counts, content), sheets)
        if len(groups) > MANY and not detail:
            rows = [row for _, same in groups for row in same]
            most = {metric: max(row.run.count(metric) for row in rows) for metric in content}
            runs = sum(len(sheet.rows) for sheet in sheets)
            counts = _format_counts(most, content)
            yield f"{note.begin}: {len(rows)} of {runs} runs, up to {counts}."
            return
    if note.of_data and len(sheets) == 1 and [len(rows) for _, rows in groups] == [len(sheets[0].rows)]:
        yield f"{note.begin}: {groups[0][0]}."
    else:
        yield from _sentence(note.begin, groups, sheets)


def _counts(nouns: Mapping[str, str], run: Run) -> str:
    # By legacy rules prompts whose responses all share one rank are part of the exact match.
    counts = {
        metric: run.count(metric)
        for metric in nouns
        if metric != "equal" or run.config.benchmark.description.ties_break_exact_match
    }
    return _format_counts(counts, nouns)


def _format_counts(counts: Mapping[str, int], nouns: Mapping[str, str]) -> str:
    return ", ".join(f"{n:,} {nouns[metric].split('|')[n != 1]}" for metric, n in counts.items() if n)


def _rows_by_text(describe: Describe, sheets: Sequence[Sheet]) -> list[tuple[str, list[RunRow]]]:
    rows: dict[str, list[RunRow]] = {}
    for row in (row for sheet in sheets for row in sheet.rows):
        if text := describe(row.run):
            rows.setdefault(text, []).append(row)
    return list(rows.items())


def _sentence(begin: str, groups: Sequence[tuple[str, list[RunRow]]], sheets: Sequence[Sheet]) -> Iterator[str]:
    runs = sum(len(sheet.rows) for sheet in sheets)
    parts = []
    for text, rows in groups:
        if len(rows) == runs:
            parts.append(f"{text} in each run" if runs > 1 else text)
        else:
            parts.append(f"{_names(rows, sheets)}: {text}")
    if parts:
        yield f"{begin}: {'; '.join(parts)}."


def _names(rows: Sequence[RunRow], sheets: Sequence[Sheet]) -> str:
    """The names of rows, or of a benchmark in place of all its rows."""
    names = []
    titles = Counter(sheet.title for sheet in sheets)
    for sheet in sheets:
        where = ", ".join([sheet.title, *(sheet.qualifiers if titles[sheet.title] > 1 else ())])
        own_rows = [row for row in rows if any(row is own for own in sheet.rows)]
        if own_rows and len(own_rows) == len(sheet.rows) and len(sheets) > 1:
            names.append(clean(where))
        elif own_rows:
            models = ", ".join(shortened([clean(row.name) for row in own_rows], LONGEST))
            names.append(f"{models} on {clean(where)}" if len(sheets) > 1 else models)
    return ", ".join(names)


def _benchmark(sheet: Sheet) -> Benchmark:
    return sheet.runs[0].config.benchmark.description


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


def _language_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    for sheet in sheets:
        for row in sheet.rows:
            reference = row.run.config.benchmark.description.reference
            if reference is not None and reference.config not in row.run.config.data.rows:
                yield "No English items, so no difference from English and no kappa."
                return


def _baseline_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    names = dict.fromkeys(row.name for sheet in sheets for row in sheet.baselines)
    if names:
        yield f"Baselines (same items): {', '.join(names)}{' (in characters)' if len(names) > 1 else ''}."


def _counted_items(run: Run) -> str:
    return "" if run.items_counted == run.items_total else run.size


def _empty(run: Run) -> str:
    data = run.config.data
    return items_text([len(data.empty)], len(data.empty)) if data.on_empty == "drop" and data.empty else ""


def _drawn(run: Run) -> str:
    data, strata = run.config.data, run.config.benchmark.description.strata
    drawn, items = (sum(getattr(stratum, name) for stratum in strata) for name in ("drawn", "items"))
    return f"{drawn:,} of {items:,} from {plural(len(strata), 'subset')} by seed {data.items_seed}" if strata else ""


def _clusters(run: Run) -> str:
    clusters, items = run.config.data.clusters, sum(run.config.data.rows.values())
    if clusters is None or not (clusters.repeats or clusters.column):
        return ""
    return clusters.summary(items)


def _repeats(run: Run) -> str:
    clusters = run.config.data.clusters
    return "" if clusters is None else clusters.repeats


def _excluded_ties(run: Run) -> str:
    ties = run.result.ties_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} {count:,}" for task, count in ties.items())


def _excluded_tasks(run: Run) -> str:
    tasks = run.result.tasks_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} ({why})" for task, why in tasks.items())


def _bare(run: Run) -> str:
    bare = run.result.without_persona if isinstance(run.result, PersonaJudgeResult) else None
    return plural(bare.items, "item") if bare and bare.items else ""


def differing_shards(run: Run) -> str:
    """List the versions and devices in which a run's shards differ, as "numpy (2.3.0, 2.3.1); devices (cpu, cuda)".

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


def list_ids(ids: Sequence[str], total: int) -> str:
    """List the first ids, with an ellipsis if there are more."""
    return ", ".join(ids[:NAMED]) + (", …" if total > NAMED else "")


def _kappa(run: Run) -> str:
    kappa, deviation = run.estimate("kappa"), run.estimate("kappa_sd").value
    return "" if kappa.value is None or deviation is None else f"{deviation:.3f} over {kappa.n} languages"


def _by_category(run: Run) -> str:
    if not run.config.benchmark.description.by_category:
        return ""
    return "accuracy is over pairs and exact match over prompts; a config's numbers are unweighted means of categories"


def _legacy_ties(run: Run) -> str:
    benchmark, equal = run.config.benchmark.description, run.count("equal")
    if benchmark.ties_break_exact_match or not benchmark.by_category:
        return ""
    equal_ranks = f"; prompts whose responses all share one rank are exact matches: {equal:,}" if equal else ""
    return f"prompts with tied scores can be exact matches{equal_ranks}"


def _calibration(run: Run) -> str:
    benchmark, overall = run.config.benchmark.description, run.estimate("ece")
    if not benchmark.by_category or overall.n is None:
        return ""
    if not scores_log_odds(run.result.model):
        return "none, because only the differences of classifiers' logits and of implicit rewards are log-odds"
    own = {config: run.estimate("ece", config=config) for config in run.names("config", "ece")}
    errors = {"overall": overall} | own
    texts = ", ".join(f"{name} {with_interval(one, three_digits) or DASH}" for name, one in errors.items())
    return f"{texts}, the largest difference {'in the last bin' if benchmark.ties_break_exact_match else 'in no bin'}"


def _invalid_responses(run: Run) -> str:
    invalid = sum(run.count("invalid_responses", config=config) for config in run.names("config", "invalid_responses"))
    return f"{invalid:,}" if invalid else ""


def _bare_ids(run: Run) -> str:
    bare = run.result.without_persona if isinstance(run.result, PersonaJudgeResult) else None
    return f"ids {list_ids(bare.ids, bare.items)}" if bare and bare.items else ""


def _padded(run: Run) -> str:
    scoring = run.scored
    return scoring.work.unpackable or "" if scoring and scoring.work else ""


def _rendered_alike(run: Run) -> str:
    scoring = run.scored
    count = scoring.items_rendered_identically if scoring else 0
    return items_text([count], count) if count else ""


def _close(run: Run) -> str:
    scoring = run.scored
    return (
        f"{run.close_margins} ({scoring.tolerance:.2g})"
        if scoring and scoring.tolerance is not None and run.close_margins
        else ""
    )


def _joined(run: Run) -> str:
    return f"{len(run.result.shards):,} shards" if run.result.shards else ""


def _ids(rows: pl.Expr, run: Run) -> str:
    decisions = decisions_of(run.items).filter(
        ~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall))
    )
    ids = decisions.filter(rows).select("config", "id").unique(maintain_order=True)["id"].to_list()
    return f"ids {list_ids(ids, len(ids))}" if ids else ""


EQUAL = "prompt whose responses all share one rank|prompts whose responses all share one rank"
NO_SCORE_DIFFERENCE = "Different responses that the chat template renders to the same tokens (scored as ties)"
NOTES = (
    Note("Drawn items, weighted as all items", _drawn, of_data=True),
    Note("Intervals are over", _clusters, of_data=True),
    Note("Repeated in the data", _repeats, of_data=True),
    Note("Subsets outside all sections, not in the overall number", data_notes.unsectioned, of_data=True),
    Note("Subsets of sections that have no items", data_notes.unmatched, of_data=True),
    Note("No overall number, because no item counts in", data_notes.empty_sections, of_data=True),
    Note("Left out because the benchmark does not select them", data_notes.left_out, of_data=True),
    Note("Standard deviation of kappa", _kappa, detail=True),
    Note("Within a category", _by_category, of_data=True, detail=True),
    Note("Legacy rules", _legacy_ties, of_data=True, detail=True),
    Note(
        "Expected calibration error of the sigmoid of score differences, in five equal bins", _calibration, detail=True
    ),
    Note("Unreadable, because most verdicts or scores are invalid", lambda run: run.unreadable),
    Note("Counted as wrong", {"ties": "tie|ties", "invalid": "invalid|invalid"}, by_item=False),
    Note("Pairs without a winner", {"ties": "tie|ties", "invalid": "invalid|invalid"}, by_item=True),
    Note("Responses with an invalid score, which lose in best of k", _invalid_responses),
    Note("Without credit because the twin has no score", data_notes.unpaired),
    Note("Invalid", partial(_ids, pl.col("outcome") == "invalid"), detail=True),
    Note("Reasons for invalid verdicts", judge_notes.reasons, detail=True),
    Note("The judge chose the first response", judge_notes.first, detail=True),
    Note("Verdicts in both orders", judge_notes.vote, of_data=True),
    Note("Verdict changed with answer order", judge_notes.changed),
    Note("The judge picked the first response of the list", judge_notes.first_picks),
    Note("Rated, because a pick cannot rank them", judge_notes.rated),
    Note("Excluded from accuracy", {"dropped": "item too long|items too long", "equal": EQUAL}),
    Note("Dropped", partial(_ids, pl.col("outcome") == "dropped"), detail=True),
    Note("Dropped for an empty prompt or response", _empty),
    Note("Truncated to fit the model", {"truncated": "item|items"}),
    Note("Truncated", partial(_ids, pl.col("truncated")), detail=True),
    Note("Inputs that begin with two BOS tokens", input_notes.two_bos),
    Note("Inputs without the tokenizer's BOS token", input_notes.without_bos),
    Note("Set in place of the model's own", input_notes.chosen_settings),
    Note("Inputs", input_notes.inputs, detail=True),
    Note("Excluded because the label is a tie", _excluded_ties),
    Note("Excluded because the setting or the variables do not fit the task", _excluded_tasks),
    Note("Judged without a persona because the user has no value for the variables", _bare),
    Note("Judged without a persona", _bare_ids, detail=True),
    Note("Scored in padded batches", _padded, detail=True),
    Note(NO_SCORE_DIFFERENCE, _rendered_alike, detail=True),
    Note("Could come out otherwise on another machine or in another mode", _close),
    Note("Merged from", _joined, detail=True),
    Note("Shards differ in", differing_shards),
)
