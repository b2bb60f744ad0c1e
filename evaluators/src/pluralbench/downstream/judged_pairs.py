"""Pairs of a policy's own candidates that a judge tells apart: to train reward models on, or to measure them by."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_rewards import Message
from pluralbench_runs import stream

from pluralbench.downstream.candidates import WHERE
from pluralbench.errors import EvaluationError
from pluralbench.results.runs import Downstream

PAIRS_FILE = "pairs.jsonl"


def judged_pairs(
    found: Downstream, prompts: Mapping[tuple[str, str], Sequence[Message]], most: int, *, seed: int
) -> list[dict[str, Any]]:
    """At most so many pairs of each prompt, drawn by the seed: `id`, `cluster`, `prompt`, `chosen`, `rejected`.

    prompts: what is asked, as messages, by config and id; of conversations the first turn. Two candidates are a pair
    where the judge gives them different values. Raises `EvaluationError` where there is none.
    """
    judged = (
        found.frame("candidates")
        .join(found.frame("outcomes"), on=[*WHERE, "sample"])
        .filter(pl.col("turn") == 0, pl.col("value").is_not_null())
    )
    rows = []
    for (config, item_id), own in judged.partition_by("config", "id", as_dict=True, maintain_order=True).items():
        texts = list(own.select("sample", "text", "value", "cluster").iter_rows())
        several = [(a, b) for a in texts for b in texts if a[2] > b[2] and a[1] != b[1]]
        draw = stream(seed, "pairs", str(config), str(item_id))
        for better, worse in draw.sample(several, min(most, len(several))):
            rows.append(
                {
                    "id": f"{config}/{item_id}/{better[0]}-{worse[0]}",
                    "cluster": better[3],
                    "prompt": [dict(message) for message in prompts[str(config), str(item_id)]],
                    "chosen": better[1],
                    "rejected": worse[1],
                }
            )
    if not rows:
        raise EvaluationError(f"The judge tells no two candidates of one prompt apart in {found.path}.")
    return rows
