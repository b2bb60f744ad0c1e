"""How fast conflicting judgements become rankings, at the size of CheemsPreference, beside other ways to do it.

    uv run --group test python benchmarks/resolve.py

Makes 27,861 prompts of five or six responses with 332,370 judgements. Then each round runs every job once, each in a
process of its own on two cores, in an order drawn anew: ours from file to files, and the step in the middle alone by
ours, by Algorithm 1 as the paper writes it, and by two ways to find strongly connected components. Prints the machine
and two tables, and stops where results differ.
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
from machine import machine
from resolving.protocol import FACTS, SAID, Job, Made, Said
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
SAME = ((OURS, LITERAL), (COMPONENTS, BLOCK))  # whose results have to agree
VERSIONS = ("networkx", "scipy", "polars")
BUDGET, ROOM = 30, 2e9  # seconds and bytes that the whole may take

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Round:
    """A job, done once: what the system says of its process, and what itself says."""

    measured: Measured
    said: Said

    @property
    def step(self) -> float:
        """Seconds of the step that is compared."""
        return self.said.seconds["resolve"]


@app.command(help=__doc__)
def command(
    prompts: Annotated[int, typer.Option(min=10, help="How many are made.")] = 27_861,
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 5,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured process.")] = 2,
    without_peers: Annotated[bool, typer.Option("--without-peers", help="Measure ours alone.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep what was made here, and use it if it is there.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is made, and of the order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every figure of every round here.")] = None,
) -> None:
    """Make the input, run the rounds, print the tables."""
    where = cores(core_count)
    jobs = [WHOLE] if without_peers else [WHOLE, *TITLES]
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch) / "made").resolve()
        made = _made(folder, prompts, seed, where)
        for name in jobs:  # once, so that every module is compiled and the files are in memory
            _run(name, folder, Path(scratch), where)
        rounds: dict[str, list[Round]] = {name: [] for name in jobs}
        for number in range(repeats):
            for name in Random(f"{seed} {number}").sample(jobs, len(jobs)):
                done = _run(name, folder, Path(scratch), where)
                note(f"round {number + 1} of {repeats}, {name}: {done.measured.wall:.1f} s, {done.step:.2f} s in it")
                rounds[name].append(done)
    _check(rounds)
    ran_on = machine(VERSIONS, where.numbers)
    print(ran_on, end="\n\n")
    print(_shape(made), end="\n\n")
    print(_whole(rounds[WHOLE], made))
    if not without_peers:
        print(f"\n{_compared(rounds)}")
    if json_file:
        every = {name: [asdict(one) for one in own] for name, own in rounds.items()}
        json_file.write_text(json.dumps({"machine": ran_on, "made": asdict(made), "rounds": every}, indent=1), "utf-8")


def _made(folder: Path, prompts: int, seed: int, where: Cores) -> Made:
    if (folder / FACTS).is_file():
        made = Made.read(folder / FACTS)
        if (made.prompts, made.seed) == (prompts, seed):
            return made
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} holds something else; give an empty --keep.")
    note(f"making {prompts:,} prompts")
    folder.mkdir(parents=True, exist_ok=True)
    code = "import sys; from pathlib import Path; from resolving.made import make; "
    code += "make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
    measure([sys.executable, "-c", code, str(folder), str(prompts), str(seed)], where, _environment(where))
    return Made.read(folder / FACTS)


def _run(name: str, folder: Path, scratch: Path, where: Cores) -> Round:
    with tempfile.TemporaryDirectory(dir=scratch) as out:
        job = json.dumps(asdict(Job(name, str(folder), out)))
        measured = measure([sys.executable, "-m", "resolving.worker", job], where, _environment(where))
        return Round(measured, Said(**json.loads((Path(out) / SAID).read_text("utf-8"))))


def _environment(where: Cores) -> dict[str, str]:
    threads = str(len(where.numbers) or 2)
    return {"PYTHONPATH": str(BENCHMARKS), "OMP_NUM_THREADS": threads, "POLARS_MAX_THREADS": threads}


def _check(rounds: dict[str, list[Round]]) -> None:
    """Every round of a job finds the same, and so do two ways to the same thing."""
    digests = {name: {one.said.digest for one in own} for name, own in rounds.items()}
    for name, found in digests.items():
        if len(found) > 1:
            raise SystemExit(f"Rounds of {name} differ in what they found.")
    for one, other in SAME:
        if one in digests and digests[one] != digests[other]:
            raise SystemExit(f"{TITLES[one]} and {TITLES[other]} differ in what they found.")


def _shape(made: Made) -> str:
    return (
        f"{made.prompts:,} prompts with {made.responses:,} responses of {made.characters / made.responses:,.0f} "
        f"characters and {made.comparisons:,} judgements, {made.equal:,} of them equal; a file of "
        f"{made.bytes / 1e6:,.0f} MB."
    )


def _whole(rounds: list[Round], made: Made) -> str:
    """Ours, by steps; medians, with the least and the most of the whole."""
    found = rounds[0].said.found
    walls, peak = [one.measured.wall for one in rounds], max(one.measured.peak for one in rounds)
    lines = ["| ours, from file to files | seconds |", "|---|---:|"]
    lines += [f"| {name} | {median(one.said.seconds[name] for one in rounds):.2f} |" for name in rounds[0].said.seconds]
    lines += [
        f"| the whole process | {median(walls):.1f} ({min(walls):.1f}-{max(walls):.1f}) |",
        f"| its CPU seconds | {median(one.measured.cpu for one in rounds):.1f} |",
        f"| its peak memory | {peak / 1e9:.2f} GB |",
    ]
    kept = max(walls) < BUDGET and peak < ROOM
    sentence = (
        f"Under {BUDGET} s and {ROOM / 1e9:.0f} GB in every round: {'yes' if kept else 'NO'}. "
        f"{made.prompts / median(walls):,.0f} prompts a second. {found['dropped']:,} prompts are dropped because all "
        f"their responses became equal; {found['pairs']:,} pairs, {found['balanced']:,} of them balanced in length."
    )
    return "\n".join(lines) + f"\n\n{sentence}"


def _compared(rounds: dict[str, list[Round]]) -> str:
    """The step in the middle; a ratio is the median of the rounds' ratios."""
    lines = [
        "| the step alone | seconds | graphs a second | peak memory | time against ours |",
        "|---|---:|---:|---:|---:|",
    ]
    made = rounds[WHOLE][0].said.found["prompts"]
    for name, title in TITLES.items():
        steps = [one.step for one in rounds[name]]
        ratio = median(one.step / ours.step for one, ours in zip(rounds[name], rounds[OURS], strict=True))
        lines.append(
            f"| {title} | {median(steps):.2f} ({min(steps):.2f}-{max(steps):.2f}) | {made / median(steps):,.0f} "
            f"| {max(one.measured.peak for one in rounds[name]) / 1e9:.2f} GB | {ratio:.2f} |"
        )
    found = rounds[OURS][0].said.found
    return "\n".join(lines) + f"\n\nIn conflict: {found['conflicts'] / found['judgements']:.1%} of the judgements."


if __name__ == "__main__":
    main(app)
