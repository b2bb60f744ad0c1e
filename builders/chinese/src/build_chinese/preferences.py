"""From conflicting judgements of pairs to one ranking without conflict (CHEEMS, algorithm 1).

The judgements of a prompt make a graph: an edge from the better response to the worse one, and both ways where they
were called equal. Responses on a cycle cannot be told apart, so each strongly connected component becomes one; what is
left has no cycle, and its layers (all that nothing better is left for) are the ranks. By component and layer the result
does not depend on the order in which cycles are found.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import networkx as nx

Mark = Literal["1", "2", "s"]
MARKS: tuple[Mark, ...] = ("1", "2", "s")
Judgement = tuple[str, str, Mark]
"""(first, second, mark): ids of two responses and which is better, "1" the first, "2" the second, "s" neither."""


@dataclass(frozen=True)
class Resolved:
    """The ranking that the judgements of a prompt lead to, and how far it keeps them.

    rank: by response id, 1 for the best; equal responses share a number, and the next layer's is one more. Responses
    that no judgement names have none. order: pairs (better, worse) of responses that the judgements order, directly or
    by way of others; two responses of different layers that are connected by no judgements are not in it.
    strict, equal: how many judgements prefer one response, and how many call both equal. conflicts: how many of the
    strict ones the ranking does not keep, since both responses are equal. It contradicts no others: two responses that
    were called equal lie on a cycle, and an edge never leads to a better rank.
    """

    rank: dict[str, int]
    order: frozenset[tuple[str, str]]
    strict: int
    equal: int
    conflicts: int


def resolve(judgements: Iterable[Judgement]) -> Resolved:
    """Resolve the judgements of one prompt. An empty list ranks nothing."""
    given = list(judgements)
    graph = nx.DiGraph()
    for first, second, mark in given:
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
    strict = [rank[first] == rank[second] for first, second, mark in given if mark != "s"]
    order = _order(condensed, members)
    return Resolved(dict(sorted(rank.items())), order, len(strict), len(given) - len(strict), sum(strict))


def _order(condensed: "nx.DiGraph[int]", members: Mapping[int, set[str]]) -> frozenset[tuple[str, str]]:
    """All (better, worse) where a path of judgements leads from one to the other."""
    below: dict[int, set[str]] = {}
    for component in reversed(list(nx.topological_sort(condensed))):
        below[component] = set().union(*(below[next_] | members[next_] for next_ in condensed.successors(component)))
    return frozenset(
        (better, worse) for component, lower in below.items() for better in members[component] for worse in lower
    )
