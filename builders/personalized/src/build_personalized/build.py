"""Build Personalized RewardBench, step by step (paper, section 3.1).

The steps: load questions and profiles, rank the posts of each profile, extract rubric aspects, generate both answers,
audit the pairs, write the release. A build depends only on the recipe, the sources and the recorded calls.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from pluralbench_calls import Replay, recording
from pluralbench_calls.retrieval import retriever
from pluralbench_release import LEDGER, Builder, Built, Contents, ReleaseTable, building, read_release_recipe
from pluralbench_release.errors import BuildError
from pluralbench_runs import BuildOptions

from build_personalized.answers import add_answers, answer_backend
from build_personalized.aspects import add_aspects
from build_personalized.audit import audit, check
from build_personalized.card import card
from build_personalized.profile_ranking import rank_profiles
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sources import load, pin

BUILDER = Builder("personalized", "build-personalized")


def build(recipe: PersonalizedRecipe, options: BuildOptions) -> Built:
    """Build a release from a recipe.

    Raises:
        UserError: The recipe, a source, a call or the output directory has a problem; the message is for the user.
        TableError: Rows of a source or of the release break their schema.
    """
    recipe = pin(recipe)
    ranker = retriever(recipe.retriever)
    with building(recipe, BUILDER, options) as workspace:
        loaded = load(recipe.source, workspace.work)
        with recording(workspace.work, workspace.ledgers, retry_errors=options.retry_errors) as calls:
            recorded = None if options.replay is None else Replay()
            writer, scorer = recorded or answer_backend(recipe, calls.ledger), recorded or ranker

            ranked = rank_profiles(loaded.questions, calls.ledger, ranker, scorer)
            with_aspects, no_aspects = add_aspects(ranked, recipe, calls.ledger, writer)
            pairs, no_answers = add_answers(with_aspects, recipe, calls.ledger, writer)

            drops = pl.concat([loaded.drops, no_aspects, no_answers])
            if pairs.is_empty():
                raise BuildError(nothing_left("question became a pair", drops))
            figures = audit(pairs, drops, questions=loaded.questions.height, word_limit=recipe.word_limit)
            check(figures, recipe.audit)

        contents = Contents(tables(pairs, recipe), loaded.sources, figures, card(recipe, figures))
        return workspace.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Rebuild a release from its own recipe and recorded calls (`pluralbench-release rebuild`); no request is sent.

    `sources` are the current locations of the sources, in the recipe's order. Default: those of the recipe.
    """
    moved = {"source.locations": list(sources) or None}
    build(read_release_recipe(PersonalizedRecipe, release, moved), BuildOptions(out=out, replay=release / LEDGER))


def tables(pairs: pl.DataFrame, recipe: PersonalizedRecipe) -> list[ReleaseTable]:
    """Return one table per config, in the order of the sources."""
    schema = "VerbatimPersonalizedPairs" if recipe.source.evidence == "verbatim" else "PersonalizedPairs"
    parts = pairs.partition_by("config", as_dict=True, maintain_order=True, include_key=False)
    split = recipe.source.split
    return [ReleaseTable(str(config), split, frame, schema, scored=True) for (config,), frame in parts.items()]


def nothing_left(missing: str, drops: pl.DataFrame) -> str:
    """Return the message for a build without rows, with the reasons of the drops."""
    counts = drops.group_by("reason", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    reasons = ", ".join(f"{count:,} dropped ({reason})" for reason, count in counts.iter_rows())
    return f"No {missing}: {reasons}; the calls are recorded, and `fresh=True` starts over."
