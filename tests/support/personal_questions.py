"""Questions of one person, and a recipe whose model a test plays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from build_personalized.recipe import PersonalizedRecipe
from build_personalized.sources.loaded import QUESTIONS
from chat_server import ChatServer, Reply, serve
from pluralbench_calls import Backend, Ledger, OpenAIChat


class Asking(NamedTuple):
    """What the steps that ask a model take besides the questions."""

    recipe: PersonalizedRecipe
    ledger: Ledger
    backend: Backend


def question(number: int, **changes: Any) -> dict[str, Any]:
    """A question with one post and no aspects yet."""
    return {
        "config": "beer",
        "id": f"q{number}",
        "question": f"Question {number}?",
        "category": "c",
        "narrative": "NARRATIVE",
        "rubric_aspects": [],
        "profile": [{"id": "p", "category": "c", "text": "a post"}],
    } | changes


def questions(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=QUESTIONS)


@contextmanager
def asking(
    tmp_path: Path, script: Callable[[dict[str, Any], int], Reply], *, llm: dict[str, Any] | None = None, **changes: Any
) -> Iterator[tuple[Asking, ChatServer]]:
    """One request at a time to a server that answers by the script."""
    with serve(script) as server, Ledger(tmp_path / "ledger") as ledger:
        values = {
            "source": {"locations": ["sample"]},
            "connection": {"base_url": server.base_url, "concurrency": 1},
            "llm": {"provider": "loopback", "model": "m"} | (llm or {}),
        }
        backend = OpenAIChat(server.base_url, max_retries=0)
        yield Asking(PersonalizedRecipe.model_validate(values | changes), ledger, backend), server
