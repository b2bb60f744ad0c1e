"""Build the persona judge dataset (paper, section 4 and A.2).

Steps for each task: load what people wrote, answered or preferred; pair the person's own option with another; place it
as A or B; render the personas; write the release. A build depends only on the recipe, the sources and the recorded
calls.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import Backend, Replay, recording
from pluralbench_calls.retrieval import retriever
from pluralbench_release import (
    LEDGER,
    Builder,
    Built,
    Contents,
    ReleaseTable,
    Source,
    building,
    pinned,
    read_release_recipe,
)
from pluralbench_release.audit import check_audits
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_runs import BuildOptions

from build_persona_judge import pairing
from build_persona_judge.card import card
from build_persona_judge.figures import audits_of, figures_of
from build_persona_judge.labels import figures_of as label_figures
from build_persona_judge.labels import read_labels
from build_persona_judge.pairing import Dropped, Pair
from build_persona_judge.recipe import (
    SAMPLE,
    EmpathicTable,
    OpinionQaTable,
    PeopleTable,
    PersonaJudgeRecipe,
    PrismTable,
)
from build_persona_judge.sources import empathic, opinion_qa, people_csv, personal_reddit, prism
from build_persona_judge.sources.loaded import FOLDER, Loaded

BUILDER = Builder("persona-judge", "build-persona-judge")
SAMPLE_LEDGER = FOLDER / "ledger.parquet"
LABELS = "provenance/labels.parquet"
SPLIT = "test"
DROPPED = pl.Schema(dict.fromkeys(("task", "what", "id", "reason"), pl.String))


@dataclass(frozen=True)
class Task:
    """The items of a task (columns of `PERSONA_ITEMS`), dropped rows (columns of `DROPPED`) and the origin."""

    items: pl.DataFrame
    dropped: pl.DataFrame
    source: Source


def build(recipe: PersonaJudgeRecipe, options: BuildOptions) -> Built:
    """Build a release from a recipe.

    Raises:
        UserError: Bad input or configuration, from this package or one below it.
        TableError: A table breaks its schema.
    """
    recipe = _pin_revisions(recipe)
    ranker = retriever(recipe.retriever)
    reddit = recipe.personal_reddit
    sample = SAMPLE_LEDGER if reddit is not None and reddit.location == SAMPLE else None
    with building(recipe, BUILDER, options, sample) as workspace:
        # Load before the ledger exists: a wrong path must leave nothing that the next build would have to match.
        tasks = _make_tasks(recipe)
        posts = None if reddit is None else personal_reddit.load(reddit)
        with recording(workspace.work, workspace.ledgers) as calls:
            if reddit is not None and posts is not None:
                backend: Backend = ranker if options.replay is None else Replay()
                similarity = personal_reddit.persona_similarity(
                    posts.rows, posts.personas, calls.ledger, ranker, backend
                )
                pairs, unpaired = pairing.pair_by_similarity(posts.rows, similarity, size=reddit.size, seed=recipe.seed)
                tasks["personal_reddit"] = _make_task(
                    "personal_reddit", "authorship", posts, pairs, recipe.seed, unpaired
                )

        tasks = {name: tasks[name] for name, _ in recipe.sources}
        figures = figures_of({name: (task.items, task.dropped) for name, task in tasks.items()})
        check_audits(audits_of(figures), recipe.audit)
        labels = read_labels(recipe.labels, {name: task.items for name, task in tasks.items()})
        figures["third_person"] = label_figures(labels)
        records = {"dropped": pl.concat([task.dropped for task in tasks.values()])}
        contents = Contents(
            tables=[ReleaseTable(name, SPLIT, task.items, "PersonaItems", scored=True) for name, task in tasks.items()],
            sources=[task.source for task in tasks.values()],
            statistics=figures,
            card=card(recipe, figures),
            records=records | ({"labels": labels} if labels.height else {}),
        )
        return workspace.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Rebuild a release from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    Raises:
        SourceError: There are more locations in `sources` than sources, whose order is that of the release's configs.
    """
    recipe = read_release_recipe(PersonaJudgeRecipe, release)
    if len(sources) > len(recipe.sources):
        raise SourceError(f"{len(sources)} sources are given, but the recipe has {len(recipe.sources)}.")
    locations = dict(zip((name for name, _ in recipe.sources), sources, strict=False))
    labels = str(release / LABELS) if (release / LABELS).exists() else None
    recipe = _with_locations(recipe, locations).model_copy(update={"labels": labels})
    build(recipe, BuildOptions(out=out, replay=release / LEDGER))


def _with_locations(recipe: PersonaJudgeRecipe, locations: Mapping[str, str]) -> PersonaJudgeRecipe:
    changed = {
        name: table.model_copy(update={"location": locations[name]})
        for name, table in recipe.sources
        if name in locations
    }
    people_csv = [changed.pop(table.task, table) for table in recipe.people_csv]
    return recipe.model_copy(update={**changed, "people_csv": people_csv})


def _pin_revisions(recipe: PersonaJudgeRecipe) -> PersonaJudgeRecipe:
    """The recipe with PRISM pinned to the current commit on the Hub; a pinned one needs no network."""
    if recipe.prism is None or recipe.prism.location == SAMPLE:
        return recipe
    try:
        return _with_locations(recipe, {"prism": pinned(recipe.prism.location)})
    except SourceError as error:
        raise SourceError(f"{error} {prism.HOW}") from None


def _make_tasks(recipe: PersonaJudgeRecipe) -> dict[str, Task]:
    """The tasks by name, without `personal_reddit`, which needs rankings."""
    tasks, seed = dict[str, Task](), recipe.seed
    for name, table in recipe.sources:
        loaded: Loaded[Any]
        unpaired: list[Dropped] = []
        match table:
            case PrismTable():
                kind, loaded = "preference", prism.load(table)
                pairs, unpaired = pairing.pair_by_score(loaded.rows, size=table.size, tie_gap=table.tie_gap, seed=seed)
            case OpinionQaTable():
                kind, loaded = "opinion", opinion_qa.load(table)
                answers = pairing.pair_by_answer(loaded.rows, respondents=table.respondents, seed=seed)
                pairs = pairing.sample_pairs(answers, table.size, seed, name)
            case EmpathicTable():
                kind, loaded = "authorship", empathic.load(table)
                limits = table.model_dump(include={"pairs_per_article", "size", "tie_gap", "tie_share"})
                pairs = pairing.pair_by_author(loaded.rows, **limits, seed=seed)
            case PeopleTable():
                kind, loaded = table.kind, people_csv.load(table)
                pairs = pairing.sample_pairs(loaded.rows, table.size, seed, name)
            case _:
                continue
        tasks[name] = _make_task(name, kind, loaded, pairs, seed, unpaired)
    return tasks


def _make_task(
    name: str, kind: str, loaded: Loaded[Any], pairs: Sequence[Pair], seed: int, unpaired: Sequence[Dropped] = ()
) -> Task:

    dropped = [(name, *entry) for entry in (*loaded.dropped, *unpaired)]
    if not pairs:
        raise BuildError(f"No item of the task {name} is left: {_reasons(dropped)}.")
    items = pairing.make_items(name, kind, pairs, loaded.personas, seed)
    return Task(items, pl.DataFrame(dropped, schema=DROPPED, orient="row"), loaded.source)


def _reasons(dropped: Sequence[tuple[str, ...]]) -> str:
    counts = Counter(f"{what} {reason}" for _, what, _, reason in dropped).most_common(3)
    return ", ".join(f"{count:,} times {reason}" for reason, count in counts) or "the source has none"
