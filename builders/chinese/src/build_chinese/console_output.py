"""What the verbs before the release say on the terminal."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import print_table, text_table
from pluralbench_runs import shell_command
from rich.console import Console

from build_chinese.figures import figures_tables, shown
from build_chinese.lengths import draw_lengths
from build_chinese.steps import (
    LABEL_STUDIO,
    SHEETS,
    Annotated,
    Prepared,
    Ranked,
    discussion_sheet,
    review_sheet,
    round_folder,
    to_discuss,
)


def print_tasks(console: Console, made: Prepared, folder: Path) -> None:
    """Say what tasks there are, for whom, and what was dropped."""
    tasks = made.tasks
    distinct = tasks["task"].n_unique()
    more = f", given out {tasks.height:,} times" if tasks.height > distinct else ""
    console.print(f"\n{folder}: {distinct:,} tasks on {made.prompts.height:,} prompts{more}")
    loads = tasks.group_by("annotator").agg(pl.len(), (pl.col("kind") == "check").sum().alias("checks"))
    names = ["annotator", "tasks", "check items"]
    print_table(console, "Who annotates", text_table(names, loads.sort("annotator").iter_rows()))
    if made.dropped.height:
        print_table(console, f"What was dropped of {made.responses:,} responses", _drops(made.by_rule))
    console.print(
        f"Next: import {folder / LABEL_STUDIO} into Label Studio, or hand out {folder / SHEETS}; then\n"
        f"  {shell_command('build-chinese', 'annotations', '--tasks', folder, '--out', 'annotated.jsonl')} "
        f"{shlex.quote(str(folder / SHEETS))}/*.csv"
    )


def _drops(by_rule: pl.DataFrame) -> pl.DataFrame:
    """What each rule dropped, and in which categories, as texts."""
    told = by_rule.with_columns(told=pl.format("{} {}", "category", "responses"))
    rules = told.group_by("rule", maintain_order=True).agg(pl.col("responses").sum(), pl.col("told").str.join(", "))
    return text_table(["rule", "responses", "of which in"], rules.sort("responses", descending=True).iter_rows())


def print_annotated(console: Console, found: Annotated, out: Path, report: Path) -> None:
    """Say how far annotators agree, and what was wrong."""
    pairs, alpha = found.agreement["pairs"], found.agreement["alpha"]
    marks = found.annotations.marks
    console.print(f"\n{out}: {marks.height:,} judgements on {marks['prompt'].n_unique():,} prompts")
    if pairs["compared"]:
        level, low, high = alpha["ordinal"], pairs["low"], pairs["high"]
        interval = "too few prompts for an interval" if low is None else f"95 % interval {low:.1%} to {high:.1%}"
        console.print(
            f"Of {pairs['compared']:,} pairs of judgements on the same two responses {pairs['share']:.1%} are the same "
            f"({interval}); Krippendorff's alpha is "
            f"{'not defined' if level is None else f'{level:.2f}'} (ordinal)."
        )
    both = found.consensus
    if both["double_marked"]:
        left = "left out" if both["rule"] == "discussion" else "all counted"
        console.print(
            f"{both['double_marked']:,} pairs were marked by several annotators of a task, who agree on "
            f"{shown(both['agreed'])}. Of the others {both['discussion']:,} are settled by discussion, "
            f"{both['known answer']:,} by a known answer, {both['majority']:,} by a majority, and {both['open']:,} are "
            f"open: the marks on these are {left}."
        )
    rows = [
        (
            name,
            entry["tasks"],
            shown(entry["agreeing"]),
            shown(entry["checks_right"]) if "checks_right" in entry else "none",
            shown(entry["first_preferred"]),
        )
        for name, entry in found.agreement["annotators"].items()
    ]
    names = ["annotator", "tasks", "agrees with others", "check items right", "prefers what is shown first"]
    print_table(console, "Annotators (95 % intervals)", text_table(names, rows))
    problems = found.annotations.problems.group_by("kind", maintain_order=True).len()
    if problems.height:
        print_table(console, f"Problems ({report})", text_table(["problem", "tasks"], problems.iter_rows()))
    _tell_rounds(console, found, out)
    if to_discuss(found):
        console.print(
            f"Next: have the annotators fill in {discussion_sheet(out)} together, and read it with the other files;\n"
            "or, without it:"
        )
    else:
        console.print("Next:")
    console.print(f"  {shell_command('build-chinese', 'resolve', out, '--out', 'ranked.jsonl')}")


def _tell_rounds(console: Console, found: Annotated, out: Path) -> None:
    """Say who agrees too little, and what goes back to whom."""
    for pair in found.rounds.markers:
        if not pair["enough"]:
            one, other = pair["annotators"]
            console.print(
                f"{one} and {other} agree on {shown(pair['agreeing'])} of {pair['agreeing']['of']:,}, too little."
            )
    for name, frame, who in (
        ("again", found.rounds.again, "the same annotators mark these once more, each alone"),
        ("third", found.rounds.third, "a third annotator marks these, and two of three decide"),
    ):
        if frame.height:
            sheets = ", ".join(frame["annotator"].unique().sort())
            console.print(
                f"First, {who}: {round_folder(out, name)} ({sheets}); read them with --again, before any discussion."
            )
    for stage, verdict in enumerate(found.rounds.reviewed, start=1):
        console.print(
            f"Reviewer {stage} marked {verdict['tasks']:,} tasks and agrees on {shown(verdict)} of {verdict['of']:,} "
            "marks; the reviewer's count."
        )
    if found.rounds.review.height:
        console.print(
            f"Nothing is open: reviewer {len(found.rounds.reviewed) + 1} marks {found.rounds.review.height:,} tasks in "
            f"{review_sheet(out, found.rounds)} (--review)."
        )


def print_resolved(console: Console, ranked: Ranked, out: Path) -> None:
    """Say how much was in conflict, and what was dropped."""
    figures = ranked.figures
    ties = sum(len(set(row["rank"].values())) < len(row["rank"]) for row in ranked.rows)
    console.print(
        f"\n{out}: {len(ranked.rows):,} prompts ranked, {ties:,} with responses that share a rank; conflict rate "
        f"{shown(figures['conflicts'])} of {figures['judgements']:,} judgements"
    )
    for reason, count in ranked.dropped.group_by("reason").len().sort("reason").iter_rows():
        console.print(f"{count:,} prompt{'s were' if count > 1 else ' was'} dropped: {reason}.")
    asked = ("--annotated", out, "--prompts", "FILE", "--judge", "MODEL", "--reward-base", "FOLDER")
    console.print(f"Next:\n  {shell_command('build-chinese', 'preference', *asked, torch=True)}")


def print_described(console: Console, figures: Mapping[str, Any], figure: Path | None) -> None:
    """Say what published files have, and draw it where that is asked for."""
    for title, table in figures_tables(figures).items():
        if table.height:
            print_table(console, title, table)
    if figure is not None and figures["annotators"]:
        draw_lengths(figures["annotators"], figure)
        console.print(f"Wrote {figure}")
    elif figure is not None:
        console.print(f"No file has annotations, so there is nothing to draw into {figure}.")
