"""What a reader has to know beside a report's rows: a sentence for all runs that share it.

The whole of what is known of each run, with ids, are the sentences of `pluralbench.reports.notes`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.reports.layout import clean, shortened
from pluralbench.reports.notes import differing_shards, mark_notes, took
from pluralbench.reports.sheets import Row, Sheet
from pluralbench.results.runs import Run

LONGEST = 44  # columns of a name in a sentence
MANY = 3  # so many unlike counts are told one by one
EQUAL = "prompt whose responses all share one rank|prompts whose responses all share one rank"
Told = Callable[[Run], str]


def footnotes(sheets: Sequence[Sheet], *, wide: bool = False) -> list[str]:
    """What a reader of the rows has to know, a sentence each; the last one says what the runs took.

    wide: parts have intervals too.
    """
    said = [_about_numbers(sheets), _rules(sheets), *_language_notes(sheets)]
    said += _of_data("Intervals are over", _clusters, sheets)
    said += _of_data("Repeated in the data", _repeats, sheets)
    said += [*_reference_notes(sheets), *mark_notes(_shown_numbers(sheets, wide=wide)), *_other_items(sheets)]
    said += _counted("Counted as wrong", {"ties": "tie|ties", "invalid": "invalid|invalid"}, sheets)
    said += _shared("Other verdict when the answers were swapped", _changed, sheets)
    said += _counted("No part of accuracy", {"dropped": "item too long|items too long", "equal": EQUAL}, sheets)
    said += _counted("Truncated to fit the model", {"truncated": "item|items"}, sheets)
    said += _shared("Left out, since their truth is a tie", _ties_left_out, sheets)
    said += _shared("Left out, since setting or variables do not fit the task", _tasks_left_out, sheets)
    said += _shared("Judged as without a persona, since the variables tell nothing of the person", _bare, sheets)
    said += _shared("Shards differ in", differing_shards, sheets)
    return [*said, *_cost_notes(sheets)]


def _cost_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    """What the runs of each model took, as a sentence: of judges calls, tokens and money; and seconds."""
    by_model: dict[str, list[Run]] = {}
    for run in (run for sheet in sheets for run in sheet.runs):
        by_model.setdefault(run.name, []).append(run)
    names = shortened([clean(Path(name).name) for name in by_model], LONGEST)
    told = [(name, text) for name, ours in zip(names, by_model.values(), strict=True) if (text := took(ours))]
    if len(by_model) == 1 and told:
        yield f"Took {told[0][1]}."
    elif told:
        yield f"Took: {'; '.join(f'{name} {text}' for name, text in told)}."


def _counted(begin: str, words: Mapping[str, str], sheets: Sequence[Sheet]) -> Iterator[str]:
    """A sentence of what is counted in runs; of many runs with unlike counts the largest ones.

    words: of each metric what one is called, and several.
    """
    found: list[tuple[str, list[Row]]] = _alike(lambda run: _counts(run, words), sheets)
    if len(found) <= MANY:
        yield from _sentence(begin, found, sheets)
        return
    rows = [row for _, same in found for row in same]
    most = {metric: max(row.run.count(metric) for row in rows) for metric in words}
    every = sum(len(sheet.rows) for sheet in sheets)
    yield f"{begin}: in {len(rows)} of {every} runs, up to {_said(most, words)}; --detail has each."


def _counts(run: Run, words: Mapping[str, str]) -> str:
    # By legacy rules prompts whose responses all share one rank are part of the exact match.
    ours = {
        metric: run.count(metric) for metric in words if metric != "equal" or run.record.benchmark.description.strict
    }
    return _said(ours, words)


def _said(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    return ", ".join(f"{n:,} {words[metric].split('|')[n != 1]}" for metric, n in counts.items() if n)


def _shared(begin: str, told: Told, sheets: Sequence[Sheet]) -> Iterator[str]:
    """A sentence of what is told of runs, those together of which the same is told."""
    yield from _sentence(begin, _alike(told, sheets), sheets)


def _of_data(begin: str, told: Told, sheets: Sequence[Sheet]) -> Iterator[str]:
    """A sentence of what is told of the data of runs, in which those of one table need not be named."""
    found = _alike(told, sheets)
    if len(sheets) == 1 and [len(rows) for _, rows in found] == [len(sheets[0].rows)]:
        yield f"{begin}: {found[0][0]}."
    else:
        yield from _sentence(begin, found, sheets)


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
            named = ", ".join(shortened([clean(row.name) for row in ours], LONGEST))
            names.append(f"{named} on {clean(where)}" if len(sheets) > 1 else named)
    return ", ".join(names)


def _about_numbers(sheets: Sequence[Sheet]) -> str:
    return f"Accuracy in %, with {CONFIDENCE:.0%} intervals over prompts or users; ties and invalid answers are wrong."


def _rules(sheets: Sequence[Sheet]) -> str:
    rules: dict[str, dict[str, None]] = {}
    for sheet in sheets:
        rules.setdefault(sheet.runs[0].record.benchmark.rule, {})[sheet.title] = None
    if len(rules) == 1:
        return f"Overall: {next(iter(rules))}."
    return "Overall: " + "; ".join(f"of {' and '.join(titles)} the {rule}" for rule, titles in rules.items()) + "."


def _language_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    metrics = {column.place.metric for sheet in sheets for column in sheet.columns}
    if "drop" in metrics:
        yield "Against English: points on the same ids; kappa: agreement with its own labels there."
    for sheet in sheets:
        for row in sheet.rows:
            reference = row.run.record.benchmark.description.reference
            if reference is not None and reference.config not in row.run.record.data.rows:
                yield "No items in English, so no difference from it and no kappa; give them with --english."
                return


def _reference_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    names = dict.fromkeys(row.name for sheet in sheets for row in sheet.references)
    if names:
        yield f"{', '.join(names).capitalize()}: what always choosing that way gets on the same items."


def _shown_numbers(sheets: Sequence[Sheet], *, wide: bool) -> Iterator[Estimate]:
    """The numbers that are shown with their interval."""
    for sheet in sheets:
        for row in (*sheet.rows, *sheet.references):
            yield from (row.number(column) for column in (sheet.columns if wide else sheet.columns[:1]))


def _other_items(sheets: Sequence[Sheet]) -> Iterator[str]:
    if any(sheet.other for sheet in sheets):
        yield "Tables of one benchmark with other items are no ranking: their numbers cannot be compared."


def _clusters(run: Run) -> str:
    clusters, items = run.record.data.clusters, sum(run.record.data.rows.values())
    if clusters is None or not (clusters.repeats or clusters.column):
        return ""
    return f"{clusters.clusters:,} {clusters.name} of {items:,} items"


def _repeats(run: Run) -> str:
    clusters = run.record.data.clusters
    return "" if clusters is None else clusters.repeats


def _changed(run: Run) -> str:
    both, changed = (run.count(name, "position") for name in ("asked_in_both_orders", "changed_with_the_order"))
    return f"{changed:,} of {both:,} pairs" if both else ""


def _ties_left_out(run: Run) -> str:
    judging = run.record.judging
    return ", ".join(f"{task} {count:,}" for task, count in judging.ties_left_out.items()) if judging else ""


def _tasks_left_out(run: Run) -> str:
    judging = run.record.judging
    return ", ".join(f"{task} ({why})" for task, why in judging.tasks_left_out.items()) if judging else ""


def _bare(run: Run) -> str:
    bare = run.record.judging and run.record.judging.without_persona
    return f"{bare.items:,} items" if bare and bare.items else ""
