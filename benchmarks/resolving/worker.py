"""Run one job in its own process and write its `Report`: `python -m resolving.worker JOB` (see `protocol.Job`)."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from build_chinese.rankings import Judgment, resolve

from resolving.protocol import GRAPHS, RANKINGS, REPORT, Job, Report

Node = frozenset[str]


class Clock:
    """Measures the seconds of steps by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the enclosed code."""
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started


def whole(folder: Path, out: Path) -> Report:
    """Run ours from file to files: read and check, resolve, balance lengths, write."""
    import polars as pl
    from build_chinese.preference_set import PAIRS, balance_lengths, lengths_of
    from build_chinese.rankings import (
        ranked_pairs,
        read_rankings,
        resolve_rows,
    )
    from build_chinese.tables import frame_of
    from pluralbench_tables import write_jsonl

    clock = Clock()
    with clock.step("read"):
        rows = read_rankings(folder / RANKINGS)
    with clock.step("resolve"):
        kept, dropped = resolve_rows(rows)
    with clock.step("balance"):
        ranked = [(row["id"], *pair) for row in kept for pair in ranked_pairs(row)]
        balanced = balance_lengths(pl.DataFrame(ranked, schema=PAIRS, orient="row"), lengths_of(kept), seed=1)
    with clock.step("write"):
        write_jsonl(kept, out / "resolved.jsonl")
        frame_of(kept, "made").write_parquet(out / "resolved.parquet")
        balanced.write_parquet(out / "pairs.parquet")
    counts = {
        "prompts": len(rows),
        "dropped": dropped.height,
        "pairs": len(ranked),
        "balanced": balanced.height,
    }
    return Report(clock.seconds, counts, _digest([row["rank"] for row in kept]))


def ours(folder: Path, _: Path) -> Report:
    """Resolve graph by graph with ours: ranks, partial order and conflicts."""
    graphs, clock = _graphs(folder), Clock()
    with clock.step("resolve"):
        results = [resolve(graph) for graph in graphs]
    counts = {
        "conflicts": sum(result.conflicts for result in results),
        "judgments": sum(result.strict + result.equal for result in results),
    }
    return Report(clock.seconds, counts, _digest([result.rank for result in results]))


def literal(folder: Path, _: Path) -> Report:
    """Resolve graph by graph as in the paper: ranks only."""
    graphs, clock = _graphs(folder), Clock()
    with clock.step("resolve"):
        ranks = [algorithm_1(graph) for graph in graphs]
    return Report(clock.seconds, {}, _digest(ranks))


def components(folder: Path, _: Path) -> Report:
    """Find strongly connected components graph by graph with networkx."""
    import networkx as nx

    graphs, clock = _graphs(folder), Clock()
    with clock.step("resolve"):
        parts = []
        for graph in graphs:
            directed = nx.DiGraph()
            directed.add_edges_from(edge for judgment in graph for edge in _edges(judgment))
            parts.append([sorted(members) for members in nx.strongly_connected_components(directed)])
    return Report(clock.seconds, {}, _digest([sorted(part) for part in parts]))


def block_diagonal(folder: Path, _: Path) -> Report:
    """Find strongly connected components of all graphs as one with scipy."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graphs, clock = _graphs(folder), Clock()
    with clock.step("resolve"):
        place: dict[tuple[int, str], int] = {}
        better, worse = [], []
        for number, graph in enumerate(graphs):
            for judgment in graph:
                for a, b in _edges(judgment):
                    better.append(place.setdefault((number, a), len(place)))
                    worse.append(place.setdefault((number, b), len(place)))
        matrix = coo_array((np.ones(len(better), np.int8), (better, worse)), (len(place), len(place)))
        _, labels = connected_components(matrix.tocsr(), directed=True, connection="strong")
        members: list[dict[int, list[str]]] = [{} for _ in graphs]
        for (number, name), label in zip(place, labels.tolist(), strict=True):
            members[number].setdefault(label, []).append(name)
        parts = [[sorted(names) for names in own.values()] for own in members]
    return Report(clock.seconds, {}, _digest([sorted(part) for part in parts]))


def algorithm_1(judgments: Sequence[Judgment]) -> dict[str, int]:
    """Compute ranks by Algorithm 1: merge cycles until there is none, then rank layer by layer."""
    import networkx as nx

    graph: Any = nx.DiGraph()
    graph.add_edges_from((frozenset([a]), frozenset([b])) for judgment in judgments for a, b in _edges(judgment))
    while True:
        try:
            cycle = {node for node, _ in nx.find_cycle(graph)}
        except nx.NetworkXNoCycle:
            break
        merged: Node = frozenset().union(*cycle)
        into = {before for node in cycle for before in graph.predecessors(node)} - cycle
        out_of = {after for node in cycle for after in graph.successors(node)} - cycle
        graph.remove_nodes_from(cycle)
        graph.add_node(merged)
        graph.add_edges_from((before, merged) for before in into)
        graph.add_edges_from((merged, after) for after in out_of)
    rank: dict[str, int] = {}
    level = 1
    while graph:
        layer = [node for node, degree in graph.in_degree if degree == 0]
        rank |= {name: level for node in layer for name in node}
        graph.remove_nodes_from(layer)
        level += 1
    return rank


def _edges(judgment: Judgment) -> list[tuple[str, str]]:
    first, second, mark = judgment
    return ([(first, second)] if mark != "2" else []) + ([(second, first)] if mark != "1" else [])


def _graphs(folder: Path) -> list[list[Judgment]]:
    graphs = json.loads((folder / GRAPHS).read_text("utf-8"))
    return [[(first, second, mark) for first, second, mark in graph] for graph in graphs]


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


JOBS: dict[str, Callable[[Path, Path], Report]] = {
    "whole": whole,
    "ours": ours,
    "literal": literal,
    "components": components,
    "block-diagonal": block_diagonal,
}


def main() -> None:
    """Run the job in the argument."""
    job = Job(**json.loads(sys.argv[1]))
    report = JOBS[job.name](Path(job.folder), Path(job.out))
    (Path(job.out) / REPORT).write_text(json.dumps(asdict(report)), "utf-8")


if __name__ == "__main__":
    main()
