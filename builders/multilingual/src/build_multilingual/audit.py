"""What a scorer could go by in the pairs of a config although each of them is valid: length, repetition, sameness."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import text_table
from pluralbench_release.audit import PairLimits, check_limits, limit_values, normalized, pair_figures, wins_text
from pluralbench_runs.workers import ParallelMap

SURFACE = "How often the better answer is the longer one, or repeats more of the prompt"
ALIKE = "Pairs whose two answers are the same or nearly so, and answers and prompts that stand there twice"


def audit(config: str, rows: pl.DataFrame) -> dict[str, Any]:
    """The figures of a config's pairs (`prompt`, `chosen`, `rejected`), JSON.

    As `pair_figures` has it, lengths being in characters; what an answer could repeat is the prompt.
    Two answers to one prompt are no near-duplicates. identical: pairs whose answers differ in nothing that a reader
    sees (`normalized`). same_prompts: rows whose prompt stands in an earlier one, seen in that way.
    """
    chosen, rejected = rows["chosen"].to_list(), rows["rejected"].to_list()
    prompts = [normalized(text) for text in rows["prompt"]]
    return {
        "config": config,
        **pair_figures(chosen, rejected, prompts, owners=prompts, length=len),
        "identical": sum(normalized(one) == normalized(other) for one, other in zip(chosen, rejected, strict=True)),
        "same_prompts": len(prompts) - len(set(prompts)),
    }


def audits(
    by_language: Mapping[str, pl.DataFrame], translation: pl.DataFrame | None, each: ParallelMap = map
) -> list[dict[str, Any]]:
    """The audit of each config that has rows. each: what makes them, `map` or `workers`."""
    frames = dict(by_language) | ({} if translation is None else {"translation": translation})
    columns = ("prompt", "chosen", "rejected")
    return list(each(_audited, ((config, rows.select(columns)) for config, rows in frames.items() if rows.height)))


def _audited(named: tuple[str, pl.DataFrame]) -> dict[str, Any]:
    return audit(*named)


def check_audits(found: Sequence[Mapping[str, Any]], limits: PairLimits, *, dropped: float) -> None:
    """Raise `AuditFailed` naming the first config that breaks limits, with all that it breaks.

    dropped: the share of the source's rows that did not become a pair.
    """
    for entry in found:
        check_limits(limit_values(entry) | {"max_drop_share": dropped}, limits, f"The audit of {entry['config']}")


def audit_tables(found: Sequence[Mapping[str, Any]]) -> dict[str, pl.DataFrame]:
    """The figures as two small tables, for the card."""
    if not found:
        return {}
    surface = [(entry["config"], wins_text(entry["longer"]), wins_text(entry["more_overlap"])) for entry in found]
    alike = [
        (
            entry["config"],
            entry["identical"],
            entry["near_duplicates"]["sides"],
            entry["near_duplicates"]["chosen"],
            entry["same_prompts"],
        )
        for entry in found
    ]
    names = ["config", "the same answers", "nearly the same", "better answers twice", "prompts twice"]
    return {
        SURFACE: text_table(["config", "more characters", "more of the prompt"], surface),
        ALIKE: text_table(names, alike),
    }
