"""Measure the overhead of a Ray cluster: per row, for several numbers of workers, and at the start.

    uv run --group test python benchmarks/ray_overhead.py

A function that costs nothing scores pairs, in this process and on a local cluster, which is started once. Each round
runs all numbers of workers in random order. Prints the machine, and medians: milliseconds per row from the first result
to the last, and seconds until the first.
"""

import time
from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Annotated, Any

import typer
from machine import describe_machine
from pluralbench_rewards import FunctionModel, Group
from pluralbench_rewards.cluster import ClusterModel
from pluralbench_runs import ClusterConfig
from pluralbench_runs.cluster import DEFAULT_CLUSTER, connect

VERSIONS = ("pluralbench-runs", "ray")
TEXT = "It depends on who is asking. " * 35  # 1 kB

app = typer.Typer(add_completion=False, rich_markup_mode=None)
Round = tuple[float, float]  # seconds until the first result, and from it to the last


def time_scoring(groups: Sequence[Group], workers: int) -> Round:
    """Measure scoring; 0 workers means this process."""
    model: Any = FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
    if workers:
        record, load = model.record(), lambda: FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
        model = ClusterModel(ClusterConfig(address=DEFAULT_CLUSTER, workers=workers), load, record)
    times: list[float] = []
    started = time.perf_counter()
    model.score(groups, on_scored=lambda *_: times.append(time.perf_counter()))
    return times[0] - started, times[-1] - times[0]


@app.command(help=__doc__)
def command(
    rows: Annotated[int, typer.Option(min=64, help="Number of pairs.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 3,
    workers: Annotated[str, typer.Option(help="Numbers of workers; 0 is this process.")] = "0,1,2,4",
) -> None:
    """Run the rounds, print the table."""
    counts = [int(count) for count in workers.split(",")]
    groups = [
        Group(str(row), [{"role": "user", "content": TEXT}], [f"{row} {TEXT}", f"{TEXT} {row}"]) for row in range(rows)
    ]
    connect(ClusterConfig(address=DEFAULT_CLUSTER, workers=max(1, *counts)))
    measured: dict[int, list[Round]] = {count: [] for count in counts}
    for number in range(rounds):
        for count in Random(number).sample(counts, len(counts)):
            measured[count].append(time_scoring(groups, count))
    print(describe_machine(VERSIONS, ()))
    print("\n| pairs | workers | ms per row | s until the first |\n|---:|---:|---:|---:|")
    for count, times in measured.items():
        per_row, first = median(last for _, last in times) / rows * 1000, median(start for start, _ in times)
        print(f"| {rows:,} | {count or 'this process'} | {per_row:.3f} | {first:.1f} |")


if __name__ == "__main__":
    app()
