"""Layouts of items. A table has the first layout that fits its benchmark and its columns."""

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.layouts.annotated import ANNOTATED_PAIRS, ANNOTATED_RESPONSES
from pluralbench.data.layouts.labeled_pairs import LABELED_PAIRS
from pluralbench.data.layouts.layout import Layout
from pluralbench.data.layouts.pairs import PAIRS
from pluralbench.data.layouts.persona_options import PERSONA_OPTIONS
from pluralbench.data.layouts.prompts import PROMPTS
from pluralbench.data.layouts.rankings import RANKINGS
from pluralbench.data.layouts.response_lists import RESPONSE_LISTS
from pluralbench.data.layouts.right_and_wrong import RIGHT_AND_WRONG
from pluralbench.data.layouts.steps import STEPS

LAYOUTS = (
    *(PROMPTS, PERSONA_OPTIONS, STEPS, ANNOTATED_PAIRS, ANNOTATED_RESPONSES),
    *(RANKINGS, LABELED_PAIRS, PAIRS, RESPONSE_LISTS, RIGHT_AND_WRONG),
)


def layout_of(benchmark: Benchmark, columns: Columns | None = None) -> Layout:
    """Return the layout of a benchmark's items, or of a table with these columns."""
    return next(layout for layout in LAYOUTS if layout.fits(benchmark, columns or benchmark.columns))


def records_responses(benchmark: Benchmark) -> bool:
    """Return whether runs record each response, instead of pairs of a chosen and a rejected one."""
    return layout_of(benchmark).listed or bool(benchmark.credit)
