"""What a build amounts to in numbers: items, ties, what a judge could go by without the persona, what was left out."""

from collections.abc import Mapping
from typing import Any

import polars as pl

TASKS = "Items, and of those that are no tie, how often the truth is A, the longer option, the usual answer"
LEFT_OUT = "Left out"


def figures_of(tasks: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]) -> dict[str, Any]:
    """The figures of a release, JSON. tasks: the items of each task, and what was left out of it.

    first: items that are no tie whose truth is A. longer: of those whose options differ in length (in characters), how
    often the true one is the longer. usual: of the items of an opinion task, how many have the truth that is most
    common for their question, which is what a judge gets who knows the public and not the person.
    """
    dropped = pl.concat([gone for _, gone in tasks.values()])
    return {
        "tasks": [_figures(name, items) for name, (items, _) in tasks.items()],
        "left_out": dropped.group_by("task", "what", "reason").len("count").sort("task", "what", "reason").to_dicts(),
    }


def _figures(name: str, items: pl.DataFrame) -> dict[str, Any]:
    untied = items.filter(pl.col("truth") != "tie").with_columns(
        a=pl.col("option_a").str.len_chars(),
        b=pl.col("option_b").str.len_chars(),
        true=pl.when(pl.col("truth") == "A").then("option_a").otherwise("option_b"),
    )
    unequal = untied.filter(pl.col("a") != pl.col("b"))
    longer = unequal.filter((pl.col("a") > pl.col("b")) == (pl.col("truth") == "A"))
    known = pl.col("persona").list.eval(pl.element().struct.field("value").is_not_null()).list.sum()
    usual = None
    if items["kind"][0] == "opinion":
        counts = untied.group_by("context", "true").len().group_by("context").agg(pl.col("len").max())
        usual = int(counts["len"].sum())
    return {
        "task": name,
        "items": items.height,
        "ties": items.height - untied.height,
        "people": items["user"].n_unique(),
        "variables_known": round(float(items.select(known.mean()).item()), 4),
        "first": untied.filter(pl.col("truth") == "A").height,
        "unequal": unequal.height,
        "longer": longer.height,
        "usual": usual,
    }


def figures_tables(figures: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The figures as small tables with a title each, for the card and the terminal."""
    rows = []
    for entry in figures["tasks"]:
        untied = entry["items"] - entry["ties"]
        rows.append(
            (
                entry["task"],
                f"{entry['items']:,}",
                f"{entry['ties']:,}",
                f"{entry['people']:,}",
                f"{entry['variables_known']:.1f}",
                _of(entry["first"], untied),
                _of(entry["longer"], entry["unequal"]),
                "" if entry["usual"] is None else _of(entry["usual"], untied),
            )
        )
    names = ["task", "items", "ties", "people", "variables known", "A", "longer", "usual"]
    found = {TASKS: pl.DataFrame(rows, schema=names, orient="row")}
    left = [(entry["task"], entry["what"], entry["reason"], f"{entry['count']:,}") for entry in figures["left_out"]]
    if left:
        found[LEFT_OUT] = pl.DataFrame(left, schema=["task", "what", "reason", "count"], orient="row")
    return found


def _of(count: int, total: int) -> str:
    return f"{count / total:.0%} of {total:,}" if total else "none"
