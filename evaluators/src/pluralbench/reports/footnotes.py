"""What a reader has to know beside a report's rows: a sentence for all runs that share it.

The whole of what is known of each run, with ids, are the sentences of `pluralbench.reports.notes`.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.layout import clean, shortened
from pluralbench.reports.notes import method_notes, took
from pluralbench.reports.sheets import Row, Sheet
from pluralbench.results.runs import Run

LONGEST = 44  # columns of a name in a sentence
Told = Callable[[Run], str]


def footnotes(sheets: Sequence[Sheet], *, wide: bool = False) -> list[str]:
    """What a reader of the rows has to know, a sentence each; the last one says what the runs took.

    wide: parts have intervals too.
    """
    said = [_about_numbers(sheets), _rules(sheets), *_language_notes(sheets)]
    said += [*_reference_notes(sheets), *method_notes(_shown_numbers(sheets, wide=wide)), *_other_items(sheets)]
    for begin, told in (
        ("Counted as wrong", _wrong),
        ("No part of accuracy", _left_out),
        ("Truncated to fit the model", _truncated),
        ("Left out, since their truth is a tie", _ties_left_out),
        ("Left out, since the setting or the variables do not fit the task", _tasks_left_out),
        ("Judged as without a persona, since the variables tell nothing of the person", _bare),
    ):
        said += _shared(begin, told, sheets)
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


def _shared(begin: str, told: Told, sheets: Sequence[Sheet]) -> Iterator[str]:
    """One sentence of what is told of runs, those together of which the same is told."""
    found: dict[str, list[Row]] = {}
    for sheet in sheets:
        for row in sheet.rows:
            if text := told(row.run):
                found.setdefault(text, []).append(row)
    every = sum(len(sheet.rows) for sheet in sheets)
    parts = []
    for text, rows in found.items():
        if len(rows) == every:
            parts.append(f"{text} each" if every > 1 else text)
        else:
            parts.append(f"{_whose(rows, sheets)}: {text}")
    if parts:
        yield f"{begin}: {'; '.join(parts)}."


def _whose(told: Sequence[Row], sheets: Sequence[Sheet]) -> str:
    """The rows in words; a benchmark stands for all of its rows."""
    names = []
    for sheet in sheets:
        ours = [row for row in told if any(row is own for own in sheet.rows)]
        if ours and len(ours) == len(sheet.rows) and len(sheets) > 1:
            names.append(sheet.title)
        elif ours:
            where = f" ({sheet.title})" if len(sheets) > 1 else ""
            names.append(", ".join(shortened([clean(row.name) for row in ours], LONGEST)) + where)
    return ", ".join(dict.fromkeys(names))


def _about_numbers(sheets: Sequence[Sheet]) -> str:
    confidence = max(run.record.bootstrap.confidence for sheet in sheets for run in sheet.runs)
    return (
        f"Accuracy in %, with {confidence:.0%} intervals from a bootstrap over prompts or users; ties and invalid ones "
        "count as wrong."
    )


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
        yield (
            "Against English: points on the same ids; kappa: how far labels agree with those in English; both are "
            "means over languages."
        )
    for sheet in sheets:
        for row in sheet.rows:
            reference = row.run.record.benchmark.description.reference
            if reference is not None and reference.config not in row.run.record.data.rows:
                yield "No items in English, so no difference from it and no kappa; give them with --english."
                return


def _reference_notes(sheets: Sequence[Sheet]) -> Iterator[str]:
    names = dict.fromkeys(row.name for sheet in sheets for row in sheet.references)
    if names:
        yield f"Reference points ({', '.join(names)}): what choosing so gets on the same items."


def _shown_numbers(sheets: Sequence[Sheet], *, wide: bool) -> Iterator[Estimate]:
    """The numbers that are shown with their interval."""
    for sheet in sheets:
        for row in (*sheet.rows, *sheet.references):
            yield from (row.number(column) for column in (sheet.columns if wide else sheet.columns[:1]))


def _other_items(sheets: Sequence[Sheet]) -> Iterator[str]:
    if any(sheet.other for sheet in sheets):
        yield "Tables of one benchmark with other items are no ranking: their numbers cannot be compared."


def _wrong(run: Run) -> str:
    return _counts(run, {"ties": "ties", "invalid": "invalid"})


def _left_out(run: Run) -> str:
    equal = "prompts whose responses all share one rank"
    names = {"dropped": "dropped for their length"}
    return _counts(run, names | ({"equal": equal} if run.record.benchmark.description.strict else {}))


def _counts(run: Run, names: dict[str, str]) -> str:
    return ", ".join(f"{run.count(metric):,} {name}" for metric, name in names.items() if run.count(metric))


def _truncated(run: Run) -> str:
    return _counts(run, {"truncated": "items"})


def _ties_left_out(run: Run) -> str:
    judging = run.record.judging
    return ", ".join(f"{task} {count:,}" for task, count in judging.ties_left_out.items()) if judging else ""


def _tasks_left_out(run: Run) -> str:
    judging = run.record.judging
    return ", ".join(f"{task} ({why})" for task, why in judging.tasks_left_out.items()) if judging else ""


def _bare(run: Run) -> str:
    bare = run.record.judging and run.record.judging.without_persona
    return f"{bare.items:,} items" if bare and bare.items else ""
