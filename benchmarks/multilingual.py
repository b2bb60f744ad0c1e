"""How fast the multilingual builder makes a benchmark out of recorded calls, beside `datasets.map`.

    uv run --group test python benchmarks/multilingual.py

Makes English pairs in RewardBench's shape, their translations into 23 languages, and the ledger of the calls that
Google's translator would have answered so. Then each round runs `build-multilingual --replay` and what somebody does
who has the original scripts, each in a process of its own on two cores, in an order drawn anew. Prints the machine and
a table, and how near the count of messages to the translator is to the least possible.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import asdict
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

import typer
from machine import machine
from translating.process import Cores, cores, main, measure, note
from translating.protocol import FACTS, LEDGER, RECIPE, SQLITE, Measured, Packing, Peer, Prepared, Settings

BENCHMARKS = Path(__file__).parent
SENTENCES = BENCHMARKS / "translating" / "sentences.toml"
OURS = "build-multilingual"
# Of each peer: `num_proc`, and whether it checks translations.
PEERS = {
    "`datasets.map`": (0, False),
    "`datasets.map`, 2 processes": (2, False),
    "`datasets.map` with our checks": (0, True),
    "`datasets.map` with our checks, 2 processes": (2, True),
}
VERSIONS = ("build-multilingual", "polars", "pyarrow", "datasets", "py3langid")

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rows: Annotated[int, typer.Option(min=23, help="English pairs.")] = 2985,
    languages: Annotated[int, typer.Option(min=1, max=23, help="The first so many.")] = 23,
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 3,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured command.")] = 2,
    sqlite: Annotated[
        bool, typer.Option("--sqlite", help="Replay a working ledger instead of a published one.")
    ] = False,
    without_peers: Annotated[bool, typer.Option("--without-peers", help="Measure the builder alone.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep what was made here, and use it if it is there.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of texts and order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every figure of every round here.")] = None,
) -> None:
    """Make the input, run the rounds, print the tables."""
    codes = list(tomllib.loads(SENTENCES.read_text("utf-8")))[:languages]
    where = cores(core_count)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch) / "made").resolve()
        prepared = _prepared(Settings(str(folder), rows, codes, seed))
        _warm_up(Path(scratch), where)
        rounds: dict[str, list[Measured]] = {name: [] for name in [OURS, *PEERS] if name == OURS or not without_peers}
        for number in range(repeats):
            order = Random(f"{seed} {number}").sample(list(rounds), len(rounds))
            for name in order:
                measured = _run(name, Path(scratch), folder, codes, where, ledger=SQLITE if sqlite else LEDGER)
                note(f"round {number + 1} of {repeats}, {name}: {measured.wall:.1f} s, {measured.peak / 1e9:.2f} GB")
                rounds[name].append(measured)
        verified = _compare(Path(scratch), codes, rows, where, peers=not without_peers)
    ran_on = machine(VERSIONS, where.numbers)
    print(ran_on, end="\n\n")
    print(_made(prepared, rows, len(codes)), end="\n\n")
    print(_table(rounds, rows * len(codes)), end="\n\n")
    print(f"`pluralbench-release verify` of the result: {verified.wall:.1f} s, {verified.peak / 1e9:.2f} GB.")
    print(_packing(prepared.packings))
    if json_file:
        measured_rounds = {name: [asdict(entry) for entry in entries] for name, entries in rounds.items()}
        figures = {"machine": ran_on, "prepared": asdict(prepared), "rounds": measured_rounds}
        json_file.write_text(json.dumps(figures | {"verify": asdict(verified)}, indent=1) + "\n", "utf-8")


def _prepared(settings: Settings) -> Prepared:
    """What is in the folder, made if it is not there."""
    folder = Path(settings.folder)
    marker = folder / "settings.json"
    if marker.is_file() and json.loads(marker.read_text("utf-8")) == asdict(settings):
        return Prepared.from_json((folder / FACTS).read_text("utf-8"))
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} holds something else; give an empty --keep.")
    note(f"making {settings.rows:,} pairs and recording {len(settings.languages)} languages (minutes)")
    folder.mkdir(parents=True, exist_ok=True)
    _python("translating.recorded", json.dumps(asdict(settings)))
    marker.write_text(json.dumps(asdict(settings)), "utf-8")
    return Prepared.from_json((folder / FACTS).read_text("utf-8"))


def _run(name: str, scratch: Path, folder: Path, codes: list[str], where: Cores, *, ledger: str) -> Measured:
    """Time one strategy. Each time everything is made anew: no build is there, and no cache of `datasets`."""
    out = _result(scratch, name)
    shutil.rmtree(out, ignore_errors=True)
    if name == OURS:
        given = ["--recipe", str(folder / RECIPE), "--replay", str(folder / ledger), "--out", str(out)]
        # The recipe names its table without this machine's folders.
        return measure([_script("build-multilingual"), *given], where, _environment(scratch), folder)
    out.mkdir()
    processes, checks = PEERS[name]
    peer = json.dumps(asdict(Peer(str(folder), str(out), codes, processes, checks)))
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        environment = _environment(scratch) | {"HF_HOME": home}
        return measure([sys.executable, "-m", "translating.peers", peer], where, environment)


def _warm_up(scratch: Path, where: Cores) -> None:
    """Have every module compiled, and read from the disk, once."""
    out = str(scratch / "sample")
    measure([_script("build-multilingual"), "--out", out], where, _environment(scratch))
    measure([_script("pluralbench-release"), "verify", out], where, _environment(scratch))
    peer = json.dumps(asdict(Peer("", "", [], 0, checks=True)))
    measure([sys.executable, "-m", "translating.peers", peer], where, _environment(scratch))


def _environment(scratch: Path) -> dict[str, str]:
    """The same for all: compiled modules are kept, nothing is asked of the Hub."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    return kept | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(BENCHMARKS)}


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _compare(scratch: Path, codes: list[str], rows: int, where: Cores, *, peers: bool) -> Measured:
    """Hold the results against each other: all rows, and the same texts. What `verify` of ours takes."""
    folders = [str(_result(scratch, name)) for name in (PEERS if peers else [])]
    _python("translating.compared", json.dumps([str(_result(scratch, OURS)), folders, codes, rows]))
    return measure(
        [_script("pluralbench-release"), "verify", str(_result(scratch, OURS))], where, _environment(scratch)
    )


def _result(scratch: Path, name: str) -> Path:
    return scratch / f"result-{[OURS, *PEERS].index(name)}"


def _python(module: str, argument: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, argument], cwd=BENCHMARKS, check=False)
    if done.returncode:
        raise SystemExit(f"{module} ended with status {done.returncode}.")


def _table(rounds: dict[str, list[Measured]], rows: int) -> str:
    """Medians over the rounds; the ratio is the median of the rounds' ratios."""
    lines = [
        "| | wall s | CPU s | rows a second | peak memory | time against ours |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, entries in rounds.items():
        walls = [entry.wall for entry in entries]
        ratio = median(entry.wall / ours.wall for entry, ours in zip(entries, rounds[OURS], strict=True))
        lines.append(
            f"| {'ours: ' if name == OURS else ''}{name} | {median(walls):.1f} ({min(walls):.1f}-{max(walls):.1f}) "
            f"| {median(entry.cpu for entry in entries):.1f} | {rows / median(walls):,.0f} "
            f"| {max(entry.peak for entry in entries) / 1e9:.2f} GB | {ratio:.2f} |"
        )
    return "\n".join(lines)


def _made(prepared: Prepared, rows: int, languages: int) -> str:
    """What was worked on."""
    return (
        f"{rows:,} pairs in {languages} languages: {prepared.texts:,} texts a language of "
        f"{prepared.characters / prepared.texts:,.0f} characters as sent, with {prepared.spans / prepared.texts:.1f} "
        f"spans each; {prepared.calls:,} recorded calls."
    )


def _packing(packings: list[Packing]) -> str:
    """Messages against the least possible."""
    first = packings[0]
    messages, least = (sum(getattr(entry, name) for entry in packings) for name in ("messages", "least"))
    worst = max(entry.messages / entry.least for entry in packings)
    return (
        f"Messages to Google for one language: {first.texts:,} texts and {first.code_points:,} code points in "
        f"{first.messages:,}, where no packing needs fewer than {first.least:,}; for all languages {messages:,} and "
        f"{least:,} ({messages / least - 1:.2%} more; at most {worst - 1:.2%} in a language), packed in "
        f"{sum(entry.seconds for entry in packings):.1f} s."
    )


if __name__ == "__main__":
    main(app)
