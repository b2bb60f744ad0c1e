"""What a build amounts to in numbers: items, ties, what a judge could go by without the persona, what was left out."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from pluralbench_release import text_table
from pluralbench_release.audit import PairLimits, check_limits, limit_values, near_duplicates, pair_figures, wins_text

from build_persona_judge.labels.results import LabelFigures, figures_table

TASKS = "Items, and of those that are no tie, how often the truth is A, and the usual answer"
AUDIT = "How often a scorer is right that takes the longer option, or the one that names more of the persona"
ALIKE = "Near-duplicates: items whose options are, texts of two people, and people with one persona"
THIRD_PERSON = "Third-person labels: people who answered for others (95 % intervals over people)"
LEFT_OUT = "Left out"
LEFT = ("task", "what", "reason", "count")


def figures_of(tasks: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]) -> dict[str, Any]:
    """The figures of a release, JSON. tasks: the items of each task, and what was left out of it.

    first: items that are no tie whose truth is A. usual: of the items of an opinion task, how many have the truth that
    is most common for their question, which is what a judge gets who knows the public and not the person. audit: see
    `audit_of`.
    """
    dropped = pl.concat([gone for _, gone in tasks.values()])
    return {
        "tasks": [_figures(name, items) for name, (items, _) in tasks.items()],
        "left_out": dropped.group_by("task", "what", "reason").len("count").sort("task", "what", "reason").to_dicts(),
    }


def _figures(name: str, items: pl.DataFrame) -> dict[str, Any]:
    untied = items.filter(pl.col("truth") != "tie").with_columns(
        true=pl.when(pl.col("truth") == "A").then("option_a").otherwise("option_b"),
    )
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
        "usual": usual,
        "audit": audit_of(items),
    }


def audit_of(items: pl.DataFrame) -> dict[str, Any] | None:
    """What a scorer could go by in the items of a task that are no tie, JSON; None where all are ties.

    As `pluralbench_release.audit.pair_figures` has it, the person's own option being the chosen one: its length is in
    characters, and what it could repeat are the values of the persona. Of its near-duplicates, `chosen` are the own
    texts of two people, where an option that several people could choose counts once; `personas` are people whose
    persona another one has, word for word.
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
    found = pair_figures(pairs["own"].to_list(), pairs["other"].to_list(), pairs["values"].to_list(), length=len)
    texts = pairs.unique(["context", "options"], keep="first", maintain_order=True).unique(["user", "own"])
    people = pairs.select("user", "persona").unique()
    near = {
        "sides": found["near_duplicates"]["sides"],
        "chosen": near_duplicates(texts["own"].to_list(), texts["user"].to_list()),
        "personas": int(people["persona"].is_duplicated().sum()),
    }
    return found | {"near_duplicates": near}


def check_audits(figures: Mapping[str, Any], limits: PairLimits) -> None:
    """Raise `AuditFailed` naming the first task that breaks limits, with all that it breaks."""
    for entry in figures["tasks"]:
        if entry["audit"] is not None:
            check_limits(limit_values(entry["audit"]), limits, f"The audit of {entry['task']}")


def figures_tables(figures: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The figures as small tables with a title each, for the card and the terminal."""
    names = ["task", "items", "ties", "people", "variables known", "A", "usual"]
    found = {TASKS: text_table(names, map(_row, figures["tasks"]))}
    audits = [(entry["task"], entry["audit"]) for entry in figures["tasks"] if entry["audit"] is not None]
    if audits:
        right = [(task, wins_text(audit["longer"]), wins_text(audit["more_overlap"])) for task, audit in audits]
        found[AUDIT] = text_table(["task", "more characters", "more of the persona"], right)
        kinds = ("sides", "chosen", "personas")
        near = [(task, *(audit["near_duplicates"][kind] for kind in kinds)) for task, audit in audits]
        found[ALIKE] = text_table(["task", "options", "texts", "people"], near)
    people = [LabelFigures(**entry) for entry in figures.get("third_person", ())]
    if people:
        found[THIRD_PERSON] = figures_table(people)
    left = [[entry[name] for name in LEFT] for entry in figures["left_out"]]
    if left:
        found[LEFT_OUT] = text_table(LEFT, left)
    return found


def _row(entry: Mapping[str, Any]) -> list[object]:
    untied = entry["items"] - entry["ties"]
    right = [None if entry[name] is None else _of(entry[name], untied) for name in ("first", "usual")]
    counts = [entry[name] for name in ("task", "items", "ties", "people")]
    return [*counts, f"{entry['variables_known']:.1f}", *right]


def _of(count: int, total: int) -> str:
    return f"{count / total:.0%} of {total:,}" if total else "none"
