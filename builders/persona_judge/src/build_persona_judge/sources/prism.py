"""PRISM: responses of many models to a person's question, each scored by the person.

Tables `survey` (a person a row: `user_id` and demographics, some inside the objects `ethnicity`, `religion` and
`location`) and `utterances` (a response a row: `interaction_id`, `user_id`, `turn`, `user_prompt`, `model_name`,
`model_response`, `score`). They are on the Hub as HannahRoseKirk/prism-alignment, whose split is called train; a folder
with survey.jsonl and utterances.jsonl does as well.
"""

import re
from collections.abc import Container
from typing import Any

from pluralbench_release import read_tables
from pluralbench_release.errors import SourceError

from build_persona_judge.pairing import Response
from build_persona_judge.persona import PRISM, known, number_of
from build_persona_judge.recipe import PrismTable
from build_persona_judge.sources.loaded import Loaded, check_columns, location_of, merged, personas_of, source_of

HOW = (
    "PRISM is HannahRoseKirk/prism-alignment on the Hub; give that, or a folder with its survey.jsonl and "
    "utterances.jsonl."
)
COLUMNS = ("interaction_id", "user_id", "turn", "user_prompt", "model_name", "model_response", "score")
NAMES = ("interaction_id", "user_id", "model_name")  # of what and whom a response is
DEMOGRAPHICS = [variable.column for variable in PRISM]


def load(table: PrismTable) -> Loaded[Response]:
    """The responses of turn 0 that may be compared. Raises `SourceError`."""
    try:
        tables = read_tables(location_of(table, "prism"), split="train", configs=["survey", "utterances"])
    except SourceError as error:
        raise SourceError(f"{error} {HOW}") from None
    check_columns(tables.frames["survey"], ["user_id", *DEMOGRAPHICS], tables.paths["survey"], HOW)
    check_columns(tables.frames["utterances"], COLUMNS, tables.paths["utterances"], HOW)
    survey = {tables.paths["survey"]: tables.frames["survey"].iter_rows(named=True)}
    people = merged(survey, "user_id", DEMOGRAPHICS, table.no_value)
    personas, left_out = personas_of(people, PRISM, table.no_value)
    rows = []
    for number, row in enumerate(tables.frames["utterances"].select(COLUMNS).iter_rows(named=True), start=1):
        if number_of(row["turn"]) == 0:
            rows.append({name: None if value is None else str(value) for name, value in row.items()})
            unnamed = next((name for name in NAMES if rows[-1][name] is None), None)
            if unnamed is not None:
                raise SourceError(f"{tables.paths['utterances']}: row {number:,} has no `{unnamed}`. {HOW}")
    responses = []
    for row in rows:
        why = _why_not(row, table, personas)
        if why is None:
            responses.append(_response(row))
        else:
            left_out.append(("response", f"{row['interaction_id']} {row['model_name']}", why))
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
    return Loaded(responses, personas, sorted(left_out), source)


def _why_not(row: dict[str, Any], table: PrismTable, personas: Container[str]) -> str | None:
    model, text = row["model_name"] or "", row["model_response"] or ""
    family = next((name for name in table.exclude_families if name.casefold() in model.casefold()), None)
    if family is not None:
        return f"of a model family that is left out: {family}"
    if any(word in text for word in table.refusals):
        return "taken for a refusal"
    if not text.strip() or known(row["user_prompt"]) is None:
        return "no text"
    if number_of(row["score"]) is None:
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
