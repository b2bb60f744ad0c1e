"""A build of persona judge, step by step (paper, section 4 and A.2).

For each task load what people wrote, said or preferred; pair the person's own option with another; place it as A or B;
render the personas; release. A build is a function of the recipe, the sources and the recorded calls.
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
    RECIPE,
    Builder,
    Built,
    Contents,
    ReleaseTable,
    Source,
    building,
    pinned,
)
from pluralbench_release.errors import NothingLeft, SourceError
from pluralbench_runs import read_recipe

from build_persona_judge import pairing
from build_persona_judge.card import card
from build_persona_judge.figures import check_audits, figures_of
from build_persona_judge.labels.results import figures_of as label_figures
from build_persona_judge.labels.results import read_labels
from build_persona_judge.pairing import LeftOut, Pair, Post
from build_persona_judge.recipe import (
    SAMPLE,
    EmpathicTable,
    OpinionQaTable,
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
    """The items of a task, what was left out of it (columns of `DROPPED`), and where it came from."""

    items: pl.DataFrame
    dropped: pl.DataFrame
    source: Source


def build(
    recipe: PersonaJudgeRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    fresh: bool = False,
) -> Built:
    """Build `recipe` into the release directory `out`.

    replay: take every ranking from this ledger (or release) and load no model.
    reuse: take the rankings that this ledger (or release) knows and make the rest.
    fresh: forget an interrupted build in `out` and replace a finished one.

    Raises errors of this package, of `pluralbench_calls`, `pluralbench_release`, `pluralbench_calls.retrieval`,
    `pluralbench_runs` and `pluralbench_schemas`; all are a `UserError` or a `TableError` with a sentence for the user.
    """
    recipe = _pinned(recipe)
    ranker = retriever(recipe.retriever)
    reddit = recipe.personal_reddit
    sample = SAMPLE_LEDGER if reddit is not None and reddit.location == SAMPLE else None
    with building(recipe, out, BUILDER, replay, reuse, sample, fresh=fresh) as making:
        # Before there is a ledger, so that a wrong path leaves nothing behind that the next build would have to match.
        tasks = _tasks(recipe)
        posts = None if reddit is None else personal_reddit.load(reddit)
        with recording(making.work, making.known) as calls:
            if posts is not None:
                backend: Backend = ranker if replay is None else Replay()
                alike = personal_reddit.likeness(posts.rows, posts.personas, calls.ledger, ranker, backend)
                tasks["personal_reddit"] = _personal_reddit(recipe, posts, alike)

        tasks = {name: tasks[name] for name, _ in recipe.sources}
        figures = figures_of({name: (task.items, task.dropped) for name, task in tasks.items()})
        check_audits(figures, recipe.audit)
        labels = read_labels(recipe.labels, {name: task.items for name, task in tasks.items()})
        figures["third_person"] = [one.model_dump() for one in label_figures(labels)]
        records = {"dropped": pl.concat([task.dropped for task in tasks.values()])}
        contents = Contents(
            tables=[ReleaseTable(name, SPLIT, task.items, "PersonaItems") for name, task in tasks.items()],
            sources=[task.source for task in tasks.values()],
            statistics=figures,
            card=card(recipe, figures),
            records=records | ({"labels": labels} if labels.height else {}),
        )
        return making.release(contents, calls)


def rebuild(release: Path, out: Path, sources: Sequence[str]) -> None:
    """Build a release again from its own recipe and recorded calls, sending nothing (`pluralbench-release rebuild`).

    sources: where they are now, in the order of the release's configs.
    """
    made = read_recipe(PersonaJudgeRecipe, release / RECIPE)
    if len(sources) > len(made.sources):
        raise SourceError(f"The recipe has {len(made.sources)} sources, and {len(sources)} are given.")
    places = dict(zip((name for name, _ in made.sources), sources, strict=False))
    labels = str(release / LABELS) if (release / LABELS).exists() else None
    build(_moved(made, places).model_copy(update={"labels": labels}), out, replay=release / LEDGER)


def _moved(recipe: PersonaJudgeRecipe, places: Mapping[str, str]) -> PersonaJudgeRecipe:
    """The recipe with other locations, by task."""
    changed = {
        name: table.model_copy(update={"location": places[name]}) for name, table in recipe.sources if name in places
    }
    own = [changed.pop(table.task, table) for table in recipe.people_csv]
    return recipe.model_copy(update={**changed, "people_csv": own})


def _pinned(recipe: PersonaJudgeRecipe) -> PersonaJudgeRecipe:
    """The recipe with PRISM pinned to the commit that the Hub has now; a pinned one asks nobody."""
    if recipe.prism is None or recipe.prism.location == SAMPLE:
        return recipe
    try:
        return _moved(recipe, {"prism": pinned(recipe.prism.location)})
    except SourceError as error:
        raise SourceError(f"{error} {prism.HOW}") from None


def _tasks(recipe: PersonaJudgeRecipe) -> dict[str, Task]:
    """The tasks by name, but for `personal_reddit`, which needs rankings."""
    made, seed = {}, recipe.seed
    if recipe.prism is not None:
        made["prism"] = _prism(recipe.prism, seed)
    if recipe.opinion_qa is not None:
        made["opinion_qa"] = _opinion_qa(recipe.opinion_qa, seed)
    if recipe.empathic_conversations is not None:
        made["empathic_conversations"] = _empathic(recipe.empathic_conversations, seed)
    for table in recipe.people_csv:
        loaded = people_csv.load(table)
        pairs = pairing.drawn(loaded.rows, table.size, seed, table.task)
        made[table.task] = _task(table.task, table.kind, loaded, pairs, seed)
    return made


def _prism(table: PrismTable, seed: int) -> Task:
    loaded = prism.load(table)
    pairs, gone = pairing.by_score(loaded.rows, size=table.size, tie_gap=table.tie_gap, seed=seed)
    return _task("prism", "preference", loaded, pairs, seed, gone)


def _opinion_qa(table: OpinionQaTable, seed: int) -> Task:
    loaded = opinion_qa.load(table)
    pairs = pairing.by_answer(loaded.rows, respondents=table.respondents, seed=seed)
    return _task("opinion_qa", "opinion", loaded, pairing.drawn(pairs, table.size, seed, "opinion_qa"), seed)


def _empathic(table: EmpathicTable, seed: int) -> Task:
    loaded = empathic.load(table)
    pairs = pairing.by_author(
        loaded.rows,
        pairs_per_article=table.pairs_per_article,
        size=table.size,
        tie_gap=table.tie_gap,
        tie_share=table.tie_share,
        seed=seed,
    )
    return _task("empathic_conversations", "authorship", loaded, pairs, seed)


def _personal_reddit(
    recipe: PersonaJudgeRecipe, loaded: Loaded[Post], alike: Mapping[str, tuple[Mapping[str, float], str]]
) -> Task:
    size = None if recipe.personal_reddit is None else recipe.personal_reddit.size
    pairs, gone = pairing.by_likeness(loaded.rows, alike, size=size, seed=recipe.seed)
    return _task("personal_reddit", "authorship", loaded, pairs, recipe.seed, gone)


def _task(
    name: str, kind: str, loaded: Loaded[Any], pairs: Sequence[Pair], seed: int, gone: Sequence[LeftOut] = ()
) -> Task:
    """A task of these pairs. gone: what was left out when the pairs were made."""
    dropped = [(name, *entry) for entry in (*loaded.left_out, *gone)]
    if not pairs:
        raise NothingLeft(f"No item of the task {name} is left: {_reasons(dropped)}.")
    items = pairing.items(name, kind, pairs, loaded.personas, seed)
    return Task(items, pl.DataFrame(dropped, schema=DROPPED, orient="row"), loaded.source)


def _reasons(dropped: Sequence[tuple[str, ...]]) -> str:
    counts = Counter(f"{what} {reason}" for _, what, _, reason in dropped).most_common(3)
    return ", ".join(f"{count:,} times {reason}" for reason, count in counts) or "the source has none"
