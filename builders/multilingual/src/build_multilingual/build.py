"""A build of M-RewardBench, step by step (paper, section 3).

Load the English pairs; have them translated, language by language; check each text and ask again once what fails; drop
what has no good translation; make pairs of better and worse translations; release. A build is a function of the recipe,
the sources and the recorded calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Ledger, Replay, recording
from pluralbench_release import (
    LEDGER,
    Builder,
    Built,
    Contents,
    ReleaseTable,
    building,
    read_release_recipe,
)
from pluralbench_release.errors import NothingLeft, SourceError
from pluralbench_runs import ClusterConfig
from pluralbench_runs.workers import ParallelMap, cluster_workers, workers
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of

from build_multilingual import filtering, rated, source, translation_pairs
from build_multilingual.audit import audits, check_audits
from build_multilingual.card import card
from build_multilingual.figures import figures_of, translation_figures
from build_multilingual.preferred import check_known, read_preferred, review_figures
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.review import check_folder, export_review
from build_multilingual.translate import IDENTICAL, SET_ASIDE, Asking, english_rows, mask_all, translate
from build_multilingual.translators import translator

BUILDER = Builder("multilingual", "build-multilingual")
SAMPLE_LEDGER = source.SAMPLE / "ledger.parquet"
DECISIONS, PREFERRED = "provenance/decisions.parquet", "provenance/preferred.parquet"
SPLIT = "test"
TRANSLATION = "translation"
# Translations from which on checking them in other processes saves more than it takes to start these.
ENOUGH = 20_000


def build(
    recipe: MultilingualRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    review: Path | None = None,
    review_rows: int | None = None,
    fresh: bool = False,
    processes: int = 1,
    cluster: ClusterConfig | None = None,
) -> Built:
    """Build `recipe` into the release directory `out`.

    replay: take every answer from this ledger (or release) and send nothing.
    reuse: take the answers that this ledger (or release) knows and ask for the rest.
    retry_errors: ask again what the translator refused in an interrupted build.
    review: a folder for review sheets, of at most `review_rows` rows a language.
    fresh: forget an interrupted build in `out` and replace a finished one.
    processes: how many check translations and audit pairs beside this one, where there are enough of these; 1 does all
    in this one. A script that asks for more does so under `if __name__ == "__main__":`.
    cluster: where they work instead.

    Raises errors of this package, of `pluralbench_release.audit`, `pluralbench_calls`, `pluralbench_release`,
    `pluralbench_runs` and `pluralbench_schemas`; all are a `UserError` or a `TableError` with a sentence for the user.
    """
    recipe, decisions = _pinned(recipe)
    reviewed = read_preferred(recipe.review.decisions, recipe.review.preferred, recipe.review.judged)
    if review is not None:
        check_folder(review)
    sample = SAMPLE_LEDGER if recipe.source is not None and recipe.source.location == "sample" else None
    with building(recipe, out, BUILDER, replay, reuse, sample, fresh=fresh) as making:
        # A mistake here is found before anybody is paid for a translation.
        pairs, rated_read = _translation_pairs(recipe)
        english = source.load(recipe.source) if recipe.source and (recipe.languages or recipe.english) else None
        texts = 0 if english is None else english.pairs.height * len(source.TEXTS) * len(recipe.languages)
        pool = workers(processes if texts >= ENOUGH else 1)
        if cluster is not None and cluster.address is not None:
            pool = cluster_workers(cluster)
        # The workers go before the calls are written: both take much memory.
        with recording(making.work, making.ledgers, retry_errors=retry_errors) as calls, pool as each:
            who = Replay() if replay is not None else None
            translated, set_aside = _translated(recipe, english, calls.ledger, who, each)
            if review is not None and english is not None:
                export_review(review, translated, english.pairs, set_aside, rows=review_rows, seed=recipe.seed)
            kept, dropped = _kept(recipe, english, translated, set_aside, decisions)
            check_known(reviewed, set() if english is None else {*english.pairs["id"].to_list(), *english.equal})
            audited = audits(kept, pairs, each)

        figures = figures_of(kept, set_aside, dropped, None if english is None else english.pairs)
        figures |= translation_figures(pairs, rated_read) | {"audit": audited, "review": review_figures(reviewed)}
        gone = figures["ids_dropped"] / (figures["source_rows"] or 1)
        check_audits(figures["audit"], recipe.audit, dropped=gone)
        people = {"decisions": decisions, "preferred": reviewed}
        records = {"set_aside": set_aside, "dropped": dropped}
        contents = Contents(
            tables=[
                *(ReleaseTable(code, SPLIT, frame, "MultilingualPairs") for code, frame in kept.items()),
                *([] if pairs is None else [ReleaseTable(TRANSLATION, SPLIT, pairs, "TranslationPairs")]),
            ],
            sources=[*([] if english is None else [english.source]), *(entry.source for entry in rated_read)],
            statistics=figures,
            card=card(recipe, figures, numbered=english is not None and english.numbered),
            records=records | {name: frame for name, frame in people.items() if frame.height},
        )
        return making.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    sources: where they are now, in the order of the recipe: the English pairs, then the rated translations.
    """
    made = read_release_recipe(MultilingualRecipe, release)
    people = {"review.decisions": release / DECISIONS, "review.preferred": release / PREFERRED}
    moved: dict[str, Any] = {key: [str(path)] if path.exists() else [] for key, path in people.items()}
    places = list(sources)
    if places and made.source is not None:
        moved["source.location"] = places.pop(0)
    if places:
        if len(places) != len(made.translation.rated):
            raise SourceError(
                f"The recipe has {len(made.translation.rated)} rated sources, and {len(places)} are given."
            )
        moved["translation.rated"] = [
            table.model_dump(exclude_none=True) | {"location": place}
            for table, place in zip(made.translation.rated, places, strict=True)
        ]
    build(read_release_recipe(MultilingualRecipe, release, moved), out, replay=release / LEDGER)


def _pinned(recipe: MultilingualRecipe) -> tuple[MultilingualRecipe, pl.DataFrame]:
    """The recipe with Hub sources pinned to commits, and decisions to their content."""
    decisions = filtering.read_decisions(recipe.review.decisions)
    found = filtering.decisions_digest(decisions) if decisions.height else None
    if recipe.filter.decisions_digest not in {None, found}:
        raise SourceError("The decisions are not those that the recipe names by `filter.decisions_digest`.")
    changes = {
        "source": None if recipe.source is None else source.pin(recipe.source),
        "filter": recipe.filter.model_copy(update={"decisions_digest": found}),
        "translation": recipe.translation.model_copy(update={"rated": [*map(source.pin, recipe.translation.rated)]}),
    }
    return recipe.model_copy(update=changes), decisions


def _translated(
    recipe: MultilingualRecipe, english: source.Loaded | None, ledger: Ledger, replay: Replay | None, each: ParallelMap
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """The rows in each language that is translated into, and which texts failed a check (columns of `SET_ASIDE`)."""
    frames, failed = dict[str, pl.DataFrame](), [pl.DataFrame(schema=SET_ASIDE)]
    if english is not None and recipe.source is not None and recipe.languages and recipe.translator is not None:
        who = translator(recipe.translator, recipe.connection)
        asking = Asking(who, replay or who, ledger, recipe.connection.limits(), recipe.checks)
        languages = [LANGUAGES[code] for code in recipe.languages]
        masked = mask_all(english.pairs)
        made = translate(english.pairs, languages, masked, asking, recipe.source.prompt_only, each)
        for code, (frame, aside) in zip(recipe.languages, made, strict=True):
            frames[code] = frame
            failed.append(aside)
    return frames, pl.concat(failed)


def _kept(
    recipe: MultilingualRecipe,
    english: source.Loaded | None,
    translated: Mapping[str, pl.DataFrame],
    set_aside: pl.DataFrame,
    decisions: pl.DataFrame,
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """The rows of each config that stay, and which went and why (columns of `filtering.DROPPED`)."""
    if english is None:
        return {}, pl.DataFrame(schema=filtering.DROPPED)
    known = {*english.pairs["id"].to_list(), *english.equal}
    # The rows that the source itself cannot tell apart.
    equal = [(row_id, ENGLISH, "source", IDENTICAL) for row_id in english.equal]
    gone = pl.concat(
        [
            filtering.dropped(set_aside, decisions, recipe.languages, known),
            pl.DataFrame(equal, schema=filtering.DROPPED, orient="row"),
        ]
    )
    frames = dict(translated) | ({ENGLISH: english_rows(english.pairs)} if recipe.english else {})
    kept = filtering.keep(frames, gone, recipe.filter)
    for code, frame in kept.items():
        if frame.is_empty():
            own = gone.filter(pl.col("language") == code)
            first = gone if code == ENGLISH or own.is_empty() else own
            raise NothingLeft(
                f"No row is left in {code}: {gone['id'].n_unique():,} of {len(known):,} are dropped, first id "
                f"{first['id'][0]} ({first['reason'][0]})."
            )
    return kept, gone


def _translation_pairs(recipe: MultilingualRecipe) -> tuple[pl.DataFrame | None, list[rated.Rated]]:
    if not recipe.translation.rated:
        return None, []
    read = [rated.read(table) for table in recipe.translation.rated]
    pairs = translation_pairs.draw(read, per_level=recipe.translation.per_level, seed=recipe.seed, language_name=_name)
    return pairs, read


def _name(code: str) -> str:
    language = language_of(code)
    if language is None:
        raise SourceError(
            f"The direction of the rated translations names the language {code!r}, which is not known here."
        )
    return language.short_name
