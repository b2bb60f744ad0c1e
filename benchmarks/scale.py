"""Measure how time and memory grow from 10 thousand to 1 million pairs and calls, without a model.

    uv run --group test python benchmarks/scale.py               # half an hour, 5 GB of disk
    uv run --group test python benchmarks/scale.py --rows 10000 --step "ledger: resume" --step score

Each step runs in its own process on generated texts: validation, digests, releases, scoring with a function that costs
nothing, metrics with intervals, reports, a leaderboard's checks, and the ledger of recorded calls. CPU and wall seconds
are those of the step without imports; peak memory is that of the process. Growth is the exponent between the last two
sizes: 1 is linear, 2 quadratic. Prints the machine and a table.
"""

import json
import math
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from machine import describe_machine
from pluralbench_runs import write_text
from scaling.protocol import STEPS, Job, Took
from translating.process import Cores, cores, main, measure, note

BENCHMARKS = Path(__file__).parent
VERSIONS = ("pluralbench", "polars", "pyarrow", "numpy", "orjson")
SIZES = [10_000, 100_000, 1_000_000]
MAX_BYTES = 4e9  # of a step
RESUME, MAX_SECONDS = "ledger: resume", 2  # a step with a time limit
LINEAR = 1.15  # largest exponent that counts as linear, because single runs vary
NEEDS = {
    "verify": "release",
    "metrics": "score",
    "metrics, 24 languages": "score, 24 languages",
    "report": "score",
    "submit": "score",
    "ledger: resume": "ledger: record",
    "ledger: find": "ledger: record",
    "ledger: export": "ledger: record",
    "ledger: import": "ledger: export",
    "ledger: import SQLite": "ledger: record",
}
Taken = dict[str, dict[int, Took]]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rows: Annotated[list[int] | None, typer.Option(min=48, help="Pairs, and calls of the ledger; repeatable.")] = None,
    step: Annotated[list[str] | None, typer.Option(help=f"One of: {'; '.join(STEPS)}. Repeatable.")] = None,
    characters: Annotated[
        int, typer.Option(min=60, help="Characters per pair, about: prompt and both responses.")
    ] = 600,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured process.")] = 1,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated data here and reuse it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
) -> None:
    """Generate the data, run the steps, print the table."""
    unknown = [name for name in step or [] if name not in STEPS]
    if unknown:
        raise typer.BadParameter(f"unknown step {unknown[0]!r}", param_hint="--step")
    wanted = [name for name in STEPS if name in (step or STEPS)]
    where, sizes = cores(core_count), sorted(rows or SIZES)
    taken: Taken = {name: {} for name in wanted}
    with tempfile.TemporaryDirectory() as scratch:
        for many in sizes:
            folder = (keep or Path(scratch)).resolve() / str(many)
            _generate(folder, many, characters, seed, where)
            for name in _with_needed(wanted, folder):
                took = _measure(Job(name, many, characters, str(folder), str(folder / "report.json")), where)
                note(f"{many:,}, {name}: {took.cpu:.2f} CPU s, {took.peak / 1e9:.2f} GB")
                if name in taken:
                    taken[name][many] = took
            if keep is None:
                shutil.rmtree(folder)
    ran_on = describe_machine(VERSIONS, where.numbers)
    print(f"{ran_on}\n\nPairs of about {characters:,} characters.\n\n{table(taken)}\n\n{verdict(taken)}")
    if json_file:
        figures = {name: {many: asdict(took) for many, took in own.items()} for name, own in taken.items()}
        write_text(json_file, json.dumps({"machine": ran_on, "steps": figures}, indent=1) + "\n")


def _generate(folder: Path, many: int, characters: int, seed: int, where: Cores) -> None:
    """Generate the pairs unless they exist."""
    marker = folder / "made.json"
    settings = {"rows": many, "characters": characters, "seed": seed}
    if marker.is_file() and json.loads(marker.read_text("utf-8")) == settings:
        return
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} has other contents; use an empty folder for --keep.")
    note(f"generating {many:,} pairs")
    call = f"make(Path({str(folder)!r}), {many}, {characters}, {seed})"
    program = f"from pathlib import Path; from scaling.made import make; {call}"
    measure([sys.executable, "-c", program], where, _environment(where))
    marker.write_text(json.dumps(settings), "utf-8")


def _with_needed(wanted: list[str], folder: Path) -> list[str]:
    """The steps, and those whose files they read if these are missing."""
    every = set(wanted)
    for _ in NEEDS:
        every |= {NEEDS[name] for name in every if name in NEEDS and not (folder / f"done-{NEEDS[name]}").exists()}
    return [name for name in STEPS if name in every]


def _measure(job: Job, where: Cores) -> Took:
    measure([sys.executable, "-m", "scaling.steps", json.dumps(asdict(job))], where, _environment(where))
    Path(job.folder, f"done-{job.step}").touch()
    return Took.read(Path(job.report))


def _environment(where: Cores) -> dict[str, str]:
    threads = str(len(where.numbers) or 1)
    return {
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(BENCHMARKS),
        "OMP_NUM_THREADS": threads,
        "POLARS_MAX_THREADS": threads,
    }


def table(taken: Taken) -> str:
    """Format CPU seconds and peak memory by step and size, the growth of the seconds, and bytes written per row."""
    sizes = sorted({many for own in taken.values() for many in own})
    lines = [
        f"| step | {' | '.join(f'{many:,}' for many in sizes)} | growth |" + " GB |" * len(sizes) + " B a row |",
        "|---|" + "---:|" * (2 * len(sizes) + 2),
    ]
    for name, own in taken.items():
        cpu = [f"{own[many].cpu:.2f}" for many in sizes]
        peaks = [f"{own[many].peak / 1e9:.2f}" for many in sizes]
        exponent = growth(own)
        grows = "" if exponent is None else f"{exponent:.2f}"
        written = own[sizes[-1]].files
        size = f"{written / sizes[-1]:,.0f}" if written else ""
        lines.append(f"| {name}: {STEPS[name]} | {' | '.join(cpu)} | {grows} | {' | '.join(peaks)} | {size} |")
    return "\n".join(lines)


def growth(own: dict[int, Took]) -> float | None:
    """Compute the exponent of the CPU seconds between the last two sizes; None below 0.05 s."""
    *_, small, large = [0, *sorted(own)]
    if not small or own[small].cpu < 0.05:
        return None
    return math.log(own[large].cpu / own[small].cpu) / math.log(large / small)


def verdict(taken: Taken) -> str:
    """List the steps that grow faster than linearly, use too much memory, or take too long."""
    faster = [name for name, own in taken.items() if (growth(own) or 0) > LINEAR]
    large = [name for name, own in taken.items() if any(took.peak > MAX_BYTES for took in own.values())]
    slow = [
        name for name, own in taken.items() if name == RESUME and any(took.cpu > MAX_SECONDS for took in own.values())
    ]
    return "\n".join(
        f"{what}: {', '.join(names) or 'none'}."
        for what, names in (
            ("Grow faster than linearly", faster),
            (f"Take more than {MAX_BYTES / 1e9:.0f} GB", large),
            (f"Exceed their limit of {MAX_SECONDS} s", slow),
        )
    )


if __name__ == "__main__":
    main(app)
