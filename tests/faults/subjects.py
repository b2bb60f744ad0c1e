"""Public functions by words, as a command would take them, for what no command does without a model or a build."""

from pathlib import Path
from typing import Any

import verbs
from build_personalized.recipe import SourceTable
from build_personalized.sources import load
from pluralbench_calls import Ledger, read_ledger


def score_by_text(data: str, benchmark: str = "pairs", plans: str | None = None) -> None:
    """Score a table by a function."""
    told: dict[str, Any] = {"profile": "none"} if plans is None else {"profile": "plan", "plans": Path(plans)}
    verbs.score(verbs.by_text, data=data, benchmark=benchmark, out="out", **told)


def take_ledger(path: str) -> None:
    """Read a ledger, and add it to another."""
    read_ledger(Path(path))
    with Ledger(Path("other.sqlite")) as ledger:
        ledger.add_from(Path(path))


def load_questions(location: str) -> None:
    """The questions of a source."""
    Path("cache").mkdir()
    load(SourceTable(locations=[location]), Path("cache"))


def judge_once(data: str, base_url: str) -> None:
    """Judge a table, with one try more for each request."""
    connection = {"base_url": base_url, "api_key_env": "PLANTED_KEY", "timeout": 3.0, "max_retries": 1}
    verbs.judge("m", data=data, benchmark="pairs", profile="none", out="out", **connection)
