"""Audit the pairs of each config for what a scorer could exploit: length, repetition, identical texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import text_table
from pluralbench_release.audit import pair_figures, surface_table
from pluralbench_release.similarity import normalized
from pluralbench_runs.workers import ParallelMap

SURFACE = "How often the better answer is the longer one, or repeats more of the prompt"
DUPLICATES = "Pairs with identical or near-identical answers, and repeated answers and prompts"


def audit(config: str, rows: pl.DataFrame) -> dict[str, Any]:
    """Compute the audit figures of a config, JSON, as in `pair_figures` with lengths in characters.

    The text that answers may repeat is the prompt. Answers to the same prompt are not counted as near-duplicates.
    `identical` counts pairs whose answers are equal after normalization (`normalized`), `same_prompts` rows whose
    normalized prompt is in an earlier row."""
    chosen, rejected = rows["chosen"].to_list(), rows["rejected"].to_list()
    prompts = [normalized(text) for text in rows["prompt"]]
    return {
        "config": config,
        **pair_figures(chosen, rejected, prompts, owners=prompts, length=len),
        "identical": sum(map(_identical, chosen, rejected)),
        "same_prompts": len(prompts) - len(set(prompts)),
    }


def _identical(one: str, other: str) -> bool:
    # Most texts differ in their first words.
    first, second = (normalized("".join(text.split(maxsplit=1)[:1])) for text in (one, other))
    return (first.startswith(second) or second.startswith(first)) and normalized(one) == normalized(other)


def audit_configs(
    by_language: Mapping[str, pl.DataFrame], translation: pl.DataFrame | None, each: ParallelMap = map
) -> list[dict[str, Any]]:
    """Audit each config that has rows. `each`: `map`, or that of worker processes."""
    frames = dict(by_language) | ({} if translation is None else {"translation": translation})
    columns = ("prompt", "chosen", "rejected")
    return list(each(_audit_item, ((config, rows.select(columns)) for config, rows in frames.items() if rows.height)))


def _audit_item(item: tuple[str, pl.DataFrame]) -> dict[str, Any]:
    return audit(*item)


def audit_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, pl.DataFrame]:
    """Format the figures as two small tables for the card, by title."""
    if not figures:
        return {}
    duplicates = [
        (
            entry["config"],
            entry["identical"],
            entry["near_duplicates"]["sides"],
            entry["near_duplicates"]["chosen"],
            entry["same_prompts"],
        )
        for entry in figures
    ]
    names = ["config", "identical answers", "near-identical", "repeated chosen", "repeated prompts"]
    return {
        SURFACE: surface_table(["config"], [([entry["config"]], entry) for entry in figures], "prompt"),
        DUPLICATES: text_table(names, duplicates),
    }
