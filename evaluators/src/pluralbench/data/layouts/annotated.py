"""Annotated items: a pair of responses or any number of them, and votes of people, whose majority decides."""

from collections import Counter
from typing import Any

from pluralbench.data.annotated_rows import VOTES
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.labels import FIRST, SECOND, TIE, majority_of
from pluralbench.data.layouts.labeled_pairs import ordered_pairs
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.texts import Row, parsed_value, plain_text

Votes = list[dict[str, Any]]
MEANINGS = {0: FIRST, 1: SECOND, None: TIE}


def _pairs(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    """Return the response first for which more than half of the votes are; the places of votes follow it."""
    votes: list[Votes] = source.frame[VOTES].to_list()
    better = [majority_of(MEANINGS[vote["response"]] for vote in own) for own in votes]
    if not benchmark.credit:
        for side, own in zip(better, votes, strict=True):
            for vote in own if side == SECOND else ():
                vote["response"] = None if vote["response"] is None else 1 - vote["response"]
    return {**ordered_pairs(benchmark, source, better), "annotations": votes}


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    """Return the responses with rank 1 for those that most people picked, and 2 for the others.

    Responses with the same text are one.
    """
    column = str(source.columns.responses)
    texts = source.each(lambda row: _texts(row, column), column)
    items: dict[str, list[Any]] = {name: [] for name in ("response_ids", "responses", "rank", "annotations")}
    for responses, votes in zip(texts, source.frame[VOTES].to_list(), strict=True):
        place_of = {text: place for place, text in enumerate(dict.fromkeys(responses))}
        for vote in votes:
            place = vote["response"]
            vote["response"] = None if place is None else place_of[responses[place]]
        counts = Counter(vote["response"] for vote in votes if vote["response"] is not None)
        most = max(counts.values(), default=0)
        items["response_ids"].append([*map(str, range(len(place_of)))])
        items["responses"].append([*place_of])
        items["rank"].append([FIRST if counts[place] == most else SECOND for place in range(len(place_of))])
        items["annotations"].append(votes)
    return items


def _texts(row: Row, column: str) -> list[str]:
    responses = parsed_value(row, column)
    if not isinstance(responses, list) or not responses:
        raise ValueError(f"`{column}` has no responses")
    return [plain_text(response, column) for response in responses]


ANNOTATED_PAIRS = Layout(
    unit="pairs",
    fields=("first", "second"),
    fits=lambda benchmark, columns: benchmark.annotations is not None and columns.responses is None,
    responses=_pairs,
    key="annotations",
    texts=("first", "second"),
)
ANNOTATED_RESPONSES = Layout(
    unit="prompts with votes on responses",
    fields=("responses",),
    fits=lambda benchmark, columns: benchmark.annotations is not None and columns.responses is not None,
    responses=_responses,
    key="annotations",
    listed=True,
)
