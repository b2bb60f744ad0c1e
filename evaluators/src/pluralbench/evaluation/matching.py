"""Match the items and responses of a run with those of published scores."""

from typing import Any

import polars as pl

from pluralbench.data.decisions import decisions_of, responses_by_item
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.steps import STEPS
from pluralbench.data.published_scores import ITEM_SCORES, SIDES, ItemScores
from pluralbench.data.texts import first_ids
from pluralbench.errors import RunError
from pluralbench.results.runs import Run


def scores_of_run(run: Run) -> ItemScores:
    """Return the scores of a run in the form of a published file.

    Raises:
        RunError: A judge has compared several pairs of an item's responses, or the scores are of steps.
    """
    items = run.items
    if layout_of(run.config.benchmark.description) is STEPS:
        raise RunError(f"{run.path} has scores of steps; only scores of responses can be compared.")
    if "response" in items.columns:
        frame = responses_by_item(items)
    elif "score_chosen" in items.columns:
        scored = (
            pl.when(pl.col("outcome") == "dropped").then([]).otherwise(pl.concat_list("score_chosen", "score_rejected"))
        )
        frame = items.with_columns(response_ids=pl.lit([*SIDES]), rank=pl.lit([1, 2]), scores=scored, outcome=None)
    else:
        decisions = decisions_of(items)
        if decisions.select("config", "id").is_duplicated().any():
            raise RunError(f"{run.path} has several verdicts for an item; only runs with scores can be compared.")
        frame = decisions.with_columns(
            response_ids=pl.concat_list("chosen", "rejected"),
            rank=pl.lit([1, 2]),
            scores=pl.lit([], pl.List(pl.Float64)),
        )
    missing = [pl.lit(None, kind).alias(name) for name, kind in ITEM_SCORES.items() if name not in frame.columns]
    frame = frame.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in ITEM_SCORES.items())
    return ItemScores(str(run.path), f"run of {run.name}", run.config.benchmark.description, frame)


def _keyed(items: pl.DataFrame) -> pl.DataFrame:
    """Add the key of each item: its id, with the config before it if several configs have this id."""
    repeated = items["id"].is_duplicated()
    return items.with_columns(key=pl.when(repeated).then(pl.format("{}/{}", "config", "id")).otherwise("id"))


def match_items(
    first: ItemScores, second: ItemScores
) -> tuple[pl.DataFrame, tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]]:
    """Join the items of both sides, in the order of the first.

    Returns:
        The items of the first side with `scores_second`, `outcome_second` and `stated_second`, responses in the order
        of the first; the ids that only one side has; and the ids whose responses cannot be matched.

    Raises:
        RunError: No id is on both sides.
    """
    ours, theirs = _keyed(first.items), _keyed(second.items)
    joined = ours.join(theirs, on="key", how="inner", suffix="_second", maintain_order="left")
    if joined.is_empty():
        named = [first_ids(side["key"].to_list()) for side in (ours, theirs)]
        raise RunError(
            f"{first.where} (ids {named[0]}) and {second.where} (ids {named[1]}) share no id; name the column of the "
            'ids with `columns=["id=..."]` (domain+id joins two columns).'
        )
    missing = tuple(
        tuple(own.join(other, on="key", how="anti", maintain_order="left")["key"])
        for own, other in ((ours, theirs), (theirs, ours))
    )
    rows, unequal = [], []
    for row in joined.iter_rows(named=True):
        order = _order(row)
        if order is None:
            unequal.append(row["key"])
            continue
        names, ranks, reordered = order
        rows.append(row | {"response_ids": names, "rank": ranks, "scores_second": reordered})
    return pl.DataFrame(rows, schema=joined.schema), (missing[0], missing[1]), tuple(unequal)


def _order(row: dict[str, Any]) -> tuple[list[str], list[int] | None, list[float]] | None:
    """Return names and ranks of an item's responses and the second side's scores in their order; None if unequal.

    Responses are matched by their names, else by their ranks and places.
    """
    names, others = row["response_ids"], row["response_ids_second"]
    ranks, other_ranks, scores = row["rank"], row["rank_second"], row["scores_second"]
    if len(names) != len(others):
        return None
    if set(names) == set(others):
        places = [others.index(name) for name in names]
    elif ranks is None or other_ranks is None:
        if {*names} == {*SIDES} or {*others} == {*SIDES}:
            return None  # responses in the order of the data cannot be matched with right and wrong ones
        places = [*range(len(names))]
    elif sorted(ranks) != sorted(other_ranks):
        return None
    else:
        theirs = sorted(range(len(others)), key=other_ranks.__getitem__)
        ours = sorted(range(len(names)), key=ranks.__getitem__)
        of = dict(zip(ours, theirs, strict=True))
        places = [of[place] for place in range(len(names))]
    if ranks is None and other_ranks is not None:
        ranks = [other_ranks[place] for place in places]
    return names, ranks, [scores[place] for place in places] if scores else []
