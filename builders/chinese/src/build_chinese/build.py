"""Build CheemsBench and CheemsPreference (CHEEMS, sections 3 and 4).

Steps: load annotated prompts, resolve conflicts into ranks, let a judge vote on the other prompts, keep the votes that
a reward model trained on human labels agrees with, balance lengths, write the release. A build depends only on the
recipe, the sources and the recorded calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Backend, CannedBackend, Ledger, Replay, chat_backend, recording
from pluralbench_calls.chat import check_endpoint
from pluralbench_release import LEDGER, Builder, Built, Contents, ReleaseTable, building, read_release_recipe
from pluralbench_release.audit import check_audits
from pluralbench_release.errors import BuildError
from pluralbench_runs import BuildOptions, ClusterConfig
from pluralbench_schemas import RANKED_RESPONSES
from pluralbench_tables import write_jsonl

from build_chinese import reward_model, source
from build_chinese.annotated_files import annotate_sample
from build_chinese.audit import audit, check_disjoint, prompt_figures
from build_chinese.card import card
from build_chinese.figures import PEOPLE, figures_of
from build_chinese.lengths import FIGURE, draw_lengths, size_figures
from build_chinese.preference_set import JudgedPart, build_preference_set
from build_chinese.rankings import Row, number_annotators, preferred_pairs, ranked_pairs, resolve_rows, with_votes
from build_chinese.recipe import SAMPLE, ChineseRecipe
from build_chinese.tables import frame_of, pairs_of, published_rows
from build_chinese.votes import NO_RECORDED_VOTE, recorded_votes, votes

BUILDER = Builder("chinese", "build-chinese")
SAMPLE_LEDGER = source.FOLDER / "ledger.parquet"
TAXONOMY = "provenance/taxonomy.toml"
PREFERENCE = "preference"
PAIRS = "preference_pairs"


def build(recipe: ChineseRecipe, options: BuildOptions, *, cluster: ClusterConfig | None = None) -> Built:
    """Build a release from a recipe; the reward model scores on the Ray cluster, if there is one.

    Raises:
        UserError: Bad input, configuration or replies, from this package or one below it.
        TableError: A table breaks its schema.
    """
    replaying = options.replay is not None
    if recipe.reward is not None and recipe.unlabeled is not None and recipe.preference.distant:
        reward = reward_model.with_base_digest(recipe.reward, replaying=replaying)
        recipe = recipe.model_copy(update={"reward": reward})
    unlabeled = recipe.unlabeled
    sample = SAMPLE_LEDGER if unlabeled is not None and unlabeled.location == SAMPLE else None
    with building(recipe, BUILDER, options, sample) as workspace:
        loaded = _load_annotated(recipe)
        annotated = _split_by_config(loaded, recipe)
        resolved, dropped = _resolve_all(annotated)
        with recording(workspace.work, workspace.ledgers, retry_errors=options.retry_errors) as calls:
            judged = _judge_part(recipe, resolved, calls.ledger, workspace.work, cluster, replaying=replaying)
            tables = _tables(resolved, judged, recipe)

        figures = figures_of(annotated, dropped, judged)
        figures |= _audit(resolved, judged, recipe)
        figures["pairs"] = sum(table.frame.height for table in tables if table.config == PAIRS)
        contents = Contents(
            tables=tables,
            sources=[part.source for part in (loaded, judged) if part is not None],
            statistics=figures,
            card=card(recipe, figures),
            records={"dropped": dropped if judged is None else pl.concat([dropped, judged.preferences.dropped])},
            files=_files(tables, figures, recipe, workspace.work),
        )
        return workspace.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Rebuild a release from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    The order of the sources: the annotated prompts, then the ones without annotations.
    """
    recipe = read_release_recipe(ChineseRecipe, release)
    tables = [name for name in ("annotated", "unlabeled") if getattr(recipe, name) is not None]
    moved = dict(zip((f"{name}.location" for name in tables), sources, strict=False))
    if (release / TAXONOMY).exists():
        moved["unlabeled.taxonomy"] = str(release / TAXONOMY)
    build(read_release_recipe(ChineseRecipe, release, moved), BuildOptions(out=out, replay=release / LEDGER))


def people(recipe: ChineseRecipe) -> tuple[dict[str, list[Row]], list[Row]]:
    """Return the recipe's resolved annotated prompts: by benchmark, and those of the human part."""
    resolved, _ = _resolve_all(_split_by_config(_load_annotated(recipe), recipe))
    return resolved, resolved.pop(PREFERENCE)


def _load_annotated(recipe: ChineseRecipe) -> source.Loaded | None:
    if recipe.annotated is None:
        return None
    if recipe.annotated.location == SAMPLE:
        rows = annotate_sample(recipe).rows
        loaded = source.Loaded(rows, source.source_of(rows, recipe.annotated))
    else:
        loaded = source.annotated_rows(recipe.annotated)
    return replace(loaded, rows=number_annotators(loaded.rows))  # a release has no names of people


def _split_by_config(annotated: source.Loaded | None, recipe: ChineseRecipe) -> dict[str, list[Row]]:
    """The annotated rows by benchmark, and the others under PREFERENCE."""
    names = recipe.annotated.benchmarks if recipe.annotated is not None else []
    rows: dict[str, list[Row]] = {name: [] for name in (*names, PREFERENCE)}
    for row in annotated.rows if annotated is not None else []:
        rows[row["config"] if row["config"] in names else PREFERENCE].append(row)
    benchmarks = {f"the benchmark `{name}`": rows[name] for name in names}
    check_disjoint(rows[PREFERENCE], benchmarks, "is in the human part")
    return rows


def _resolve_all(annotated: Mapping[str, Sequence[Row]]) -> tuple[dict[str, list[Row]], pl.DataFrame]:
    """The rows of each config with ranks, and all dropped rows."""
    resolved, dropped = {}, []
    for config, rows in annotated.items():
        resolved[config], dropped_rows = resolve_rows(rows)
        dropped.append(dropped_rows)
    return resolved, pl.concat(dropped)


def _judge_part(
    recipe: ChineseRecipe,
    people: Mapping[str, Sequence[Row]],
    ledger: Ledger,
    work: Path,
    cluster: ClusterConfig | None,
    *,
    replaying: bool,
) -> JudgedPart | None:
    """The preference set from a judge's votes, None without prompts to vote on."""
    if recipe.unlabeled is None or recipe.judge is None:
        return None
    taxonomy = source.taxonomy_of(recipe.unlabeled.taxonomy)
    loaded = source.unlabeled_rows(recipe.unlabeled, taxonomy)
    parts = {
        "the human part" if config == PREFERENCE else f"the benchmark `{config}`": rows
        for config, rows in people.items()
    }
    check_disjoint(loaded.rows, parts, "is to be voted on")
    distant = recipe.reward if recipe.preference.distant else None
    human = reward_model.with_ranked_pairs(people[PREFERENCE])
    backend: Backend = Replay() if replaying else _judge(recipe, ledger)  # a missing key costs no training
    rewards = None
    if distant is not None:  # first: an error here costs no votes
        rewards = reward_model.rewards(loaded.rows, human, distant, ledger, work, cluster, replaying=replaying)
    limits = recipe.connection.limits()
    cast = votes(loaded.rows, taxonomy, recipe.judge, backend, ledger, limits=limits, seed=recipe.seed)
    if cast.height and cast["mark"].null_count() == cast.height:
        raise BuildError(
            f"None of the {cast.height:,} votes of {recipe.judge.model} can be read, such as the one on "
            f"{cast['prompt'][0]} ({cast['reason'][0]}); choose another judge or form of its reply (`judge.reply=...`)."
        )
    preferences = build_preference_set(
        loaded.rows,
        cast,
        rewards,
        recipe.preference,
        margin=recipe.reward.margin if recipe.reward is not None else 0.0,
        seed=recipe.seed,
    )
    return JudgedPart(recipe.judge.model, loaded.rows, cast, rewards, preferences, loaded.source)


def _judge(recipe: ChineseRecipe, ledger: Ledger) -> Backend:
    if recipe.judge is None or recipe.judge.provider == "recorded":
        return CannedBackend(recorded_votes, NO_RECORDED_VOTE)
    check_endpoint(recipe.judge, recipe.connection, ledger)
    return chat_backend(recipe.judge, recipe.connection)


def _tables(
    resolved: Mapping[str, Sequence[Row]], judged: JudgedPart | None, recipe: ChineseRecipe
) -> list[ReleaseTable]:
    """One table per benchmark, and the preference set (the human part, then the judge's) as rankings and as pairs."""
    tables = [
        ReleaseTable(config, "test", frame_of(rows, PEOPLE), "RankedResponses", scored=True)
        for config, rows in resolved.items()
        if config != PREFERENCE and rows
    ]
    parts = [frame_of(resolved[PREFERENCE], PEOPLE)] if recipe.preference.human else []
    if judged is not None:
        calls = {"vote_calls": judged.votes} | ({} if judged.rewards is None else {"reward_calls": judged.rewards})
        cast = judged.votes.drop_nulls("mark").with_columns(annotator=pl.lit(judged.judge))
        parts.append(frame_of(with_votes(judged.preferences.rows, cast), judged.judge, calls))
    preference = pl.concat(parts) if parts else pl.DataFrame(schema=RANKED_RESPONSES.columns)
    if preference.height:
        tables.append(ReleaseTable(PREFERENCE, "train", preference, "RankedResponses"))
        pairs = pairs_of(preference)
        tables += [ReleaseTable(PAIRS, "train", pairs, "RankedPairs")] if pairs.height else []
    if not tables:
        raise BuildError("No prompt is left: every prompt was dropped, or there were none.")
    return tables


def _audit(resolved: Mapping[str, Sequence[Row]], judged: JudgedPart | None, recipe: ChineseRecipe) -> dict[str, Any]:
    """The figures of `audit` and `lengths` by annotator and config, and of the prompts. Raises `AuditFailed`."""
    parts = [(PEOPLE, config, rows, [ranked_pairs(row) for row in rows]) for config, rows in resolved.items()]
    if judged is not None:
        rows = judged.preferences.rows
        parts.append((judged.judge, PREFERENCE, rows, [preferred_pairs(row) for row in rows]))
    audits, sizes = [], []
    for annotator, config, own, pairs in parts:
        if own:
            sizes.append({"annotator": annotator, "config": config, **size_figures(own, pairs)})
        if any(pairs):
            audits.append({"annotator": annotator, "config": config, **audit(own, pairs)})
    check_audits({f"{entry['config']} by {entry['annotator']}": entry for entry in audits}, recipe.audit)
    benchmarks, training = (
        [row for _, config, rows, _ in parts for row in rows if (config == PREFERENCE) is for_training]
        for for_training in (False, True)
    )
    return {"audit": audits, "sizes": sizes, "prompts": prompt_figures(benchmarks, training)}


def _files(
    tables: Sequence[ReleaseTable],
    figures: Mapping[str, Any],
    recipe: ChineseRecipe,
    work: Path,
) -> dict[str, Path]:
    """Write further files to `work`; return them by their paths in the release.

    The rankings are JSONL in the published fields. The judge's categories are kept unless they are the sample's: their
    criteria are in each request for a vote, so a rebuild needs them.
    """
    files = {f"published/{table.config}.jsonl": table.frame for table in tables if table.config != PAIRS}
    (work / "published").mkdir(exist_ok=True)
    for name, frame in files.items():
        write_jsonl(published_rows(frame), work / name)
    paths = {name: work / name for name in files}
    if figures["annotators"]:
        draw_lengths(figures["annotators"], work / FIGURE)
        paths[FIGURE] = work / FIGURE
    if recipe.unlabeled is not None and recipe.unlabeled.taxonomy != SAMPLE:
        paths[TAXONOMY] = Path(recipe.unlabeled.taxonomy)
    return paths
