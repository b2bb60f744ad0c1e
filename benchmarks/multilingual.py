"""Measure how fast the multilingual builder builds from recorded calls, compared with `datasets.map`.

    uv run --group test python benchmarks/multilingual.py

Generates English pairs in RewardBench's shape, their translations into 23 languages, and the ledger of the calls to
Google's translator. Each round runs `build-multilingual --replay` and the method of the original scripts, each in its
own process on two cores, in random order. Prints the machine and a table, and compares the number of messages to the
translator with the minimum.
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
from machine import describe_machine
from pluralbench_runs import write_text
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
    languages: Annotated[int, typer.Option(min=1, max=23, help="Number of languages.")] = 23,
    repeats: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 3,
    core_count: Annotated[int, typer.Option("--cores", min=1, help="Cores of each measured command.")] = 2,
    sqlite: Annotated[
        bool, typer.Option("--sqlite", help="Replay a working ledger instead of a published one.")
    ] = False,
    without_peers: Annotated[bool, typer.Option("--without-peers", help="Measure only the builder.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep the generated data here and reuse it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of texts and order.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures of all rounds here.")] = None,
) -> None:
    """Generate the data, run the rounds, print the tables."""
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
    ran_on = describe_machine(VERSIONS, where.numbers)
    print(ran_on, end="\n\n")
    print(_describe(prepared, rows, len(codes)), end="\n\n")
    print(_table(rounds, rows * len(codes)), end="\n\n")
    print(f"`pluralbench-release verify` of the result: {verified.wall:.1f} s, {verified.peak / 1e9:.2f} GB.")
    print(_packing(prepared.packings))
    if json_file:
        measured_rounds = {name: [asdict(entry) for entry in entries] for name, entries in rounds.items()}
        figures = {"machine": ran_on, "prepared": asdict(prepared), "rounds": measured_rounds}
        write_text(json_file, json.dumps(figures | {"verify": asdict(verified)}, indent=1) + "\n")


def _prepared(settings: Settings) -> Prepared:
    """The contents of the folder, generated if they are missing."""
    folder = Path(settings.folder)
    marker = folder / "settings.json"
    if marker.is_file() and json.loads(marker.read_text("utf-8")) == asdict(settings):
        return Prepared.from_json((folder / FACTS).read_text("utf-8"))
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} has other contents; use an empty folder for --keep.")
    note(f"generating {settings.rows:,} pairs and recording {len(settings.languages)} languages (minutes)")
    folder.mkdir(parents=True, exist_ok=True)
    _python("translating.recorded", json.dumps(asdict(settings)))
    marker.write_text(json.dumps(asdict(settings)), "utf-8")
    return Prepared.from_json((folder / FACTS).read_text("utf-8"))


def _run(name: str, scratch: Path, folder: Path, codes: list[str], where: Cores, *, ledger: str) -> Measured:
    """Time one strategy, without an earlier build or a cache of `datasets`."""
    out = _result(scratch, name)
    shutil.rmtree(out, ignore_errors=True)
    if name == OURS:
        arguments = ["--recipe", str(folder / RECIPE), "--replay", str(folder / ledger), "--out", str(out)]
        # The recipe has a relative path of its table.
        return measure([_script("build-multilingual"), *arguments], where, _environment(scratch), folder)
    out.mkdir()
    processes, checks = PEERS[name]
    peer = json.dumps(asdict(Peer(str(folder), str(out), codes, processes, checks)))
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        environment = _environment(scratch) | {"HF_HOME": home}
        return measure([sys.executable, "-m", "translating.peers", peer], where, environment)


def _warm_up(scratch: Path, where: Cores) -> None:
    """Run everything once, so that modules are compiled and in the disk cache."""
    out = str(scratch / "sample")
    measure([_script("build-multilingual"), "--out", out], where, _environment(scratch))
    measure([_script("pluralbench-release"), "verify", out], where, _environment(scratch))
    peer = json.dumps(asdict(Peer("", "", [], 0, checks=True)))
    measure([sys.executable, "-m", "translating.peers", peer], where, _environment(scratch))


def _environment(scratch: Path) -> dict[str, str]:
    """The environment of all processes: compiled modules are cached, the Hub is offline."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    return kept | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(BENCHMARKS)}


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _compare(scratch: Path, codes: list[str], rows: int, where: Cores, *, peers: bool) -> Measured:
    """Check that all results have the same rows and texts, and measure `verify` of ours."""
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
        "| | wall s | CPU s | rows a second | peak memory | time relative to ours |",
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


def _describe(prepared: Prepared, rows: int, languages: int) -> str:
    """Describe the data."""
    return (
        f"{rows:,} pairs in {languages} languages: {prepared.texts:,} texts per language of "
        f"{prepared.characters / prepared.texts:,.0f} characters when sent, with {prepared.spans / prepared.texts:.1f} "
        f"spans each; {prepared.calls:,} recorded calls."
    )


def _packing(packings: list[Packing]) -> str:
    """Compare the number of messages with the minimum."""
    first = packings[0]
    messages, least = (sum(getattr(entry, name) for entry in packings) for name in ("messages", "least"))
    worst = max(entry.messages / entry.least for entry in packings)
    return (
        f"Messages to Google for one language: {first.texts:,} texts and {first.code_points:,} code points in "
        f"{first.messages:,} (minimum {first.least:,}); for all languages {messages:,} (minimum {least:,}, "
        f"{messages / least - 1:.2%} more; at most {worst - 1:.2%} in one language), packed in "
        f"{sum(entry.seconds for entry in packings):.1f} s."
    )


if __name__ == "__main__":
    main(app)
