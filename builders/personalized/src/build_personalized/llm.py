"""The model of a recipe: who answers, and what a chat request to it looks like."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_calls import Backend, Ledger, Limits, Message, Request, Written, chat_backend, chat_request

from build_personalized.recipe import PersonalizedRecipe

NOT_OF_THE_SAMPLE = "hand-written answers are only for the sample's own questions; choose a model with --llm"


@dataclass(frozen=True)
class Llm:
    """A model in use: the recipe's sampling, where answers are recorded, who gives them, and at what rate and cost."""

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
    """Who answers for the recipe's provider. sample: the folder with the hand-written answers."""
    if recipe.llm.provider == "hand-written":
        return Written(lambda: _written(sample / "answers"), NOT_OF_THE_SAMPLE)
    return chat_backend(recipe.llm, recipe.connection)


def answer_label(side: str, row_id: str) -> str:
    """What a call for an answer is called, in the ledger and in messages."""
    return f"{side} answer for {row_id}"


def _written(folder: Path) -> dict[str, str]:
    """The answers that were written for the sample, by what the call for one is called."""
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]
    return {answer_label(side, row["id"]): row[side] for row in rows for side in ("chosen", "rejected")}
