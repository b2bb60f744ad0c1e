"""Who answers for a recipe's model."""

from pathlib import Path

import polars as pl
from pluralbench_calls import Backend, Written, chat_backend

from build_personalized.recipe import PersonalizedRecipe

NOT_OF_THE_SAMPLE = "hand-written answers are only for the sample's own questions; choose a model with --llm"


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
    rows = pl.concat(pl.read_ndjson(path.read_bytes()) for path in sorted(folder.glob("*.jsonl")))
    return {answer_label(side, row["id"]): row[side] for row in rows.to_dicts() for side in ("chosen", "rejected")}
