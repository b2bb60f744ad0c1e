"""A build of M-RewardBench, step by step (paper, section 3).

Load the English pairs; have them translated, language by language; check each text and ask again once what fails; drop
what has no good translation; make pairs of better and worse translations; release. A build is a function of the recipe,
the sources and the recorded calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Ledger, Replay, recording
from pluralbench_release import (
    LEDGER,
    RECIPE,
    Built,
    Manifest,
    Source,
    Table,
    TablesError,
    known_ledgers,
    pinned,
    write,
)
from pluralbench_runs import Output, output_directory, read_recipe
from pluralbench_schemas import ENGLISH, LANGUAGES, language_of

from build_multilingual import filtering, rated, source, translation_pairs
from build_multilingual.card import card
from build_multilingual.errors import NothingLeft, SourceError
from build_multilingual.figures import figures_of, translation_figures
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.review import check_folder, export_review
from build_multilingual.translate import IDENTICAL, SET_ASIDE, Asking, english_rows, mask_all, translate
from build_multilingual.translators import translator

SAMPLE_LEDGER = source.SAMPLE / "ledger.parquet"
DECISIONS = "provenance/decisions.parquet"
SPLIT = "test"
TRANSLATION = "translation"


@dataclass(frozen=True)
class Rows:
    """What became of the English pairs: rows by config, and what was left out, when and why."""

    by_language: dict[str, pl.DataFrame]
    set_aside: pl.DataFrame
    dropped: pl.DataFrame
    decisions: pl.DataFrame
    sources: list[Source]
    english: pl.DataFrame | None
    numbered: bool = False


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
) -> Built:
    """Build `recipe` into the release directory `out`.

    replay: take every answer from this ledger (or release) and send nothing.
    reuse: take the answers that this ledger (or release) knows and ask for the rest.
    retry_errors: ask again what the translator refused in an interrupted build.
    review: a folder for review sheets, of at most `review_rows` rows a language.
    fresh: forget an interrupted build in `out` and replace a finished one.

    Raises errors of this package, of `pluralbench_calls`, `pluralbench_release`, `pluralbench_runs` and
    `pluralbench_schemas`; all are a `UserError` or a `TableError` with a sentence for the user.
    """
    recipe, decisions = _pinned(recipe)
    if review is not None:
        check_folder(review)
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        # What is cheap to be wrong about comes before what is dear to translate.
        pairs, rated_read = _translation_pairs(recipe)
        sample = SAMPLE_LEDGER if recipe.source is not None and recipe.source.location == "sample" else None
        known = known_ledgers(out, replay, reuse, sample, fresh=fresh)
        with recording(output.work, known, retry_errors=retry_errors) as calls:
            rows = _rows(
                recipe, decisions, calls.ledger, replaying=replay is not None, review=review, review_rows=review_rows
            )
        figures = figures_of(rows.by_language, rows.set_aside, rows.dropped, rows.english)
        figures |= translation_figures(pairs, rated_read)
        sources = [*rows.sources, *(entry.source for entry in rated_read)]
        manifest = _release(output, recipe, tables(rows.by_language, pairs), sources, calls.extract, figures, rows)
    return Built(manifest, figures, calls.new)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    sources: where they are now, in the order of the recipe: the English pairs, then the rated translations.
    """
    made = read_recipe(MultilingualRecipe, release / RECIPE)
    moved: dict[str, Any] = {"review.decisions": [str(release / DECISIONS)] if (release / DECISIONS).exists() else []}
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
    build(read_recipe(MultilingualRecipe, release / RECIPE, moved), out, replay=release / LEDGER)


def tables(by_language: Mapping[str, pl.DataFrame], pairs: pl.DataFrame | None) -> list[Table]:
    """One table a config, languages first."""
    made = [Table(code, SPLIT, frame, "MultilingualPairs") for code, frame in by_language.items()]
    return made if pairs is None else [*made, Table(TRANSLATION, SPLIT, pairs, "TranslationPairs")]


def _pinned(recipe: MultilingualRecipe) -> tuple[MultilingualRecipe, pl.DataFrame]:
    """The recipe with Hub sources pinned to commits, and decisions to their content."""
    recipe = source.pin(recipe)
    try:
        tables_ = [
            table if table.location == "sample" else table.model_copy(update={"location": pinned(table.location)})
            for table in recipe.translation.rated
        ]
    except TablesError as error:
        raise SourceError(str(error)) from None
    decisions = filtering.read_decisions(recipe.review.decisions)
    found = filtering.decisions_digest(decisions) if decisions.height else None
    if recipe.filter.decisions_digest not in {None, found}:
        raise SourceError("The decisions are not those that the recipe names by `filter.decisions_digest`.")
    changes = {
        "filter": recipe.filter.model_copy(update={"decisions_digest": found}),
        "translation": recipe.translation.model_copy(update={"rated": tables_}),
    }
    return recipe.model_copy(update=changes), decisions


def _rows(
    recipe: MultilingualRecipe,
    decisions: pl.DataFrame,
    ledger: Ledger,
    *,
    replaying: bool,
    review: Path | None,
    review_rows: int | None,
) -> Rows:
    empty = Rows({}, pl.DataFrame(schema=SET_ASIDE), pl.DataFrame(schema=filtering.DROPPED), decisions, [], None)
    if recipe.source is None or not (recipe.languages or recipe.english):
        return empty
    loaded = source.load(recipe.source)
    frames, failed = {}, [empty.set_aside]
    if recipe.languages and recipe.translator is not None:
        who = translator(recipe.translator, recipe.connection)
        asking = Asking(who, Replay() if replaying else who, ledger, recipe.connection.limits(), recipe.checks)
        masked = mask_all(loaded.pairs)
        for code in recipe.languages:
            frame, aside = translate(loaded.pairs, LANGUAGES[code], masked, asking, recipe.source.prompt_only)
            frames[code] = frame
            failed.append(aside)
    set_aside = pl.concat(failed)
    if review is not None:
        export_review(review, frames, loaded.pairs, set_aside, rows=review_rows, seed=recipe.seed)
    known = {*loaded.pairs["id"].to_list(), *loaded.equal}
    gone = pl.concat([filtering.dropped(set_aside, decisions, recipe.languages, known), _equal(loaded)])
    if recipe.english:
        frames[ENGLISH] = english_rows(loaded.pairs)
    kept = filtering.keep(frames, gone, recipe.filter)
    for code, frame in kept.items():
        if frame.is_empty():
            first = gone.filter(pl.col("language") == code) if code != ENGLISH else gone
            raise NothingLeft(
                f"No row is left in {code}: {gone['id'].n_unique():,} of {len(known):,} are dropped, first id "
                f"{(first if first.height else gone)['id'][0]} ({(first if first.height else gone)['reason'][0]})."
            )
    return Rows(kept, set_aside, gone, decisions, [loaded.source], loaded.pairs, loaded.numbered)


def _equal(loaded: source.Loaded) -> pl.DataFrame:
    """The rows that the source itself cannot tell apart, as dropped ones."""
    rows = [(row_id, ENGLISH, "source", IDENTICAL) for row_id in loaded.equal]
    return pl.DataFrame(rows, schema=filtering.DROPPED, orient="row")


def _translation_pairs(recipe: MultilingualRecipe) -> tuple[pl.DataFrame | None, list[rated.Rated]]:
    if not recipe.translation.rated:
        return None, []
    read = []
    for table in recipe.translation.rated:
        if table.location == "sample":
            found = rated.read(table.model_copy(update={"location": str(source.SAMPLE / "translations.jsonl")}))
            named = {"name": "PluralBench sample", "location": "sample", "licence": "apache-2.0"}
            named |= {"attribution": "Written for PluralBench."}
            read.append(replace(found, source=found.source.model_copy(update=named)))
        else:
            read.append(rated.read(table))
    pairs = translation_pairs.draw(read, per_level=recipe.translation.per_level, seed=recipe.seed, language_name=_name)
    return pairs, read


def _name(code: str) -> str:
    language = language_of(code)
    if language is None:
        raise SourceError(
            f"The direction of the rated translations names the language {code!r}, which is not known here."
        )
    return language.name.partition(" (")[0]


def _release(
    output: Output,
    recipe: MultilingualRecipe,
    made: Sequence[Table],
    sources: Sequence[Source],
    ledger: Path,
    figures: dict[str, Any],
    rows: Rows,
) -> Manifest:
    records = {"set_aside": rows.set_aside, "dropped": rows.dropped}
    if rows.decisions.height:
        records["decisions"] = rows.decisions
    staged = output.staging()
    manifest = write(
        staged,
        made,
        name=recipe.name,
        version=recipe.version,
        builder="multilingual",
        distribution="build-multilingual",
        recipe=recipe,
        sources=sources,
        ledger=ledger,
        statistics=figures,
        card=card(recipe, figures, numbered=rows.numbered),
        records=records,
    )
    output.publish(staged)
    return manifest
