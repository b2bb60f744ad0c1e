"""Terminal output of the verbs that precede the release."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import entries_table, print_table, text_table
from pluralbench_runs import plural, shell_command
from rich.console import Console

from build_chinese.annotated_files import AnnotationResult, RankedPrompts, next_sheets
from build_chinese.annotation.forms import LABEL_STUDIO, SHEETS
from build_chinese.figures import figures_tables, format_share
from build_chinese.lengths import draw_lengths
from build_chinese.task_folders import PreparedTasks


def print_tasks(console: Console, prepared: PreparedTasks, folder: Path) -> None:
    """Print the number of tasks, the tasks of each annotator, and the dropped responses."""
    tasks = prepared.tasks
    console.print(
        f"\n{folder}: {plural(tasks['task'].n_unique(), 'task')} on {plural(prepared.prompts.height, 'prompt')}, "
        f"{plural(tasks.height, 'assignment')}"
    )
    loads = tasks.group_by("annotator").agg(pl.len(), (pl.col("kind") == "check").sum().alias("checks"))
    names = ["annotator", "tasks", "check items"]
    print_table(console, "Annotators", text_table(names, loads.sort("annotator").iter_rows()))
    if prepared.dropped.height:
        dropped = entries_table(prepared.by_rule.columns, prepared.by_rule.to_dicts())
        print_table(console, f"Dropped, of {plural(prepared.responses, 'response')}", dropped)
    console.print(
        f"Next: import {folder / LABEL_STUDIO} into Label Studio, or hand out {folder / SHEETS}; then\n"
        f"  {shell_command('build-chinese', 'annotations', '--tasks', folder, '--out', 'annotated.jsonl')} "
        f"{shlex.quote(str(folder / SHEETS))}/*.csv"
    )


def print_annotated(console: Console, result: AnnotationResult, out: Path, report: Path) -> None:
    """Print how far annotators agree, the problems, and the next step."""
    pairs, alpha = result.agreement["pairs"], result.agreement["alpha"]["ordinal"]
    marks = result.annotations.marks
    console.print(f"\n{out}: {plural(marks.height, 'judgment')} on {plural(marks['prompt'].n_unique(), 'prompt')}")
    if pairs["compared"]:
        console.print(
            f"Of {pairs['compared']:,} pairs of judgments on the same two responses, "
            f"{format_share(pairs)} agree (95 % interval). Krippendorff's alpha (ordinal) is "
            f"{'undefined' if alpha is None else f'{alpha:.2f}'}."
        )
    both = result.consensus
    if both["double_marked"]:
        console.print(
            f"Several annotators of a task marked {plural(both['double_marked'], 'pair')} and agree on "
            f"{format_share(both['agreed'])}. Of the others, {both['discussion']:,} are settled by discussion, "
            f"{both['known answer']:,} by a known answer, {both['majority']:,} by a majority, and {both['open']:,} are "
            "open (their marks are left out)."
        )
    shares = ("agreeing", "checks_right", "first_preferred")
    rows = [
        (name, entry["tasks"], *(format_share(entry[share]) if share in entry else "none" for share in shares))
        for name, entry in result.agreement["annotators"].items()
    ]
    names = ["annotator", "tasks", "agrees with others", "check items right", "prefers the first response"]
    title = "Annotators (95 % intervals; first response: 50 % if its place does not matter)"
    print_table(console, title, text_table(names, rows))
    problems = result.annotations.problems.group_by("kind", maintain_order=True).len()
    if problems.height:
        print_table(console, f"Problems ({report})", text_table(["problem", "tasks"], problems.iter_rows()))
    _print_rounds(console, result, out)


def _print_rounds(console: Console, result: AnnotationResult, out: Path) -> None:
    """Print which annotators agree too little, what reviewers found, and what comes next."""
    for pair in result.rounds.pair_agreement:
        if not pair["enough"]:
            agreeing = f"{format_share(pair['agreeing'])} of {plural(pair['agreeing']['of'], 'mark')}"
            console.print(f"{' and '.join(pair['annotators'])} agree on {agreeing}, too few.")
    for stage, verdict in enumerate(result.rounds.reviewed, start=1):
        console.print(
            f"Reviewer {stage} marked {plural(verdict['tasks'], 'task')} and agrees on {format_share(verdict)} of "
            f"{plural(verdict['of'], 'mark')}. The reviewer's marks count."
        )
    sheets = next_sheets(result, out)
    for name, action in (
        ("again", "the same annotators mark these again, independently"),
        ("third", "a third annotator marks these, and the majority decides"),
    ):
        if sheets[name]:
            annotators = ", ".join(sorted(path.stem for path in sheets[name]))
            console.print(f"Next, {action}: {next(iter(sheets[name])).parent} ({annotators})")
    if sheets["again"] or sheets["third"]:
        console.print("Read each of these sheets with an --again of its own, beside the other files.")
        return
    for sheet, rows in sheets["review"].items():
        number = len(result.rounds.reviewed) + 1
        console.print(f"Nothing is open: reviewer {number} marks {plural(rows.height, 'task')} in {sheet} (--review).")
    console.print("Next:")
    for sheet in sheets["discuss"]:
        console.print(
            f"  let the annotators fill in {sheet} together, and read it with the other files; or skip the discussion:"
        )
    console.print(f"  {shell_command('build-chinese', 'resolve', out, '--out', 'ranked.jsonl')}")


def print_resolved(console: Console, annotated: Path, ranked: RankedPrompts, out: Path) -> None:
    """Print the conflict rate, the dropped prompts, and the next step."""
    figures, votes = ranked.figures, ranked.votes["conflicts"]
    ties = sum(len(set(row["rank"].values())) < len(row["rank"]) for row in ranked.rows)
    console.print(
        f"\n{out}: {plural(len(ranked.rows), 'prompt')} ranked, {ties:,} with responses that share a rank; conflict "
        f"rate {format_share(figures['conflicts'])} of {plural(figures['judgements'], 'judgment')}"
    )
    if votes["of"]:
        open_pairs = plural(ranked.votes["open"], "pair of responses", "pairs of responses")
        console.print(
            f"Of {plural(votes['of'], 'original vote')}, the ranks contradict {format_share(votes)}"
            + (f"; {open_pairs} left out of the ranks, on which annotators differ." if ranked.votes["open"] else ".")
        )
    for reason, count in ranked.dropped.group_by("reason").len().sort("reason").iter_rows():
        console.print(f"{plural(count, 'prompt')} dropped: {reason}.")
    # Of the annotated prompts, since a card counts conflicts and agreement over the dropped ones too.
    options = ("--annotated", annotated, "--prompts", "FILE", "--judge", "MODEL", "--reward-base", "FOLDER")
    console.print(f"Next:\n  {shell_command('build-chinese', 'preference', *options, torch=True)}")


def print_described(console: Console, figures: Mapping[str, Any], figure: Path | None) -> None:
    """Print the figures of published files, and draw them into `figure` if it is not None."""
    for title, table in figures_tables(figures).items():
        if table.height:
            print_table(console, title, table)
    if figure is not None and figures["annotators"]:
        draw_lengths(figures["annotators"], figure)
        console.print(f"Wrote {figure}")
    elif figure is not None:
        console.print(f"{figure} was not drawn: no file has annotations.")
