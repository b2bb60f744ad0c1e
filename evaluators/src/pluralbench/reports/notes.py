"""What a reader has to know beside a report's rows: a sentence for all runs that share it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.reports.costs import cost_summary
from pluralbench.reports.layout import clean, shortened
from pluralbench.reports.numbers import DASH, three_digits, with_interval
from pluralbench.reports.sheets import Row, Sheet
from pluralbench.results.decisions import decisions_of
from pluralbench.results.evaluations import PersonaJudgeResult
from pluralbench.results.runs import Run, items_text

LONGEST = 44  # columns of a name in a sentence
MANY = 3  # so many unlike counts are told one by one
NAMED = 5  # ids in a note
Told = Callable[[Run], str]


class Note(NamedTuple):
    """A sentence: how it begins, and what is told of each run, or what one and several of each count are called.

    of_data: it is told of the data, so runs of one table need not be named. detail: it stands in details alone.
    """

    begin: str
    told: Told | Mapping[str, str]
    of_data: bool = False
    detail: bool = False


def notes(sheets: Sequence[Sheet], *, detail: bool = False) -> list[str]:
    """What a reader of the rows has to know, a sentence each; the last one says what the runs took.

    detail: with the ids of items, and with what concerns single verdicts and scores.
    """
    said = [
        f"Accuracy in %, with {CONFIDENCE:.0%} intervals over prompts or users; ties and invalid answers are wrong.",
        _rules(sheets),
        *_language_notes(sheets),
        *([] if detail else _reference_notes(sheets)),
    ]
    if any(sheet.other for sheet in sheets):
        said.append("Tables of one benchmark with other items are no ranking: their numbers cannot be compared.")
    uneven = [sheet for sheet in sheets if len({run.items_counted for run in sheet.runs}) > 1]
    said += _sentence("In the overall number", _alike(_counted_items, uneven), uneven)
    for note in NOTES:
        if detail or not note.detail:
            said += _said_of(note, sheets, detail=detail)
    return [*said, *_cost_notes(sheets)]


def _cost_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    """What the runs of each model took, as a sentence: of judges calls, tokens and money; and seconds."""
    by_model: dict[str, list[Run]] = {}
    for run in (run for sheet in sheets for run in sheet.runs):
        by_model.setdefault(run.name, []).append(run)
    names = shortened([clean(Path(name).name) for name in by_model], LONGEST)
    told = [(name, text) for name, ours in zip(names, by_model.values(), strict=True) if (text := cost_summary(ours))]
    if len(by_model) == 1 and told:
        yield f"Took {told[0][1]}."
    elif told:
        yield f"Took: {'; '.join(f'{name} {text}' for name, text in told)}."


def _said_of(note: Note, sheets: Sequence[Sheet], *, detail: bool) -> Iterator[str]:
    """A note on those runs together of which the same is told; of many runs with unlike counts the largest ones."""
    words = note.told
    if callable(words):
        found = _alike(words, sheets)
    else:
        found = _alike(partial(_counts, words), sheets)
        if len(found) > MANY and not detail:
            rows = [row for _, same in found for row in same]
            most = {metric: max(row.run.count(metric) for row in rows) for metric in words}
            every = sum(len(sheet.rows) for sheet in sheets)
            yield f"{note.begin}: in {len(rows)} of {every} runs, up to {_said(most, words)}; --detail has each."
            return
    if note.of_data and len(sheets) == 1 and [len(rows) for _, rows in found] == [len(sheets[0].rows)]:
        yield f"{note.begin}: {found[0][0]}."
    else:
        yield from _sentence(note.begin, found, sheets)


def _counts(words: Mapping[str, str], run: Run) -> str:
    # By legacy rules prompts whose responses all share one rank are part of the exact match.
    ours = {
        metric: run.count(metric)
        for metric in words
        if metric != "equal" or run.config.benchmark.description.ties_break_exact_match
    }
    return _said(ours, words)


def _said(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    return ", ".join(f"{n:,} {words[metric].split('|')[n != 1]}" for metric, n in counts.items() if n)


def _alike(told: Told, sheets: Sequence[Sheet]) -> list[tuple[str, list[Row]]]:
    found: dict[str, list[Row]] = {}
    for row in (row for sheet in sheets for row in sheet.rows):
        if text := told(row.run):
            found.setdefault(text, []).append(row)
    return list(found.items())


def _sentence(begin: str, found: Sequence[tuple[str, list[Row]]], sheets: Sequence[Sheet]) -> Iterator[str]:
    every = sum(len(sheet.rows) for sheet in sheets)
    parts = []
    for text, rows in found:
        if len(rows) == every:
            parts.append(f"{text} each" if every > 1 else text)
        else:
            parts.append(f"{_whose(rows, sheets)}: {text}")
    if parts:
        yield f"{begin}: {'; '.join(parts)}."


def _whose(told: Sequence[Row], sheets: Sequence[Sheet]) -> str:
    """The rows in words; a benchmark stands for all of its rows."""
    names = []
    titles = Counter(sheet.title for sheet in sheets)
    for sheet in sheets:
        where = ", ".join([sheet.title, *(sheet.told if titles[sheet.title] > 1 else ())])
        ours = [row for row in told if any(row is own for own in sheet.rows)]
        if ours and len(ours) == len(sheet.rows) and len(sheets) > 1:
            names.append(clean(where))
        elif ours:
            rows = ", ".join(shortened([clean(row.name) for row in ours], LONGEST))
            names.append(f"{rows} on {clean(where)}" if len(sheets) > 1 else rows)
    return ", ".join(names)


def _rules(sheets: Sequence[Sheet]) -> str:
    rules: dict[str, dict[str, None]] = {}
    for sheet in sheets:
        rules.setdefault(sheet.runs[0].config.benchmark.rule, {})[sheet.title] = None
    if len(rules) == 1:
        return f"Overall: {next(iter(rules))}."
    return "Overall: " + "; ".join(f"of {' and '.join(titles)} the {rule}" for rule, titles in rules.items()) + "."


def _language_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    metrics = {column.place.metric for sheet in sheets for column in sheet.columns}
    if "drop" in metrics:
        yield "Against English: points on the same ids; kappa: agreement with its own labels there."
    for sheet in sheets:
        for row in sheet.rows:
            reference = row.run.config.benchmark.description.reference
            if reference is not None and reference.config not in row.run.config.data.rows:
                yield "No items in English, so no difference from it and no kappa; give them with --english."
                return


def _reference_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    names = dict.fromkeys(row.name for sheet in sheets for row in sheet.references)
    if names:
        yield f"{', '.join(names).capitalize()}: always choosing that way, by characters, on the same items."


def _counted_items(run: Run) -> str:
    every = run.items_total
    return "" if run.items_counted == every else items_text([run.items_counted], every)


def _empty(run: Run) -> str:
    data = run.config.data
    return items_text([len(data.empty)], len(data.empty)) if data.on_empty == "drop" and data.empty else ""


def _clusters(run: Run) -> str:
    clusters, items = run.config.data.clusters, sum(run.config.data.rows.values())
    if clusters is None or not (clusters.repeats or clusters.column):
        return ""
    return clusters.summary(items)


def _repeats(run: Run) -> str:
    clusters = run.config.data.clusters
    return "" if clusters is None else clusters.repeats


def _changed(run: Run) -> str:
    both, changed = (run.count(name, "position") for name in ("asked_in_both_orders", "changed_with_the_order"))
    return f"{changed:,} of {both:,} pairs" if both else ""


def _ties_left_out(run: Run) -> str:
    ties = run.result.ties_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} {count:,}" for task, count in ties.items())


def _tasks_left_out(run: Run) -> str:
    tasks = run.result.tasks_excluded if isinstance(run.result, PersonaJudgeResult) else {}
    return ", ".join(f"{task} ({why})" for task, why in tasks.items())


def _bare(run: Run) -> str:
    bare = run.result.without_persona if isinstance(run.result, PersonaJudgeResult) else None
    return f"{bare.items:,} items" if bare and bare.items else ""


def unsectioned(run: Run) -> str:
    """Which subsets no section has, as "new (297 items), newer (3 items)", the largest first; empty without any."""
    benchmark = run.config.benchmark.description
    if not benchmark.sections:
        return ""
    ours = run.items.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
    own = ours.filter(pl.col("subset").is_null() | ~pl.col("subset").is_in(list(benchmark.section_of)))
    counts = own.select("config", "id", "subset").unique()["subset"].value_counts(sort=True)
    return first_of([f"{name or 'no subset'} ({items_text([n], n)})" for name, n in counts.iter_rows()])


def unmatched(run: Run) -> str:
    """Which subsets of sections no item is of; empty without any."""
    sectioned, there = run.config.benchmark.description.section_of, set(run.items["subset"])
    return first_of([name for name in sectioned if name not in there])


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def differing_shards(run: Run) -> str:
    """In what the processes differed that scored a run's shards, as "numpy (2.3.0, 2.3.1); devices (cpu, cuda)".

    None of it is refused, since a run that goes on elsewhere may differ in it too, and all of it can change digits.
    """
    shards = run.result.shards
    made = [shard.provenance for shard in shards]
    names = dict.fromkeys(name for one in made for name in one.packages)
    found = {name: {one.packages.get(name, "none") for one in made} for name in names}
    found |= {"Python": {one.python for one in made}, "devices": {shard.device for shard in shards if shard.device}}
    found |= {"commits": {one.git.commit[:12] for one in made if one.git is not None}}
    return "; ".join(f"{name} ({', '.join(sorted(values))})" for name, values in found.items() if len(values) > 1)


def named(ids: Sequence[str], of: int) -> str:
    """The first of some ids."""
    return ", ".join(ids[:NAMED]) + (", …" if of > NAMED else "")


def _kappa(run: Run) -> str:
    kappa, deviation = run.estimate("kappa", "overall"), run.estimate("kappa_sd", "overall").value
    return "" if kappa.value is None or deviation is None else f"{deviation:.3f} over {kappa.n} languages"


def _by_category(run: Run) -> str:
    if not run.config.benchmark.description.by_category:
        return ""
    return "accuracy is over pairs and exact match over prompts; a config has the unweighted means of its categories"


def _legacy_ties(run: Run) -> str:
    benchmark, equal = run.config.benchmark.description, run.count("equal")
    if benchmark.ties_break_exact_match or not benchmark.by_category:
        return ""
    alike = f"; prompts whose responses all share one rank count as one: {equal:,}" if equal else ""
    return f"a tie of scores does not break an exact match{alike}"


def _calibration(run: Run) -> str:
    benchmark, every = run.config.benchmark.description, run.estimate("ece", "pooled")
    if not benchmark.by_category or every.n is None:
        return ""
    own = {config: run.estimate("ece", "pooled", config=config) for config in run.names("pooled", "config", "ece")}
    found = {"overall": every} | own
    told = ", ".join(f"{name} {with_interval(one, three_digits) or DASH}" for name, one in found.items())
    return f"{told}, the largest difference {'in the last bin' if benchmark.ties_break_exact_match else 'in no bin'}"


def _bare_ids(run: Run) -> str:
    bare = run.result.without_persona if isinstance(run.result, PersonaJudgeResult) else None
    return f"ids {named(bare.ids, bare.items)}" if bare and bare.items else ""


def _first(run: Run) -> str:
    share = run.estimate("share_of_first", "position").value
    return "" if share is None else f"in {share:.0%} of its valid verdicts"


def _reasons(run: Run) -> str:
    judging = run.judged
    return ", ".join(f"{reason} {count:,}" for reason, count in judging.invalid_reasons.items()) if judging else ""


def _padded(run: Run) -> str:
    scoring = run.scored
    return scoring.work.unpackable or "" if scoring and scoring.work else ""


def _rendered_alike(run: Run) -> str:
    scoring = run.scored
    count = scoring.items_rendered_identically if scoring else 0
    return items_text([count], count) if count else ""


def _close(run: Run) -> str:
    scoring = run.scored
    if scoring is None or not scoring.decisions_within_tolerance:
        return ""
    return f"{scoring.decisions_within_tolerance:,} (within {scoring.tolerance:.2g})"


def _joined(run: Run) -> str:
    return f"{len(run.result.shards):,} shards" if run.result.shards else ""


def _ids(rows: pl.Expr, run: Run) -> str:
    ours = decisions_of(run.items).filter(
        ~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall))
    )
    ids = ours.filter(rows).select("config", "id").unique(maintain_order=True)["id"].to_list()
    return f"ids {named(ids, len(ids))}" if ids else ""


EQUAL = "prompt whose responses all share one rank|prompts whose responses all share one rank"
NOTES = (
    Note("Intervals are over", _clusters, of_data=True),
    Note("Repeated in the data", _repeats, of_data=True),
    Note("In no section, and so not in the overall number", unsectioned, of_data=True),
    Note("Section entries without an item", unmatched, of_data=True),
    Note("Standard deviation of kappa", _kappa, detail=True),
    Note("Within a category", _by_category, of_data=True, detail=True),
    Note("Legacy rules", _legacy_ties, of_data=True, detail=True),
    Note(
        "Expected calibration error of the sigmoid of score differences, in five equal bins", _calibration, detail=True
    ),
    Note("Counted as wrong", {"ties": "tie|ties", "invalid": "invalid|invalid"}),
    Note("Invalid", partial(_ids, pl.col("outcome") == "invalid"), detail=True),
    Note("Why verdicts are invalid", _reasons, detail=True),
    Note("The judge chose the first response", _first, detail=True),
    Note("Other verdict when the answers were swapped", _changed),
    Note("No part of accuracy", {"dropped": "item too long|items too long", "equal": EQUAL}),
    Note("Dropped", partial(_ids, pl.col("outcome") == "dropped"), detail=True),
    Note("Dropped for an empty prompt or response", _empty),
    Note("Truncated to fit the model", {"truncated": "item|items"}),
    Note("Truncated", partial(_ids, pl.col("truncated")), detail=True),
    Note("Left out, since their truth is a tie", _ties_left_out),
    Note("Left out, since setting or variables do not fit the task", _tasks_left_out),
    Note("Judged as without a persona, since the variables tell nothing of the person", _bare),
    Note("Judged as without a persona", _bare_ids, detail=True),
    Note("Scored in padded batches", _padded, detail=True),
    Note("The chat template makes the same tokens of responses that differ, which tie", _rendered_alike, detail=True),
    Note("Decisions with a margin in which rounding decides", _close, detail=True),
    Note("Joined from", _joined, detail=True),
    Note("Shards differ in", differing_shards),
)
