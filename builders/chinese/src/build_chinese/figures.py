"""The figures of a build: conflict rates, biases of annotators and judges, and what was left out and why."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_release import share_text, text_table

from build_chinese.audit import audit_tables
from build_chinese.judge_prompts import PROMPT_VERSION
from build_chinese.lengths import LENGTHS, SIZES, length_figures, length_table, size_figures, size_table, strict_marks
from build_chinese.preference_set import Voted
from build_chinese.preferences import resolve
from build_chinese.rankings import Row, published_pairs, with_annotations

PEOPLE = "people"
JUDGES = "Conflict rate, and how often the longer or the first response wins (95 % intervals)"


def annotator_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """How consistent annotations are, and what biases they have.

    rows: with annotations in the order in which the two responses were shown. conflicts: annotations that the ranks do
    not keep, those of dropped prompts included (table 5; the paper does not say how it counts ties). longer, first: of
    the annotations that prefer one response, how often it is the longer one (in characters; pairs of equal length left
    out), and how often the one that was shown first.
    """
    strict = strict_marks(rows)
    judgements = sum(len(row["annotations"]) for row in rows)
    longer = [(difference > 0) == first for difference, first in strict if difference]
    return {
        "prompts": len(rows),
        "judgements": judgements,
        "equal": judgements - len(strict),
        "conflicts": share_of(sum(resolve(row["annotations"]).conflicts for row in rows), judgements),
        "longer": share_of(sum(longer), len(longer)),
        "first": share_of(sum(first for _, first in strict), len(strict)),
        "by_length": length_figures(strict),
    }


def figures_of(people: Mapping[str, Sequence[Row]], dropped: pl.DataFrame, voted: Voted | None) -> dict[str, Any]:
    """The figures of a release, JSON. people: annotated rows by config. dropped: those that were left out."""
    figures: dict[str, Any] = {
        "annotators": [
            {"annotator": PEOPLE, "config": config} | annotator_figures(rows) for config, rows in people.items() if rows
        ],
        "dropped": _counted(dropped, PEOPLE),
        "preference": None,
    }
    if voted is not None:
        made, rows = voted.made, with_annotations(voted.rows, voted.votes.drop_nulls("mark"))
        cut = 0 if voted.rewards is None else voted.rewards.filter(pl.col("cut") > 0).height
        figures["annotators"].append({"annotator": voted.judge, "config": "preference"} | annotator_figures(rows))
        figures["dropped"] += _counted(made.dropped, voted.judge)
        pairs = annotator_figures(made.rows)
        figures["preference"] = {
            "prompt_version": PROMPT_VERSION,
            "votes_dropped": made.votes,
            "steps": made.steps,
            "longer": pairs["longer"],
            "responses_cut_for_the_reward_model": cut,
        }
    return figures


def file_figures(files: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """What tables 1 and 5 and figure 15 of the paper have of published rows, by file, as `figures_tables` takes it.

    Of a file whose marks are all "1" the better response is written first, so that its place says nothing. Raises
    `SourceError` for a rank that is none.
    """
    sizes = [
        {"annotator": "", "config": name} | size_figures(rows, [published_pairs(row, name) for row in rows])
        for name, rows in files.items()
    ]
    annotators = [
        {"annotator": "", "config": name} | annotator_figures(rows)
        for name, rows in files.items()
        if any(row["annotations"] for row in rows)
    ]
    for entry in annotators:
        if entry["first"]["count"] == entry["first"]["of"]:
            entry["first"] = share_of(0, 0)
    return {"sizes": sizes, "annotators": annotators, "dropped": [], "preference": None}


def figures_tables(figures: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The figures as small tables with a title each, for the card and the terminal."""
    found: dict[str, pl.DataFrame] = {}
    annotators = figures["annotators"]
    if figures.get("sizes"):
        found[SIZES] = size_table(figures["sizes"])
    names = ["annotator", "config", "prompts", "marks", "equal", "conflicts", "longer wins", "first wins"]
    counts, shares = ("annotator", "config", "prompts", "judgements", "equal"), ("conflicts", "longer", "first")
    rows = [[*(entry[name] for name in counts), *(shown(entry[name]) for name in shares)] for entry in annotators]
    judges = text_table(names, rows)
    found[JUDGES] = judges if any(judges["annotator"]) or judges.is_empty() else judges.drop("annotator")
    if annotators:
        found[LENGTHS] = length_table(annotators)
    made = figures["preference"]
    if made is not None:
        found["Pairs of the judge, step by step"] = text_table(["after", "pairs"], made["steps"].items())
        found["Votes that were left out"] = text_table(["reason", "votes"], made["votes_dropped"].items())
    dropped = [(entry["annotated_by"], entry["reason"], entry["count"]) for entry in figures["dropped"]]
    if dropped:
        found["Prompts that were left out"] = text_table(["annotated by", "reason", "prompts"], dropped)
    return found | audit_tables(figures.get("audit", ()), figures.get("prompts", {}))


def shown(entry: Mapping[str, Any]) -> str:
    """A share as text, with its interval."""
    return share_text(entry, 1, of=False)


def _counted(dropped: pl.DataFrame, annotated_by: str) -> list[dict[str, Any]]:
    counts = dropped.group_by("reason").len("count").sort("reason")
    return [{"annotated_by": annotated_by} | row for row in counts.to_dicts()]
