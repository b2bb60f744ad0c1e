"""A build of Personalized RewardBench, step by step (paper, section 3.1).

Load people, posts and questions; rank each person's posts; find what they expect; have both answers written; look for
what a scorer could cheat on; release. A build is a function of the recipe, the sources and the recorded calls.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from pluralbench_calls import Replay, recording
from pluralbench_calls.retrieval import retriever
from pluralbench_release import LEDGER, RECIPE, Builder, Built, Contents, ReleaseTable, building
from pluralbench_release.errors import NothingLeft
from pluralbench_runs import read_recipe

from build_personalized.answers import add_answers, backend_of
from build_personalized.aspects import add_aspects
from build_personalized.audit import audit, check
from build_personalized.card import card
from build_personalized.profiles import rank_profiles
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sources import load, pin

BUILDER = Builder("personalized", "build-personalized")


def build(
    recipe: PersonalizedRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    fresh: bool = False,
) -> Built:
    """Build `recipe` into the release directory `out`.

    replay: take every answer from this ledger (or release) and send nothing.
    reuse: take the answers that this ledger (or release) knows and ask for the rest.
    retry_errors: ask again what the server rejected in an interrupted build.
    fresh: forget an interrupted build in `out` and replace a finished one.

    Raises errors of this package, of `pluralbench_calls`, `pluralbench_release`, `pluralbench_runs` and
    `pluralbench_schemas`; all are a `UserError` or a `TableError` with a sentence for the user.
    """
    recipe = pin(recipe)
    ranker = retriever(recipe.retriever)
    with building(recipe, out, BUILDER, replay, reuse, fresh=fresh) as making:
        loaded = load(recipe.source, making.work)
        with recording(making.work, making.known, retry_errors=retry_errors) as calls:
            replayed = Replay() if replay is not None else None
            writer, scorer = replayed or backend_of(recipe), replayed or ranker

            ranked = rank_profiles(loaded.questions, calls.ledger, ranker, scorer)
            with_aspects, no_aspects = add_aspects(ranked, recipe, calls.ledger, writer)
            pairs, no_answers = add_answers(with_aspects, recipe, calls.ledger, writer)

            drops = pl.concat([loaded.drops, no_aspects, no_answers])
            if pairs.is_empty():
                raise NothingLeft(nothing_left("question became a pair", drops))
            figures = audit(pairs, drops, questions=loaded.questions.height, word_limit=recipe.word_limit)
            check(figures, recipe.audit)

        contents = Contents(tables(pairs, recipe), loaded.sources, figures, card(recipe, figures))
        return making.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`)."""
    moved = {"source.locations": list(sources) or None}
    build(read_recipe(PersonalizedRecipe, release / RECIPE, moved), out, replay=release / LEDGER)


def tables(pairs: pl.DataFrame, recipe: PersonalizedRecipe) -> list[ReleaseTable]:
    """One table a config, in the order of the sources."""
    schema = "VerbatimPersonalizedPairs" if recipe.source.evidence == "verbatim" else "PersonalizedPairs"
    parts = pairs.partition_by("config", as_dict=True, maintain_order=True, include_key=False)
    return [ReleaseTable(str(config), recipe.source.split, frame, schema) for (config,), frame in parts.items()]


def nothing_left(what: str, drops: pl.DataFrame) -> str:
    """The sentence that there is nothing to release, and why."""
    counts = drops.group_by("reason", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.iter_rows())
    return f"No {what}: {reasons}; the calls are recorded, and --fresh starts over."
