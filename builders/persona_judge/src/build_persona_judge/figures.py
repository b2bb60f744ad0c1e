"""Figures of a build: items, ties, accuracy without the persona, and dropped rows."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from pluralbench_release import count_by, entries_table, text_table
from pluralbench_release.audit import pair_figures, surface_table
from pluralbench_release.similarity import near_duplicates

from build_persona_judge.labels import figures_table

TASKS = "Items; and without ties, how often the truth is A, and the accuracy of the most common answer"
AUDIT = "Accuracy of a scorer that takes the longer option, or the option that repeats more of the persona"
ALIKE = "Near-duplicates: the two options of an item, texts of two people, and people with the same persona"
THIRD_PERSON = "Third-person labels: people who answered for others (95 % intervals over people)"
DROPPED_ROWS = "Dropped"
DROPPED_COLUMNS = ("task", "what", "reason", "count")


def figures_of(tasks: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]) -> dict[str, Any]:
    """Compute the figures of a release, JSON, of the items and the dropped rows of each task.

    `first` counts items (without ties) whose truth is A. `usual`, for opinion tasks, counts items whose truth is the
    most common answer to their question: the accuracy of a judge that knows the public but not the person.
    """
    dropped = pl.concat([dropped_rows for _, dropped_rows in tasks.values()])
    return {
        "tasks": [_figures(name, items) for name, (items, _) in tasks.items()],
        "left_out": count_by(dropped, "task", "what", "reason"),
    }


def _figures(name: str, items: pl.DataFrame) -> dict[str, Any]:
    untied = items.filter(pl.col("truth") != "tie").with_columns(
        true=pl.when(pl.col("truth") == "A").then("option_a").otherwise("option_b")
    )
    has_value = pl.col("persona").list.eval(pl.element().struct.field("value").is_not_null()).list.sum()
    usual = None
    if items["kind"][0] == "opinion":
        counts = untied.group_by("context", "true").len().group_by("context").agg(pl.col("len").max())
        usual = int(counts["len"].sum())
    return {
        "task": name,
        "items": items.height,
        "ties": items.height - untied.height,
        "people": items["user"].n_unique(),
        "variables_known": round(float(items.select(has_value.mean()).item()), 4),
        "first": untied.filter(pl.col("truth") == "A").height,
        "usual": usual,
        "audit": audit_of(items),
    }


def audit_of(items: pl.DataFrame) -> dict[str, Any] | None:
    """Compute figures of what a scorer could exploit in a task's items, ties excluded; None if all are ties.

    See `pluralbench_release.audit.pair_figures`: the person's own option is the chosen one, lengths are in characters,
    and repeated text is text of the persona's values. In `near_duplicates`, `chosen` counts own texts of two people (an
    option that several people could choose counts once), and `personas` people who share a persona word for word.
    """
    first = pl.col("truth") == "A"
    pairs = items.filter(pl.col("truth") != "tie").with_columns(
        own=pl.when(first).then("option_a").otherwise("option_b"),
        other=pl.when(first).then("option_b").otherwise("option_a"),
        options=pl.concat_list("option_a", "option_b").list.sort(),
        values=pl.col("persona").list.eval(pl.element().struct.field("value").drop_nulls()).list.join(" "),
    )
    if pairs.is_empty():
        return None
    figures = pair_figures(pairs["own"].to_list(), pairs["other"].to_list(), pairs["values"].to_list(), length=len)
    texts = pairs.unique(["context", "options"], keep="first", maintain_order=True).unique(["user", "own"])
    people = pairs.select("user", "persona").unique()
    near = {
        "sides": figures["near_duplicates"]["sides"],
        "chosen": near_duplicates(texts["own"].to_list(), texts["user"].to_list()),
        "personas": int(people["persona"].is_duplicated().sum()),
    }
    return figures | {"near_duplicates": near}


def audits_of(figures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the audit figures by task, without tasks of which all items are ties."""
    return {entry["task"]: entry["audit"] for entry in figures["tasks"] if entry["audit"] is not None}


def figures_tables(figures: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Format the figures as tables by title, for the card and the terminal."""
    names = ["task", "items", "ties", "people", "known variables", "A", "most common"]
    tables = {TASKS: text_table(names, map(_row, figures["tasks"]))}
    audits = audits_of(figures)
    if audits:
        tables[AUDIT] = surface_table(["task"], [([task], audit) for task, audit in audits.items()], "persona")
        kinds = ("sides", "chosen", "personas")
        near = [(task, *(audit["near_duplicates"][kind] for kind in kinds)) for task, audit in audits.items()]
        tables[ALIKE] = text_table(["task", "options", "texts", "people"], near)
    people = figures.get("third_person", ())
    if people:
        tables[THIRD_PERSON] = figures_table(people)
    if figures["left_out"]:
        tables[DROPPED_ROWS] = entries_table(DROPPED_COLUMNS, figures["left_out"])
    return tables


def _row(entry: Mapping[str, Any]) -> list[object]:
    untied = entry["items"] - entry["ties"]
    shares = [
        None if count is None else f"{count / untied:.0%} of {untied:,}" if untied else "none"
        for count in (entry["first"], entry["usual"])
    ]
    counts = [entry[name] for name in ("task", "items", "ties", "people")]
    return [*counts, f"{entry['variables_known']:.1f}", *shares]
