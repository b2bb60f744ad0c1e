"""What a Ray cluster costs beside its models: for each row, at some numbers of workers, and to start.

    uv run --group test python benchmarks/ray_overhead.py

Pairs are scored by a function that costs nothing, in this process and by workers on a cluster of this machine alone,
which is started once; requests are answered likewise by a backend that costs nothing. The ways take turns, each round
in another order. Prints the machine, and medians: milliseconds a row from the first result to the last, and seconds
until the first.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Self

import typer
from machine import machine
from pluralbench_calls import Answer, Ledger, Limits, Request, ask
from pluralbench_calls.backends.cluster import OnCluster as AnswersOnCluster
from pluralbench_rewards import FunctionModel, Group
from pluralbench_rewards.cluster import OnCluster
from pluralbench_runs import Cluster
from pluralbench_runs.cluster import HERE, connect

VERSIONS = ("pluralbench-runs", "ray")
TEXT = "It depends on who is asking. " * 35  # 1 kB

app = typer.Typer(add_completion=False, rich_markup_mode=None)
Round = tuple[float, float]  # seconds until the first result, and from it to the last


class Free:
    """A backend that answers at once."""

    concurrency: int | None = 64

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def send(self, request: Request) -> Answer:
        """Its own label."""
        return Answer.to(request, "answer", request.label)


def scored(groups: Sequence[Group], workers: int) -> Round:
    """The seconds of scoring; 0 workers are this process."""
    model: Any = FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
    if workers:
        known, load = model.record(), lambda: FunctionModel(lambda some: [[0.0, 1.0] for _ in some])
        model = OnCluster(Cluster(on=HERE, workers=workers), load, known)
    times: list[float] = []
    began = time.perf_counter()
    model.score(groups, on_scored=lambda *_: times.append(time.perf_counter()))
    return times[0] - began, times[-1] - times[0]


def asked(requests: Sequence[Request], workers: int) -> Round:
    """The seconds of asking."""
    backend: Any = AnswersOnCluster(Cluster(on=HERE, workers=workers), Free, at_once=8) if workers else Free()
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        times: list[float] = []
        record = ledger.record

        def timed(*answers: Answer) -> None:
            record(*answers)
            times.append(time.perf_counter())

        ledger.record = timed  # type: ignore[method-assign]
        began = time.perf_counter()
        ask(requests, ledger, backend, limits=Limits(concurrency=64))
    return times[0] - began, times[-1] - times[0]


@app.command(help=__doc__)
def command(
    rows: Annotated[
        int, typer.Option(min=64, help="Pairs that are scored, and ten requests for each hundred.")
    ] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 3,
    workers: Annotated[str, typer.Option(help="Numbers of workers; 0 is this process.")] = "0,1,2,4",
) -> None:
    """Run the rounds, print the table."""
    counts = [int(count) for count in workers.split(",")]
    groups = [
        Group(str(row), [{"role": "user", "content": TEXT}], [f"{row} {TEXT}", f"{TEXT} {row}"]) for row in range(rows)
    ]
    requests = [Request("chat", "none", "none", {"messages": [TEXT, row]}) for row in range(rows // 10)]
    connect(Cluster(on=HERE, workers=max(1, *counts)))
    ways: dict[tuple[str, int], Callable[[], Round]] = {}
    for count in counts:
        ways["pairs scored", count] = lambda count=count: scored(groups, count)
        ways["requests asked", count] = lambda count=count: asked(requests, count)
    found: dict[tuple[str, int], list[Round]] = {way: [] for way in ways}
    for number in range(rounds):
        order = list(ways)
        Random(number).shuffle(order)
        for way in order:
            found[way].append(ways[way]())
    print(machine(VERSIONS, ()))
    print("\n| what | rows | workers | ms a row | s until the first |\n|---|---:|---:|---:|---:|")
    for (what, count), times in found.items():
        size = rows if what == "pairs scored" else len(requests)
        each, first = median(last for _, last in times) / size * 1000, median(start for start, _ in times)
        print(f"| {what} | {size:,} | {count or 'this process'} | {each:.3f} | {first:.1f} |")


if __name__ == "__main__":
    app()
