"""Audit of a release: length bias, repeated text, near-duplicates, and prompts that are in two parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import SourceError, text_table
from pluralbench_release.audit import pair_figures, surface_table
from pluralbench_release.similarity import near_duplicates, normalized

from build_chinese.rankings import Row

SURFACE = "How often the better response is the longer one, or repeats more of the prompt"
ALIKE = "Pairs of responses that are nearly the same"
ALIKE_PROMPTS = "Pairs of prompts that are nearly the same"
Pairs = Sequence[Sequence[tuple[str, str]]]
"""(better, worse) response ids of each row."""


def check_disjoint(rows: Sequence[Row], parts: Mapping[str, Sequence[Row]], what: str) -> None:
    """Raise `SourceError` for a prompt that WHAT and is also in another part, by id or by text without spaces."""
    for part, others in parts.items():
        ids = {key: row["id"] for row in others for key in _keys(row)}
        for row in rows:
            other = next((ids[key] for key in _keys(row) if key in ids), None)
            if other is not None:
                name = "" if other == row["id"] else f", as {other}"
                raise SourceError(
                    f"The prompt {row['id']} {what} and is also in {part}{name}; remove it from one of the two."
                )


def audit(rows: Sequence[Row], pairs: Pairs) -> dict[str, Any]:
    """Compute figures of what a scorer could exploit in the pairs (`pair_figures`), of which there is at least one.

    Lengths are in characters, and repeated text is text of the prompt. In `near_duplicates`, `chosen` counts responses
    to two prompts (better or worse ones), and `sides` the two responses of a pair."""
    responses = [{response["id"]: response["content"] for response in row["responses"]} for row in rows]
    triples = [
        (row["input"], texts[better], texts[worse])
        for row, texts, own in zip(rows, responses, pairs, strict=True)
        for better, worse in own
    ]
    prompts, chosen, rejected = (list(texts) for texts in zip(*triples, strict=True))
    figures = pair_figures(chosen, rejected, prompts, owners=prompts, length=len)
    contents = [(row["id"], text) for row, texts in zip(rows, responses, strict=True) for text in texts.values()]
    near = near_duplicates([text for _, text in contents], [owner for owner, _ in contents])
    return figures | {"near_duplicates": {"chosen": near, "sides": figures["near_duplicates"]["sides"]}}


def prompt_figures(benchmarks: Sequence[Row], training: Sequence[Row]) -> dict[str, int]:
    """Count pairs of near-duplicate prompts across benchmarks and training set, and within each."""
    texts = {
        "in the benchmarks": [row["input"] for row in benchmarks],
        "to learn from": [row["input"] for row in training],
    }
    owners = [part for part, own in texts.items() for _ in own]
    across = near_duplicates([text for own in texts.values() for text in own], owners)
    return {"in the benchmarks and to learn from": across} | {part: near_duplicates(own) for part, own in texts.items()}


def audit_tables(audits: Sequence[Mapping[str, Any]], prompts: Mapping[str, int]) -> dict[str, pl.DataFrame]:
    """Format the figures as tables by title, for the card and the terminal."""
    if not audits:
        return {}
    names = ["annotator", "config"]
    places = [([entry[name] for name in names], entry) for entry in audits]
    near = [(place, entry["near_duplicates"]) for place, entry in places]
    alike = [(*place, counts["chosen"], counts["sides"]) for place, counts in near]
    return {
        SURFACE: surface_table(names, places, "prompt"),
        ALIKE: text_table([*names, "responses to two prompts", "the two of a pair"], alike),
        ALIKE_PROMPTS: text_table(["where", "pairs"], prompts.items()),
    }


def _keys(row: Row) -> list[tuple[str, str]]:
    # Spaces between Chinese characters carry no meaning.
    return [("id", row["id"]), ("text", "".join(normalized(row["input"]).split()))]
