"""Empathic Conversations: essays that people wrote after reading a news article.

The source is a folder with files of the WASSA shared task (2023 and 2024), with one essay, person or article per row.
These are the names of the training set; a recipe can name other and several files:

- trac3_EMP_train.csv: `article_id`, `person_id`, `person_essay`, `person_empathy`, `person_distress`;
- trac4_PER_train.csv: `person_id`, `gender`, `education`, `race`, `age`, `income`, and five columns `personality_...`,
  codes and numbers. A person may have several rows; values that differ between them are missing;
- articles_adobe_AMT.csv: `article_id`, `text`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pluralbench_tables import Dialect

from build_persona_judge.pairing import Essay
from build_persona_judge.persona import PERSONAS, clean_value, to_number
from build_persona_judge.recipe import EmpathicTable
from build_persona_judge.sources.loaded import Loaded, location_of, merge_people, personas_of, read_file, source_of

HOW = (
    "The files trac3_EMP_train.csv, trac4_PER_train.csv and articles_adobe_AMT.csv come from the WASSA 2023 or 2024 "
    "shared task; ask its organizers."
)
ESSAYS = ("article_id", "person_id", "person_essay", "person_empathy", "person_distress")
PERSONA = PERSONAS["empathic_conversations"]
VARIABLES = [variable.column for variable in PERSONA]


def load(table: EmpathicTable) -> Loaded[Essay]:
    """Load the essays with both scores, one for each person and article. Raises `SourceError`."""
    rows = [row for rows in _read_files(table, table.essays, ESSAYS).values() for row in rows]
    articles = [row for rows in _read_files(table, table.articles, ["article_id", "text"]).values() for row in rows]
    persons = _read_files(table, table.persons, ["person_id", *VARIABLES])
    people = merge_people(persons, "person_id", VARIABLES, table.missing_values)
    personas, dropped = personas_of(people, PERSONA, table.missing_values)
    for person in personas:
        for variable in PERSONA:
            code = people[person][variable.column]
            if variable.labels and code is not None and _code_text(code) not in variable.labels:
                dropped.append(("value", person, f"no known {variable.column}: {code}"))
    texts = {_code_text(row["article_id"]): row["text"] for row in articles}
    essays: dict[tuple[str, str], Essay] = {}
    for row in sorted(rows, key=lambda row: str(row["person_essay"])):
        article, person = _code_text(row["article_id"]), clean_value(row["person_id"]) or ""
        empathy, distress = to_number(row["person_empathy"]), to_number(row["person_distress"])
        reason = _drop_reason(clean_value(row["person_essay"]), clean_value(texts.get(article)), empathy, distress)
        if reason is None and person not in personas:
            reason = "nothing is known of the person"
        elif reason is None and (article, person) in essays:
            reason = "the person's second one on the article"
        if reason is not None or empathy is None or distress is None:
            dropped.append(("essay", f"{article}-{person}", reason or "no score"))
            continue
        essays[article, person] = Essay(article, texts[article], person, row["person_essay"], empathy, distress)
    source = source_of(
        table,
        [{name: row[name] for name in ESSAYS} for row in rows],
        [{"person_id": person} | values for person, values in people.items()],
        [{"article_id": article, "text": text} for article, text in texts.items()],
        name="Empathic Conversations",
        attribution="Empathic Conversations (Omitaomu et al., 2022), as released for the WASSA shared task.",
    )
    return Loaded(list(essays.values()), personas, sorted(dropped), source)


def _read_files(table: EmpathicTable, names: Sequence[str], columns: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    folder, dialect = Path(location_of(table, "empathic")), Dialect(quoting=table.quoting)
    return {str(folder / name): read_file(folder / name, columns, HOW, dialect) for name in names}


def _drop_reason(essay: str | None, article: str | None, empathy: float | None, distress: float | None) -> str | None:
    if essay is None:
        return "no text"
    if article is None:
        return "no article"
    return "no score" if empathy is None or distress is None else None


def _code_text(value: object) -> str:
    """Convert a code or an id to text, 3.0 to 3."""
    number = to_number(value)
    return str(value) if number is None else f"{number:.12g}"
