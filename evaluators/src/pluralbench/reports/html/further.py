"""Sections of a page for best of k, optimized policies and personalized reward models."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from pluralbench.reports.downstream import curve_table, downstream_notes, line_of
from pluralbench.reports.figures.best_of_n import curves
from pluralbench.reports.figures.personalize import context_figure, drawn_sets
from pluralbench.reports.html.components import paragraph, section
from pluralbench.reports.html.figures import inlined_figure
from pluralbench.reports.html.sources import Facts, data_facts, provenance_of, software_facts
from pluralbench.reports.html.tables import plain_table
from pluralbench.reports.layout import clean
from pluralbench.reports.personalize import notes, tables_of
from pluralbench.reports.tables import marks_in
from pluralbench.results.runs import Downstream, Personalized


def downstream_section(key: str, run: Downstream, among: Sequence[str]) -> Markup:
    """Make the section of a directory of `best-of-n` or `optimize`. Call it within `style.drawing`.

    Args:
        among: All models of the page, which determine the colors.
    """
    policy, notes = clean(Path(run.result.policy.name).name), downstream_notes(run)
    provenance = provenance_of([(run.path.name, run.path, _downstream_facts(run))])
    parts: list[Markup] = [paragraph(line_of(run))]
    if run.verb == "best-of-n" and run.result.rewards:
        title = f"Best of k from {policy}"
        parts.append(plain_table(f"{key}-table", curve_table(run), notes=notes, provenance=provenance))
        parts.append(inlined_figure(f"{key}-figure", f"{key}-svg", curves(run, among)))
    else:
        title = f"{policy}: {run.verb}"
        parts += [*map(paragraph, notes), provenance]
    return section(f"{title} on {run.config.benchmark.title} ({run.path.name})", key, *parts)


def _downstream_facts(run: Downstream) -> Facts:
    config, result = run.config, run.result
    yield "Policy", result.policy.name
    yield "Reward models", ", ".join(result.rewards)
    yield "Judge", "" if result.outcome is None else result.outcome.judge.name
    yield from data_facts(config.data)
    yield "Seed", str(config.seed)
    yield from software_facts(run.provenance)


def personalized_section(key: str, run: Personalized) -> Markup:
    """Make the section of a directory of `personalize`. Call it within `style.drawing`."""
    provenance = provenance_of([(run.path.name, run.path, _personalized_facts(run))])
    tables = list(tables_of(run))
    texts = [*notes(run), *marks_in(tables)]
    parts = [
        plain_table(f"{key}-{index}", one, notes=texts if index == len(tables) - 1 else (), provenance=provenance)
        for index, one in enumerate(tables)
    ]
    parts += [
        inlined_figure(f"{key}-figure-{name}", f"{key}-svg-{name}", context_figure(run, name))
        for name in drawn_sets(run)
    ]
    backbone = clean(Path(run.config.backbone.name).name)
    return section(f"With and without a profile: {backbone} ({run.path.name})", key, *parts)


def _personalized_facts(run: Personalized) -> Facts:
    config = run.config
    yield "Backbone", config.backbone.name
    yield "Seeds", str(config.personalizing.seeds)
    for data in config.data.values():
        yield from data_facts(data)
    yield from software_facts(run.provenance)
