"""Tables and sentences on the agreement of two models' scores, item by item."""

from collections.abc import Iterator

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.texts import first_ids
from pluralbench.evaluation.agree import Agreement
from pluralbench.reports.tables import Column, Report, Row, Table
from pluralbench.results.numbers import four_digits

ROUGHLY = 0.1  # of the largest difference: by how much scores may change when they are scored again


def hundredths(value: float) -> str:
    """Format a fraction in percent as published, as "62.29"."""
    return f"{100 * value:.2f}"


def report_agreement(agreement: Agreement) -> Report:
    """Report an agreement: both accuracies, correlations, what differs, and the items that were scored again."""
    sides = {"first": agreement.first, "second": agreement.second}
    stated = any(side.stated is not None for side in sides.values())
    columns = [Column("items"), Column("accuracy", hundredths), *[Column("results in the file", hundredths)] * stated]
    rows = [Row(name, [side.items, side.accuracy, *[side.stated] * stated]) for name, side in sides.items()]
    tables = [Table(f"{agreement.items:,} matched items", "scores", columns, rows)]
    if agreement.scores.n:
        columns = [Column("n"), Column("Pearson", four_digits), Column("Spearman", four_digits)]
        found = {"scores": agreement.scores, "margins": agreement.margins}
        rows = [Row(name, [one.n, one.pearson, one.spearman]) for name, one in found.items() if one.n]
        tables.append(Table("Correlation", "of", columns, rows))
    if (diagnosis := agreement.diagnosis) is not None:
        names = ("mean difference", "largest difference", "change of own scores")
        variants = (diagnosis.before, *diagnosis.variants)
        title = f"{plural(len(diagnosis.ids), 'item')} scored again, against the second scores"
        rows = [Row(one.name, [one.mean, one.largest, one.moved]) for one in variants]
        tables.append(Table(title, "read", [Column(name, "{:.3g}".format) for name in names], rows))
    frame = pl.DataFrame(
        [vars(decision) for decision in agreement.changed],
        dict.fromkeys(("id", "chosen", "rejected", "first", "second"), pl.String),
    )
    return Report(tables, [*_notes(agreement), *_cause(agreement)], frame, [agreement.as_dict()])


def _notes(agreement: Agreement) -> Iterator[str]:
    sides = {"first": agreement.first, "second": agreement.second}
    yield from (f"{name.capitalize()}: {side.where} ({side.shape})." for name, side in sides.items())
    yield from (f"Only in the {name}: {_items(side.missing)}." for name, side in sides.items() if side.missing)
    if agreement.unequal:
        yield f"Not compared, since the responses cannot be matched: {_items(agreement.unequal)}."
    if agreement.unlabeled:
        yield f"Without known right and wrong responses: {plural(agreement.unlabeled, 'item')}, in no accuracy."
    counts = [f"{side.unscored:,} of the {name}" for name, side in sides.items() if side.unscored]
    if counts and agreement.scores.n:
        yield f"Responses without a finite score: {', '.join(counts)}."
    equal = "" if agreement.second_on_ties else " Equal scores are not right."  # the rule says what decides them
    yield f"Accuracy, in % on the matched items: {agreement.rule}.{equal}"
    largest = agreement.largest
    if largest is not None and largest.first == largest.second:
        yield "All scores are equal."
    elif largest is not None:
        yield (
            f"Differences of scores: mean {agreement.mean_difference:.3g}, largest "
            f"{abs(largest.first - largest.second):.3g} (id {largest.id}, response {largest.response}: "
            f"{largest.first:.4g} and {largest.second:.4g})."
        )
    ids = tuple(dict.fromkeys(decision.id for decision in agreement.changed))
    named = f" (ids {first_ids(ids)})" if ids else ""
    yield f"Decisions that differ: {len(agreement.changed):,} of {agreement.decisions:,}{named}."


def _items(ids: tuple[str, ...]) -> str:
    return f"{plural(len(ids), 'item')} (ids {first_ids(ids)})"


def _cause(agreement: Agreement) -> Iterator[str]:
    diagnosis = agreement.diagnosis
    if agreement.scale is not None:
        slope, intercept = agreement.scale
        yield f"Likely cause: another scale. The second scores are {slope:.4g} times the first {intercept:+.4g}."
        return
    if diagnosis is None:
        if agreement.not_rescored:
            yield f"Likely cause: not examined, since {agreement.not_rescored}."
        return
    before, best = diagnosis.before, diagnosis.variants[0] if diagnosis.variants else None
    if before.moved > ROUGHLY * before.largest:
        yield f"Scored again as in the run, scores differ by up to {before.moved:.3g}: software or device have changed."
    if diagnosis.untried:
        yield f"Not computed on this device: {'; '.join(diagnosis.untried)}."
    if diagnosis.unchanged:
        yield f"Changes no score: {'; '.join(diagnosis.unchanged)}."
    if diagnosis.cause is not None and best is not None:
        yield f"Likely cause: {diagnosis.cause} (mean difference {best.mean:.3g} instead of {before.mean:.3g})."
    elif diagnosis.rounding is not None:
        moved = next(one.moved for one in diagnosis.variants if one.name.startswith(diagnosis.rounding))
        yield f"Likely cause: rounding. {diagnosis.rounding} alone changes these scores by up to {moved:.3g}."
    else:
        closest = f"; the closest is {best.name}" if best is not None and best.mean < before.mean else ""
        yield f"Likely cause: none of these explains the differences{closest}."
