"""How long `pluralbench score` takes beside its model: reading, journal, metrics, writing; and the verbs on its runs.

    uv run --group test python benchmarks/bookkeeping.py

Makes benchmarks of 66,000 items (of rankings, responses) in the shapes that the evaluator reads, and scores each with
a function that costs nothing. Each round makes a run, goes on with one that stopped before its metrics, and runs
`report`, `compare` and `show` on what is there, each in a process of its own, in an order drawn anew. Prints
the machine and a table for each benchmark, and stops where two rounds differ in what they found.
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
from keeping.protocol import FACTS, OTHER, PHASES, RESUMED, SCORE, STOPPED, Job, Made, Said, Settings
from machine import machine
from translating.process import Cores, cores, main, measure, note
from translating.protocol import Measured

BENCHMARKS = Path(__file__).parent
SHAPES = ("multilingual", "personalized", "pairs", "chinese")
VERSIONS = ("pluralbench", "polars", "pyarrow", "numpy", "orjson")
RUNS = {SCORE: "run", OTHER: "other", STOPPED: "resumed", RESUMED: "resumed"}
SECONDS, ROOM = 20, 1e9  # that all beside the model may take

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Round:
    """What a process took, and of one that makes a run what it says."""

    measured: Measured
    said: Said | None = None


Rounds = dict[str, list[Round]]


@app.command(help=__doc__)
def command(
    items: Annotated[int, typer.Option(min=480, help="Of each benchmark.")] = 66_000,
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 3,
    benchmark: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SHAPES)}; repeatable.")] = None,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured process.")] = 2,
    keep: Annotated[Path | None, typer.Option(help="Keep what was made here, and use it if it is there.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is made, and of the order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every figure of every round here.")] = None,
) -> None:
    """Make the input, run the rounds, print the tables."""
    where, names = cores(core_count), benchmark or list(SHAPES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch) / "made").resolve()
        made = _made(Settings(str(folder), items, names, seed))
        every: dict[str, Rounds] = {}
        for name in names:
            _process(OTHER, name, folder, Path(scratch), where)  # for `compare`; and every module is compiled
            steps = [*(one for one in _commands(name, Path(scratch), made[name].shown)), SCORE, RESUMED]
            _process(SCORE, name, folder, Path(scratch), where)
            every[name] = {step: [] for step in steps}
            for number in range(repeats):
                for step in Random(f"{seed} {number}").sample(steps, len(steps)):
                    done = _step(step, name, folder, Path(scratch), where, made[name].shown)
                    note(f"{name}, round {number + 1} of {repeats}, {step}: {done.measured.cpu:.1f} CPU s")
                    every[name][step].append(done)
            _check(every[name])
    ran_on = machine(VERSIONS, where.numbers)
    print(ran_on)
    for name, rounds in every.items():
        print(f"\n{_shape(name, made[name])}\n\n{_table(rounds)}")
    if json_file:
        said = {
            name: {step: [asdict(one) for one in own] for step, own in rounds.items()} for name, rounds in every.items()
        }
        json_file.write_text(json.dumps({"machine": ran_on, "rounds": said}, indent=1) + "\n", "utf-8")


def _made(settings: Settings) -> dict[str, Made]:
    folder = Path(settings.folder)
    facts = folder / FACTS
    if not (facts.is_file() and json.loads(facts.read_text("utf-8"))["settings"] == asdict(settings)):
        if folder.exists() and any(folder.iterdir()):
            raise SystemExit(f"{folder} holds something else; give an empty --keep.")
        note(f"making {settings.items:,} items of {', '.join(settings.benchmarks)}")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "keeping.made", json.dumps(asdict(settings))], cwd=BENCHMARKS, check=True)
    return {name: Made(**one) for name, one in json.loads(facts.read_text("utf-8"))["made"].items()}


def _commands(name: str, scratch: Path, shown: str) -> dict[str, list[str]]:
    """The verbs that read runs, by what they are called in the table."""
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
    out, said = _out(scratch, name, how), scratch / "said.json"
    if how != RESUMED:
        shutil.rmtree(out, ignore_errors=True)
    job = json.dumps(asdict(Job(how, name, str(folder / name), str(out), str(said))))
    measured = measure([sys.executable, "-m", "keeping.worker", job], where, _environment(scratch, where))
    return Round(measured, None if how == STOPPED else Said.read(said))


def _out(scratch: Path, name: str, how: str) -> Path:
    return scratch / f"{name}-{RUNS[how]}"


def _environment(scratch: Path, where: Cores) -> dict[str, str]:
    """The same for all: compiled modules are kept, nothing is asked of the Hub."""
    threads = str(len(where.numbers) or 2)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(BENCHMARKS),
        "OMP_NUM_THREADS": threads,
        "POLARS_MAX_THREADS": threads,
    }


def _check(rounds: Rounds) -> None:
    """Every run has the same items and metrics, also one that was stopped."""
    found = [one.said.found for own in rounds.values() for one in own if one.said is not None]
    if any(one != found[0] for one in found):
        raise SystemExit("Two runs of the same scores differ in what they found.")


def _shape(name: str, made: Made) -> str:
    return (
        f"{name}: {made.rows:,} items with {made.responses:,} responses, {made.characters / made.rows:,.0f} characters "
        f"an item, files of {made.bytes / 1e6:,.0f} MB."
    )


def _table(rounds: Rounds) -> str:
    """Medians over the rounds; peaks are the largest."""
    lines = ["| | CPU s | wall s | peak memory until then |", "|---|---:|---:|---:|"]
    said = [one.said for one in rounds[SCORE] if one.said is not None]
    for phase in PHASES:
        own = [one.phases[phase] for one in said]
        lines.append(_line(phase, [one.cpu for one in own], [one.wall for one in own], [one.peak for one in own]))
    for how, title in ((SCORE, "all of these"), (RESUMED, "the same, of a run that stopped before its metrics")):
        runs = [one.said.phases.values() for one in rounds[how] if one.said is not None]
        cpu, wall = ([sum(getattr(phase, which) for phase in run) for run in runs] for which in ("cpu", "wall"))
        lines.append(_line(title, cpu, wall, [max(phase.peak for phase in run) for run in runs]))
    for step, own_rounds in rounds.items():
        measured = [one.measured for one in own_rounds]
        title = {SCORE: "the process of a run", RESUMED: "the process of one that goes on"}.get(
            step, f"{step}, its process"
        )
        took = ([one.cpu for one in measured], [one.wall for one in measured], [one.peak for one in measured])
        lines.append(_line(title, *took))
    seconds = median(sum(phase.wall for phase in one.phases.values()) for one in said)
    peak = max(one.measured.peak for one in rounds[SCORE])
    kept = "yes" if seconds < SECONDS and peak < ROOM else "NO"
    return "\n".join(lines) + f"\n\nUnder {SECONDS} s by the clock and {ROOM / 1e9:.0f} GB: {kept}."


def _line(title: str, cpu: list[float], wall: list[float], peak: list[int]) -> str:
    return f"| {title} | {median(cpu):.2f} | {median(wall):.2f} | {max(peak) / 1e9:.2f} GB |"


if __name__ == "__main__":
    main(app)
