"""Details of each model: its runs with their checks, and their numbers by language, category and persona."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup
from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs.console import clean
from pluralbench_schemas.languages import LANGUAGES

from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures.series import kind_name
from pluralbench.reports.html.board import FEW_ITEMS, NO_CONTEXT, Board, Listed, user_context_of
from pluralbench.reports.html.components import (
    Cell,
    Head,
    Row,
    details,
    items,
    join,
    number,
    paragraph,
    scale_of,
    table,
)
from pluralbench.reports.html.runs import benchmarks_table
from pluralbench.reports.html.sources import sources
from pluralbench.reports.sheets import RunRow, Sheet
from pluralbench.results.checks import CheckResult, State
from pluralbench.results.runs import MISSING, Run

CHECKED: Mapping[State, str] = {
    "checked": "Checked: items, outcomes, metrics and intervals were recomputed from its data, scores and recorded "
    "replies, and match. The scores and replies themselves were not reproduced.",
    "verified": "Verified: checked as above, and the model was queried again on some items.",
}
SHOWN = ("accuracy", "exact_match")
"""Metrics that have a column."""
KINDS = {
    "config": "parts",
    "excluded": "parts outside the overall number",
    "section": "sections",
    "category": "categories",
    "task": "tasks",
    "resource": "languages by resources",
    "joshi_class": "languages by Joshi's class",
    "family": "languages by family",
    "script": "languages by script",
    "subset": "subsets",
}
"""Titles of the tables, by finest dimension; `excluded` are configs outside the overall number."""


def profiles(board: Board) -> Markup:
    """Make the details of all models, each collapsible under its name."""
    return join(_model(name, key, board) for name, key in board.models.items())


def _model(name: str, key: str, board: Board) -> Markup:
    own = [listed for listed in board.accepted if listed.run.name == name]
    model = own[0].run.result.model
    parameters = "" if model.parameters is None else f", {model.parameters:,} parameters"
    parts = [paragraph(f"Kind: {kind_name(model.kind).lower()}{parameters}.")]
    if len(board.models) > 1:
        caption = f"{clean(name)}: overall numbers in %, with {CONFIDENCE:.0%} intervals."
        parts.append(benchmarks_table(f"{key}-table", caption, board, own))
    return details(clean(name), *parts, *(_run(listed, board) for listed in own), key=key, kind="model")


def _run(listed: Listed, board: Board) -> Markup:
    at, place = board.rows[listed.run.path]
    sheet, context = board.sheets[at], user_context_of(listed.run)
    context_text = "" if context == NO_CONTEXT else f", user context: {context}"
    name = clean(sheet.rows[place].name)
    which = "" if name == clean(Path(listed.run.name).name) else f" ({name})"
    summary = f"{board.sheet_title(at)}{context_text}{which}"
    parts = [*part_tables(listed.key, sheet, sheet.rows[place])]
    parts += [] if listed.checked is None else _checks(listed.checked)
    return details(summary, *parts, sources([listed.run], [sheet.rows[place].name]), key=listed.key)


def _checks(checked: CheckResult) -> Iterator[Markup]:
    """How far a run was checked, and the notes, a line each."""
    yield paragraph(f"{CHECKED[checked.state]} {checked.rescored}".strip())
    if checked.findings:
        yield items(clean(finding.text) for finding in checked.findings)


def part_tables(key: str, sheet: Sheet, row: RunRow) -> Iterator[Markup]:
    """Make a table for each group in which a run has more than one number; parts with few decisions are folded."""
    if row.run.unreadable:
        yield paragraph("Most verdicts or scores are invalid, so the numbers of its parts are not shown.")
        return
    in_languages = row.run.config.benchmark.description.reference is not None
    for kind, title in KINDS.items():
        keys = _keys(row.run, kind)
        if len(keys) > 1:
            parts = "languages" if kind == "config" and in_languages else title
            sizes = [row.run.at(one).n for one in keys]
            large = [one for one, n in zip(keys, sizes, strict=True) if n is not None and n >= FEW_ITEMS]
            small = [one for one, n in zip(keys, sizes, strict=True) if n is not None and n < FEW_ITEMS]
            about = f"{clean(row.name)} on {sheet.heading}"
            if large:
                caption = f"{about}: {parts}, in %."
                yield _table(f"{key}-{kind}", caption, row.run, large)
            if small:
                text = f"{len(small):,} of {len(keys):,} {parts} with fewer than {FEW_ITEMS} decisions"
                own = _table(f"{key}-{kind}-small", f"{about}: {text}, in %.", row.run, small)
                yield details(text, own)


def _keys(run: Run, kind: str) -> list[MetricKey]:
    if kind not in {"config", "excluded"}:
        return run.keys("accuracy", kind)
    configs = run.configs if kind == "config" else run.excluded_configs
    return [MetricKey("accuracy", config) for config in configs]


def _table(key: str, caption: str, run: Run, keys: Sequence[MetricKey]) -> Markup:
    every = {metric: [run.at(one._replace(metric=metric)) for one in keys] for metric in SHOWN}
    shown = {metric: own for metric, own in every.items() if any(one is not MISSING for one in own)}
    coins = [run.at(one._replace(baseline="coin")) for one in keys]
    marks = {metric: coins if metric == "accuracy" else [MISSING] * len(keys) for metric in shown}
    scales = {metric: scale_of([*own, *marks[metric]]) for metric, own in shown.items()}
    lines = []
    for at, one in enumerate(keys):
        cells = [
            number(own[at], scale=scale and scale._replace(mark=marks[metric][at].value))
            for (metric, own), scale in zip(shown.items(), scales.values(), strict=True)
        ]
        coin, n = number(coins[at]), every["accuracy"][at].n
        lines.append(Row((Cell(_part_name(one)), *cells, coin, Cell("" if n is None else f"{n:,}", n or ""))))
    heads = [Head("part", number=False), *(Head(metric.replace("_", " ")) for metric in shown)]
    heads += [Head("coin"), Head("decisions")]
    return table(key, caption, heads, lines)


def _part_name(key: MetricKey) -> str:
    """The name of a part; languages by their names."""
    words = [LANGUAGES[one].name if one in LANGUAGES else str(one) for one in key[1:] if one is not None]
    return clean(": ".join(words))
