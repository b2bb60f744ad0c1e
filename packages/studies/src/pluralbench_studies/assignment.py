"""Who gets which item: even shares, second annotators, and hidden items whose answers are known."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import polars as pl
from pluralbench_runs import rng_for

from pluralbench_studies.errors import AssignmentError

FIRST, OVERLAP, CHECK = KINDS = ("first", "overlap", "check")
ASSIGNED = pl.Schema(dict.fromkeys(("item", "annotator", "kind"), pl.String))
NAME = re.compile(r"[\w@][\w.@+-]*")

Id = TypeVar("Id", str, int)
Given = dict[tuple[str, str], str]
"""The kind of each (item, annotator)."""


def assign(
    items: pl.DataFrame,
    annotators: Sequence[str],
    *,
    seed: int,
    each: int = 1,
    overlap: float = 0.0,
    checks: Collection[str] = (),
    check_share: float = 0.05,
) -> pl.DataFrame:
    """Give items to annotators (columns of `ASSIGNED`, a row for each item given to somebody).

    items: `item`, the ids, and `group` where several items are of one kind, such as a prompt or a user; without it each
    item is a group of its own. Every item goes to `each` annotators (kind "first"), and a share `overlap` of them,
    drawn, to one more (kind "overlap"). checks: ids of items whose answers are known; check_share: so many of these are
    given once more for each item given, to annotators who do not have them (kind "check").

    All annotators get the same number of items, or one more; of a group nobody gets two while somebody has none. Nobody
    gets an item twice. The order of the groups and of the annotators changes nothing. Rows are sorted by item, as
    given, and by kind.

    Raises `AssignmentError` for items or annotators that are not there, are named twice or cannot name a file, for
    fewer annotators than an item is to have, for checks that are no items, and for more check items than there are.
    """
    names = annotator_names(annotators)
    if items.is_empty():
        raise AssignmentError("There is no item to give to anybody.")
    if items["item"].is_duplicated().any():
        again = items.filter(pl.col("item").is_duplicated())["item"][0]
        raise AssignmentError(f"The item {again} is there more than once.")
    wanted = each + (overlap > 0)
    if wanted > len(names):
        raise AssignmentError(
            f"An item is to go to {wanted} annotators, and there {'is' if len(names) == 1 else 'are'} {len(names)}; "
            "name more, or ask for fewer."
        )
    ids = items["item"].to_list()
    groups: dict[str, list[str]] = {}
    for item, group in zip(ids, items["group"] if "group" in items.columns else ids, strict=True):
        groups.setdefault(group, []).append(item)
    twice = set(draw(ids, round(overlap * len(ids)), seed, "overlap"))
    load = dict.fromkeys(names, 0)
    given: Given = {}
    for group in sorted(groups):
        given |= _give(group, groups[group], each, twice, load, seed)
    if checks and check_share:
        given |= _check_items(checks, set(ids), given, load, check_share, seed)
    rows = [(item, annotator, kind) for (item, annotator), kind in given.items()]
    place = pl.DataFrame({"item": ids, "place": range(len(ids))})
    return (
        pl.DataFrame(rows, schema=ASSIGNED, orient="row")
        .join(place, on="item")
        .sort("place", pl.col("kind").cast(pl.Enum(KINDS)), "annotator")
        .select(ASSIGNED.names())
    )


def annotator_names(annotators: Sequence[str]) -> list[str]:
    """The annotators, sorted. Raises `AssignmentError` for none, for one named twice and for one that names no file."""
    names = sorted(annotators)
    if not names:
        raise AssignmentError("No annotator is named.")
    for name in names:
        if not NAME.fullmatch(name):
            raise AssignmentError(
                f"The annotator {name!r} cannot name a file; use letters, digits, and . _ @ + - within."
            )
    for folded, count in Counter(name.casefold() for name in names).items():
        if count > 1:
            raise AssignmentError(f"The annotator {folded!r} is named {count} times.")
    return names


def draw(ids: Collection[Id], count: int, seed: int, *names: str) -> list[Id]:
    """`count` of the ids, or all, in the order drawn; more ids or a greater count change no other draw.

    names: what they are drawn for, such as "overlap": each purpose has draws of its own.
    """
    return sorted(ids, key=lambda one: (rng_for(seed, *names, one).random(), one))[:count]


def _give(
    group: str, items: Sequence[str], each: int, twice: Collection[str], load: dict[str, int], seed: int
) -> Given:
    """Give the items of a group, going round the annotators; those with the fewest items come first."""
    people = [*load]
    rng_for(seed, "annotators", group).shuffle(people)
    people.sort(key=load.__getitem__)
    given: Given = {}
    slot = 0
    for item in items:
        for number in range(each + (item in twice)):
            annotator = people[slot % len(people)]
            given[item, annotator] = FIRST if number < each else OVERLAP
            load[annotator] += 1
            slot += 1
    return given


def _check_items(
    checks: Collection[str],
    known: Collection[str],
    given: Mapping[tuple[str, str], str],
    load: dict[str, int],
    share: float,
    seed: int,
) -> Given:
    """Check items, each to the annotator with the fewest items who has not had all of them."""
    strange = sorted(set(checks) - set(known))
    if strange:
        raise AssignmentError(f"The check item {strange[0]} is none of the items; name items that are given out.")
    left = {
        name: draw([item for item in set(checks) if (item, name) not in given], len(checks), seed, "check", name)
        for name in load
    }
    wanted, there = round(share * len(given)), sum(map(len, left.values()))
    if wanted > there:
        raise AssignmentError(
            f"{wanted:,} check items are asked for, and {len(set(checks)):,} known answers make {there:,} for these "
            f"annotators; give more, or a `check_share` of {there / len(given):.3f} at most."
        )
    drawn = rng_for(seed, "checks")
    found: Given = {}
    for _ in range(wanted):
        able = [name for name in load if left[name]]
        fewest = min(load[name] for name in able)
        annotator = drawn.choice([name for name in able if load[name] == fewest])
        found[left[annotator].pop(), annotator] = CHECK
        load[annotator] += 1
    return found
