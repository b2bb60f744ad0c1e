"""A build of preferences with users, step by step (paper, appendix B, "Arena Training Data Construction").

Group what people preferred by user; leave out what a benchmark asks; give each pair the user's other questions; have a
model sum up each user from their questions; divide the users among the splits; look for what a scorer could cheat on;
release. A build is a function of the recipe, the sources, the benchmarks and the recorded calls.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from pluralbench_calls import recording
from pluralbench_release import LEDGER, RECIPE, Builder, Built, Contents, ReleaseTable, building
from pluralbench_release.errors import NothingLeft
from pluralbench_runs import read_recipe

from build_personalized.build import nothing_left
from build_personalized.training.audit import audit, check
from build_personalized.training.card import card
from build_personalized.training.contamination import leave_out, read_benchmark
from build_personalized.training.personas import add_personas, writer_of
from build_personalized.training.profiles import add_profiles
from build_personalized.training.recipe import TrainingRecipe
from build_personalized.training.sources import load, pin
from build_personalized.training.splits import parts, split_users

BUILDER = Builder("personalized-training", "build-personalized")
SCHEMA = "PersonalizedPreferences"
COLUMNS = [
    "id",
    "user_id",
    "prompt",
    "chosen",
    "rejected",
    "profile",
    "persona",
    "persona_call",
    "source_id",
    "chosen_source",
    "rejected_source",
    "original_split",
]


def build(
    recipe: TrainingRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    fresh: bool = False,
) -> Built:
    """Build `recipe` into the release directory `out`; the other parameters are those of `build_personalized.build`.

    Raises errors of this package, of `pluralbench_calls`, `pluralbench_release`, `pluralbench_runs` and
    `pluralbench_schemas`; all are a `UserError` or a `TableError` with a sentence for the user.
    """
    recipe = pin(recipe)
    with building(recipe, out, BUILDER, replay, reuse, fresh=fresh) as making:
        loaded = load(recipe.source, recipe.seed, making.work)
        clean, contamination = leave_out(loaded, [read_benchmark(place) for place in recipe.against])
        with_profiles, too_few = add_profiles(
            clean.pairs, clean.posts, min_posts=recipe.min_posts, max_posts=recipe.max_posts
        )
        asked = first_users(with_profiles, recipe.source.limit)
        # Before anybody is asked: too few users for the splits are too few with personas, too.
        split_users(asked, recipe.splits, recipe.seed)
        with recording(making.work, making.known, retry_errors=retry_errors) as calls:
            writer = writer_of(recipe, replay=replay is not None)
            with_personas, no_persona = add_personas(asked, clean.posts, recipe, calls.ledger, writer)

            drops = pl.concat([clean.drops, too_few, no_persona])
            if with_personas.is_empty():
                raise NothingLeft(nothing_left("pair is left", drops))
            pairs = split_users(with_personas, recipe.splits, recipe.seed)
            beyond_limit = with_profiles.height - asked.height
            figures = audit(pairs, drops, contamination, source_pairs=loaded.pairs.height - beyond_limit)
            check(figures, recipe.audit)

        contents = Contents(tables(pairs), loaded.sources, figures, card(recipe, figures))
        return making.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    sources: where they are now, in the order of the recipe; behind them may stand the benchmarks of `against`.
    """
    made = read_recipe(TrainingRecipe, release / RECIPE)
    count = len(made.source.locations)
    moved = {"source.locations": list(sources[:count]) or None, "against": list(sources[count:]) or None}
    build(read_recipe(TrainingRecipe, release / RECIPE, moved), out, replay=release / LEDGER)


def first_users(pairs: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    """The pairs of at most `limit` users of each config, in the order in which they come."""
    if limit is None:
        return pairs
    users = pairs.select("config", "user_id").unique(maintain_order=True)
    first = users.group_by("config", maintain_order=True).head(limit)
    return pairs.join(first, on=["config", "user_id"], how="semi", maintain_order="left")


def tables(pairs: pl.DataFrame) -> list[ReleaseTable]:
    """A table for each config and split."""
    return [ReleaseTable(config, split, rows.select(COLUMNS), SCHEMA) for config, split, rows in parts(pairs)]
