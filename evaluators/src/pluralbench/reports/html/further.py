"""What runs beside those of benchmarks found: best of k, optimised policies, personalized reward models."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from pluralbench.reports.downstream import curve_table, downstream_notes, line_of
from pluralbench.reports.figures.best_of_n import curves
from pluralbench.reports.figures.personalize import drawn_sets, told
from pluralbench.reports.html.components import figure, paragraph, section
from pluralbench.reports.html.figures import inlined
from pluralbench.reports.html.sources import Facts, data_facts, software_facts, told_once
from pluralbench.reports.html.tables import plain_table
from pluralbench.reports.layout import clean
from pluralbench.reports.personalize import notes, tables_of
from pluralbench.reports.tables import marks_in
from pluralbench.results.runs import Downstream, Personalized


def downstream_section(key: str, found: Downstream, among: Sequence[str]) -> Markup:
    """What reward models did to a policy. To be called in `style.drawing`. among: all models, for their colours."""
    policy = clean(Path(found.result.policy.name).name)
    parts: list[Markup] = [paragraph(line_of(found))]
    sampled = found.verb == "best-of-n" and bool(found.result.rewards)
    if sampled:
        parts.append(
            plain_table(
                f"{key}-table",
                curve_table(found),
                notes=downstream_notes(found),
                provenance=_downstream_sources(found),
            )
        )
        drawn = inlined(curves(found, among), f"{key}-svg")
        parts.append(figure(f"{key}-figure", drawn.svg, drawn.title, drawn.note))
    else:
        parts += [paragraph(note) for note in downstream_notes(found)]
        parts.append(_downstream_sources(found))
    title = f"Best of k from {policy}" if sampled else f"{policy}: {found.verb}"
    return section(f"{title} on {found.config.benchmark.title} ({found.path.name})", key, *parts)


def _downstream_sources(found: Downstream) -> Markup:
    config, result = found.config, found.result
    pairs = [
        ("Policy", result.policy.name),
        ("Reward models", ", ".join(result.rewards)),
        ("Judge", "" if result.outcome is None else result.outcome.judge.name),
        *data_facts(config.data),
        ("Seed", str(config.seed)),
        *software_facts(found.provenance),
    ]
    return told_once([(found.path.name, str(found.path), _filled(pairs))])


def personalized_section(key: str, found: Personalized) -> Markup:
    """What personalized reward models gain by a profile. To be called in `style.drawing`."""
    config = found.config
    pairs = [
        ("Backbone", config.backbone.name),
        ("Seeds", str(config.personalizing.seeds)),
        *(pair for data in config.data.values() for pair in data_facts(data)),
        *software_facts(found.provenance),
    ]
    provenance = told_once([(found.path.name, str(found.path), _filled(pairs))])
    shown = list(tables_of(found))
    said = [*notes(found), *marks_in(shown)]
    parts = [
        plain_table(f"{key}-{place}", one, notes=said if place == len(shown) - 1 else (), provenance=provenance)
        for place, one in enumerate(shown)
    ]
    parts += _told_figures(key, found)
    backbone = clean(Path(found.config.backbone.name).name)
    return section(f"With and without a profile: {backbone} ({found.path.name})", key, *parts)


def _told_figures(key: str, found: Personalized) -> Iterator[Markup]:
    for name in drawn_sets(found):
        drawn = inlined(told(found, name), f"{key}-svg-{name}")
        yield figure(f"{key}-figure-{name}", drawn.svg, drawn.title, drawn.note)


def _filled(pairs: Sequence[tuple[str, str]]) -> Facts:
    return {name: value for name, value in pairs if value}
