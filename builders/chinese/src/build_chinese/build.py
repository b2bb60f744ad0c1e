"""A build of CheemsBench and CheemsPreference, step by step (CHEEMS, sections 3 and 4).

Load annotated prompts; resolve their conflicts into ranks; have a judge vote on the rest; keep what a reward model that
learned from people agrees with; balance lengths; release. A build is a function of the recipe, the sources and the
recorded calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Backend, CannedBackend, Ledger, Replay, chat_backend, recording
from pluralbench_release import LEDGER, Builder, Built, Contents, ReleaseTable, building, read_release_recipe
from pluralbench_release.errors import NothingLeft
from pluralbench_runs import ClusterConfig
from pluralbench_schemas import RANKED_RESPONSES
from pluralbench_tables import write_jsonl

from build_chinese import reward_model, source
from build_chinese.audit import audit, check_apart, check_audits, prompt_figures
from build_chinese.card import card
from build_chinese.figures import PEOPLE, figures_of
from build_chinese.lengths import FIGURE, draw_lengths, size_figures
from build_chinese.preference_set import Voted, judged, pairs_by_row
from build_chinese.rankings import Row, ranked_pairs, resolve_rows
from build_chinese.recipe import SAMPLE, ChineseRecipe
from build_chinese.steps import sample_annotated
from build_chinese.tables import frame_of, published_rows
from build_chinese.votes import NOT_OF_THE_SAMPLE, recorded_votes, votes

BUILDER = Builder("chinese", "build-chinese")
SAMPLE_LEDGER = source.FOLDER / "ledger.parquet"
PREFERENCE = "preference"


def build(
    recipe: ChineseRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    fresh: bool = False,
    cluster: ClusterConfig | None = None,
) -> Built:
    """Build `recipe` into the release directory `out`.

    replay: take every answer from this ledger (or release) and send nothing.
    reuse: take the answers that this ledger (or release) knows and ask for the rest.
    retry_errors: ask again what the server rejected in an interrupted build.
    fresh: forget an interrupted build in `out` and replace a finished one.
    cluster: where the reward model scores, if not in this process.

    Raises errors of this package, of `pluralbench_release.audit`, `pluralbench_calls`, `pluralbench_release`,
    `pluralbench_rewards`, `pluralbench_runs` and `pluralbench_schemas`; all are a `UserError` or a `TableError` with a
    sentence for the user.
    """
    if recipe.reward is not None and recipe.unlabeled is not None and recipe.preference.distant:
        recipe = recipe.model_copy(update={"reward": reward_model.pin(recipe.reward, replaying=replay is not None)})
    unlabeled = recipe.unlabeled
    sample = SAMPLE_LEDGER if unlabeled is not None and unlabeled.location == SAMPLE else None
    with building(recipe, out, BUILDER, replay, reuse, sample, fresh=fresh) as making:
        annotated = _annotated(recipe)
        given = _by_config(annotated, recipe)
        resolved, dropped = _resolved(given)
        with recording(making.work, making.known, retry_errors=retry_errors) as calls:
            voted = _voted(recipe, resolved, calls.ledger, making.work, cluster, replaying=replay is not None)
            tables = _tables(resolved, voted, recipe)

        figures = figures_of(given, dropped, voted)
        figures |= _audit(resolved, voted, recipe)
        contents = Contents(
            tables=tables,
            sources=[loaded.source for loaded in (annotated, voted) if loaded is not None],
            statistics=figures,
            card=card(recipe, figures),
            records={"dropped": dropped if voted is None else pl.concat([dropped, voted.made.dropped])},
            files=_published(tables, making.work / "published") | _drawn(figures, making.work),
        )
        return making.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    sources: where they are now, in the order of the recipe: the annotated prompts, then the unlabeled ones.
    """
    made = read_release_recipe(ChineseRecipe, release)
    there = [name for name in ("annotated", "unlabeled") if getattr(made, name) is not None]
    moved = dict(zip((f"{name}.location" for name in there), sources, strict=False))
    build(read_release_recipe(ChineseRecipe, release, moved), out, replay=release / LEDGER)


def people(recipe: ChineseRecipe) -> tuple[dict[str, list[Row]], list[Row]]:
    """The recipe's annotated prompts, resolved: by benchmark, and those of the human part."""
    found, _ = _resolved(_by_config(_annotated(recipe), recipe))
    return found, found.pop(PREFERENCE)


def _annotated(recipe: ChineseRecipe) -> source.Loaded | None:
    if recipe.annotated is None:
        return None
    if recipe.annotated.location == SAMPLE:
        rows = sample_annotated(recipe).rows
        return source.Loaded(rows, source.source_of(rows, recipe.annotated))
    return source.annotated_rows(recipe.annotated)


def _by_config(annotated: source.Loaded | None, recipe: ChineseRecipe) -> dict[str, list[Row]]:
    """The annotated rows by benchmark, and as PREFERENCE those of none."""
    names = recipe.annotated.benchmarks if recipe.annotated is not None else []
    found: dict[str, list[Row]] = {name: [] for name in (*names, PREFERENCE)}
    for row in annotated.rows if annotated is not None else []:
        found[row["config"] if row["config"] in names else PREFERENCE].append(row)
    check_apart(found[PREFERENCE], {f"the benchmark `{name}`": found[name] for name in names}, "is of the human part")
    return found


def _resolved(given: Mapping[str, Sequence[Row]]) -> tuple[dict[str, list[Row]], pl.DataFrame]:
    """The rows of each config with ranks, and all that were dropped."""
    found, dropped = {}, []
    for config, rows in given.items():
        found[config], gone = resolve_rows(rows)
        dropped.append(gone)
    return found, pl.concat(dropped)


def _voted(
    recipe: ChineseRecipe,
    people: Mapping[str, Sequence[Row]],
    ledger: Ledger,
    work: Path,
    cluster: ClusterConfig | None,
    *,
    replaying: bool,
) -> Voted | None:
    if recipe.unlabeled is None or recipe.judge is None:
        return None
    taxonomy = source.taxonomy_of(recipe.unlabeled.taxonomy)
    loaded = source.unlabeled_rows(recipe.unlabeled, taxonomy)
    parts = {
        "the human part" if config == PREFERENCE else f"the benchmark `{config}`": rows
        for config, rows in people.items()
    }
    check_apart(loaded.rows, parts, "is to be voted on")
    distant = recipe.reward if recipe.preference.distant else None
    taught = reward_model.TrainingRows(people[PREFERENCE])
    rewards = None
    if distant is not None:  # first, since what may fail here costs no vote
        rewards = reward_model.rewards(loaded.rows, taught, distant, ledger, work, cluster, replaying=replaying)
    backend: Backend = Replay() if replaying else _judge(recipe)
    limits = recipe.connection.limits()
    found = votes(loaded.rows, taxonomy, recipe.judge, backend, ledger, limits=limits, seed=recipe.seed)
    made = judged(
        loaded.rows,
        found,
        rewards,
        recipe.preference,
        margin=recipe.reward.margin if recipe.reward is not None else 0.0,
        seed=recipe.seed,
    )
    return Voted(recipe.judge.model, loaded.rows, found, rewards, made, loaded.source)


def _judge(recipe: ChineseRecipe) -> Backend:
    if recipe.judge is None or recipe.judge.provider == "recorded":
        return CannedBackend(recorded_votes, NOT_OF_THE_SAMPLE)
    return chat_backend(recipe.judge, recipe.connection)


def _tables(resolved: Mapping[str, Sequence[Row]], voted: Voted | None, recipe: ChineseRecipe) -> list[ReleaseTable]:
    """A table for each benchmark, and the preference set: what people annotated, then what the judge voted on."""
    tables = [
        ReleaseTable(config, "test", frame_of(rows, PEOPLE), "RankedResponses")
        for config, rows in resolved.items()
        if config != PREFERENCE and rows
    ]
    parts = [frame_of(resolved[PREFERENCE], PEOPLE)] if recipe.preference.human else []
    if voted is not None:
        calls = {"vote_calls": voted.votes} | ({} if voted.rewards is None else {"reward_calls": voted.rewards})
        parts.append(frame_of(voted.made.rows, voted.judge, calls))
    preference = pl.concat(parts) if parts else pl.DataFrame(schema=RANKED_RESPONSES)
    if preference.height:
        tables.append(ReleaseTable(PREFERENCE, "train", preference, "RankedResponses"))
    if not tables:
        raise NothingLeft("No prompt is left: every prompt was dropped, or there were none.")
    return tables


def _audit(resolved: Mapping[str, Sequence[Row]], voted: Voted | None, recipe: ChineseRecipe) -> dict[str, Any]:
    """The figures of `audit` and `lengths` by annotator and config, and those of the prompts. Raises `AuditFailed`."""
    parts = [(PEOPLE, config, rows, [ranked_pairs(row) for row in rows]) for config, rows in resolved.items()]
    if voted is not None:
        parts.append((voted.judge, PREFERENCE, voted.made.rows, pairs_by_row(voted.made.rows)))
    found = [
        {"annotator": annotator, "config": config, **figures}
        for annotator, config, rows, pairs in parts
        if (figures := audit(rows, pairs)) is not None
    ]
    check_audits(found, recipe.audit)
    sizes = [
        {"annotator": annotator, "config": config, **size_figures(rows, pairs)}
        for annotator, config, rows, pairs in parts
        if rows
    ]
    benchmarks, training = (
        [row for _, config, rows, _ in parts for row in rows if (config == PREFERENCE) is learned]
        for learned in (False, True)
    )
    return {"audit": found, "sizes": sizes, "prompts": prompt_figures(benchmarks, training)}


def _published(tables: Sequence[ReleaseTable], folder: Path) -> dict[str, Path]:
    """The rows of each table as JSONL in the published fields, written to `folder`, by their path in the release."""
    folder.mkdir(exist_ok=True)
    for table in tables:
        write_jsonl(published_rows(table.frame), folder / f"{table.config}.jsonl")
    return {f"published/{table.config}.jsonl": folder / f"{table.config}.jsonl" for table in tables}


def _drawn(figures: Mapping[str, Any], work: Path) -> dict[str, Path]:
    """The card's figure, by its path in the release."""
    if not figures["annotators"]:
        return {}
    draw_lengths(figures["annotators"], work / FIGURE)
    return {FIGURE: work / FIGURE}
