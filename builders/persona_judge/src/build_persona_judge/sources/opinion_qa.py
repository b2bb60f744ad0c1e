"""OpinionQA: answers of respondents of the American Trends Panel.

The source is a folder with a folder for each wave (`data/human_resp` of tatsu-lab/opinions_qa). Each of these has

- info.csv: a question per row with `key`, `question`, and `option_mapping`, a Python dict of number and option;
- responses.csv: a respondent per row with the text of the answer under each question's key, demographics in capitals,
  and the respondent's number as `QKEY` (default: the number of the row).

Folders whose name contains "disagreement" have selections from the waves and are skipped. The paper's 15 topics are the
15 waves.
"""

import ast
from pathlib import Path
from typing import Any

from pluralbench_release.errors import SourceError

from build_persona_judge.pairing import Dropped, Wave
from build_persona_judge.persona import PERSONAS, Persona, clean_value
from build_persona_judge.recipe import OpinionQaTable
from build_persona_judge.sources.loaded import Loaded, location_of, personas_of, read_file, source_of

HOW = (
    "OpinionQA's answers are `human_resp` of tatsu-lab/opinions_qa: a folder for each wave, with info.csv and "
    "responses.csv in it."
)
PERSONA = PERSONAS["opinion_qa"]
DEMOGRAPHICS = [variable.column for variable in PERSONA]
PERSON = "QKEY"


def load(table: OpinionQaTable) -> Loaded[Wave]:
    """Load the binary questions of each wave, with their respondents. Raises `SourceError`."""
    root = Path(location_of(table, "opinion_qa"))
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    folders = [folder for folder in folders if (folder / "info.csv").exists() or (folder / "responses.csv").exists()]
    folders = [folder for folder in folders if "disagreement" not in folder.name]
    if not folders:
        raise SourceError(f"There is no wave in {root}. {HOW}")
    waves: list[Wave] = []
    personas: dict[str, Persona] = {}
    dropped: list[Dropped] = []
    all_rows: list[dict[str, Any]] = []
    for folder in folders:
        info = read_file(folder / "info.csv", ["key", "question", "option_mapping"], HOW)
        responses = _responses(folder)
        asked = [row for row in info if responses and row["key"] in next(iter(responses.values()))]
        questions = {row["key"]: question for row in asked if (question := _binary_options(row, folder))}
        known, unknown = personas_of(responses, PERSONA, table.missing_values)
        answers = {
            key: {person: row[key] for person, row in responses.items() if person in known and row[key] in options}
            for key, (_, options) in questions.items()
        }
        waves.append(Wave(folder.name, questions, answers))
        personas |= known
        dropped += [
            ("question", f"{folder.name} {row['key']}", "not in responses.csv") for row in info if row not in asked
        ]
        dropped += [
            ("respondent", person, "answered no question")
            for person, row in responses.items()
            if not any(clean_value(row[question["key"]]) for question in asked)
        ]
        dropped += unknown
        all_rows += [
            {"person": person} | {name: row[name] for name in (*questions, *DEMOGRAPHICS)}
            for person, row in responses.items()
        ]
    texts = ({"wave": wave.name} | dict(wave.questions) for wave in waves)
    attribution = "OpinionQA (Santurkar et al., 2023), from the American Trends Panel."
    source = source_of(table, all_rows, texts, name="OpinionQA", attribution=attribution)
    return Loaded(waves, personas, sorted(dropped), source)


def _responses(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the rows of a wave's respondents, by `WAVE NUMBER`."""
    people: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(read_file(folder / "responses.csv", DEMOGRAPHICS, HOW), start=1):
        person = f"{folder.name} {clean_value(row.get(PERSON)) or f'row{number}'}"
        if person in people:
            raise SourceError(
                f"{folder / 'responses.csv'} has the {PERSON} {row[PERSON]} more than once; keep one row."
            )
        people[person] = row
    return people


def _binary_options(row: dict[str, Any], folder: Path) -> tuple[str, tuple[str, str]] | None:
    """The question and its two options; None if it does not have exactly two apart from a refusal."""
    try:
        options = [str(text) for text in ast.literal_eval(row["option_mapping"] or "{}").values()]
    except (ValueError, SyntaxError, AttributeError):
        raise SourceError(
            f"{folder / 'info.csv'}: the `option_mapping` of {row['key']} is not a dict of number and text "
            f"({str(row['option_mapping'])[:60]!r})."
        ) from None
    options = [text for text in options if clean_value(text) is not None]
    return (row["question"], (options[0], options[1])) if len(set(options)) == 2 == len(options) else None
