"""Build M-RewardBench, step by step (paper, section 3).

The steps: load the English pairs, translate them language by language, check each text and translate failed ones once
more, drop rows without a good translation, make pairs of better and worse translations, write the release. A build
depends only on the recipe, the sources and the recorded calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Ledger, Replay, recording
from pluralbench_release import LEDGER, Builder, Built, Contents, ReleaseTable, building, read_release_recipe
from pluralbench_release.audit import check_audits
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_runs import BuildOptions, ClusterConfig
from pluralbench_runs.cluster import cluster_workers
from pluralbench_runs.workers import ParallelMap, workers
from pluralbench_schemas import ENGLISH, LANGUAGES

from build_multilingual import filtering, rated, source, translation_pairs
from build_multilingual.audit import audit_configs
from build_multilingual.card import card
from build_multilingual.figures import language_figures, translation_figures
from build_multilingual.preferred import read_preferred, review_figures
from build_multilingual.recipe import MultilingualRecipe
from build_multilingual.review import check_folder, write_review_sheets
from build_multilingual.translate import IDENTICAL, SET_ASIDE, TranslationContext, english_rows, mask_all, translate
from build_multilingual.translators import translator

BUILDER = Builder("multilingual", "build-multilingual")
SAMPLE_LEDGER = source.SAMPLE / "ledger.parquet"
DECISIONS, PREFERRED = "provenance/decisions.parquet", "provenance/preferred.parquet"
SPLIT = "test"
TRANSLATION = "translation"
# Number of translations above which worker processes save more time than they take to start.
MIN_TEXTS_FOR_WORKERS = 20_000


def build(
    recipe: MultilingualRecipe,
    options: BuildOptions,
    *,
    export_review: Path | None = None,
    review_rows: int | None = None,
    processes: int = 1,
    cluster: ClusterConfig | None = None,
) -> Built:
    """Build a release from a recipe.

    Args:
        recipe: Recipe of the build.
        options: Directory of the release, and recorded calls.
        export_review: Folder for review sheets. Default: none are written.
        review_rows: Maximum number of rows per review sheet. Default: all.
        processes: Number of worker processes that check translations and audit pairs in large builds; 1 uses this
            process. A script that asks for more needs `if __name__ == "__main__":`.
        cluster: Ray cluster to use instead of processes.

    Raises:
        UserError: The recipe, a source, a call or the output directory has a problem; the message is for the user.
        TableError: Rows of a source or of the release break their schema.
    """
    recipe, decisions = _pin_recipe(recipe)
    reviewed = read_preferred(recipe.review.decisions, recipe.review.preferred, recipe.review.judged)
    if export_review is not None:
        check_folder(export_review)
    sample = SAMPLE_LEDGER if recipe.source is not None and recipe.source.location == "sample" else None
    with building(recipe, BUILDER, options, sample) as workspace:
        # Mistakes in the rated translations show before any paid request.
        pairs, rated_tables = _translation_pairs(recipe)
        english = source.load(recipe.source) if recipe.source and (recipe.languages or recipe.english) else None
        texts = 0 if english is None else english.pairs.height * len(source.TEXTS) * len(recipe.languages)
        pool = workers(processes if texts >= MIN_TEXTS_FOR_WORKERS else 1)
        if cluster is not None and cluster.address is not None:
            pool = cluster_workers(cluster)
        # The workers end before the calls are written, since both need much memory.
        with recording(workspace.work, workspace.ledgers, retry_errors=options.retry_errors) as calls, pool as each:
            recorded = None if options.replay is None else Replay()
            translated, set_aside = _translate_rows(recipe, english, calls.ledger, recorded, each)
            if export_review is not None and english is not None:
                write_review_sheets(
                    export_review, translated, english.pairs, set_aside, rows=review_rows, seed=recipe.seed
                )
            frames, dropped = _filter_rows(recipe, english, translated, set_aside, decisions)
            known = set() if english is None else {*english.pairs["id"].to_list(), *english.equal}
            filtering.check_ids(reviewed, known, "A review sheet has")
            audits = audit_configs(frames, pairs, each)

        figures = language_figures(frames, set_aside, dropped, None if english is None else english.pairs)
        figures |= translation_figures(pairs, rated_tables) | {"audit": audits, "review": review_figures(reviewed)}
        drop_share = 0.0 if english is None else figures["ids_dropped"] / english.source.rows
        check_audits({entry["config"]: entry for entry in audits}, recipe.audit, max_drop_share=drop_share)
        human_records = {"decisions": decisions, "preferred": reviewed}
        records = {"set_aside": set_aside, "dropped": dropped}
        contents = Contents(
            tables=[
                *(
                    ReleaseTable(code, SPLIT, frame, "MultilingualPairs", scored=code != ENGLISH)
                    for code, frame in frames.items()
                ),
                *([] if pairs is None else [ReleaseTable(TRANSLATION, SPLIT, pairs, "TranslationPairs")]),
            ],
            sources=[*([] if english is None else [english.source]), *(table.source for table in rated_tables)],
            statistics=figures,
            card=card(recipe, figures, numbered=english is not None and english.numbered),
            records=records | {name: frame for name, frame in human_records.items() if frame.height},
        )
        return workspace.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Rebuild a release from its own recipe and recorded calls (`pluralbench-release rebuild`); no request is sent.

    The order of the sources: the English pairs, then the rated translations.

    Raises:
        SourceError: The number of locations does not match the recipe.
    """
    recipe = read_release_recipe(MultilingualRecipe, release)
    records = {"review.decisions": release / DECISIONS, "review.preferred": release / PREFERRED}
    moved: dict[str, Any] = {key: [str(path)] if path.exists() else [] for key, path in records.items()}
    locations = list(sources)
    if locations and recipe.source is not None:
        moved["source.location"] = locations.pop(0)
    if locations:
        if len(locations) != len(recipe.translation.rated):
            raise SourceError(
                f"The recipe has {len(recipe.translation.rated)} rated sources, but {len(locations)} are given."
            )
        moved["translation.rated"] = [
            table.model_dump(exclude_none=True) | {"location": location}
            for table, location in zip(recipe.translation.rated, locations, strict=True)
        ]
    build(read_release_recipe(MultilingualRecipe, release, moved), BuildOptions(out=out, replay=release / LEDGER))


def _pin_recipe(recipe: MultilingualRecipe) -> tuple[MultilingualRecipe, pl.DataFrame]:
    """Pin Hub sources to commits and decisions to their digest; return the recipe and the decisions."""
    decisions = filtering.read_decisions(recipe.review.decisions)
    digest = filtering.decisions_digest(decisions) if decisions.height else None
    if recipe.filter.decisions_digest not in {None, digest}:
        raise SourceError("The decisions do not match the recipe's `filter.decisions_digest`.")
    changes = {
        "source": None if recipe.source is None else source.pin(recipe.source),
        "filter": recipe.filter.model_copy(update={"decisions_digest": digest}),
        "translation": recipe.translation.model_copy(update={"rated": [*map(source.pin, recipe.translation.rated)]}),
    }
    return recipe.model_copy(update=changes), decisions


def _translate_rows(
    recipe: MultilingualRecipe,
    english: source.EnglishPairs | None,
    ledger: Ledger,
    replay: Replay | None,
    each: ParallelMap,
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Return the rows of each target language, and the texts that failed a check (columns of `SET_ASIDE`)."""
    frames, failed = dict[str, pl.DataFrame](), [pl.DataFrame(schema=SET_ASIDE)]
    if english is not None and recipe.source is not None and recipe.languages and recipe.translator is not None:
        identity = translator(recipe.translator, recipe.connection)
        context = TranslationContext(identity, replay or identity, ledger, recipe.connection.limits(), recipe.checks)
        languages = [LANGUAGES[code] for code in recipe.languages]
        masked = mask_all(english.pairs)
        results = translate(english.pairs, languages, masked, context, recipe.source.prompt_only, each)
        for code, (frame, failures) in zip(recipe.languages, results, strict=True):
            frames[code] = frame
            failed.append(failures)
    return frames, pl.concat(failed)


def _filter_rows(
    recipe: MultilingualRecipe,
    english: source.EnglishPairs | None,
    translated: Mapping[str, pl.DataFrame],
    set_aside: pl.DataFrame,
    decisions: pl.DataFrame,
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Return the remaining rows of each config, and the dropped ones with reasons (columns of `filtering.DROPPED`)."""
    if english is None:
        return {}, pl.DataFrame(schema=filtering.DROPPED)
    ids = {*english.pairs["id"].to_list(), *english.equal}
    equal = [(row_id, ENGLISH, "source", IDENTICAL) for row_id in english.equal]
    dropped = pl.concat(
        [
            filtering.rows_to_drop(set_aside, decisions, recipe.languages, ids),
            pl.DataFrame(equal, schema=filtering.DROPPED, orient="row"),
        ]
    )
    frames = dict(translated) | ({ENGLISH: english_rows(english.pairs)} if recipe.english else {})
    remaining = filtering.drop_rows(frames, dropped, recipe.filter)
    for code, frame in remaining.items():
        if frame.is_empty():
            own = dropped.filter(pl.col("language") == code)
            first = dropped if code == ENGLISH or own.is_empty() else own
            raise BuildError(
                f"No row is left in {code}: {dropped['id'].n_unique():,} of {len(ids):,} are dropped, first id "
                f"{first['id'][0]} ({first['reason'][0]})."
            )
    return remaining, dropped


def _translation_pairs(recipe: MultilingualRecipe) -> tuple[pl.DataFrame | None, list[rated.RatedTranslations]]:
    if not recipe.translation.rated:
        return None, []
    tables = [rated.read(table) for table in recipe.translation.rated]
    return translation_pairs.draw(tables, per_level=recipe.translation.per_level, seed=recipe.seed), tables
