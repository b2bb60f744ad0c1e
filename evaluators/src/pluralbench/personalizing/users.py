"""The users that personalized reward models are trained and judged on: their items, apart, and what is told of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_release.errors import NoSplit
from pluralbench_rewards import Group
from pluralbench_rewards.personas import persona_block

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.personas import UserPersona, read_personas
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.train import held_out_clusters
from pluralbench.results.personalize import KNOWN, NEW, SCORED, SETS, ContextSource

TRAIN, VALIDATION, TEST = "train", "validation", "test"
LATEST = 0.1
"""The share of a user's pairs that are held out, the latest, of whom there are enough."""
ENOUGH = 3
FEWEST = 10  # pairs to train on
NO_TEST = (
    "{where} has no split of users to test on; say which share of its users is held out, such as --held-out 0.2, or "
    "where others are."
)
NOT_TOLD: dict[str, str] = {
    "posts": "has no posts of its users, which models with a profile are told; name their column (--column "
    "profile=COLUMN), or train without (--profile without)",
    "persona": "has no persona of its users, which synthesizeme and --persona read; build the data with personas, give "
    "--personas FILE (`pluralbench synthesize` writes one), or leave these out",
}
HAS: dict[str, Callable[[Group], bool]] = {
    "posts": lambda group: bool(group.context),
    "persona": lambda group: group.person is not None and bool(group.person.persona),
}
"""Whether what a model needs to be told is known of the person of a group."""


class UserSplit(NamedTuple):
    """Items and the groups of them, in the same order. left_out: items of whose person nothing is known to tell."""

    items: pl.DataFrame
    groups: list[Group]
    left_out: int = 0


@dataclass(frozen=True)
class Users:
    """All items. loaded: the splits they are from. sets: what is decided, by the names of `SETS`."""

    train: UserSplit
    validation: UserSplit | None
    sets: dict[str, UserSplit]
    loaded: dict[str, LoadedBenchmark]
    scored: LoadedBenchmark | None
    personas: Mapping[str, UserPersona] = field(default_factory=dict)

    def described(self) -> LoadedBenchmark:
        """New users, with all that is known of people."""
        loaded = self.loaded[TEST]
        return loaded._replace(context=replace(loaded.context, personas=self.personas))


class ContextNeeds(NamedTuple):
    """What models are told of: keys of `NOT_TOLD`, and the prompt that says it, here and in another benchmark."""

    told: tuple[str, ...]
    prompt: PromptConfig
    scored: tuple[str, ...]
    scored_prompt: PromptConfig


def load_users(
    benchmark: str,
    data: DataConfig,
    needs: ContextNeeds,
    *,
    held_out: float | str | None = None,
    scored: tuple[str, DataConfig] | None = None,
    personas: Path | None = None,
) -> Users:
    """Read the users to train on, and the sets that are decided.

    held_out: without it the data's test split has the new users; a share of the users of its train split, or where
    others are. scored: another benchmark and its data. personas: of items or persons whose data has none.

    Raises `DataError` for users that are in two parts, for fewer than two users or `FEWEST` pairs to train on, and
    where nothing is known that `needs` names.
    """
    known = {} if personas is None else read_personas(personas)
    loaded, frames = _splits(benchmark, data, needs.prompt, held_out)
    _check_apart(frames)
    newest = _newest(frames[TRAIN])
    every = {name: (loaded[name], frame) for name, frame in frames.items()}
    every |= {name: (loaded[TRAIN], frames[TRAIN].filter(rows)) for name, rows in ((TRAIN, ~newest), (KNOWN, newest))}
    other = None if scored is None else load_benchmark(scored[0], scored[1], needs.scored_prompt)
    if other is not None:
        every[SCORED] = (other, other.items.frame)
    parts = {
        name: _told(one, frame, needs.scored if name == SCORED else needs.told, known)
        for name, (one, frame) in every.items()
        if frame.height
    }
    _check_enough(parts[TRAIN].items, loaded[TRAIN].items.location)
    parts[NEW] = parts.pop(TEST)
    return Users(
        train=parts[TRAIN],
        validation=parts.get(VALIDATION),
        sets={name: parts[name] for name in SETS if name in parts},
        loaded=loaded,
        scored=other,
        personas=known,
    )


def _splits(
    benchmark: str, data: DataConfig, prompt: PromptConfig, held_out: float | str | None
) -> tuple[dict[str, LoadedBenchmark], dict[str, pl.DataFrame]]:
    """The splits as they were read, and the items of each part."""

    def read(split: str, location: str | None = data.location) -> LoadedBenchmark:
        return load_benchmark(benchmark, data.model_copy(update={"split": split, "location": location}), prompt)

    one_table = data.location is not None and Path(data.location).is_file()
    if one_table and held_out is None:
        raise DataError(NO_TEST.format(where=data.location))
    loaded = {TRAIN: read(TRAIN)}
    frames = {TRAIN: loaded[TRAIN].items.frame}
    if isinstance(held_out, float | int):
        chosen = held_out_clusters(frames[TRAIN]["person"].to_list(), held_out, 0)
        theirs = frames[TRAIN]["person"].is_in(sorted(chosen))
        frames = {TRAIN: frames[TRAIN].filter(~theirs), TEST: frames[TRAIN].filter(theirs)}
        loaded[TEST] = loaded[TRAIN]
    else:
        try:
            loaded[TEST] = read(TEST, held_out or data.location)
        except NoSplit:
            raise DataError(NO_TEST.format(where=held_out or data.location)) from None
        frames[TEST] = loaded[TEST].items.frame
    if not one_table:
        try:
            loaded[VALIDATION] = read(VALIDATION)
        except NoSplit:
            return loaded, frames
        frames[VALIDATION] = loaded[VALIDATION].items.frame
    return loaded, frames


def _check_apart(frames: Mapping[str, pl.DataFrame]) -> None:
    for one, other in combinations(frames, 2):
        both = frames[one].join(frames[other].select("person").unique(), on="person", how="semi")
        users = both["person"].unique(maintain_order=True)
        if len(users):
            more = f", and so are {len(users) - 1:,} more" if len(users) > 1 else ""
            raise DataError(
                f"The user {users[0]} is among those of {one} and those of {other}{more}; split the data by user, so "
                "that new users are new."
            )


def _check_enough(train: pl.DataFrame, location: str) -> None:
    users = train["person"].n_unique()
    if users < 2:
        raise DataError(
            f"{location} has a single user to train on ({train['person'][0]}); what differs between users can only be "
            "learned of several."
        )
    pairs = int((train["rank"].list.n_unique() > 1).sum())
    if pairs < FEWEST:
        raise DataError(f"{location} has {pairs:,} pairs to train on, which are too few; give {FEWEST} or more.")


def _newest(items: pl.DataFrame) -> pl.Series:
    """Which items are the latest of users who have enough, in whose order they stand."""
    number = pl.len().over("person")
    place = pl.int_range(pl.len()).over("person")
    latest = pl.max_horizontal(pl.lit(1), (number * LATEST).round().cast(pl.Int64))
    return items.select((number >= ENOUGH) & (place >= number.cast(pl.Int64) - latest)).to_series()


def _told(
    loaded: LoadedBenchmark, items: pl.DataFrame, needed: Sequence[str], personas: Mapping[str, UserPersona]
) -> UserSplit:
    """The items of whose person is known what is needed. Raises `DataError` where there is none."""
    context = replace(loaded.context, personas=personas) if personas else loaded.context
    groups = loaded._replace(items=replace(loaded.items, frame=items), frame=items, context=context).groups(
        full_context=True
    )
    for what in needed:
        if not any(map(HAS[what], groups)):
            raise DataError(f"{loaded.items.location} {NOT_TOLD[what]}.")
    there = [all(HAS[what](group) for what in needed) for group in groups]
    if not any(there):
        raise DataError(
            f"{loaded.items.location} has no item whose user has all that is told ({', '.join(needed)}); train fewer "
            "methods at a time."
        )
    kept = [group for group, has in zip(groups, there, strict=True) if has]
    return UserSplit(items.filter(pl.Series(there)), kept, there.count(False))


def kept(part: UserSplit, places: Sequence[int]) -> UserSplit:
    """The items at these places; the others are left out too, as those that are longer than the backbone reads."""
    left = part.left_out + part.items.height - len(places)
    return UserSplit(part.items[list(places)], [part.groups[place] for place in places], left)


def with_context(part: UserSplit, told: ContextSource) -> UserSplit:
    """The part as a model is told of its users: by posts (raw), or by a persona, and by posts who has none."""
    if told == "raw":
        return part
    personas = [() if group.person is None else group.person.persona for group in part.groups]
    groups = [
        replace(group, context=(persona_block(has),)) if has else group
        for group, has in zip(part.groups, personas, strict=True)
    ]
    return part._replace(groups=groups)


def context_sizes(part: UserSplit, posts: int) -> Iterator[tuple[int, int | None]]:
    """Of each item how many posts its user has, and how many words are told; None where nothing is.

    posts: the most blocks of what is told that a model reads.
    """
    for group in part.groups:
        blocks = group.context[:posts]
        known = 0 if group.person is None else len(group.person.profile)
        yield known, len("\n".join(blocks).split()) if blocks else None
