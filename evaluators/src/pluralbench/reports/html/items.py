"""The item browser: all items of a sheet with their outcomes, and the texts of the most informative ones.

The page holds the items in compressed blocks that a script decompresses on demand: one for each sheet with ids and
outcomes, and further ones with texts. `assets/items.js` reads them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import NDArray
from pluralbench_runs.console import clean, sanitize

from pluralbench.data.decisions import decisions_of
from pluralbench.data.layouts import layout_of
from pluralbench.errors import DataError
from pluralbench.reports.html.parts import block, part
from pluralbench.reports.items import OUTCOMES, answer_name, counted_votes, cut, picked, reply_names
from pluralbench.reports.sheets import Sheet
from pluralbench.results.examples import (
    KEYS,
    MOVED,
    ItemTexts,
    Key,
    examples,
    flipped,
    question_of,
    read_texts,
)
from pluralbench.results.runs import Run

Floats = NDArray[np.float64]
LISTED = 20_000  # items of a sheet at most
SORTED = 1_000  # items in a sort order
TEXTS = 1_500  # items of a sheet with texts at most
TITLE = 110  # characters of a question in the list
TOGETHER = 24  # items in a block of texts
BUDGET = 18_000_000  # characters of all blocks with texts
LONG, LONG_POST, LONG_REPLY, POSTS = 6_000, 500, 1_500, 5  # characters of texts, and number of posts
COUNTED = ("win", "loss", "tie", "invalid")
ORDERS = {
    "worst": "Wrong by most models",
    "closest": "Closest scores",
    "contested": "Models most divided",
    "flipped": "Decision differs from English",
}
FLAGS = ("tie", "invalid", "truncated")


class Browsed(NamedTuple):
    """The item browser of a sheet: controls, data, why texts are missing, and characters of the blocks with texts."""

    shown: Markup
    blocks: list[Markup]
    note: str
    size: int


def browse(key: str, name: str, sheet: Sheet, budget: int, listed: int = LISTED) -> Browsed:
    """Make the browser of at most `listed` items of a sheet; `name` is unique on the page, `budget` of all texts."""
    whole = decided_items(sheet.runs)
    items = whole[sorted(_most_informative(whole, orders_of(whole, sheet.runs))[:listed])]
    orders = orders_of(items, sheet.runs)
    texts, note = _texts(sheet.runs)
    keys: list[Key] = items.select(KEYS).rows()
    wanted = [place for place in _most_informative(items, orders)[:TEXTS] if keys[place][1:] in texts.items]
    by_run = [_examples(run, [keys[place] for place in wanted], texts) for run in sheet.runs]
    blocks: list[Markup] = []
    where: dict[int, int] = {}
    size = 0
    for start in range(0, len(wanted), TOGETHER):
        together = wanted[start : start + TOGETHER]
        data = {place: _item([own.get(keys[place]) for own in by_run]) for place in together}
        markup = block(f"{key}-texts-{len(blocks)}", data)
        if size + len(markup) > budget:
            break
        where |= dict.fromkeys(together, len(blocks))
        blocks.append(markup)
        size += len(markup)
    rows = [texts.items.get(item[1:]) for item in keys]
    layout = layout_of(sheet.runs[0].config.benchmark.description)
    titles = ["" if row is None else question_of(layout.prompt(row), TITLE) for row in rows]
    index = _index(sheet, items) | {"orders": orders, "texts": where, "title": titles, "items": whole.height}
    blocks.append(block(f"{key}-index", index))
    about = " ".join(filter(None, (_contents_note(len(where), items.height, whole.height), note)))
    shown = part("browser", key, name, sheet.heading, {order: ORDERS[order] for order in orders}, about)
    return Browsed(shown, blocks, note, size)


def _most_informative(items: pl.DataFrame, orders: Mapping[str, Sequence[int]]) -> list[int]:
    """The indices of all items: the first of each order in turn, then the others in the order of the data."""
    mixed = chain.from_iterable(zip_longest(*orders.values()))
    return list(dict.fromkeys(place for place in chain(mixed, range(items.height)) if place is not None))


def decided_items(runs: Sequence[Run]) -> pl.DataFrame:
    """Collect the outcomes of the runs' items, in the order of the first run's data.

    Returns:
        The columns of `KEYS`, `subset` and `of` (number of decisions), those of `FLAGS` (whether any decision of a run
        is such), and of each run "right N" (number of correct decisions; null if none counts) and "margin N" (of items
        with one decision).
    """
    outcome = pl.col("outcome")
    frames = [
        decisions_of(run.items)
        .group_by(KEYS, maintain_order=True)
        .agg(
            pl.col("subset").cast(pl.String).first(),
            of=pl.len(),
            right=pl.when(outcome.is_in(COUNTED).any()).then((outcome == "win").sum().cast(pl.Float64)),
            margin=pl.when(pl.len() == 1).then(pl.col("margin").first()).cast(pl.Float64),
            tie=(outcome == "tie").any(),
            invalid=(outcome == "invalid").any(),
            truncated=pl.col("truncated").any(),
        )
        for run in runs
    ]
    together = pl.concat(frames).group_by(KEYS, maintain_order=True)
    items = together.agg(pl.col("subset", "of").first(), pl.col(FLAGS).any())
    for number, frame in enumerate(frames):
        own = frame.select(*KEYS, pl.col("right", "margin").name.suffix(f" {number}"))
        items = items.join(own, on=KEYS, how="left", maintain_order="left")
    return items


def _by_run(items: pl.DataFrame, name: str) -> Floats:
    return items.select(pl.col(f"^{name} \\d+$").fill_null(float("nan"))).to_numpy().T


def orders_of(items: pl.DataFrame, runs: Sequence[Run] = ()) -> dict[str, list[int]]:
    """Sort the items by how informative they are.

    Args:
        items: As `decided_items` returns them.
        runs: Runs whose items are compared to the same items in English.

    Returns:
        The first indices of each order that is not empty: `worst`, by the share of correct decisions, then by the
        margin; `closest`, by the mean distance of the scores, in units of each model's spread; `contested`, by how
        evenly the models split into right and wrong; `flipped`, by the number of models that decided differently in
        English.
    """
    shares, margins = _by_run(items, "right") / items["of"].to_numpy(), _by_run(items, "margin")
    models, decided = (~np.isnan(shares)).sum(0), ~np.isnan(margins)
    share = np.where(models > 0, np.nansum(shares, 0) / np.maximum(models, 1), np.nan)
    spread = np.sqrt(np.nansum(margins**2, 1, keepdims=True) / np.maximum(decided.sum(1, keepdims=True), 1))
    scaled, counts = margins / np.where(spread > 0, spread, 1.0), np.maximum(decided.sum(0), 1)
    flips = Counter(key for run in runs for key in flipped(run))
    orders = {
        "worst": _first(share, np.nansum(scaled, 0) / counts),
        "closest": _first(np.where(decided.any(0), np.nansum(np.abs(scaled), 0) / counts, np.nan)),
        # An item that only one model decided is not contested.
        "contested": _first(np.where(models > 1, np.abs(share - 0.5), np.nan)),
        "flipped": _first(np.array([-flips[key] if key in flips else np.nan for key in items.select(KEYS).rows()])),
    }
    return {name: places for name, places in orders.items() if places}


def _first(values: Floats, then: Floats | None = None) -> list[int]:
    order = np.lexsort((np.zeros(len(values)) if then is None else then, values))
    return [int(place) for place in order if not np.isnan(values[place])][:SORTED]


def _texts(runs: Sequence[Run]) -> tuple[ItemTexts, str]:
    """The texts of the first run whose data is unchanged, else of data that can be read; and why some are missing."""
    found, problem = ItemTexts({}, "", same=False), ""
    for run in runs:
        try:
            texts = read_texts(run)
        except DataError as error:
            problem = problem or f"Texts are not shown. {str(error).removesuffix(MOVED)}"
            continue
        if texts.same:
            return texts, ""
        if not found.items:
            found = texts
            problem = f"{texts.place} has changed since {run.path} was made; items whose texts changed have none here."
    return found, problem


def _examples(run: Run, keys: Sequence[Key], texts: ItemTexts) -> dict[Key, Mapping[str, Any]]:
    own = set(run.items.select(KEYS).unique().rows())
    wanted = [key for key in keys if key in own]
    return dict(zip(wanted, examples(run, wanted, texts), strict=True)) if wanted else {}


def _item(rows: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    first = next(row for row in rows if row is not None)
    return {
        "prompt": [[message["role"], cut(message["content"], LONG)] for message in first["prompt"]],
        "person": _person(first["person"]),
        "answers": [
            {"name": one["name"], "rank": one.get("rank"), "text": cut(one["text"], LONG)} for one in first["answers"]
        ],
        "votes": [
            one
            | {"group": one["group"] and sanitize(one["group"])}
            | {"attribute": one["attribute"] and one["attribute"].replace("_", " ")}
            for one in first.get("groups", [])
        ],
        "models": [None if row is None else _of_model(row) for row in rows],
    }


def _person(person: Mapping[str, Any]) -> dict[str, Any]:
    aspects = [": ".join(filter(None, (one["aspect"], one["reason"]))) for one in person.get("aspects", [])]
    posts = person.get("posts", [])
    return {
        "persona": [sanitize(one) for one in person.get("persona", [])],
        "hidden": [sanitize(one) for one in person.get("withheld", [])],
        "aspects": [cut(one, LONG_POST) for one in aspects],
        "posts": [cut(post["text"], LONG_POST) for post in posts[:POSTS]],
        "more": max(len(posts) - POSTS, 0),
    }


def _of_model(row: Mapping[str, Any]) -> dict[str, Any]:
    decisions = row["decisions"]
    return {
        "context": row["person"].get("context"),
        "outcomes": row["outcomes"],
        "credit": row["credit"],
        "english": row.get("english"),
        "scores": [one.get("score") for one in row["answers"]],
        "side": _side(row),
        "orders": {one["first"]: picked(decisions[0], one) for one in decisions[0].get("orders", [])}
        if len(decisions) == 1
        else {},
        "reasons": list(dict.fromkeys(sanitize(one["reason"]) for one in decisions if one.get("reason"))),
        "certainty": next((one["certainty"] for one in decisions if "certainty" in one), None),
        "truth": next((one["truth"] for one in decisions if "truth" in one), None),
        "replies": [*_replies(row["answers"], decisions)],
    }


def _side(row: Mapping[str, Any]) -> int | None:
    """The place of the answer that a model prefers; -1 for a tie, None if scores or verdicts do not say."""
    scores, decisions = [one.get("score") for one in row["answers"]], row["decisions"]
    if None not in scores:
        best = [place for place, score in enumerate(scores) if score == max(scores)]
        return best[0] if len(best) == 1 else -1
    sides = {"win": decisions[0].get("chosen"), "loss": decisions[0].get("rejected")} if len(decisions) == 1 else {}
    names = [one["name"] for one in row["answers"]]
    outcome = next(iter(row["outcomes"]))
    return -1 if outcome == "tie" else names.index(sides[outcome]) if sides.get(outcome) in names else None


def _replies(answers: Sequence[Mapping[str, Any]], decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    listed = sorted((one for one in answers if "position" in one), key=itemgetter("position"))
    if listed:
        order = ", ".join(f"{one['position']}: {one['name']}" for one in listed)
        yield from _titled(f"Picked from the list {order}", listed[0].get("replies", []))
    for one in [] if listed else answers:
        yield from _titled(f"Rating of {answer_name(one['name'])}", one.get("replies", []))
    for decision in decisions:
        pair = f"{decision['chosen']} against {decision['rejected']}, " if len(decisions) > 1 else ""
        for order in decision.get("orders", []):
            title = f"{pair}{answer_name(order['first'])} shown first: {picked(decision, order)}"
            yield from _titled(title, order.get("replies", []))


def _titled(title: str, replies: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each reply with a title; the first has the count of their votes."""
    votes = counted_votes(replies)
    for place, (name, reply) in enumerate(zip(reply_names(replies), replies, strict=True)):
        count = f" (votes: {votes})" if votes and not place else ""
        yield sanitize(title + count + (f"; {name}" if name != "Reply" else "")), cut(reply["text"], LONG_REPLY)


def _index(sheet: Sheet, items: pl.DataFrame) -> dict[str, Any]:
    configs, subsets = (items[name].drop_nulls().unique(maintain_order=True).to_list() for name in ("config", "subset"))
    inside = {name: number for number, name in enumerate(subsets)} | {None: -1}
    right, margin = _by_run(items, "right"), _by_run(items, "margin")
    return {
        "models": [clean(row.name) for row in sheet.rows if not row.quiet],
        "configs": configs,
        "subsets": subsets,
        "id": items["id"].to_list(),
        "config": [configs.index(config) for config in items["config"]],
        "subset": [inside[subset] for subset in items["subset"]],
        "of": items["of"].to_list(),
        "right": np.where(np.isnan(right), -1, right).astype(int).tolist(),
        "margin": [[None if np.isnan(one) else float(f"{one:.3g}") for one in row] for row in margin],
        "flags": {name: items[name].arg_true().to_list() for name in FLAGS},
        "labels": OUTCOMES,
    }


def _contents_note(with_texts: int, listed: int, items: int) -> str:
    shown = f"All {items:,} items are here" if listed == items else f"{listed:,} of {items:,} items are here"
    if with_texts == listed:
        return f"{shown}, with their texts." if listed == items else f"{shown}, the most informative, with their texts."
    those = "none with its text" if not with_texts else f"{with_texts:,} of them with their texts"
    return f"{shown}, {those}. The command pluralbench show prints the others."
