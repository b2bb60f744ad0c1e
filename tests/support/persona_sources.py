"""Tiny files in the shapes of the persona judge's sources, to be built from and to be broken."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from written_tables import write

Row = dict[str, Any]

PERSON: Row = {
    "age": "25-34 years old",
    "gender": "Female",
    "employment_status": "Working full-time",
    "education": "Vocational",
    "marital_status": "Married",
    "ethnicity": {"simplified": "White"},
    "religion": {"simplified": "No Affiliation"},
    "location": {"birth_country": "Kenya", "reside_country": "Malta"},
}
RESPONDENT: Row = {
    "CREGION": "West",
    "AGE": "30-49",
    "SEX": "Male",
    "EDUCATION": "Postgraduate",
    "CITIZEN": "No",
    "MARITAL": "Married",
    "RELIG": "Hindu",
    "RELIGATTEND": "Seldom",
    "POLPARTY": "Independent",
    "INCOME": "Refused",
    "POLIDEOLOGY": "Moderate",
    "RACE": "Asian",
}
AUTHOR: Row = {
    "gender": 2,
    "education": "6.0",
    "race": 5,
    "age": 41,
    "income": 82000,
    "personality_conscientiousness": 6.5,
    "personality_openess": 4,
    "personality_extraversion": 4.5,
    "personality_agreeableness": 5.5,
    "personality_stability": "unknown",
}
PERSONALITY: Row = {
    "age": 31,
    "sex": "male",
    "city_country": "Portland, United States",
    "birth_city_country": "Boise, United States",
    "education": "High School Diploma",
    "occupation": "bike mechanic",
    "income": "27 thousand US dollars",
    "relationship_status": "single",
}


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def utterance(interaction: str, model: str, score: object, text: str | None = None, **changes: object) -> Row:
    """A response that a person of PRISM scored."""
    return {
        "interaction_id": interaction,
        "user_id": "user1",
        "turn": 0,
        "user_prompt": f"Question of {interaction}?",
        "model_name": model,
        "model_response": f"{model} says {interaction}." if text is None else text,
        "score": score,
    } | changes


def prism(folder: Path, utterances: Sequence[Row], people: Sequence[Row] | None = None) -> Path:
    """A folder with PRISM's two tables; one person without `people`."""
    write(folder / "survey.jsonl", people if people is not None else [{"user_id": "user1"} | PERSON])
    write(folder / "utterances.jsonl", utterances)
    return folder


def wave(
    folder: Path, questions: Mapping[str, Sequence[str]], answers: Sequence[Row], drop: Sequence[str] = ()
) -> Path:
    """A wave of OpinionQA: options by question, and a row a respondent. drop: demographics to leave out."""
    mapping = {key: dict(enumerate(map(str, options), start=1)) for key, options in questions.items()}
    info = [
        {"key": key, "option_mapping": str({float(number): text for number, text in options.items()})}
        | {"question": f"What of {key}?"}
        for key, options in mapping.items()
    ]
    write_csv(folder / "info.csv", info)
    demographics = {name: value for name, value in RESPONDENT.items() if name not in drop}
    write_csv(folder / "responses.csv", [demographics | row for row in answers])
    return folder


def empathic(
    folder: Path,
    essays: Sequence[tuple[object, object, object, object]],
    people: Mapping[object, Row] | None = None,
    part: str = "train",
) -> Path:
    """The WASSA files. essays: article, person, empathy, distress. people: what of `AUTHOR` is otherwise."""
    written = [
        {"article_id": article, "person_id": person, "person_essay": f"Essay of {person} on {article}."}
        | {"person_empathy": empathy, "person_distress": distress}
        for article, person, empathy, distress in essays
    ]
    write_csv(folder / f"trac3_EMP_{part}.csv", written)
    persons = people if people is not None else {person: {} for _, person, _, _ in essays}
    write_csv(folder / f"trac4_PER_{part}.csv", [{"person_id": name} | AUTHOR | row for name, row in persons.items()])
    articles = sorted({str(article) for article, *_ in essays})
    write_csv(folder / "articles_adobe_AMT.csv", [{"article_id": name, "text": f"News {name}."} for name in articles])
    return folder


def post(occupation: str, question: str, response: str | None = None, **changes: object) -> Row:
    """A row of Personal Reddit, by somebody who is told by their occupation."""
    return {
        "personality": PERSONALITY | {"occupation": occupation} | changes,
        "question_asked": question,
        "response": f"{occupation} on {question}" if response is None else response,
    }


def people_csv(folder: Path, **tables: Sequence[Row]) -> Path:
    """people.csv, questions.csv and choices.csv; other rows by the name of the table."""
    rows: dict[str, Sequence[Row]] = {
        "people": [{"user": "an", "age": "34", "town": "Cork"}, {"user": "bo", "age": "", "town": "Galway"}],
        "questions": [
            {"question": "q1", "text": "What do you drink first?", "option_1": "Tea", "option_2": "Coffee"},
            {"question": "q2", "text": "", "option_1": "A cup", "option_2": "A mug"},
        ],
        "choices": [
            {"user": "an", "question": "q1", "choice": "1"},
            {"user": "bo", "question": "q1", "choice": "2"},
            {"user": "an", "question": "q2", "choice": "tie"},
        ],
    }
    for name, table in (rows | tables).items():
        write_csv(folder / f"{name}.csv", table)
    return folder
