"""Resolve conflicting judgments of pairs into one ranking (CHEEMS, algorithm 1).

The judgments of a prompt form a graph: an edge from the better response to the worse one, and edges both ways for a
tie. Each strongly connected component is merged, since its responses cannot be distinguished. The merged graph has no
cycle, and its layers are the ranks. With components and layers the result does not depend on the order of cycles.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import networkx as nx

Mark = Literal["1", "2", "s"]
MARKS: tuple[Mark, ...] = ("1", "2", "s")
Judgment = tuple[str, str, Mark]
"""(first, second, mark): ids of two responses and which is better: "1" the first, "2" the second, "s" neither."""


@dataclass(frozen=True)
class Resolved:
    """The ranking of a prompt's responses, and its conflicts with the judgments.

    Attributes:
        rank: Rank by response id, 1 is best. Equal responses share a rank, and ranks have no gaps. Responses without a
            judgment have no rank.
        order: Pairs (better, worse) that the judgments order, directly or transitively. Two responses of different
            rank that no judgments connect are not in it.
        strict: Number of judgments that prefer one response.
        equal: Number of ties.
        conflicts: Number of strict judgments on two responses that share a rank. The ranking contradicts no other
            judgment: tied responses lie on a cycle, and an edge never leads to a better rank.
    """

    rank: dict[str, int]
    order: frozenset[tuple[str, str]]
    strict: int
    equal: int
    conflicts: int


def resolve(judgments: Iterable[Judgment]) -> Resolved:
    """Resolve the judgments of one prompt. Without judgments the ranking is empty."""
    judgments = list(judgments)
    graph = nx.DiGraph()
    for first, second, mark in judgments:
        graph.add_nodes_from((first, second))
        if mark != "2":
            graph.add_edge(first, second)
        if mark != "1":
            graph.add_edge(second, first)
    condensed = nx.condensation(graph)
    members: Mapping[int, set[str]] = condensed.nodes.data("members")
    rank = {
        response: level
        for level, layer in enumerate(nx.topological_generations(condensed), start=1)
        for component in layer
        for response in members[component]
    }
    strict = [rank[first] == rank[second] for first, second, mark in judgments if mark != "s"]
    order = _order(condensed, members)
    return Resolved(dict(sorted(rank.items())), order, len(strict), len(judgments) - len(strict), sum(strict))


def _order(condensed: "nx.DiGraph[int]", members: Mapping[int, set[str]]) -> frozenset[tuple[str, str]]:
    """All (better, worse) that a path of judgments connects."""
    below: dict[int, set[str]] = {}
    for component in reversed(list(nx.topological_sort(condensed))):
        below[component] = set().union(*(below[next_] | members[next_] for next_ in condensed.successors(component)))
    return frozenset(
        (better, worse) for component, lower in below.items() for better in members[component] for worse in lower
    )
