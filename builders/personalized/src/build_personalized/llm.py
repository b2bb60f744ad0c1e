"""The model of a recipe: who answers, and what a chat request to it looks like."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pluralbench_calls import Answer, Backend, Ledger, Limits, Message, Request, chat_backend, chat_request

from build_personalized.errors import BuildError
from build_personalized.recipe import PersonalizedRecipe


@dataclass(frozen=True)
class Llm:
    """A model in use: the recipe's sampling, where answers are recorded, who gives them, how fast and how dear."""

    recipe: PersonalizedRecipe
    ledger: Ledger
    backend: Backend
    limits: Limits

    def request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        label: str,
        attempt: int,
        schema: Mapping[str, Any] | None = None,
    ) -> Request:
        """A chat request. Its seed, where the recipe sends one, depends on the label and the attempt alone."""
        return chat_request(
            self.recipe.llm,
            messages,
            seed=self.recipe.seed,
            label=label,
            attempt=attempt,
            max_tokens=max_tokens,
            schema=schema,
        )


def backend_of(recipe: PersonalizedRecipe, sample: Path) -> Backend:
    """Who answers for the recipe's provider. `sample`: the folder with the hand-written answers."""
    if recipe.llm.provider == "hand-written":
        return HandWritten(sample / "answers")
    return chat_backend(recipe.llm, recipe.connection)


def answer_label(side: str, row_id: str) -> str:
    """What a call for an answer is called, in the ledger and in messages."""
    return f"{side} answer for {row_id}"


class HandWritten:
    """The answers that were written for the sample, as a backend: found by what the call is for."""

    concurrency: int | None = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Self:
        """Read the answers."""
        rows = [
            json.loads(line)
            for path in sorted(self._folder.glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").split("\n")
            if line
        ]
        self._texts = {answer_label(side, row["id"]): row[side] for row in rows for side in ("chosen", "rejected")}
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing to close."""

    async def send(self, request: Request) -> Answer:
        """The answer that was written for this call. Raises `BuildError` when nobody wrote one."""
        text = self._texts.get(request.label.rsplit(", ", 1)[0])
        if text is None:
            raise BuildError(
                f"Nobody wrote the {request.label}: hand-written answers are only for the sample's own questions; "
                "choose a model with --llm."
            )
        return Answer.to(request, "answer", text, finish_reason="stop")
