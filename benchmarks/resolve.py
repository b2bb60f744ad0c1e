"""Measure how fast conflicting judgments become rankings, at the size of CheemsPreference, compared with other methods.

    uv run --group test python benchmarks/resolve.py

Generates 27,861 prompts of five or six responses with 332,370 judgments. Each round runs every job once, each in its
own process on two cores, in random order: ours from file to files, and resolving alone by ours, by Algorithm 1 as in
the paper, and by two methods to find strongly connected components. Prints the machine and two tables, and stops if
results differ.
"""

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

import typer
from machine import describe_machine
from pluralbench_runs import write_text
from resolving.protocol import FACTS, REPORT, Job, Made, Report
from translating.process import Cores, cores, main, measure, note
from translating.protocol import Measured

BENCHMARKS = Path(__file__).parent
WHOLE, OURS, LITERAL, COMPONENTS, BLOCK = "whole", "ours", "literal", "components", "block-diagonal"
TITLES = {
    OURS: "ours: `resolve`, graph by graph (ranks, order, conflicts)",
    LITERAL: "Algorithm 1 with `nx.find_cycle`, graph by graph (ranks)",
    COMPONENTS: "`nx.strongly_connected_components`, graph by graph",
    BLOCK: "`scipy.sparse.csgraph`, all graphs as one (components)",
}
SAME = ((OURS, LITERAL), (COMPONENTS, BLOCK))  # jobs that must have equal results
VERSIONS = ("networkx", "scipy", "polars")
TARGET_SECONDS, TARGET_BYTES = 30, 2e9  # of the whole process

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Round:
    """One run of a job: the resources of its process, and its report."""

    measured: Measured
    report: Report

    @property
    def step(self) -> float:
        """Seconds of resolving."""
        return self.report.seconds["resolve"]


@app.command(help=__doc__)
def command(
    prompts: Annotated[int, typer.Option(min=10, help="Number of prompts.")] = 27_861,
    repeats: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 5,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured process.")] = 2,
    without_peers: Annotated[bool, typer.Option("--without-peers", help="Measure only ours.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated data here and reuse it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the data and the order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures of all rounds here.")] = None,
) -> None:
    """Generate the data, run the rounds, print the tables."""
    where = cores(core_count)
    jobs = [WHOLE] if without_peers else [WHOLE, *TITLES]
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch) / "made").resolve()
        made = _generate(folder, prompts, seed, where)
        for name in jobs:  # warm up: modules are compiled, files are cached
            _run(name, folder, Path(scratch), where)
        rounds: dict[str, list[Round]] = {name: [] for name in jobs}
        for number in range(repeats):
            for name in Random(f"{seed} {number}").sample(jobs, len(jobs)):
                done = _run(name, folder, Path(scratch), where)
                note(f"round {number + 1} of {repeats}, {name}: {done.measured.wall:.1f} s, {done.step:.2f} s in it")
                rounds[name].append(done)
    _check(rounds)
    ran_on = describe_machine(VERSIONS, where.numbers)
    print(ran_on, end="\n\n")
    print(_describe(made), end="\n\n")
    print(_process_table(rounds[WHOLE], made))
    if not without_peers:
        print(f"\n{_comparison_table(rounds)}")
    if json_file:
        figures = {name: [asdict(entry) for entry in entries] for name, entries in rounds.items()}
        write_text(json_file, json.dumps({"machine": ran_on, "made": asdict(made), "rounds": figures}, indent=1))


def _generate(folder: Path, prompts: int, seed: int, where: Cores) -> Made:
    if (folder / FACTS).is_file():
        made = Made.read(folder / FACTS)
        if (made.prompts, made.seed) == (prompts, seed):
            return made
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} has other contents; use an empty folder for --keep.")
    note(f"generating {prompts:,} prompts")
    folder.mkdir(parents=True, exist_ok=True)
    code = "import sys; from pathlib import Path; from resolving.made import make; "
    code += "make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
    measure([sys.executable, "-c", code, str(folder), str(prompts), str(seed)], where, _environment(where))
    return Made.read(folder / FACTS)


def _run(name: str, folder: Path, scratch: Path, where: Cores) -> Round:
    with tempfile.TemporaryDirectory(dir=scratch) as out:
        job = json.dumps(asdict(Job(name, str(folder), out)))
        measured = measure([sys.executable, "-m", "resolving.worker", job], where, _environment(where))
        return Round(measured, Report(**json.loads((Path(out) / REPORT).read_text("utf-8"))))


def _environment(where: Cores) -> dict[str, str]:
    threads = str(len(where.numbers) or 2)
    return {"PYTHONPATH": str(BENCHMARKS), "OMP_NUM_THREADS": threads, "POLARS_MAX_THREADS": threads}


def _check(rounds: dict[str, list[Round]]) -> None:
    """Check that all rounds of a job have the same result, and so do the jobs of `SAME`."""
    digests = {name: {entry.report.digest for entry in entries} for name, entries in rounds.items()}
    for name, distinct in digests.items():
        if len(distinct) > 1:
            raise SystemExit(f"Rounds of {name} have different results.")
    for first, second in SAME:
        if first in digests and digests[first] != digests[second]:
            raise SystemExit(f"{TITLES[first]} and {TITLES[second]} have different results.")


def _describe(made: Made) -> str:
    return (
        f"{made.prompts:,} prompts with {made.responses:,} responses of {made.characters / made.responses:,.0f} "
        f"characters and {made.comparisons:,} judgments, {made.equal:,} of them equal; a file of "
        f"{made.bytes / 1e6:,.0f} MB."
    )


def _process_table(rounds: list[Round], made: Made) -> str:
    """Ours by steps: medians, with minimum and maximum of the whole process."""
    counts = rounds[0].report.counts
    walls, peak = [entry.measured.wall for entry in rounds], max(entry.measured.peak for entry in rounds)
    lines = ["| ours, from file to files | seconds |", "|---|---:|"]
    for step in rounds[0].report.seconds:
        seconds = median(entry.report.seconds[step] for entry in rounds)
        lines.append(f"| {step} | {seconds:.2f} |")
    lines += [
        f"| the whole process | {median(walls):.1f} ({min(walls):.1f}-{max(walls):.1f}) |",
        f"| its CPU seconds | {median(entry.measured.cpu for entry in rounds):.1f} |",
        f"| its peak memory | {peak / 1e9:.2f} GB |",
    ]
    within = max(walls) < TARGET_SECONDS and peak < TARGET_BYTES
    sentence = (
        f"Below {TARGET_SECONDS} s and {TARGET_BYTES / 1e9:.0f} GB in every round: {'yes' if within else 'NO'}. "
        f"{made.prompts / median(walls):,.0f} prompts a second. {counts['dropped']:,} prompts are dropped because all "
        f"their responses became equal; {counts['pairs']:,} pairs, {counts['balanced']:,} of them balanced in length."
    )
    return "\n".join(lines) + f"\n\n{sentence}"


def _comparison_table(rounds: dict[str, list[Round]]) -> str:
    """Resolving alone; a ratio is the median of the rounds' ratios."""
    lines = [
        "| resolving alone | seconds | graphs a second | peak memory | time relative to ours |",
        "|---|---:|---:|---:|---:|",
    ]
    prompts = rounds[WHOLE][0].report.counts["prompts"]
    for name, title in TITLES.items():
        steps = [entry.step for entry in rounds[name]]
        ratio = median(entry.step / ours.step for entry, ours in zip(rounds[name], rounds[OURS], strict=True))
        lines.append(
            f"| {title} | {median(steps):.2f} ({min(steps):.2f}-{max(steps):.2f}) | {prompts / median(steps):,.0f} "
            f"| {max(entry.measured.peak for entry in rounds[name]) / 1e9:.2f} GB | {ratio:.2f} |"
        )
    counts = rounds[OURS][0].report.counts
    return "\n".join(lines) + f"\n\nIn conflict: {counts['conflicts'] / counts['judgments']:.1%} of the judgments."


if __name__ == "__main__":
    main(app)
