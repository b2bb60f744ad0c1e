"""Rankings: a list of responses, and their ranks as a list or by id."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.labels import label_key
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.layouts.listed import Responses, read_lists
from pluralbench.data.texts import Row, first_ids, parsed_value, plain_text, shortened, value_of


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    columns = source.columns
    return read_lists(source, partial(_parse, columns), columns.responses, columns.rank or "rank")


def _parse(columns: Columns, row: Row) -> Responses:
    """Read responses and ranks; with listed training pairs, responses may have no rank."""
    column, rank_column, partly = str(columns.responses), columns.rank or "rank", columns.pairs in row
    rank, responses = parsed_value(row, rank_column), parsed_value(row, column)
    if not responses or rank is None:
        raise ValueError(f"it has no {'ranks' if responses else 'responses'}")
    for name, value, kinds in ((column, responses, list), (rank_column, rank, list | Mapping)):
        if not isinstance(value, kinds):
            raise TypeError(f"`{name}` is not a list: {shortened(value)}")
    texts = [one if isinstance(one, str) else value_of(one, "content", column) for one in responses]
    names = [
        str(number) if isinstance(one, str) else str(value_of(one, "id", column))
        for number, one in enumerate(responses)
    ]
    if len(set(names)) < len(names):
        raise ValueError("two responses share an id")
    ranks = list(rank)
    if isinstance(rank, Mapping) or any(isinstance(one, Mapping) for one in ranks):
        ranks = _ranks_by_id(rank, names, rank_column, partly=partly)
    if len(ranks) != len(texts):
        raise ValueError(f"{len(texts)} responses have {len(ranks)} ranks")
    keys = [label_key(place) for place in ranks]
    if any(not re.fullmatch("-?[0-9]{1,15}", key) if key else not partly for key in keys):
        raise ValueError(f"the ranks {shortened(ranks)} are not whole numbers")
    return names, [plain_text(text, column) for text in texts], [int(key) if key else None for key in keys]


def _ranks_by_id(rank: Any, names: list[str], column: str, *, partly: bool) -> list[Any]:
    pairs = ([value_of(one, key, column) for key in ("id", "rank")] for one in rank)
    by_id = rank if isinstance(rank, Mapping) else {str(name): place for name, place in pairs}
    if len(by_id) < len(rank):
        raise ValueError("two ranks share an id")
    unknown = [str(name) for name, place in by_id.items() if place is not None and name not in names]
    if unknown:
        raise ValueError(f"it ranks {first_ids(unknown)} and has no such response")
    unranked = [name for name in names if by_id.get(name) is None]
    if unranked and not partly:
        raise ValueError(f"the responses {first_ids(unranked)} have no rank")
    return [by_id.get(name) for name in names]


RANKINGS = Layout(
    unit="rankings",
    fields=("responses", "rank"),
    fits=lambda _, columns: columns.right is None and bool(columns.responses or columns.rank),
    responses=_responses,
    listed=True,
    optional=("rank",),
)
