"""Lists of better and of worse responses; every better one is above every worse one."""

from functools import partial
from typing import Any

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.layouts.listed import Responses, read_lists
from pluralbench.data.texts import Row, parsed_value, plain_text, shortened


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    columns = source.columns
    return read_lists(source, partial(_parse, columns), columns.chosen, columns.rejected)


def _parse(columns: Columns, row: Row) -> Responses:
    names: list[str] = []
    texts: list[str] = []
    ranks: list[int | None] = []
    sides = {"chosen": columns.chosen, "rejected": columns.rejected}
    single = [isinstance(row[name], str) for name in sides.values()] in ([True, False], [False, True])
    for rank, (side, name) in enumerate(sides.items(), start=1):
        # A text beside a list is one response, not a list that was written as JSON.
        responses = [row[name]] if single and isinstance(row[name], str) else parsed_value(row, name)
        if responses == []:
            raise ValueError(f"`{name}` is empty; each item needs a right and a wrong response")
        if not isinstance(responses, list):
            raise TypeError(
                f"`{name}` is not a list of responses, which `multiple_responses` requires: {shortened(responses)}"
            )
        names += [f"{side} {number}" for number in range(len(responses))]
        texts += [plain_text(response, name) for response in responses]
        ranks += [rank] * len(responses)
    return names, texts, ranks


RESPONSE_LISTS = Layout(
    unit="prompts with right and wrong responses",
    fields=("chosen", "rejected"),
    fits=lambda benchmark, columns: columns.right is None and benchmark.multiple_responses,
    responses=_responses,
    key="multiple_responses",
    listed=True,
)
