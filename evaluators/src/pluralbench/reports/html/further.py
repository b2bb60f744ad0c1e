"""What runs beside those of benchmarks found: best of k, optimised policies, personalized reward models."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from pluralbench.reports.downstream import curve_table, downstream_notes, line_of
from pluralbench.reports.figures.best_of_n import curves
from pluralbench.reports.figures.personalize import drawn_sets, told
from pluralbench.reports.html.components import paragraph, section
from pluralbench.reports.html.figures import inlined_figure
from pluralbench.reports.html.sources import Facts, data_facts, software_facts, told_once
from pluralbench.reports.html.tables import plain_table
from pluralbench.reports.layout import clean
from pluralbench.reports.personalize import notes, tables_of
from pluralbench.reports.tables import marks_in
from pluralbench.results.runs import Downstream, Personalized


def downstream_section(key: str, found: Downstream, among: Sequence[str]) -> Markup:
    """What reward models did to a policy. To be called in `style.drawing`. among: all models, for their colours."""
    policy, notes = clean(Path(found.result.policy.name).name), downstream_notes(found)
    provenance = told_once([(found.path.name, found.path, _downstream_facts(found))])
    parts: list[Markup] = [paragraph(line_of(found))]
    if found.verb == "best-of-n" and found.result.rewards:
        title = f"Best of k from {policy}"
        parts.append(plain_table(f"{key}-table", curve_table(found), notes=notes, provenance=provenance))
        parts.append(inlined_figure(f"{key}-figure", f"{key}-svg", curves(found, among)))
    else:
        title = f"{policy}: {found.verb}"
        parts += [*map(paragraph, notes), provenance]
    return section(f"{title} on {found.config.benchmark.title} ({found.path.name})", key, *parts)


def _downstream_facts(found: Downstream) -> Facts:
    config, result = found.config, found.result
    yield "Policy", result.policy.name
    yield "Reward models", ", ".join(result.rewards)
    yield "Judge", "" if result.outcome is None else result.outcome.judge.name
    yield from data_facts(config.data)
    yield "Seed", str(config.seed)
    yield from software_facts(found.provenance)


def personalized_section(key: str, found: Personalized) -> Markup:
    """What personalized reward models gain by a profile. To be called in `style.drawing`."""
    provenance = told_once([(found.path.name, found.path, _personalized_facts(found))])
    shown = list(tables_of(found))
    said = [*notes(found), *marks_in(shown)]
    parts = [
        plain_table(f"{key}-{place}", one, notes=said if place == len(shown) - 1 else (), provenance=provenance)
        for place, one in enumerate(shown)
    ]
    parts += [
        inlined_figure(f"{key}-figure-{name}", f"{key}-svg-{name}", told(found, name)) for name in drawn_sets(found)
    ]
    backbone = clean(Path(found.config.backbone.name).name)
    return section(f"With and without a profile: {backbone} ({found.path.name})", key, *parts)


def _personalized_facts(found: Personalized) -> Facts:
    config = found.config
    yield "Backbone", config.backbone.name
    yield "Seeds", str(config.personalizing.seeds)
    for data in config.data.values():
        yield from data_facts(data)
    yield from software_facts(found.provenance)
