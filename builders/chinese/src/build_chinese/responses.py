"""Collect responses to the prompts from several models (CHEEMS, section 3.1); each model answers each prompt once."""

from collections.abc import Sequence

import polars as pl
from pluralbench_calls import (
    Backend,
    Ledger,
    Replay,
    Request,
    answer_text,
    ask_until_valid,
    chat_backend,
    chat_request,
)
from pluralbench_runs import digest, rng_for

from build_chinese.rankings import Row
from build_chinese.recipe import ChineseRecipe, Writer
from build_chinese.screening import DROPS

NOT_ANSWERED, SAME_TEXT = "not answered", "the same text as another model's"


def add_model_responses(
    rows: Sequence[Row], recipe: ChineseRecipe, ledger: Ledger, *, replaying: bool
) -> tuple[list[Row], pl.DataFrame]:
    """Add each writer's response to the rows.

    A response's id is the beginning of its content's digest, so that it does not reveal the model. The order of a
    prompt's responses is random, since it decides which responses the ring compares.

    Returns:
        The rows with all responses; and the prompts without an answer, with columns of `screening.DROPS`.
    """
    written: dict[str, list[dict[str, str]]] = {row["id"]: [] for row in rows}
    failed: list[tuple[str, str | None, str, str]] = []
    for writer in recipe.writers:
        # Never send a key to an endpoint other than its own.
        own = {} if writer.base_url is None else writer.model_dump(include={"base_url", "api_key_env"})
        connection = recipe.connection.model_copy(update=own)
        backend: Backend = Replay() if replaying else chat_backend(writer, connection)

        def request(row: Row, attempt: int, writer: Writer = writer) -> Request:
            messages = [{"role": "user", "content": row["input"]}]
            label = f"answer to {row['id']}"
            return chat_request(writer, messages, seed=recipe.seed, label=label, attempt=attempt)

        settled = ask_until_valid(
            list(rows),
            request,
            lambda _, reply: answer_text(reply),
            ledger,
            backend,
            attempts=2,
            limits=recipe.connection.limits(),
            label=f"answers of {writer.model}",
        )
        for row, result in zip(rows, settled, strict=True):
            if result.value is None:
                failed.append((row["id"], None, NOT_ANSWERED, f"{writer.model}: {result.reason}"))
                continue
            name = digest([row["id"], result.value])[:12]
            if any(response["id"] == name for response in written[row["id"]]):
                failed.append((row["id"], name, SAME_TEXT, writer.model))
            else:
                written[row["id"]].append({"id": name, "content": result.value, "model": result.answer.model})
    answered = []
    for row in rows:
        responses = sorted(written[row["id"]], key=lambda response: response["id"])
        rng_for(recipe.seed, "ring", row["id"]).shuffle(responses)
        answered.append(row | {"responses": [*row["responses"], *responses]})
    return answered, pl.DataFrame(failed, schema=DROPS, orient="row")
