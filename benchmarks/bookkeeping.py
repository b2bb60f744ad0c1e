"""Measure `pluralbench score` without its model: reading, journal, metrics, writing; and the verbs that read runs.

    uv run --group test python benchmarks/bookkeeping.py

Generates benchmarks of 66,000 items (for rankings, responses) in the formats that the evaluator reads, and scores each
with a function that costs nothing. Each round makes a run, resumes one that stopped before its metrics, and runs
`report`, `compare` and `show`, each in its own process, in random order. Prints the machine and a table per benchmark,
and stops if two rounds have different results.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

import typer
from keeping.protocol import FACTS, OTHER, PHASES, REPORT, RESUMED, SCORE, STOPPED, Job, Made, Report, Settings
from machine import describe_machine
from pluralbench_runs import write_text
from translating.process import Cores, cores, main, measure, note
from translating.protocol import Measured

BENCHMARKS = Path(__file__).parent
SHAPES = ("multilingual", "personalized", "pairs", "chinese")
VERSIONS = ("pluralbench", "polars", "pyarrow", "numpy", "orjson")
RUNS = {SCORE: "run", OTHER: "other", STOPPED: "resumed", RESUMED: "resumed"}
MAX_SECONDS, MAX_BYTES = 20, 1e9  # of everything except the model

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Round:
    """The resources of a process, and its report if it makes a run."""

    measured: Measured
    report: Report | None = None


Rounds = dict[str, list[Round]]


@app.command(help=__doc__)
def command(
    items: Annotated[int, typer.Option(min=480, help="Items of each benchmark.")] = 66_000,
    repeats: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 3,
    benchmark: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SHAPES)}; repeatable.")] = None,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured process.")] = 2,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated data here and reuse it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the data and the order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures of all rounds here.")] = None,
) -> None:
    """Generate the data, run the rounds, print the tables."""
    where, names = cores(core_count), benchmark or list(SHAPES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch) / "made").resolve()
        made = _generate(Settings(str(folder), items, names, seed))
        every: dict[str, Rounds] = {}
        for name in names:
            _process(OTHER, name, folder, Path(scratch), where)  # for `compare`, and to compile all modules
            steps = [*_commands(name, Path(scratch), made[name].shown), SCORE, RESUMED]
            _process(SCORE, name, folder, Path(scratch), where)
            every[name] = {step: [] for step in steps}
            for number in range(repeats):
                for step in Random(f"{seed} {number}").sample(steps, len(steps)):
                    done = _step(step, name, folder, Path(scratch), where, made[name].shown)
                    note(f"{name}, round {number + 1} of {repeats}, {step}: {done.measured.cpu:.1f} CPU s")
                    every[name][step].append(done)
            _check(every[name])
    ran_on = describe_machine(VERSIONS, where.numbers)
    print(ran_on)
    for name, rounds in every.items():
        print(f"\n{_shape(name, made[name])}\n\n{_table(rounds)}")
    if json_file:
        figures = {
            name: {step: [asdict(entry) for entry in entries] for step, entries in rounds.items()}
            for name, rounds in every.items()
        }
        write_text(json_file, json.dumps({"machine": ran_on, "rounds": figures}, indent=1) + "\n")


def _generate(settings: Settings) -> dict[str, Made]:
    folder = Path(settings.folder)
    facts = folder / FACTS
    if not (facts.is_file() and json.loads(facts.read_text("utf-8"))["settings"] == asdict(settings)):
        if folder.exists() and any(folder.iterdir()):
            raise SystemExit(f"{folder} has other contents; use an empty folder for --keep.")
        note(f"generating {settings.items:,} items of {', '.join(settings.benchmarks)}")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "keeping.made", json.dumps(asdict(settings))], cwd=BENCHMARKS, check=True)
    return {name: Made(**values) for name, values in json.loads(facts.read_text("utf-8"))["made"].items()}


def _commands(name: str, scratch: Path, shown: str) -> dict[str, list[str]]:
    """The commands that read runs, by their names in the table."""
    run, other = (str(_out(scratch, name, how)) for how in (SCORE, OTHER))
    return {"`report`": ["report", run], "`compare`": ["compare", run, other], "`show`": ["show", run, "--id", shown]}


def _step(step: str, name: str, folder: Path, scratch: Path, where: Cores, shown: str) -> Round:
    words = _commands(name, scratch, shown).get(step)
    if words is not None:
        program = str(Path(sys.executable).with_name("pluralbench"))
        return Round(measure([program, *words], where, _environment(scratch, where)))
    if step == RESUMED:
        _process(STOPPED, name, folder, scratch, where)
    return _process(step, name, folder, scratch, where)


def _process(how: str, name: str, folder: Path, scratch: Path, where: Cores) -> Round:
    out, report = _out(scratch, name, how), scratch / REPORT
    if how != RESUMED:
        shutil.rmtree(out, ignore_errors=True)
    job = json.dumps(asdict(Job(how, name, str(folder / name), str(out), str(report))))
    measured = measure([sys.executable, "-m", "keeping.worker", job], where, _environment(scratch, where))
    return Round(measured, None if how == STOPPED else Report.read(report))


def _out(scratch: Path, name: str, how: str) -> Path:
    return scratch / f"{name}-{RUNS[how]}"


def _environment(scratch: Path, where: Cores) -> dict[str, str]:
    """The environment of all processes: compiled modules are cached, the Hub is offline."""
    threads = str(len(where.numbers) or 2)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(BENCHMARKS),
        "OMP_NUM_THREADS": threads,
        "POLARS_MAX_THREADS": threads,
    }


def _check(rounds: Rounds) -> None:
    """Check that all runs have the same items and metrics, also resumed ones."""
    digests = [entry.report.digests for entries in rounds.values() for entry in entries if entry.report is not None]
    if any(other != digests[0] for other in digests):
        raise SystemExit("Two runs of the same scores have different results.")


def _shape(name: str, made: Made) -> str:
    return (
        f"{name}: {made.rows:,} items with {made.responses:,} responses, {made.characters / made.rows:,.0f} characters "
        f"per item, files of {made.bytes / 1e6:,.0f} MB."
    )


def _table(rounds: Rounds) -> str:
    """Medians over the rounds; peaks are the largest."""
    lines = ["| | CPU s | wall s | peak memory so far |", "|---|---:|---:|---:|"]
    reports = [entry.report for entry in rounds[SCORE] if entry.report is not None]
    for name in PHASES:
        phases = [report.phases[name] for report in reports]
        cpu, wall = [phase.cpu for phase in phases], [phase.wall for phase in phases]
        lines.append(_line(name, cpu, wall, [phase.peak for phase in phases]))
    for how, title in ((SCORE, "all of these"), (RESUMED, "the same for a run that stopped before its metrics")):
        runs = [entry.report.phases.values() for entry in rounds[how] if entry.report is not None]
        cpu, wall = ([sum(getattr(phase, which) for phase in run) for run in runs] for which in ("cpu", "wall"))
        lines.append(_line(title, cpu, wall, [max(phase.peak for phase in run) for run in runs]))
    for step, own_rounds in rounds.items():
        measured = [entry.measured for entry in own_rounds]
        title = {SCORE: "process of a run", RESUMED: "process of a resumed run"}.get(step, f"process of {step}")
        figures = ([m.cpu for m in measured], [m.wall for m in measured], [m.peak for m in measured])
        lines.append(_line(title, *figures))
    seconds = median(sum(phase.wall for phase in report.phases.values()) for report in reports)
    peak = max(entry.measured.peak for entry in rounds[SCORE])
    within = "yes" if seconds < MAX_SECONDS and peak < MAX_BYTES else "NO"
    return "\n".join(lines) + f"\n\nBelow {MAX_SECONDS} s of wall time and {MAX_BYTES / 1e9:.0f} GB: {within}."


def _line(title: str, cpu: list[float], wall: list[float], peak: list[int]) -> str:
    return f"| {title} | {median(cpu):.2f} | {median(wall):.2f} | {max(peak) / 1e9:.2f} GB |"


if __name__ == "__main__":
    main(app)
