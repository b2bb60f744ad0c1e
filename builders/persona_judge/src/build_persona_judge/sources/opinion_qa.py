"""OpinionQA: what respondents of the American Trends Panel answered.

A folder with a folder for each wave (`data/human_resp` of tatsu-lab/opinions_qa), in each of them

- info.csv: a question a row, `key`, `question`, and `option_mapping`, the options as a Python dict of number and text;
- responses.csv: a respondent a row, the text of the answer under each question's key, demographics in capitals, and
  the respondent's number as `QKEY`. Where there is none, the number of the row names them.

Folders whose name contains "disagreement" hold selections from the waves and are left alone. The paper's 15 topics are
the 15 waves.
"""

import ast
from pathlib import Path
from typing import Any

from pluralbench_release.errors import SourceError

from build_persona_judge.pairing import LeftOut, Wave
from build_persona_judge.persona import OPINION_QA, Rendered, known
from build_persona_judge.recipe import OpinionQaTable
from build_persona_judge.sources.loaded import Loaded, location_of, personas_of, read_file, source_of

HOW = (
    "OpinionQA's answers are `human_resp` of tatsu-lab/opinions_qa: a folder for each wave, with info.csv and "
    "responses.csv in it."
)
DEMOGRAPHICS = [variable.column for variable in OPINION_QA]
PERSON = "QKEY"


def load(table: OpinionQaTable) -> Loaded[Wave]:
    """The binary questions of each wave, and who answered them. Raises `SourceError`."""
    root = Path(location_of(table, "opinion_qa"))
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    folders = [folder for folder in folders if (folder / "info.csv").exists() or (folder / "responses.csv").exists()]
    folders = [folder for folder in folders if "disagreement" not in folder.name]
    if not folders:
        raise SourceError(f"There is no wave in {root}. {HOW}")
    waves: list[Wave] = []
    personas: dict[str, Rendered] = {}
    left_out: list[LeftOut] = []
    read: list[dict[str, Any]] = []
    for folder in folders:
        wave, people, gone, rows = _wave(folder)
        found, unknown = personas_of(people, OPINION_QA, table.no_value)
        waves.append(
            Wave(
                wave.name,
                wave.questions,
                {key: {who: said for who, said in by.items() if who in found} for key, by in wave.answers.items()},
            )
        )
        personas |= found
        left_out += [*gone, *unknown]
        read += rows
    questions = ({"wave": wave.name} | dict(wave.questions) for wave in waves)
    attribution = "OpinionQA (Santurkar et al., 2023), from the American Trends Panel."
    source = source_of(table, read, questions, name="OpinionQA", attribution=attribution)
    return Loaded(waves, personas, sorted(left_out), source)


def _wave(folder: Path) -> tuple[Wave, dict[str, dict[str, Any]], list[LeftOut], list[dict[str, Any]]]:
    """A wave; its people, by `WAVE NUMBER`; who and what was left out; and what was read."""
    info = read_file(folder / "info.csv", ["key", "question", "option_mapping"], HOW)
    responses = read_file(folder / "responses.csv", DEMOGRAPHICS, HOW)
    asked = [row["key"] for row in info if row["key"] in responses[0]] if responses else []
    questions = {key: found for row in info if (key := row["key"]) in asked and (found := _binary(row, folder))}
    left_out = [("question", f"{folder.name} {row['key']}", "not in responses.csv") for row in info]
    left_out = [entry for entry, row in zip(left_out, info, strict=True) if row["key"] not in asked]
    answers: dict[str, dict[str, str]] = {key: {} for key in questions}
    people: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(responses, start=1):
        person = f"{folder.name} {known(row.get(PERSON)) or f'row{number}'}"
        if person in people:
            raise SourceError(
                f"{folder / 'responses.csv'} has the {PERSON} {row[PERSON]} more than once; keep one row."
            )
        people[person] = {column: row[column] for column in DEMOGRAPHICS}
        if not any(known(row[key]) for key in asked):
            left_out.append(("respondent", person, "answered no question"))
        for key, (_, options) in questions.items():
            if row[key] in options:
                answers[key][person] = row[key]
    read = [
        {"person": person} | {name: row[name] for name in (*questions, *DEMOGRAPHICS)}
        for person, row in zip(people, responses, strict=True)
    ]
    return Wave(folder.name, questions, answers), people, left_out, read


def _binary(row: dict[str, Any], folder: Path) -> tuple[str, tuple[str, str]] | None:
    """The question and its two options, None where it has others than two beside a refusal."""
    try:
        options = [str(text) for text in ast.literal_eval(row["option_mapping"] or "{}").values()]
    except (ValueError, SyntaxError, AttributeError):
        raise SourceError(
            f"{folder / 'info.csv'}: the `option_mapping` of {row['key']} is no dict of number and text "
            f"({str(row['option_mapping'])[:60]!r})."
        ) from None
    options = [text for text in options if known(text) is not None]
    return (row["question"], (options[0], options[1])) if len(set(options)) == 2 == len(options) else None
