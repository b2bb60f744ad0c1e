"""What a Ray cluster costs beside its models: for each row, at some numbers of workers, and to start.

    uv run --group test python benchmarks/ray_overhead.py

Pairs are scored by a function that costs nothing, in this process and by workers on a cluster of this machine alone,
which is started once. The ways take turns, each round in another order. Prints the machine, and medians: milliseconds a
row from the first result to the last, and seconds until the first.
"""

import time
from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Annotated, Any

import typer
from machine import machine
from pluralbench_rewards import FunctionModel, Group
from pluralbench_rewards.cluster import ClusterModel
from pluralbench_runs import ClusterConfig
from pluralbench_runs.cluster import DEFAULT_CLUSTER, connect

VERSIONS = ("pluralbench-runs", "ray")
TEXT = "It depends on who is asking. " * 35  # 1 kB

app = typer.Typer(add_completion=False, rich_markup_mode=None)
Round = tuple[float, float]  # seconds until the first result, and from it to the last


def scored(groups: Sequence[Group], workers: int) -> Round:
    """The seconds of scoring; 0 workers are this process."""
    model: Any = FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
    if workers:
        known, load = model.record(), lambda: FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
        model = ClusterModel(ClusterConfig(address=DEFAULT_CLUSTER, workers=workers), load, known)
    times: list[float] = []
    began = time.perf_counter()
    model.score(groups, on_scored=lambda *_: times.append(time.perf_counter()))
    return times[0] - began, times[-1] - times[0]


@app.command(help=__doc__)
def command(
    rows: Annotated[int, typer.Option(min=64, help="Pairs that are scored.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 3,
    workers: Annotated[str, typer.Option(help="Numbers of workers; 0 is this process.")] = "0,1,2,4",
) -> None:
    """Run the rounds, print the table."""
    counts = [int(count) for count in workers.split(",")]
    groups = [
        Group(str(row), [{"role": "user", "content": TEXT}], [f"{row} {TEXT}", f"{TEXT} {row}"]) for row in range(rows)
    ]
    connect(ClusterConfig(address=DEFAULT_CLUSTER, workers=max(1, *counts)))
    found: dict[int, list[Round]] = {count: [] for count in counts}
    for number in range(rounds):
        for count in Random(number).sample(counts, len(counts)):
            found[count].append(scored(groups, count))
    print(machine(VERSIONS, ()))
    print("\n| pairs | workers | ms a row | s until the first |\n|---:|---:|---:|---:|")
    for count, times in found.items():
        each, first = median(last for _, last in times) / rows * 1000, median(start for start, _ in times)
        print(f"| {rows:,} | {count or 'this process'} | {each:.3f} | {first:.1f} |")


if __name__ == "__main__":
    app()
