"""Assign items to annotators: equal shares, second annotators, and hidden items with known answers."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TypeVar

import polars as pl
from pluralbench_runs import rng_for

from pluralbench_studies.errors import StudyError
from pluralbench_studies.reading import CONSENSUS

FIRST, OVERLAP, CHECK = KINDS = ("first", "overlap", "check")
ASSIGNED = pl.Schema(dict.fromkeys(("item", "annotator", "kind"), pl.String))
NAME = re.compile(r"[\w@][\w.@+-]*")

Id = TypeVar("Id", str, int)


def assign(
    items: pl.DataFrame,
    annotators: Sequence[str],
    *,
    seed: int,
    annotators_per_item: int = 1,
    overlap: float = 0.0,
    checks: Collection[str] = (),
    check_share: float = 0.05,
) -> pl.DataFrame:
    """Assign items to annotators.

    All annotators get the same number of items, or one more. No annotator gets two items of a group while another one
    has none, or the same item twice. The order of groups and annotators changes nothing.

    Args:
        items: Ids of the items (`item`), and optionally their groups (`group`), such as a prompt or a user. Default:
            each item is a group.
        annotators: Names of the annotators.
        seed: Seed of the draws.
        annotators_per_item: Number of annotators of each item (kind "first").
        overlap: Share of the items that get one more annotator (kind "overlap").
        checks: Ids of items with known answers.
        check_share: Number of check items per assigned item. They go to annotators who do not have the item (kind
            "check").

    Returns:
        Columns of `ASSIGNED`, a row for each assigned item, in the order of `items`, then by kind.

    Raises:
        StudyError: If there are no items or annotators, names repeat or cannot be file names, there are too few
            annotators or check items, or a check item is not an item.
    """
    names = check_annotators(annotators)
    if items.is_empty():
        raise StudyError("There are no items to assign.")
    if items["item"].is_duplicated().any():
        duplicate = items.filter(pl.col("item").is_duplicated())["item"][0]
        raise StudyError(f"The item {duplicate} occurs more than once; give each item an id of its own.")
    needed = annotators_per_item + (overlap > 0)
    if needed > len(names):
        raise StudyError(
            f"An item needs {needed} annotators, and there {'is' if len(names) == 1 else 'are'} {len(names)}; name "
            "more, or assign items to fewer."
        )
    ids = items["item"].to_list()
    groups: dict[str, list[str]] = {}
    for item, group in zip(ids, items["group"] if "group" in items.columns else ids, strict=True):
        groups.setdefault(group, []).append(item)
    overlapping = set(draw(ids, round(overlap * len(ids)), seed, "overlap"))
    given = _Assignments(dict.fromkeys(names, 0), seed)
    for group in sorted(groups):
        given.add_group(group, groups[group], annotators_per_item, overlapping)
    if checks and check_share:
        unknown = sorted(set(checks) - set(ids))
        if unknown:
            raise StudyError(f"The check item {unknown[0]} is not one of the items; name items that are assigned.")
        given.add_checks(set(checks), check_share)
    rows = [(item, annotator, kind) for (item, annotator), kind in given.kinds.items()]
    order = pl.DataFrame({"item": ids, "order": range(len(ids))})
    return (
        pl.DataFrame(rows, schema=ASSIGNED, orient="row")
        .join(order, on="item")
        .sort("order", pl.col("kind").cast(pl.Enum(KINDS)), "annotator")
        .select(ASSIGNED.names())
    )


def check_annotators(annotators: Sequence[str]) -> list[str]:
    """Return the annotators' names, sorted.

    Raises:
        StudyError: If there is no name, one repeats or is `CONSENSUS`, or one cannot be a file name.
    """
    names = sorted(annotators)
    if not names:
        raise StudyError("There are no annotators; name at least one.")
    if CONSENSUS in names:
        raise StudyError(f"No annotator can be named {CONSENSUS}: that name stands for the result of a discussion.")
    for name in names:
        if not NAME.fullmatch(name):
            raise StudyError(
                f"The annotator {name!r} cannot be a file name; use letters and digits, and . _ @ + - after the first."
            )
    for folded, count in Counter(name.casefold() for name in names).items():
        if count > 1:
            raise StudyError(f"The annotator {folded!r} is named {count} times; name each one once.")
    return names


def draw(ids: Collection[Id], count: int, seed: int, *names: str) -> list[Id]:
    """Draw `count` of the ids, or all, in random order. More ids or a larger count change no other draw.

    `names` are the purpose of the draw, such as "overlap"; each purpose has its own draws.
    """
    return sorted(ids, key=lambda one: (rng_for(seed, *names, one).random(), one))[:count]


def draw_rows(frame: pl.DataFrame, limit: int | None, seed: int, *names: str) -> pl.DataFrame:
    """Return the rows with one of at most `limit` drawn values of `id` (see `draw`); None: all rows."""
    ids: list[str] = frame["id"].unique().to_list()
    return frame.filter(pl.col("id").is_in(draw(ids, len(ids) if limit is None else limit, seed, *names)))


@dataclass
class _Assignments:
    load: dict[str, int]
    seed: int
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)

    def _add(self, item: str, annotator: str, kind: str) -> None:
        self.kinds[item, annotator] = kind
        self.load[annotator] += 1

    def add_group(self, group: str, items: Sequence[str], each: int, overlapping: Collection[str]) -> None:
        """Assign the items of a group round-robin, beginning with the annotators with the fewest items."""
        annotators = [*self.load]
        rng_for(self.seed, "annotators", group).shuffle(annotators)
        annotators.sort(key=self.load.__getitem__)
        turns = cycle(annotators)
        for item in items:
            for number in range(each + (item in overlapping)):
                self._add(item, next(turns), FIRST if number < each else OVERLAP)

    def add_checks(self, checks: Collection[str], share: float) -> None:
        """Assign check items, each to the annotator with the fewest items who has check items left."""
        remaining = {
            name: draw([one for one in checks if (one, name) not in self.kinds], len(checks), self.seed, "check", name)
            for name in self.load
        }
        total, available = len(self.kinds), sum(map(len, remaining.values()))
        needed = round(share * total)
        if needed > available:
            raise StudyError(
                f"{needed:,} check items are needed, and {len(checks):,} known answers make {available:,} for these "
                f"annotators; add known answers, or lower `check_share=...` to {available / total:.3f}."
            )
        rng = rng_for(self.seed, "checks")
        for _ in range(needed):
            candidates = [name for name in self.load if remaining[name]]
            fewest = min(self.load[name] for name in candidates)
            annotator = rng.choice([name for name in candidates if self.load[name] == fewest])
            self._add(remaining[annotator].pop(), annotator, CHECK)
