"""Definitions of the headings and rows of tables, which `pluralbench report --notes` and every page and file show."""

from collections.abc import Mapping, Sequence

from pluralbench.metrics.table import METRICS
from pluralbench.reports.notes import list_names
from pluralbench.reports.sheets import Sheet

LINE = 80  # columns of a single definition that is printed in place of its term


def definitions_of(sheets: Sequence[Sheet]) -> dict[str, str]:
    """Return the definitions of the metrics that sheets show."""
    shown = {column.key.metric for sheet in sheets for column in sheet.columns}
    shown |= {name for sheet in sheets for name in sheet.runs[0].config.benchmark.description.metrics}
    return {term: text for name, metric in METRICS.items() if name in shown for term, text in metric.terms.items()}


def in_sentences(definitions: Mapping[str, str]) -> list[str]:
    """Write each definition as a sentence."""
    return [f"{term[0].upper()}{term[1:]}: {text}" for term, text in definitions.items()]


def where_defined(definitions: Mapping[str, str]) -> list[str]:
    """Say where terms are defined, in one sentence; a definition that is as short stands for itself."""
    sentences = in_sentences(definitions)
    if not sentences or (len(sentences) == 1 and len(sentences[0]) <= LINE):
        return sentences
    return [f"Defined by `pluralbench report RUN --notes`: {list_names([*definitions])}."]
