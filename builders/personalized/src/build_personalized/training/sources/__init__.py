"""Sources of preferences with users: corpora on the Hub, tables, Stack Exchange, and the sample in this package."""

from pathlib import Path

import polars as pl
from pluralbench_release import pinned
from pluralbench_release.errors import SourceError
from pluralbench_runs import check_path_name, public_location

from build_personalized.sources.loaded import Preferences, source_error_hint, split_location, split_locations
from build_personalized.training.recipe import AGAINST_HINT, TrainingRecipe, TrainingSource
from build_personalized.training.sources import stack_exchange, tables
from build_personalized.training.sources.tables import CORPORA, PUBLISHED

SAMPLE = Path(__file__).parent.parent / "sample"
KINDS = {"sample": False, "table": True, "stack-exchange": True, **dict.fromkeys(CORPORA)}
FORMS = (
    "`sample`, `arena`, `prism` (each of these two also with `:DIRECTORY` or `:ORG/NAME@REVISION`), "
    "`table:FILE_OR_DIR` or `stack-exchange:POSTS_XML`"
)

__all__ = ["SAMPLE", "Preferences", "load", "pin"]


def pin(recipe: TrainingRecipe) -> TrainingRecipe:
    """Pin each Hub location of the recipe to its current commit; locations with a revision need no request."""
    locations = [_pin_location(location) for location in recipe.source.locations]
    with source_error_hint(AGAINST_HINT):
        against = [place if place == "sample" else pinned(place) for place in recipe.against]
    source = recipe.source.model_copy(update={"locations": locations})
    return recipe.model_copy(update={"source": source, "against": against})


def load(source: TrainingSource, seed: int, scratch: Path) -> Preferences:
    """Read all locations of a source. Rows of dumps follow those of the other locations.

    `seed` draws rejected answers, `scratch` holds the temporary files of a large dump.

    Raises:
        SourceError: A location is missing, damaged or unknown, or sources share a config or a user.
        UserError: A config's name cannot be used as a directory.
    """
    others, dumps = split_locations(source.locations, KINDS, FORMS)
    parts = [_load(kind, rest, source) for kind, rest in others]
    if dumps:
        parts.append(stack_exchange.load(dumps, source, seed, scratch))
    renamed = pl.col("config").replace(source.config_names)
    pairs = pl.concat([part.pairs for part in parts]).with_columns(renamed)
    if pairs.is_empty():
        raise SourceError(f"{', '.join(source.locations)}: the source has no pairs.")
    _check_configs(parts, pairs)
    return Preferences(
        pairs,
        pl.concat([part.posts for part in parts]).with_columns(renamed),
        pl.concat([part.drops for part in parts]).with_columns(renamed),
        [entry for part in parts for entry in part.sources],
    )


def _check_configs(parts: list[Preferences], pairs: pl.DataFrame) -> None:
    """Check that each config is in one source and each user in one config, so that user ids are unique."""
    configs = [config for part in parts for config in part.pairs["config"].unique(maintain_order=True)]
    for config in configs:
        check_path_name(config, "A config of the sources (which `config_names` can rename)")
        if configs.count(config) > 1:
            raise SourceError(f"Two sources have the config {config!r}; rename one of their files.")
    users = pairs.group_by("user_id", maintain_order=True).agg(pl.col("config").unique(maintain_order=True))
    for user, shared in users.filter(pl.col("config").list.len() > 1).head(1).rows():
        raise SourceError(
            f"The user {user!r} is in {' and '.join(shared[:2])}, but a user id must be in one config only. Rename the "
            "id if they are different people; otherwise put the pairs into one table."
        )


def _load(kind: str, rest: str, source: TrainingSource) -> Preferences:
    if kind == "sample":
        return tables.load(
            str(SAMPLE / "pairs.jsonl"),
            {},
            source.model_copy(update={"license": "apache-2.0"}),
            name="PluralBench sample",
            attribution="Invented for PluralBench.",
            config="everyday_questions",
            shown="sample",
        )
    if kind == "table":
        place = public_location(rest)
        return tables.load(rest, source.columns, source, name=place, attribution=f"The authors of {place}.")
    corpus, place = CORPORA[kind], rest or CORPORA[kind].hub
    return tables.load(place, PUBLISHED, source, name=corpus.name, attribution=corpus.attribution, config=kind)


def _pin_location(location: str) -> str:
    kind, rest = split_location(location, KINDS, FORMS)
    if kind == "table":
        return f"table:{pinned(rest)}"
    return f"{kind}:{pinned(rest or CORPORA[kind].hub)}" if kind in CORPORA else location
