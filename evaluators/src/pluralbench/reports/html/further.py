"""What runs beside those of benchmarks found: best of k, optimised policies, personalized reward models."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from pluralbench.reports.downstream import KEYS, curve_order, downstream_notes, line_of, shown_metric
from pluralbench.reports.figures.best_of_n import curves
from pluralbench.reports.figures.personalize import drawn_sets, told
from pluralbench.reports.html.components import Cell, Head, Row, figure, number, paragraph, scale_of, section, table
from pluralbench.reports.html.figures import inlined
from pluralbench.reports.html.sources import Facts, data_facts, software_facts, told_once
from pluralbench.reports.html.tables import page_table
from pluralbench.reports.layout import clean
from pluralbench.reports.personalize import notes, pages_of
from pluralbench.results.downstream import Downstream
from pluralbench.results.personalize import Personalized


def downstream_section(key: str, found: Downstream, among: Sequence[str]) -> Markup:
    """What reward models did to a policy. To be called in `style.drawing`. among: all models, for their colours."""
    record = found.record
    policy = clean(Path(record.policy.name).name)
    parts: list[Markup] = [paragraph(line_of(found))]
    sampled = record.verb == "best-of-n" and bool(record.rewards)
    if sampled:
        parts.append(_curve_table(f"{key}-table", found))
        drawn = inlined(curves(found, among), f"{key}-svg")
        parts.append(figure(f"{key}-figure", drawn.svg, drawn.title, drawn.note))
    else:
        parts += [paragraph(note) for note in downstream_notes(found)]
        parts.append(_downstream_sources(found))
    title = f"Best of k from {policy}" if sampled else f"{policy}: {record.verb}"
    return section(f"{title} ({found.path.name})", key, *parts)


def _curve_table(key: str, found: Downstream) -> Markup:
    metric = shown_metric(found)
    models, sizes = curve_order(found), found.sizes
    at = {k: [found.estimate(metric, model=model, k=k) for model in models] for k in sizes}
    scale = scale_of(one for column in at.values() for one in column)
    gains = [found.estimate("gain", model=model, k=sizes[-1]) for model in models]
    gain_scale = scale_of(gains, 0.0)
    rows = [
        Row(
            (
                Cell(clean(model)),
                *(number(at[k][place], ".3f", per=1.0, scale=scale) for k in sizes),
                number(gains[place], "+.3f", per=1.0, scale=gain_scale),
                number(found.estimate("agreement", model=model), "+.2f", per=1.0),
            )
        )
        for place, model in enumerate(models)
    ]
    outcome = found.record.outcome
    title = "promised gain" if outcome is None else KEYS[outcome.measure]
    heads = [
        Head("reward model", number=False),
        *(Head(f"best of {k}") for k in sizes),
        Head("gain"),
        Head("agreement"),
    ]
    caption = f"Best of k: {title}, a row a reward model."
    return table(key, caption, heads, rows, notes=downstream_notes(found), provenance=_downstream_sources(found))


def _downstream_sources(found: Downstream) -> Markup:
    record = found.record
    pairs = [
        ("Policy", record.policy.name),
        ("Reward models", ", ".join(record.rewards)),
        ("Judge", "" if record.outcome is None else record.outcome.judge.name),
        *data_facts(record.data),
        ("Seed", str(record.seed)),
        *software_facts(record.provenance),
    ]
    return told_once([(found.path.name, str(found.path), _filled(pairs))])


def personalized_section(key: str, found: Personalized) -> Markup:
    """What personalized reward models gain by a profile. To be called in `style.drawing`."""
    record = found.record
    pairs = [
        ("Backbone", record.backbone.name),
        ("Seeds", str(record.seeds)),
        *(pair for data in record.data.values() for pair in data_facts(data)),
        *software_facts(record.provenance),
    ]
    provenance = told_once([(found.path.name, str(found.path), _filled(pairs))])
    said = list(notes(found))
    shown = list(pages_of(found))
    parts = [
        page_table(f"{key}-{place}", page, notes=said if place == len(shown) - 1 else (), provenance=provenance)
        for place, page in enumerate(shown)
    ]
    parts += _told_figures(key, found)
    backbone = clean(Path(record.backbone.name).name)
    return section(f"With and without a profile: {backbone} ({found.path.name})", key, *parts)


def _told_figures(key: str, found: Personalized) -> Iterator[Markup]:
    for name in drawn_sets(found):
        drawn = inlined(told(found, name), f"{key}-svg-{name}")
        yield figure(f"{key}-figure-{name}", drawn.svg, drawn.title, drawn.note)


def _filled(pairs: Sequence[tuple[str, str]]) -> Facts:
    return {name: value for name, value in pairs if value}
