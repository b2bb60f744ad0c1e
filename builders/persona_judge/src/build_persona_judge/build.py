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
    Builder,
    Built,
    Contents,
    ReleaseTable,
    Source,
    building,
    pinned,
    read_release_recipe,
)
from pluralbench_release.errors import NothingLeft, SourceError

from build_persona_judge import pairing
from build_persona_judge.card import card
from build_persona_judge.figures import check_audits, figures_of
from build_persona_judge.labels.results import figures_of as label_figures
from build_persona_judge.labels.results import read_labels
from build_persona_judge.pairing import LeftOut, Pair
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
        with recording(making.work, making.ledgers) as calls:
            if reddit is not None and posts is not None:
                backend: Backend = ranker if replay is None else Replay()
                alike = personal_reddit.likeness(posts.rows, posts.personas, calls.ledger, ranker, backend)
                pairs, gone = pairing.by_likeness(posts.rows, alike, size=reddit.size, seed=recipe.seed)
                tasks["personal_reddit"] = _task("personal_reddit", "authorship", posts, pairs, recipe.seed, gone)

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
    made = read_release_recipe(PersonaJudgeRecipe, release)
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
    made, seed = dict[str, Task](), recipe.seed
    for name, table in recipe.sources:
        loaded: Loaded[Any]
        gone: list[LeftOut] = []
        match table:
            case PrismTable():
                kind, loaded = "preference", prism.load(table)
                pairs, gone = pairing.by_score(loaded.rows, size=table.size, tie_gap=table.tie_gap, seed=seed)
            case OpinionQaTable():
                kind, loaded = "opinion", opinion_qa.load(table)
                answers = pairing.by_answer(loaded.rows, respondents=table.respondents, seed=seed)
                pairs = pairing.drawn(answers, table.size, seed, name)
            case EmpathicTable():
                kind, loaded = "authorship", empathic.load(table)
                limits = table.model_dump(include={"pairs_per_article", "size", "tie_gap", "tie_share"})
                pairs = pairing.by_author(loaded.rows, **limits, seed=seed)
            case PeopleTable():
                kind, loaded = table.kind, people_csv.load(table)
                pairs = pairing.drawn(loaded.rows, table.size, seed, name)
            case _:
                continue
        made[name] = _task(name, kind, loaded, pairs, seed, gone)
    return made


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
