"""Which items are shown together, three at a time, so that each pair of them is compared at least once.

A smallest covering design C(v, 3, 2) has ceil(v/3 * ceil((v - 1)/2)) triples whatever v (Fort and Hedlund, 1958), but
for v = 5, which has four. Where v is 3 or 1 (mod 6) it is a Steiner triple system, by Bose and by Skolem; where it is
5, all pairs fall into triples and one block of five; an even v adds a point to the design of one less (Lindner and
Rodger, Design Theory, chapter 1).
"""

from collections.abc import Callable, Iterator
from itertools import combinations, cycle

Block = tuple[int, ...]

# The smallest coverings of five and six points, into which the block of five is broken.
FIVE: list[Block] = [(0, 1, 2), (0, 3, 4), (1, 3, 4), (2, 3, 4)]
SIX: list[Block] = [(0, 1, 2), (0, 1, 3), (2, 3, 4), (2, 3, 5), (0, 4, 5), (1, 4, 5)]


def covering_design(count: int) -> list[Block]:
    """Triples of the places 0 to count - 1 that hold every pair of them, as few as can be, sorted.

    Two places make one block of two. Raises `ValueError` for fewer.
    """
    if count < 2:
        raise ValueError(f"{count} items make no pair.")
    return [(0, 1)] if count == 2 else _smallest(count)


def _smallest(count: int) -> list[Block]:
    if count % 2:
        blocks = {1: _skolem, 3: _bose, 5: _with_five}[count % 6](count // 6)
        return sorted(tuple(sorted(block)) for block in (*blocks, *(FIVE if count % 6 == 5 else ())))
    new = count - 1
    if count % 6:
        blocks, alone = _smallest(new), [*range(new)]
    else:
        # The new point and the block of five are covered together.
        where = {**dict(enumerate(range(5))), 5: new}
        six = [tuple(where[point] for point in block) for block in SIX]
        blocks, alone = [*_with_five(count // 6 - 1), *six], [*range(5, new)]
    if len(alone) % 2:
        alone.append(alone[0])
    pairs = zip(alone[::2], alone[1::2], strict=True)
    return sorted(tuple(sorted(block)) for block in (*blocks, *((a, b, new) for a, b in pairs)))


def _levels(order: int, times: Callable[[int, int, int], int]) -> Iterator[Block]:
    """For each pair a < b and each of three levels of `order` points: both there, and their product one level on."""
    for a, b in combinations(range(order), 2):
        for level in range(3):
            here, on = level * order, (level + 1) % 3 * order
            yield here + a, here + b, on + times(level, a, b)


def _columns(order: int, count: int) -> list[Block]:
    return [(a, order + a, 2 * order + a) for a in range(count)]


def _bose(k: int) -> list[Block]:
    """The Steiner triple system of 6k + 3 points."""
    order = 2 * k + 1
    return [*_columns(order, order), *_levels(order, lambda _, a, b: (a + b) * (k + 1) % order)]


def _skolem(k: int) -> list[Block]:
    """The Steiner triple system of 6k + 1 points, of which the last is on no level."""
    order = 2 * k

    def times(_: int, a: int, b: int) -> int:
        half, odd = divmod((a + b) % order, 2)
        return half + k * odd

    rest = [(3 * order, level * order + k + a, (level + 1) % 3 * order + a) for level in range(3) for a in range(k)]
    return [*_columns(order, k), *rest, *_levels(order, times)]


def _with_five(k: int) -> list[Block]:
    """Triples of 6k + 5 points that hold each pair once, but for the pairs of the first five points."""
    order = 2 * k + 1
    extra = (3 * order, 3 * order + 1)

    def times(level: int, a: int, b: int) -> int:
        product = (a + b) * (k + 1) % order
        return product % (2 * k) + 1 if level == 2 and product else product

    # The pairs that no product makes: a triangle, which the block of five takes up, and a circle of even length, whose
    # edges go to the two extra points in turn.
    circle = [level * order + a for a in range(1, order) for level in range(3)]
    edges = zip(circle, circle[1:] + circle[:1], cycle(extra))
    five = (*extra, *(level * order for level in range(3)))
    place = {point: number for number, point in enumerate((*five, *circle))}
    return [tuple(place[point] for point in block) for block in (*edges, *_levels(order, times))]
