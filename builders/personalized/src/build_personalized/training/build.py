"""Build preferences with users, step by step (paper, appendix B, "Arena Training Data Construction").

The steps: load pairs by user, remove questions of benchmarks, add profiles, generate personas, split by user, audit the
pairs, write the release. A build depends only on the recipe, the sources, the benchmarks and the recorded calls.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from pluralbench_calls import recording
from pluralbench_release import LEDGER, Builder, Built, Contents, ReleaseTable, building, read_release_recipe
from pluralbench_release.errors import BuildError
from pluralbench_runs import BuildOptions

from build_personalized.audit import check
from build_personalized.build import nothing_left
from build_personalized.training.audit import audit
from build_personalized.training.card import card
from build_personalized.training.contamination import leave_out, read_benchmark
from build_personalized.training.personas import add_personas, persona_backend
from build_personalized.training.recipe import TrainingRecipe
from build_personalized.training.sources import load, pin
from build_personalized.training.splits import add_profiles, parts, split_users

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


def build(recipe: TrainingRecipe, options: BuildOptions) -> Built:
    """Build a release from a recipe.

    Raises:
        UserError: The recipe, a source, a call or the output directory has a problem; the message is for the user.
        TableError: Rows of a source or of the release break their schema.
    """
    recipe = pin(recipe)
    with building(recipe, BUILDER, options) as workspace:
        loaded = load(recipe.source, recipe.seed, workspace.work)
        clean, contamination = leave_out(loaded, [read_benchmark(place) for place in recipe.against])
        with_profiles, too_few = add_profiles(
            clean.pairs, clean.posts, min_posts=recipe.min_posts, max_posts=recipe.max_posts
        )
        selected = first_users(with_profiles, recipe.source.limit)
        # Fails before any request is sent if there are too few users for the splits.
        split_users(selected, recipe.splits, recipe.seed)
        with recording(workspace.work, workspace.ledgers, retry_errors=options.retry_errors) as calls:
            backend = persona_backend(recipe, replay=options.replay is not None)
            with_personas, no_persona = add_personas(selected, clean.posts, recipe, calls.ledger, backend)

            drops = pl.concat([clean.drops, too_few, no_persona])
            if with_personas.is_empty():
                raise BuildError(nothing_left("pair is left", drops))
            pairs = split_users(with_personas, recipe.splits, recipe.seed)
            beyond_limit = with_profiles.height - selected.height
            figures = audit(pairs, drops, contamination, source_pairs=loaded.pairs.height - beyond_limit)
            check(figures, recipe.audit, source="source_pairs", asked="prompts")

        contents = Contents(tables(pairs), loaded.sources, figures, card(recipe, figures))
        return workspace.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Rebuild a release from its own recipe and recorded calls (`pluralbench-release rebuild`); no request is sent.

    `sources` are the current locations of the sources, in the recipe's order, optionally followed by those of the
    benchmarks in `against`. Default: those of the recipe.
    """
    recipe = read_release_recipe(TrainingRecipe, release)
    count = len(recipe.source.locations)
    moved = {"source.locations": list(sources[:count]) or None, "against": list(sources[count:]) or None}
    build(read_release_recipe(TrainingRecipe, release, moved), BuildOptions(out=out, replay=release / LEDGER))


def first_users(pairs: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    """Return the pairs of the first `limit` users of each config. None: all."""
    if limit is None:
        return pairs
    users = pairs.select("config", "user_id").unique(maintain_order=True)
    first = users.group_by("config", maintain_order=True).head(limit)
    return pairs.join(first, on=["config", "user_id"], how="semi", maintain_order="left")


def tables(pairs: pl.DataFrame) -> list[ReleaseTable]:
    """Return one table per config and split, with each answer as a list of one message, as trainers read them."""
    answers = pairs.with_columns(
        pl.concat_list(pl.struct(role=pl.lit("assistant"), content=side)).alias(side) for side in ("chosen", "rejected")
    )
    return [ReleaseTable(config, split, rows.select(COLUMNS), SCHEMA) for config, split, rows in parts(answers)]
