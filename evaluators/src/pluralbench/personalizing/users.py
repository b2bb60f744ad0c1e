"""The users of `personalize`: training items, held-out items, and user contexts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_release.errors import NoSplit
from pluralbench_rewards import Group
from pluralbench_rewards.judge_prompts import persona_block

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.personas import UserPersona, read_personas
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.train import held_out_clusters
from pluralbench.results.personalize import KNOWN, NEW, SCORED, SETS, ContextSource

TRAIN, VALIDATION, TEST = "train", "validation", "test"
HELD_OUT_SHARE = 0.1
"""Share of each user's pairs that are held out: the latest ones."""
MIN_USER_PAIRS = 3  # users with fewer pairs have none held out
MIN_TRAIN_PAIRS = 10
NO_TEST = (
    "{where} has no split of test users; hold out a share of its users with `held_out=0.2`, or give other users as "
    "`held_out=...`."
)
MISSING_CONTEXT: dict[str, str] = {
    "posts": "has no posts of its users, which models with a profile read; name their column with "
    '`columns=["profile=COLUMN"]`, or set `profile="without"`',
    "persona": "has no personas of its users, which synthesizeme and `persona=True` read; give a file of `pluralbench "
    "synthesize` as `personas=...`, or leave these out",
}
HAS_CONTEXT: dict[str, Callable[[Group], bool]] = {
    "posts": lambda group: bool(group.context),
    "persona": lambda group: group.person is not None and bool(group.person.persona),
}
"""Whether a group has a kind of user context."""


class UserSplit(NamedTuple):
    """Items of some users, their groups in the same order, and the number of items that no model can read."""

    items: pl.DataFrame
    groups: list[Group]
    excluded: int = 0


@dataclass(frozen=True)
class Users:
    """The items of all users; `sets` are decided, by the names of `SETS`, and `loaded` are the splits read."""

    train: UserSplit
    validation: UserSplit | None
    sets: dict[str, UserSplit]
    loaded: dict[str, LoadedBenchmark]
    scored: LoadedBenchmark | None
    personas: Mapping[str, UserPersona] = field(default_factory=dict)

    def test_split(self) -> LoadedBenchmark:
        """Return the test split with the personas."""
        loaded = self.loaded[TEST]
        return loaded._replace(context=replace(loaded.context, personas=self.personas))


def load_users(
    benchmark: str,
    data: DataConfig,
    required: Sequence[str],
    *,
    held_out: float | str | None = None,
    scored: tuple[str, DataConfig, Sequence[str]] | None = None,
    personas: Path | None = None,
) -> Users:
    """Load the users to train on, and the sets to decide.

    Args:
        benchmark: Benchmark of the users.
        data: Their items.
        required: Kinds of user context (keys of `MISSING_CONTEXT`) that the models read.
        held_out: Share of the users to hold out as new ones, or the location of others. Default: the test split.
        scored: Another benchmark to decide, its data, and the kinds of user context that its items need.
        personas: File with personas of items or users whose data has none.

    Raises:
        DataError: A user is in two splits, there are too few users or pairs, or no item has the context.
    """
    personas_by_id = {} if personas is None else read_personas(personas)
    loaded, frames = _load_splits(benchmark, data, _prompt(required), held_out)
    _check_disjoint(frames)
    latest = _latest_pairs(frames[TRAIN])
    sources = {name: (loaded[name], frame) for name, frame in frames.items()}
    sources |= {name: (loaded[TRAIN], frames[TRAIN].filter(rows)) for name, rows in ((TRAIN, ~latest), (KNOWN, latest))}
    kinds, other = dict.fromkeys(sources, required), None
    if scored is not None:
        name, location, kinds[SCORED] = scored
        other = load_benchmark(name, location, _prompt(kinds[SCORED]), with_draw=False)
        sources[SCORED] = (other, other.items.frame)
    parts = {
        name: _split_with_context(source, frame, kinds[name], personas_by_id)
        for name, (source, frame) in sources.items()
        if frame.height
    }
    _check_size(parts[TRAIN].items, loaded[TRAIN].items.location)
    parts[NEW] = parts.pop(TEST)
    return Users(
        train=parts[TRAIN],
        validation=parts.get(VALIDATION),
        sets={name: parts[name] for name in SETS if name in parts},
        loaded=loaded,
        scored=other,
        personas=personas_by_id,
    )


def _prompt(kinds: Sequence[str]) -> PromptConfig:
    return PromptConfig(profile="raw" if "posts" in kinds else "none")


def _load_splits(
    benchmark: str, data: DataConfig, prompt: PromptConfig, held_out: float | str | None
) -> tuple[dict[str, LoadedBenchmark], dict[str, pl.DataFrame]]:

    def read(split: str, location: str | None = data.location) -> LoadedBenchmark:
        return load_benchmark(
            benchmark, data.model_copy(update={"split": split, "location": location}), prompt, with_draw=False
        )

    one_table = data.location is not None and Path(data.location).is_file()
    if one_table and held_out is None:
        raise DataError(NO_TEST.format(where=data.location))
    loaded = {TRAIN: read(TRAIN)}
    frames = {TRAIN: loaded[TRAIN].items.frame}
    if isinstance(held_out, float | int):
        test_users = held_out_clusters(frames[TRAIN]["person"].to_list(), held_out, 0)
        is_test = frames[TRAIN]["person"].is_in(sorted(test_users))
        frames = {TRAIN: frames[TRAIN].filter(~is_test), TEST: frames[TRAIN].filter(is_test)}
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


def _check_disjoint(frames: Mapping[str, pl.DataFrame]) -> None:
    for one, other in combinations(frames, 2):
        both = frames[one].join(frames[other].select("person").unique(), on="person", how="semi")
        users = both["person"].unique(maintain_order=True)
        if len(users):
            more = f" (and {len(users) - 1:,} more)" if len(users) > 1 else ""
            raise DataError(
                f"The user {users[0]}{more} is in both {one} and {other}; split the data by user, so that new users "
                "are new."
            )


def _check_size(train: pl.DataFrame, location: str) -> None:
    users = train["person"].n_unique()
    if users < 2:
        raise DataError(
            f"{location} has a single user to train on ({train['person'][0]}); give items of several users."
        )
    pairs = int((train["rank"].list.n_unique() > 1).sum())
    if pairs < MIN_TRAIN_PAIRS:
        raise DataError(f"{location} has only {pairs:,} pairs to train on; give at least {MIN_TRAIN_PAIRS}.")


def _latest_pairs(items: pl.DataFrame) -> pl.Series:
    """Which items are the latest ones of a user with enough items. Items are in the order of time."""
    count = pl.len().over("person")
    number = pl.int_range(pl.len()).over("person")
    latest = pl.max_horizontal(pl.lit(1), (count * HELD_OUT_SHARE).round().cast(pl.Int64))
    return items.select((count >= MIN_USER_PAIRS) & (number >= count.cast(pl.Int64) - latest)).to_series()


def _split_with_context(
    loaded: LoadedBenchmark, items: pl.DataFrame, required: Sequence[str], personas: Mapping[str, UserPersona]
) -> UserSplit:
    """The items with the required user context. Raises `DataError` if there is none."""
    context = replace(loaded.context, personas=personas) if personas else loaded.context
    own = loaded._replace(items=replace(loaded.items, frame=items), frame=items, blocks=None, context=context)
    groups = [*own.groups(full_context=True)]
    where = f"{loaded.items.location} (benchmark {loaded.name})"
    for kind in required:
        if not any(map(HAS_CONTEXT[kind], groups)):
            raise DataError(f"{where} {MISSING_CONTEXT[kind]}.")
    complete = [all(HAS_CONTEXT[kind](group) for kind in required) for group in groups]
    if not any(complete):
        raise DataError(
            f"{where} has no item with all user contexts that are read ({', '.join(required)}); train "
            "fewer methods at a time."
        )
    kept = [group for group, is_complete in zip(groups, complete, strict=True) if is_complete]
    return UserSplit(items.filter(pl.Series(complete)), kept, complete.count(False))


def select(part: UserSplit, indices: Sequence[int]) -> UserSplit:
    """Return the items at these indices. The others are counted as excluded."""
    excluded = part.excluded + part.items.height - len(indices)
    return UserSplit(part.items[list(indices)], [part.groups[index] for index in indices], excluded)


def with_context(part: UserSplit, source: ContextSource) -> UserSplit:
    """Return the items with a user context from posts, or from the persona; users without one keep their posts."""
    if source == "raw":
        return part
    personas = [() if group.person is None else group.person.persona for group in part.groups]
    groups = [
        replace(group, context=(persona_block(persona),)) if persona else group
        for group, persona in zip(part.groups, personas, strict=True)
    ]
    return part._replace(groups=groups)


def context_sizes(part: UserSplit, posts: int) -> Iterator[tuple[int, int | None]]:
    """Yield each item's number of posts, and of words in the first `posts` blocks; None without a block."""
    for group in part.groups:
        blocks = group.context[:posts]
        count = 0 if group.person is None else len(group.person.profile)
        yield count, len("\n".join(blocks).split()) if blocks else None
