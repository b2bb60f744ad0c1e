"""What a source hands to the build."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl
from pluralbench_release import Source, content_digest
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_schemas import POST, RUBRIC_ASPECT

QUESTIONS = pl.Schema(
    [
        ("config", pl.String),
        ("id", pl.String),
        ("question", pl.String),
        ("category", pl.String),
        ("narrative", pl.String),
        ("rubric_aspects", pl.List(RUBRIC_ASPECT)),
        ("profile", pl.List(POST)),
    ]
)
DROPS = pl.Schema({"config": pl.String, "step": pl.String, "reason": pl.String, "id": pl.String})


@dataclass(frozen=True)
class Loaded:
    """Questions (columns of `QUESTIONS`), what was left out and why (columns of `DROPS`), and where all came from."""

    questions: pl.DataFrame
    drops: pl.DataFrame
    sources: list[Source]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Add what was looked for to the sentence of a `SourceError`."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{str(error).removesuffix('.')} ({what}).") from None


def drops_frame(rows: Iterable[tuple[str, str, str, str]]) -> pl.DataFrame:
    """Drops from rows of (config, step, reason, id)."""
    return pl.DataFrame(list(rows), schema=DROPS, orient="row")


def rows_digest(questions: pl.DataFrame) -> str:
    """SHA-256 of what was read, each config's rows sorted by id: it pins files that have no revision."""
    return digest({config: content_digest(rows) for config, rows in by_config(questions)})


def by_config(questions: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each config, without that column; one config is copied at a time, and none where there is one."""
    configs = questions["config"].unique(maintain_order=True).to_list()
    rows = questions.drop("config")
    for config in configs:
        yield config, rows if len(configs) == 1 else rows.filter(questions["config"] == config)
