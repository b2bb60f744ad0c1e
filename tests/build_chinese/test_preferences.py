"""Conflicting judgements resolved: held against Algorithm 1 as it is written, and against properties of orders."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from build_chinese.rankings import Judgment, Mark, Resolved, resolve
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = "abcdefghijkl"
MARKS: tuple[Mark, ...] = ("1", "2", "s")
SWAPPED: dict[Mark, Mark] = {"1": "2", "2": "1", "s": "s"}
Node = frozenset[str]
Graph = dict[Node, set[Node]]

PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1])
JUDGEMENTS: st.SearchStrategy[list[Judgment]] = st.lists(
    st.tuples(PAIRS, st.sampled_from(MARKS)).map(lambda drawn: (*drawn[0], drawn[1])), max_size=40
)


def algorithm_1(judgements: Iterable[Judgment]) -> dict[str, int]:
    """The ranks by Algorithm 1, word for word: merge one cycle after the other, then take layer after layer."""
    graph: Graph = {}
    for first, second, mark in judgements:
        left, right = frozenset([first]), frozenset([second])
        graph.setdefault(left, set())
        graph.setdefault(right, set())
        if mark in "1s":
            graph[left].add(right)
        if mark in "2s":
            graph[right].add(left)
    while cycle := a_cycle(graph):
        merge(graph, cycle)
    rank: dict[str, int] = {}
    level = 1
    while graph:
        behind = set[Node]().union(*graph.values())
        for top in [node for node in graph if node not in behind]:
            rank |= dict.fromkeys(top, level)
            del graph[top]
        level += 1
    return rank


def a_cycle(graph: Graph) -> list[Node]:
    """Some cycle, found by depth-first search; an empty list where there is none."""
    finished: set[Node] = set()
    for root in graph:
        path, ways = [root], [iter(graph[root])]
        while path and root not in finished:
            node = next((node for node in ways[-1] if node not in finished), None)
            if node is None:
                finished.add(path.pop())
                ways.pop()
            elif node in path:
                return path[path.index(node) :]
            else:
                path.append(node)
                ways.append(iter(graph[node]))
    return []


def merge(graph: Graph, cycle: Sequence[Node]) -> None:
    """Put one node in the place of those on the cycle; an edge from it to itself is dropped."""
    members = set(cycle)
    merged = frozenset[str]().union(*members)
    leaving = set[Node]().union(*(graph.pop(node) for node in cycle)) - members
    for node, reached in graph.items():
        if reached & members:
            graph[node] = reached - members | {merged}
    graph[merged] = leaving


def reachable(judgements: Iterable[Judgment], names: Sequence[str]) -> np.ndarray:
    """Which response leads to which, by Warshall's algorithm: (names, names), the diagonal false where no cycle is."""
    place = {name: number for number, name in enumerate(names)}
    reach = np.zeros((len(names), len(names)), bool)
    for first, second, mark in judgements:
        reach[place[first], place[second]] |= mark != "2"
        reach[place[second], place[first]] |= mark != "1"
    for between in range(len(names)):
        reach |= np.outer(reach[:, between], reach[between])
    return reach


def expected(judgements: Sequence[Judgment]) -> Resolved:
    """All that `resolve` has to find: ranks by Algorithm 1, the order by Warshall's, conflicts by C9 one by one."""
    rank = algorithm_1(judgements)
    names = sorted(rank)
    reach = reachable(judgements, names)
    order = {(names[better], names[worse]) for better, worse in np.argwhere(reach & ~reach.T)}
    strict = [(first, second) for first, second, mark in judgements if mark == "1"]
    strict += [(second, first) for first, second, mark in judgements if mark == "2"]
    equal = [(first, second) for first, second, mark in judgements if mark == "s"]
    return Resolved(
        rank,
        frozenset(order),
        len(strict),
        len(equal),
        sum(not rank[better] < rank[worse] for better, worse in strict)
        + sum(rank[left] != rank[right] for left, right in equal),
    )


@given(JUDGEMENTS)
def test_it_is_what_algorithm_1_finds(judgements: list[Judgment]) -> None:
    found = resolve(judgements)
    assert found == expected(judgements)
    assert list(found.rank) == sorted(found.rank)


@given(JUDGEMENTS, st.permutations(NAMES), st.data())
def test_the_order_of_judgements_sides_and_names_do_not_matter(
    judgements: list[Judgment], names: list[str], data: st.DataObject
) -> None:
    new = dict(zip(NAMES, names, strict=True))
    shuffled = data.draw(st.permutations(judgements))
    sides = data.draw(st.lists(st.booleans(), min_size=len(judgements), max_size=len(judgements)))
    changed: list[Judgment] = [
        (new[second], new[first], SWAPPED[mark]) if turned else (new[first], new[second], mark)
        for (first, second, mark), turned in zip(shuffled, sides, strict=True)
    ]
    before, after = resolve(judgements), resolve(changed)
    assert after.rank == {new[name]: level for name, level in before.rank.items()}
    assert after.order == {(new[better], new[worse]) for better, worse in before.order}
    assert (after.strict, after.equal, after.conflicts) == (before.strict, before.equal, before.conflicts)


@pytest.mark.parametrize(
    ("judgements", "rank", "conflicts"),
    [
        ([], {}, 0),
        ([("a", "b", "1")], {"a": 1, "b": 2}, 0),
        ([("a", "b", "2")], {"a": 2, "b": 1}, 0),
        ([("a", "b", "s")], {"a": 1, "b": 1}, 0),
        ([("a", "b", "1"), ("a", "b", "1"), ("b", "a", "1")], {"a": 1, "b": 1}, 3),
        ([("a", "b", "1"), ("a", "b", "s")], {"a": 1, "b": 1}, 1),
        ([("a", "b", "1"), ("b", "c", "1"), ("a", "c", "s")], {"a": 1, "b": 1, "c": 1}, 2),
        ([("a", "b", "1"), ("b", "c", "1"), ("c", "b", "1"), ("c", "d", "1")], {"a": 1, "b": 2, "c": 2, "d": 3}, 2),
        # Nobody compared b and c: their layer is one, and so is their rank.
        ([("a", "b", "1"), ("a", "c", "1")], {"a": 1, "b": 2, "c": 2}, 0),
        # Nor c and d, and here layers tell them apart.
        ([("a", "b", "1"), ("b", "d", "1"), ("a", "c", "1")], {"a": 1, "b": 2, "c": 2, "d": 3}, 0),
    ],
)
def test_small_cases_by_hand(judgements: list[Judgment], rank: dict[str, int], conflicts: int) -> None:
    found = resolve(judgements)
    assert (found.rank, found.conflicts) == (rank, conflicts)


@settings(max_examples=10)
@given(st.integers(500, 2_000), st.randoms(use_true_random=False))
def test_one_long_cycle_is_one_rank(size: int, draw: Random) -> None:
    names = [f"r{number:04}" for number in range(size)]
    draw.shuffle(names)
    found = resolve([(a, b, "1") for a, b in zip(names, [*names[1:], names[0]], strict=True)])
    assert set(found.rank.values()) == {1}
    assert (found.conflicts, found.order) == (size, frozenset())


LEVELS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 6), min_size=2)


def longest_paths(order: Iterable[tuple[str, str]], names: Iterable[str]) -> dict[str, int]:
    """For each response, of how many the longest chain is that ends with it."""
    above: dict[str, list[str]] = {name: [] for name in names}
    for better, worse in order:
        above[worse].append(better)
    found: dict[str, int] = {}
    for name in sorted(above, key=lambda name: len(above[name])):  # whoever is above has fewer above
        found[name] = 1 + max((found[better] for better in above[name]), default=0)
    return found


def compared(level: dict[str, int], pairs: Iterable[tuple[str, str]]) -> list[Judgment]:
    """What somebody would say of these pairs who sees the levels, 1 the best."""
    marks: dict[int, Mark] = {-1: "1", 0: "s", 1: "2"}
    return [(a, b, marks[(level[a] > level[b]) - (level[a] < level[b])]) for a, b in pairs]


def dense(level: dict[str, int]) -> dict[str, int]:
    """Levels without gaps, from 1."""
    numbers = {value: number for number, value in enumerate(sorted(set(level.values())), start=1)}
    return {name: numbers[value] for name, value in level.items()}


def ring(draw: Random, names: Sequence[str], noise: float) -> list[Judgment]:
    """Tasks of three adjacent responses of a ring, each judged by a person who sees the qualities through noise."""
    judgements: list[Judgment] = []
    for start in range(len(names)):
        task = [names[(start + step) % len(names)] for step in range(3)]
        seen = {name: round(names.index(name) + draw.gauss(0, noise)) for name in task}
        judgements += compared(seen, combinations(task, 2))
    return judgements


def noisy(draw: Random) -> list[Judgment]:
    """Judgements by some order with wrong marks, equal marks, repeated pairs, missing pairs and parts apart."""
    names = NAMES[: draw.randint(1, len(NAMES))]
    parts = draw.randint(1, 2)
    level = {name: draw.randint(1, 3 * len(names)) for name in names}
    pairs = [draw.sample(pair, 2) for pair in combinations(names, 2) if NAMES.index(pair[0]) % parts == 0]
    pairs = [pair for pair in pairs if NAMES.index(pair[1]) % parts == NAMES.index(pair[0]) % parts]
    some = draw.choices(pairs, k=draw.randint(0, 2 * len(pairs))) if pairs else []
    wrong = draw.choice((0, 0.05, 0.2, 0.5))
    judged = compared(level, [(a, b) for a, b in some])
    return [(a, b, draw.choice(MARKS) if draw.random() < wrong else mark) for a, b, mark in judged]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_algorithm_1_finds_on_thousands_of_graphs(seed: int) -> None:
    draw = Random(seed)
    layered = merged = 0
    for _ in range(1_000):
        judgements = noisy(draw)
        found = resolve(judgements)
        assert found == expected(judgements)
        layers = [[name for name in found.rank if found.rank[name] == level] for level in set(found.rank.values())]
        layered += any(len(layer) > 1 for layer in layers)
        merged += bool(found.conflicts)
    assert 300 < layered < 900  # the graphs are of many kinds
    assert 300 < merged < 900


def test_every_pair_of_a_ring_of_five_is_compared_so_there_is_one_chain() -> None:
    draw = Random(5)
    conflicts = 0
    for _ in range(1_000):
        judgements = ring(draw, "abcde", noise=1.2)
        assert {frozenset(judgement[:2]) for judgement in judgements} == set(map(frozenset, combinations("abcde", 2)))
        found = resolve(judgements)
        assert found == expected(judgements)
        ranked = {(a, b) for a in "abcde" for b in "abcde" if found.rank[a] < found.rank[b]}
        assert found.order == ranked
        conflicts += found.conflicts
    assert conflicts > 1_000  # not of people who all see the same


@given(JUDGEMENTS)
def test_the_order_is_what_judgements_imply_and_ranks_are_its_layers(judgements: list[Judgment]) -> None:
    found = resolve(judgements)
    assert all(found.rank[better] < found.rank[worse] for better, worse in found.order)
    assert found.rank == longest_paths(found.order, found.rank)
    assert set(found.rank) == {name for judgement in judgements for name in judgement[:2]}
    assert set(found.rank.values()) == set(range(1, 1 + max(found.rank.values(), default=0)))


@given(JUDGEMENTS)
def test_no_judgement_between_components_is_contradicted(judgements: list[Judgment]) -> None:
    found = resolve(judgements)
    names = sorted(found.rank)
    reach = reachable(judgements, names)
    for first, second, mark in judgements:
        a, b = names.index(first), names.index(second)
        if reach[a, b] and reach[b, a]:
            assert found.rank[first] == found.rank[second]
        else:
            better, worse = (first, second) if mark == "1" else (second, first)
            assert mark != "s"
            assert (better, worse) in found.order
            assert found.rank[better] < found.rank[worse]


@given(LEVELS, st.randoms(use_true_random=False))
def test_judgements_that_come_from_one_order_give_it_back(level: dict[str, int], draw: Random) -> None:
    pairs = [(a, b) if draw.random() < 0.5 else (b, a) for a, b in combinations(level, 2)]
    found = resolve(compared(level, pairs + draw.choices(pairs, k=5)))
    assert found.rank == dense(level)
    assert found.order == {(a, b) for a in level for b in level if level[a] < level[b]}
    assert found.conflicts == 0


@given(JUDGEMENTS, st.data())
def test_what_follows_already_changes_nothing(judgements: list[Judgment], data: st.DataObject) -> None:
    before = resolve(judgements)
    if before.order:
        more = data.draw(st.lists(st.sampled_from(sorted(before.order)), min_size=1, max_size=5))
        after = resolve([*judgements, *((better, worse, MARKS[0]) for better, worse in more)])
        assert (after.rank, after.order, after.conflicts) == (before.rank, before.order, before.conflicts)


@given(JUDGEMENTS, st.sampled_from(["A>B", "B>A"]))
def test_parts_that_share_no_response_do_not_meet(judgements: list[Judgment], other: str) -> None:
    better, worse = other.split(">")
    alone = resolve(judgements)
    both = resolve([*judgements, (better, worse, "1")])
    assert both.rank == alone.rank | {better: 1, worse: 2}
    assert both.order == alone.order | {(better, worse)}


@pytest.mark.heavy
def test_more_responses_than_calls_may_nest() -> None:
    draw = Random(1200)
    names = [f"r{number:04}" for number in range(1_200)]
    level = {name: number for number, name in enumerate(names)}
    near = [(names[a], names[a + step]) for a in range(1_200) for step in range(1, 6) if a + step < 1_200]
    judgements = [(a, b, SWAPPED[mark] if draw.random() < 0.005 else mark) for a, b, mark in compared(level, near)]
    found = resolve(judgements)
    assert 0 < found.conflicts < len(judgements) / 4
    assert found == expected(judgements)
