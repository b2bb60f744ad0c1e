"""Measure how well resolving conflicts recovers human rankings from pairwise judgments with random errors.

    uv run --group evaluator python benchmarks/noise.py oasst1_zh_single_turn_3plus.jsonl --out noise

Each line of the file has a `prompt` and its `responses_best_to_worst`. Each ranking becomes judgments of all its pairs,
from which the script must recover it. Then each judgment is reversed with some probability, for several seeds. Writes
`noise.png` and `noise.svg`, and `noise.csv` with the numbers of every seed; prints a table.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import polars as pl
import typer
from build_chinese.rankings import Judgment, Mark, resolve
from pluralbench.reports.figures import chart
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.series import series_of_judges
from pluralbench_release.errors import SourceError
from pluralbench_runs import rng_for, run
from pluralbench_tables import read_jsonl
from scipy.stats import kendalltau

NOISE = (0.0, 0.05, 0.1, 0.2, 0.4)
OTHER: dict[Mark, Mark] = {"1": "2", "2": "1"}
WITHIN = (0.025, 0.975)
RESOLVED, WINS = "conflicts resolved", "wins counted"
PANELS: Sequence[tuple[str, Mapping[str, str]]] = (
    ("Judgments in conflict (%)", {"conflict_rate": RESOLVED}),
    ("Kendall's τ-b, mean over prompts", {"tau": RESOLVED, "tau_wins": WINS}),
    ("Prompts dropped (%)", {"dropped_rate": RESOLVED}),
)
COLUMNS: dict[str, Any] = {
    "noise": pl.Float64,
    "seed": pl.Int64,
    "judgments": pl.Int64,
    "wrong": pl.Int64,
    "conflicts": pl.Int64,
    "prompts": pl.Int64,
    "dropped": pl.Int64,
    "exact": pl.Int64,
    "tau": pl.Float64,
    "tau_wins": pl.Float64,
}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    rankings: Annotated[Path, typer.Argument(help="JSON lines with `prompt` and `responses_best_to_worst`.")],
    out: Annotated[Path, typer.Option(help="Directory for the figure and its numbers.")] = Path("noise"),
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds per noise level.")] = 20,
) -> None:
    """Measure, write and print."""
    sizes = _sizes(rankings)
    runs = pl.DataFrame(
        [_once(sizes, noise, seed) for noise in NOISE for seed in range(seeds)], schema=COLUMNS, orient="row"
    )
    exact = runs.filter(noise=0)
    if (exact["exact"] < exact["prompts"]).any() or exact["conflicts"].sum():
        raise SystemExit("Judgments without errors do not recover every ranking.")
    out.mkdir(parents=True, exist_ok=True)
    runs.write_csv(out / "noise.csv")
    summary = _summary(runs)
    _draw(summary, out, f"{len(sizes)} rankings of {min(sizes)} to {max(sizes)} responses, {seeds} seeds")
    print(f"{len(sizes)} rankings of {sum(sizes)} responses, {runs['judgments'][0]:,} judgments, {seeds} seeds.")
    print(f"Without errors every ranking is recovered exactly.\n\n{_table(summary)}")


def _sizes(path: Path) -> list[int]:
    """The number of responses of each ranking. Lines with the same prompt are separate rankings."""
    sizes = []
    for number, row in enumerate(read_jsonl(path, SourceError), start=1):
        ranked = row.get("responses_best_to_worst")
        if not isinstance(ranked, list) or len(set(ranked)) < 2 or len(set(ranked)) < len(ranked):
            raise SourceError(
                f"{path}, row {number:,}: `responses_best_to_worst` must have at least two distinct texts."
            )
        sizes.append(len(ranked))
    return sizes


def _once(sizes: Sequence[int], noise: float, seed: int) -> tuple[float, ...]:
    """The numbers of a seed, in the order of `COLUMNS`. Responses are named by their position in the ranking."""
    judgments = wrong = conflicts = dropped = exact = 0
    taus, by_wins = [], []
    for number, size in enumerate(sizes):
        # A prompt has the same draws at every noise level, so more noise adds errors and keeps the others.
        draw = rng_for(seed, "noise", number)
        judged, errors = _judged(size, noise, draw.random)
        resolved = resolve(judged)
        rank = tuple(resolved.rank[f"{place}"] for place in range(size))
        judgments += len(judged)
        conflicts += resolved.conflicts
        wrong += errors
        dropped += len(set(resolved.rank.values())) < 2
        exact += rank == tuple(range(1, size + 1))
        taus.append(_tau(rank))
        by_wins.append(_tau(_losses(judged, size)))
    return noise, seed, judgments, wrong, conflicts, len(sizes), dropped, exact, fmean(taus), fmean(by_wins)


def _judged(size: int, noise: float, draw: Any) -> tuple[list[Judgment], int]:
    """Judgments of all pairs of responses with random sides, and the number of wrong ones."""
    judgments: list[Judgment] = []
    errors = 0
    for better, worse in combinations(range(size), 2):
        turned, errs = draw() < 0.5, draw() < noise
        first, second = (worse, better) if turned else (better, worse)
        mark: Mark = "2" if turned else "1"
        judgments.append((f"{first}", f"{second}", OTHER[mark] if errs else mark))
        errors += errs
    return judgments, errors


def _losses(judgments: Sequence[Judgment], size: int) -> tuple[int, ...]:
    """How often each response was judged the worse, which is a ranking too."""
    worse = [second if mark == "1" else first for first, second, mark in judgments]
    return tuple(worse.count(f"{place}") for place in range(size))


@cache
def _tau(rank: tuple[int, ...]) -> float:
    """Kendall's tau-b to the order of the places; 0 where all are equal, of which it says nothing."""
    return float(kendalltau(rank, range(len(rank))).statistic) if len(set(rank)) > 1 else 0.0


def _summary(runs: pl.DataFrame) -> pl.DataFrame:
    """By noise: of each number the mean over seeds, and between which values 95 % of the seeds are."""
    rates = runs.with_columns(
        conflict_rate=100 * pl.col("conflicts") / pl.col("judgments"),
        wrong_rate=100 * pl.col("wrong") / pl.col("judgments"),
        dropped_rate=100 * pl.col("dropped") / pl.col("prompts"),
        exact_rate=100 * pl.col("exact") / pl.col("prompts"),
    )
    names = ["conflict_rate", "wrong_rate", "dropped_rate", "exact_rate", "dropped", "tau", "tau_wins"]
    return (
        rates.group_by("noise")
        .agg(
            pl.col(names).mean(),
            *(
                pl.col(names).quantile(place, "linear").name.suffix(end)
                for place, end in zip(WITHIN, ("_low", "_high"), strict=True)
            ),
        )
        .sort("noise")
    )


def _table(shown: pl.DataFrame) -> str:
    lines = [
        "| noise | in conflict | τ-b | τ-b, wins counted | exact rankings | dropped |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for row in shown.iter_rows(named=True):

        def cell(name: str, digits: int, unit: str = "", row: Mapping[str, float] = row) -> str:
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            return f"{row[name]:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"

        lines.append(
            f"| {row['noise']:.0%} | {cell('conflict_rate', 1, ' %')} | {cell('tau', 3)} | {cell('tau_wins', 3)} "
            f"| {cell('exact_rate', 1, ' %')} | {cell('dropped_rate', 1, ' %')} |"
        )
    return "\n".join(lines)


def _draw(shown: pl.DataFrame, folder: Path, what: str) -> None:
    series = {one.name: one for one in series_of_judges({RESOLVED: None, WINS: None})}
    panels = []
    for label, lines in PANELS:
        marks = [
            chart.Mark(
                f"{row['noise']:.0%}", chart.Point(row[name], row[f"{name}_low"], row[f"{name}_high"]), series[title]
            )
            for name, title in lines.items()
            for row in shown.iter_rows(named=True)
        ]
        panels.append(chart.Panel(marks, label, "", "Wrong judgments", upright=True, joined=True, least=0))
    note = (
        "τ-b compares with the human ranking. A prompt is dropped if all its responses become equal; its τ-b is 0. "
        "Instead of intervals: the central 95 % of the seeds."
    )
    whole = chart.Chart(f"Recovery of rankings from wrong judgments: {what}", panels, note, len(PANELS))
    write({"noise": whole}, folder)


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


if __name__ == "__main__":
    main()
