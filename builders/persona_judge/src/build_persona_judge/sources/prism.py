"""PRISM: responses of many models to a person's question, each scored by the person.

The source has the tables `survey` (one person per row: `user_id` and demographics, some in the objects `ethnicity`,
`religion` and `location`) and `utterances` (one response per row: `interaction_id`, `user_id`, `turn`, `user_prompt`,
`model_name`, `model_response`, `score`). It is HannahRoseKirk/prism-alignment on the Hub (split train), or a folder
with survey.jsonl and utterances.jsonl.
"""

import re
from collections.abc import Container
from typing import Any

from pluralbench_release import read_tables
from pluralbench_release.errors import SourceError

from build_persona_judge.pairing import Response
from build_persona_judge.persona import PERSONAS, clean_value, to_number
from build_persona_judge.recipe import PrismTable
from build_persona_judge.sources.loaded import Loaded, check_columns, location_of, merge_people, personas_of, source_of

HOW = (
    "PRISM is HannahRoseKirk/prism-alignment on the Hub; use that, or a folder with its survey.jsonl and "
    "utterances.jsonl."
)
COLUMNS = ("interaction_id", "user_id", "turn", "user_prompt", "model_name", "model_response", "score")
NAMES = ("interaction_id", "user_id", "model_name")  # required in each response
PERSONA = PERSONAS["prism"]
DEMOGRAPHICS = [variable.column for variable in PERSONA]


def load(table: PrismTable) -> Loaded[Response]:
    """Load the responses of turn 0, without refusals and excluded model families. Raises `SourceError`."""
    try:
        tables = read_tables(location_of(table, "prism"), split="train", configs=["survey", "utterances"])
    except SourceError as error:
        raise SourceError(f"{error} {HOW}") from None
    check_columns(tables.frames["survey"], ["user_id", *DEMOGRAPHICS], tables.paths["survey"], HOW)
    check_columns(tables.frames["utterances"], COLUMNS, tables.paths["utterances"], HOW)
    survey = {tables.paths["survey"]: tables.frames["survey"].iter_rows(named=True)}
    people = merge_people(survey, "user_id", DEMOGRAPHICS, table.missing_values)
    personas, dropped = personas_of(people, PERSONA, table.missing_values)
    rows = []
    for number, row in enumerate(tables.frames["utterances"].select(COLUMNS).iter_rows(named=True), start=1):
        if to_number(row["turn"]) == 0:
            rows.append({name: None if value is None else str(value) for name, value in row.items()})
            unnamed = next((name for name in NAMES if rows[-1][name] is None), None)
            if unnamed is not None:
                raise SourceError(f"{tables.paths['utterances']}: row {number:,} has no `{unnamed}`. {HOW}")
    responses = []
    for row in rows:
        reason = _drop_reason(row, table, personas)
        if reason is None:
            responses.append(_response(row))
        else:
            dropped.append(("response", f"{row['interaction_id']} {row['model_name']}", reason))
    source = source_of(
        table,
        rows,
        ({"user_id": user} | values for user, values in people.items()),
        name="PRISM",
        attribution="PRISM (Kirk et al., 2024).",
        location=tables.location,
        revision=tables.revision,
        license=tables.license,
    )
    return Loaded(responses, personas, sorted(dropped), source)


def _drop_reason(row: dict[str, Any], table: PrismTable, personas: Container[str]) -> str | None:
    model, text = row["model_name"] or "", row["model_response"] or ""
    family = next((name for name in table.exclude_families if name.casefold() in model.casefold()), None)
    if family is not None:
        return f"of a model family that is left out: {family}"
    if any(word in text for word in table.refusals):
        return "taken for a refusal"
    if not text.strip() or clean_value(row["user_prompt"]) is None:
        return "no text"
    if to_number(row["score"]) is None:
        return "no score"
    return None if row["user_id"] in personas else "nothing is known of the person"


def _response(row: dict[str, Any]) -> Response:
    digits = re.search(r"\d+", row["interaction_id"])
    return Response(
        interaction=row["interaction_id"],
        number=int(digits[0]) if digits else 0,
        user=row["user_id"],
        question=row["user_prompt"],
        model=row["model_name"],
        text=row["model_response"],
        score=float(row["score"]),
    )
