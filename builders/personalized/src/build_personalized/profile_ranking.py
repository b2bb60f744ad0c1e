"""Rank the profiles of any table by relevance to the question (section 3.1), for the verb `rank`.

Personalized RewardBench ranks the posts of LaMP-QA's train and test splits; a build ranks those of the test split.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl
from pluralbench_calls import Backend, Ledger, working_ledger
from pluralbench_calls.retrieval import Query, Retriever, rank
from pluralbench_calls.retrieval import retriever as retriever_of
from pluralbench_release import LEDGER, RECIPE, content_digest, pinned, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import Location, PathName, Recipe, SplitName, digest, output_directory

from build_personalized.recipe import check_config
from build_personalized.training.contamination import prompt_column, user_texts


def rank_profiles(questions: pl.DataFrame, ledger: Ledger, identity: Retriever, backend: Backend) -> pl.DataFrame:
    """Sort each `profile` by descending relevance to the question; posts with equal scores keep their order.

    Scores are recorded under the retriever `identity`; the backend is that retriever, or a replay.
    """
    profiles = questions["profile"].to_list()
    queries = [
        Query(question, [post["text"] for post in profile], f"ranking of the posts of {name}")
        for name, question, profile in zip(questions["id"], questions["question"], profiles, strict=True)
        if profile
    ]
    scored = iter(rank(queries, ledger, identity, backend))
    ranked = [
        [post for _, post in sorted(zip(next(scored)[0], profile, strict=True), key=lambda pair: -pair[0])]
        if profile
        else []
        for profile in profiles
    ]
    return questions.with_columns(pl.Series("profile", ranked, dtype=questions.schema["profile"]))


CHUNK_ROWS = 1024  # rows converted to Python objects at a time
CARD = "README.md"


class RankSettings(Recipe):
    """Settings that a ranking depends on; `digest` is that of the rows as read."""

    verb: Literal["rank"] = "rank"
    source: Location
    split: SplitName
    configs: tuple[PathName, ...]
    digest: str
    retriever: Location


def rank_tables(
    source: str,
    out: Path,
    *,
    retriever: str = "bm25",
    split: str = "train",
    configs: Sequence[str] = (),
    fresh: bool = False,
) -> dict[str, int]:
    """Write the tables of `source` into `out` with each profile in descending order of relevance.

    Posts with equal scores keep the source's order. Scores are recorded calls; the same call resumes an interrupted
    ranking. Tables need a column `question`, `prompt` or `context`, and `profile`, a list of posts with `text`.

    Returns:
        Number of rows by config.

    Raises:
        UserError: The tables, the retriever, a call or `out` has a problem; the message is for the user.
    """
    identity = retriever_of(retriever)
    place = pinned(source)
    tables = read_tables(place, split=split, configs=configs or None)
    for config, frame in tables.frames.items():
        check_config(config, source)
        prompt_column(frame, tables.paths[config])
        _check_profiles(frame, tables.paths[config])
    settings = RankSettings(
        source=place,
        split=split,
        configs=tuple(tables.frames),
        digest=digest({config: content_digest(frame) for config, frame in tables.frames.items()}),
        retriever=retriever,
    )
    with output_directory(out, settings, recipe_file=RECIPE, fresh=fresh) as output:
        if fresh or not (out / RECIPE).exists():
            with working_ledger(output.work / "ledger.sqlite") as ledger:
                ranked = {
                    config: _rank_table(frame, tables.paths[config], ledger, identity)
                    for config, frame in tables.frames.items()
                }
                staged = output.staging()
                for path in (staged / RECIPE, *(staged / config / CARD for config in ranked)):
                    path.parent.mkdir(parents=True, exist_ok=True)
                for config, frame in ranked.items():
                    frame.write_parquet(staged / config / f"{split}.parquet")
                ledger.export(staged / LEDGER, ledger.used)
            (staged / RECIPE).write_bytes((output.work / "recipe.toml").read_bytes())
            if tables.license is not None:
                items = "".join(f"- {license}\n" for license in tables.license.split(", "))
                (staged / CARD).write_text(f"---\nlicense:\n{items}---\n", encoding="utf-8")
            output.publish(staged)
    return {config: frame.height for config, frame in tables.frames.items()}


def _check_profiles(frame: pl.DataFrame, where: str) -> None:
    kind = frame.schema.get("profile")
    posts = kind.inner if isinstance(kind, pl.List) else None
    if not isinstance(posts, pl.Struct) or "text" not in {field.name for field in posts.fields}:
        raise SourceError(
            f"{where} has no column `profile` of posts with `text`; its columns are {', '.join(frame.columns)}."
        )
    textless = frame.with_row_index("row").filter(
        pl.col("profile").list.eval(pl.element().struct.field("text").is_null().any()).list.first()
    )
    if textless.height:
        raise SourceError(f"{where}, row {textless['row'][0] + 1}: a post of the profile has no text; remove it.")


def _rank_table(frame: pl.DataFrame, where: str, ledger: Ledger, identity: Retriever) -> pl.DataFrame:
    column = prompt_column(frame, where)
    parts = []
    for part in frame.with_row_index("row").iter_slices(CHUNK_ROWS):
        questions = pl.DataFrame(
            {
                "id": [f"row {row + 1:,} of {where}" for row in part["row"]],
                "question": ["\n\n".join(user_texts(cell)) for cell in part[column]],
                "profile": part["profile"].fill_null([]),
            }
        )
        parts.append(part.drop("row").with_columns(rank_profiles(questions, ledger, identity, identity)["profile"]))
    return pl.concat(parts) if parts else frame
