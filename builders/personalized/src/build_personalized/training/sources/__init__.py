"""Where preferences with users come from: corpora on the Hub, tables, Stack Exchange, or the sample in this package."""

from pathlib import Path

import polars as pl
from pluralbench_release import pinned
from pluralbench_release.errors import SourceError
from pluralbench_runs import check_path_name, public_location

from build_personalized.sources.loaded import explained
from build_personalized.training.recipe import OF_AGAINST, TrainingRecipe, TrainingSource
from build_personalized.training.sources import stack_exchange, tables
from build_personalized.training.sources.loaded import Preferences
from build_personalized.training.sources.tables import CORPORA, PUBLISHED

SAMPLE = Path(__file__).parent.parent / "sample"
KINDS = {"sample", "table", "stack-exchange", *CORPORA}
ALONE = {"sample": True, "table": False, "stack-exchange": False}  # whether a location has nothing behind its kind

__all__ = ["SAMPLE", "Preferences", "load", "pin"]


def pin(recipe: TrainingRecipe) -> TrainingRecipe:
    """The recipe with each place on the Hub pinned to the commit it stands at now; pinned ones ask nobody."""
    locations = [_pinned(location) for location in recipe.source.locations]
    with explained(OF_AGAINST):
        against = [place if place == "sample" else pinned(place) for place in recipe.against]
    source = recipe.source.model_copy(update={"locations": locations})
    return recipe.model_copy(update={"source": source, "against": against})


def load(source: TrainingSource, seed: int, scratch: Path) -> Preferences:
    """Read every location; dumps come after the others. scratch: a directory for temporary files of a large dump.

    Raises `SourceError`, and `pluralbench_runs.UserError` for a config that cannot be called so.
    """
    twice = [location for location in source.locations if source.locations.count(location) > 1]
    if twice:
        raise SourceError(f"The source {twice[0]} is given twice.")
    split = [_split(location) for location in source.locations]
    parts = [_load(kind, rest, source) for kind, rest in split if kind != "stack-exchange"]
    dumps = [Path(rest) for kind, rest in split if kind == "stack-exchange"]
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
    """A config is of one source, and a user of one config, so that users can be kept apart by their ids."""
    configs = [config for part in parts for config in part.pairs["config"].unique(maintain_order=True)]
    for config in configs:
        check_path_name(config, "A config of the sources (which `config_names` can rename)")
        if configs.count(config) > 1:
            raise SourceError(f"Two sources have the config {config!r}; rename one of their files.")
    users = pairs.group_by("user_id", maintain_order=True).agg(pl.col("config").unique(maintain_order=True))
    for user, both in users.filter(pl.col("config").list.len() > 1).head(1).rows():
        raise SourceError(
            f"The user {user!r} is in {' and '.join(both[:2])}, and users are kept apart by their ids; give other "
            "people other ids, or put the pairs of one person into one table."
        )


def _load(kind: str, rest: str, source: TrainingSource) -> Preferences:
    if kind == "sample":
        return tables.load(
            str(SAMPLE / "pairs.jsonl"),
            {},
            source.model_copy(update={"licence": "apache-2.0"}),
            name="PluralBench sample",
            attribution="Invented for PluralBench.",
            config="sample",
            shown="sample",
        )
    if kind == "table":
        place = public_location(rest)
        return tables.load(rest, source.columns, source, name=place, attribution=f"The authors of {place}.")
    corpus, place = CORPORA[kind], rest or CORPORA[kind].hub
    return tables.load(place, PUBLISHED, source, name=corpus.name, attribution=corpus.attribution, config=kind)


def _pinned(location: str) -> str:
    kind, rest = _split(location)
    if kind == "table":
        return f"table:{pinned(rest)}"
    return f"{kind}:{pinned(rest or CORPORA[kind].hub)}" if kind in CORPORA else location


def _split(location: str) -> tuple[str, str]:
    kind, _, rest = location.partition(":")
    if kind not in KINDS or ALONE.get(kind) is bool(rest):
        meant = "stack-exchange" if location.endswith(".xml") else "table"
        hint = f"; did you mean `{meant}:{location}`?" if kind not in KINDS and Path(location).suffix else "."
        raise SourceError(
            f"Unknown source {location!r}: give `sample`, `arena`, `prism` (each of these two also with `:DIRECTORY` "
            f"or `:ORG/NAME@REVISION`), `table:FILE_OR_DIR` or `stack-exchange:POSTS_XML`{hint}"
        )
    return kind, rest
