"""What could be wrong with a release although each of its rows is valid: length, repetition, prompts in two parts."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import SourceError, text_table
from pluralbench_release.audit import (
    PairLimits,
    check_limits,
    limited,
    near_duplicates,
    normalized,
    pair_figures,
    wins_text,
)

from build_chinese.rankings import Row

SURFACE = "How often the better response is the longer one, or repeats more of the prompt"
ALIKE = "Pairs of responses that are nearly the same"
ALIKE_PROMPTS = "Pairs of prompts that are nearly the same"
Pairs = Sequence[Sequence[tuple[str, str]]]
"""For each row the (better, worse) ids of its responses."""


def check_apart(rows: Sequence[Row], parts: Mapping[str, Sequence[Row]], what: str) -> None:
    """Raise `SourceError` for a prompt that is in two parts, by its id or its text.

    Texts are compared as `normalized` has them, and without any space. parts: other rows by what to
    call them. what: is said of the rows, so that "The prompt x WHAT and is in PART too" is a sentence.
    """
    for part, others in parts.items():
        known = {key: row["id"] for row in others for key in _keys(row)}
        for row in rows:
            there = next((known[key] for key in _keys(row) if key in known), None)
            if there is not None:
                name = "" if there == row["id"] else f", as {there}"
                raise SourceError(
                    f"The prompt {row['id']} {what} and is in {part} too{name}; take it out of one of the two."
                )


def audit(rows: Sequence[Row], pairs: Pairs) -> dict[str, Any] | None:
    """What a scorer could go by in the pairs of some prompts, JSON; None where there are none.

    As `pair_figures` has it: lengths are in characters, and what a response could repeat is the
    prompt. Of its near-duplicates, `chosen` are responses to two prompts, better or worse, and `sides` the two
    responses of a pair.
    """
    responses = [{one["id"]: one["content"] for one in row["responses"]} for row in rows]
    every = [
        (row["input"], texts[better], texts[worse])
        for row, texts, own in zip(rows, responses, pairs, strict=True)
        for better, worse in own
    ]
    if not every:
        return None
    prompts, chosen, rejected = (list(texts) for texts in zip(*every, strict=True))
    found = pair_figures(chosen, rejected, prompts, owners=prompts, length=len)
    contents = [(row["id"], text) for row, texts in zip(rows, responses, strict=True) for text in texts.values()]
    near = near_duplicates([text for _, text in contents], [owner for owner, _ in contents])
    return found | {"near_duplicates": {"chosen": near, "sides": found["near_duplicates"]["sides"]}}


def prompt_figures(benchmarks: Sequence[Row], training: Sequence[Row]) -> dict[str, int]:
    """How many pairs of prompts are nearly the same: across the two parts, and within each."""
    texts = {
        "in the benchmarks": [row["input"] for row in benchmarks],
        "to learn from": [row["input"] for row in training],
    }
    owners = [part for part, own in texts.items() for _ in own]
    across = near_duplicates([text for own in texts.values() for text in own], owners)
    return {"in the benchmarks and to learn from": across} | {part: near_duplicates(own) for part, own in texts.items()}


def check_audits(audits: Sequence[Mapping[str, Any]], limits: PairLimits) -> None:
    """Raise `AuditFailed` naming the first part that breaks limits, with all that it breaks."""
    for entry in audits:
        check_limits(limited(entry), limits, f"The audit of {entry['config']} by {entry['annotator']}")


def audit_tables(audits: Sequence[Mapping[str, Any]], prompts: Mapping[str, int]) -> dict[str, pl.DataFrame]:
    """The figures as small tables with a title each, for the card and the terminal."""
    if not audits:
        return {}
    surface, alike = [], []
    for entry in audits:
        place, near = (entry["annotator"], entry["config"]), entry["near_duplicates"]
        surface.append((*place, wins_text(entry["longer"]), wins_text(entry["more_overlap"])))
        alike.append((*place, near["chosen"], near["sides"]))
    names = ["annotator", "config"]
    return {
        SURFACE: text_table([*names, "more characters", "more of the prompt"], surface),
        ALIKE: text_table([*names, "responses to two prompts", "the two of a pair"], alike),
        ALIKE_PROMPTS: text_table(["where", "pairs"], prompts.items()),
    }


def _keys(row: Row) -> list[tuple[str, str]]:
    # Between Chinese characters a space says nothing, wherever it stands.
    return [("id", row["id"]), ("text", "".join(normalized(row["input"]).split()))]
