"""The browser of items: all of a sheet's with what came of them, and the texts of those that tell most.

What a page holds of them is compressed in blocks that a script unfolds when a reader asks: one of each sheet with the
items' ids and outcomes, and some with texts. `assets/items.js` reads them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray
from pluralbench_runs.console import sanitize

from pluralbench.errors import DataError
from pluralbench.reports.html.components import block, browser
from pluralbench.reports.items import CAME_OUT, VERDICTS, cut
from pluralbench.reports.layout import clean
from pluralbench.reports.sheets import Sheet
from pluralbench.results.decisions import decisions_of
from pluralbench.results.examples import KEYS, ItemTexts, Key, examples, flipped, read_texts
from pluralbench.results.runs import Run

Floats = NDArray[np.float64]
LISTED = 1_000  # items of an order
TEXTS = 1_500  # items of a sheet with their texts, at the most
TOGETHER = 24  # items in a block of texts
BUDGET = 18_000_000  # characters of all blocks with texts
LONG, LONG_POST, LONG_REPLY, POSTS = 6_000, 500, 1_500, 5  # characters of texts, and how many posts
COUNTED = ("win", "loss", "tie", "invalid")
ORDERS = {
    "worst": "Wrong by most models",
    "closest": "Closest scores",
    "contested": "Models most divided",
    "flipped": "Decided otherwise in English",
}
SAID = {"outcomes": CAME_OUT, "verdicts": VERDICTS}


class Decided(NamedTuple):
    """What came of a sheet's items. keys: the items. of: how many decisions each has; right: of these, by run and item,
    those that came out right, NaN where none counts. margin: of items with one decision, by run and item.
    """

    keys: list[Key]
    subsets: list[str | None]
    of: Floats
    right: Floats
    margin: Floats


class Browsed(NamedTuple):
    """The browser of a sheet and its blocks. note: why there are no texts, where there are none."""

    shown: Markup
    blocks: list[Markup]
    note: str
    size: int


def browse(key: str, sheet: Sheet, budget: int) -> Browsed:
    """The browser of a sheet's items. budget: characters that blocks of texts may have."""
    found = decided_items(sheet.runs)
    orders = orders_of(found, sheet.runs)
    chosen = list(dict.fromkeys(chain.from_iterable(zip_longest(*orders.values(), range(len(found.keys))))))
    wanted = [place for place in chosen if place is not None][:TEXTS]
    texts, note = _texts(sheet.runs)
    blocks: list[Markup] = []
    where: dict[int, int] = {}
    size = 0
    if texts is not None:
        for places, data in _chunks(sheet, found, wanted, texts):
            made = block(f"{key}-texts-{len(blocks)}", data)
            if size + len(made) > budget:
                break
            where |= dict.fromkeys(places, len(blocks))
            blocks.append(made)
            size += len(made)
    index = _index(sheet, found, orders, where)
    blocks.append(block(f"{key}-index", _json(index)))
    told = note or _told(len(where), len(found.keys))
    return Browsed(browser(key, sheet.heading, {name: ORDERS[name] for name in orders}, told), blocks, note, size)


def decided_items(runs: Sequence[Run]) -> Decided:
    """What came of the items that the runs have, in the order of the first one's data."""
    frames = [_by_item(run) for run in runs]
    items = frames[0].select(*KEYS, "subset", "of")
    for frame in frames[1:]:
        items = pl.concat([items, frame.join(items, on=KEYS, how="anti").select(items.columns)])
    own = [items.select(KEYS).join(frame, on=KEYS, how="left", maintain_order="left") for frame in frames]
    return Decided(
        keys=[(config, item, digest) for config, item, digest in items.select(KEYS).rows()],
        subsets=items["subset"].to_list(),
        of=items["of"].to_numpy().astype(np.float64),
        right=np.array([frame["right"].cast(pl.Float64).to_numpy() for frame in own]),
        margin=np.array([frame["margin"].cast(pl.Float64).to_numpy() for frame in own]),
    )


def _by_item(run: Run) -> pl.DataFrame:
    outcome = pl.col("outcome")
    return (
        decisions_of(run.items)
        .group_by(KEYS, maintain_order=True)
        .agg(
            pl.col("subset").cast(pl.String).first(),
            of=pl.len(),
            counted=outcome.is_in(COUNTED).sum(),
            right=(outcome == "win").sum(),
            margin=pl.when(pl.len() == 1).then(pl.col("margin").first()),
        )
        .with_columns(right=pl.when(pl.col("counted") > 0).then("right"))
    )


def orders_of(found: Decided, runs: Sequence[Run] = ()) -> dict[str, list[int]]:
    """The numbers of the items that come first in each order that there is.

    worst: by the share of decisions that models got right, the least first, and among these by how far off they are.
    closest: by the mean of how far models' scores are apart, each in units of its own spread. contested: by how evenly
    models are divided into right and wrong. flipped: those that a model of `runs` decided otherwise than the same item
    in English, by how many did.
    """
    shares = found.right / found.of
    told = ~np.isnan(shares)
    models = told.sum(0)
    share = np.where(models > 0, np.nansum(shares, 0) / np.maximum(models, 1), np.nan)
    apart, off = _margins(found.margin)
    orders = {"worst": _first(share, off)}
    if not np.isnan(apart).all():
        orders["closest"] = _first(apart)
    if len(found.right) > 1:
        # What one model alone decided divides nobody.
        orders["contested"] = _first(np.where(models > 1, np.abs(share - 0.5), np.nan))
    flips = Counter(key for run in runs for key in flipped(run))
    orders["flipped"] = _first(np.array([-flips[key] if key in flips else np.nan for key in found.keys]))
    return {name: places for name, places in orders.items() if places}


def _margins(margin: Floats) -> tuple[Floats, Floats]:
    """How far the scores of each item are apart, as a mean over models, and on which side."""
    known = ~np.isnan(margin)
    counts = np.maximum(known.sum(1, keepdims=True), 1)
    spread = np.sqrt(np.nansum(margin**2, 1, keepdims=True) / counts)
    scaled = margin / np.where(spread > 0, spread, 1.0)
    models = np.where(known.any(0), known.sum(0), np.nan)
    return np.nansum(np.abs(scaled), 0) / models, np.nansum(scaled, 0) / np.maximum(known.sum(0), 1)


def _first(values: Floats, then: Floats | None = None) -> list[int]:
    """The places of the least values, those without one left out."""
    order = np.lexsort((np.zeros(len(values)) if then is None else then, values))
    return [int(place) for place in order if not np.isnan(values[place])][:LISTED]


def _texts(runs: Sequence[Run]) -> tuple[ItemTexts | None, str]:
    """The texts of the sheet's data, or why there are none: the first run's data that can be read."""
    said = ""
    for run in runs:
        try:
            return read_texts(run), ""
        except DataError as error:
            said = said or str(error)
    return None, f"Texts are not shown. {said}"


def _chunks(
    sheet: Sheet, found: Decided, wanted: Sequence[int], texts: ItemTexts
) -> Iterator[tuple[Sequence[int], bytes]]:
    """Items with their texts, so many together."""
    known = [place for place in wanted if found.keys[place][1:] in texts.items]
    by_run = [_of_run(run, [found.keys[place] for place in known], texts) for run in sheet.runs]
    for start in range(0, len(known), TOGETHER):
        places = known[start : start + TOGETHER]
        yield places, _json({place: _merged([one.get(found.keys[place]) for one in by_run]) for place in places})


def _of_run(run: Run, keys: Sequence[Key], texts: ItemTexts) -> dict[Key, Mapping[str, Any]]:
    own = set(run.items.select(KEYS).unique().rows())
    asked = [key for key in keys if key in own]
    return dict(zip(asked, examples(run, asked, texts), strict=True)) if asked else {}


def _merged(rows: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """An item once, and what came of it in each run; None for a run without it."""
    first = next(row for row in rows if row is not None)
    return {
        "prompt": [[message["role"], cut(message["content"], LONG)] for message in first["prompt"]],
        "person": _person(first["person"]),
        "answers": [
            {"name": one["name"], "rank": one.get("rank"), "text": cut(one["text"], LONG)} for one in first["answers"]
        ],
        "models": [None if row is None else _of_model(row) for row in rows],
    }


def _person(person: Mapping[str, Any]) -> dict[str, Any]:
    aspects = [": ".join(filter(None, (one["aspect"], one["reason"]))) for one in person.get("aspects", [])]
    posts = person.get("posts", [])
    return {
        "persona": [sanitize(one) for one in person.get("persona", [])],
        "untold": [sanitize(one) for one in person.get("untold", [])],
        "aspects": [cut(one, LONG_POST) for one in aspects],
        "posts": [cut(post["text"], LONG_POST) for post in posts[:POSTS]],
        "more": max(len(posts) - POSTS, 0),
    }


def _of_model(row: Mapping[str, Any]) -> dict[str, Any]:
    decisions = row["decisions"]
    return {
        "told": row["person"].get("told"),
        "outcomes": row["outcomes"],
        "scores": [one.get("score") for one in row["answers"]],
        "certainty": next((one["certainty"] for one in decisions if "certainty" in one), None),
        "truth": next((one["truth"] for one in decisions if "truth" in one), None),
        "replies": [*_ratings(row["answers"]), *_verdicts(decisions)],
    }


def _ratings(answers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in answers:
        for reply in one.get("replies", []):
            yield f"Of {one['name']}", cut(reply["text"], LONG_REPLY)


def _verdicts(decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for decision in decisions:
        pair = f"{decision['chosen']} over {decision['rejected']}: " if len(decisions) > 1 else ""
        for order in decision.get("orders", []):
            said = f"{pair}{order['first']} first, {VERDICTS.get(order['verdict'], 'invalid')}"
            for reply in order.get("replies", []):
                yield said, cut(reply["text"], LONG_REPLY)


def _index(
    sheet: Sheet, found: Decided, orders: Mapping[str, Sequence[int]], where: Mapping[int, int]
) -> dict[str, Any]:
    """What a reader sees of all items: names by number, what came of them by model, and where their texts are."""
    configs = list(dict.fromkeys(config for config, _, _ in found.keys))
    subsets = list(dict.fromkeys(one for one in found.subsets if one is not None))
    place = {name: number for number, name in enumerate(configs)}
    inside = {name: number for number, name in enumerate(subsets)} | {None: -1}
    return {
        "models": [clean(row.name) for row in sheet.rows],
        "configs": configs,
        "subsets": subsets,
        "id": [item for _, item, _ in found.keys],
        "config": [place[config] for config, _, _ in found.keys],
        "subset": [inside[one] for one in found.subsets],
        "of": found.of.astype(int).tolist(),
        "right": np.where(np.isnan(found.right), -1, found.right).astype(int).tolist(),
        "margin": [[None if np.isnan(one) else float(f"{one:.3g}") for one in row] for row in found.margin],
        "orders": orders,
        "texts": where,
        "said": SAID,
    }


def _told(with_texts: int, items: int) -> str:
    if with_texts == items:
        return "All items are here with their texts."
    return (
        f"All {items:,} items are here with what came of them, and {with_texts:,} of them, those that come first in "
        "the orders, with their texts; `pluralbench show RUN --id ID` shows any other."
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
