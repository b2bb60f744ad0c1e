"""Empathic Conversations: essays that people wrote after reading a news article.

A folder with the files of the WASSA shared task (2023 and 2024), an essay, a person and an article a row. The names are
those of the training set; a recipe may give others, and several of each:

- trac3_EMP_train.csv: `article_id`, `person_id`, `person_essay`, `person_empathy`, `person_distress`;
- trac4_PER_train.csv: `person_id`, `gender`, `education`, `race`, `age`, `income`, and five columns `personality_...`,
  codes and numbers. A person may be in several rows; what these say differently is not known;
- articles_adobe_AMT.csv: `article_id`, `text`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pluralbench_tables import Dialect

from build_persona_judge.pairing import Essay
from build_persona_judge.persona import EMPATHIC_CONVERSATIONS, known, number_of
from build_persona_judge.recipe import EmpathicTable
from build_persona_judge.sources.loaded import Loaded, location_of, merged, personas_of, read_file, source_of

HOW = (
    "The files trac3_EMP_train.csv, trac4_PER_train.csv and articles_adobe_AMT.csv come from the WASSA 2023 or 2024 "
    "shared task; ask its organisers."
)
ESSAYS = ("article_id", "person_id", "person_essay", "person_empathy", "person_distress")
VARIABLES = [variable.column for variable in EMPATHIC_CONVERSATIONS]


def load(table: EmpathicTable) -> Loaded[Essay]:
    """The essays with both scores, one a person and article. Raises `SourceError`."""
    written = [row for rows in _read(table, table.essays, ESSAYS).values() for row in rows]
    articles = [row for rows in _read(table, table.articles, ["article_id", "text"]).values() for row in rows]
    persons = _read(table, table.persons, ["person_id", *VARIABLES])
    people = merged(persons, "person_id", VARIABLES, table.no_value)
    personas, left_out = personas_of(people, EMPATHIC_CONVERSATIONS, table.no_value)
    for person in personas:
        for variable in EMPATHIC_CONVERSATIONS:
            code = people[person][variable.column]
            if variable.labels and code is not None and _number(code) not in variable.labels:
                left_out.append(("value", person, f"no known {variable.column}: {code}"))
    texts = {_number(row["article_id"]): row["text"] for row in articles}
    essays: dict[tuple[str, str], Essay] = {}
    for row in sorted(written, key=lambda row: str(row["person_essay"])):
        article, person = _number(row["article_id"]), known(row["person_id"]) or ""
        empathy, distress = number_of(row["person_empathy"]), number_of(row["person_distress"])
        why = _why_not(known(row["person_essay"]), known(texts.get(article)), empathy, distress)
        if why is None and person not in personas:
            why = "nothing is known of the person"
        elif why is None and (article, person) in essays:
            why = "the person's second one on the article"
        if why is not None or empathy is None or distress is None:
            left_out.append(("essay", f"{article}-{person}", why or "no score"))
            continue
        essays[article, person] = Essay(article, texts[article], person, row["person_essay"], empathy, distress)
    source = source_of(
        table,
        [{name: row[name] for name in ESSAYS} for row in written],
        [{"person_id": person} | values for person, values in people.items()],
        [{"article_id": article, "text": text} for article, text in texts.items()],
        name="Empathic Conversations",
        attribution="Empathic Conversations (Omitaomu et al., 2022), as released for the WASSA shared task.",
    )
    return Loaded(list(essays.values()), personas, sorted(left_out), source)


def _read(table: EmpathicTable, names: Sequence[str], columns: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each of these files of the folder, by its path."""
    folder, dialect = Path(location_of(table, "empathic")), Dialect(quoting=table.quoting)
    return {str(folder / name): read_file(folder / name, columns, HOW, dialect) for name in names}


def _why_not(essay: str | None, article: str | None, empathy: float | None, distress: float | None) -> str | None:
    if essay is None:
        return "no text"
    if article is None:
        return "no article"
    return "no score" if empathy is None or distress is None else None


def _number(value: object) -> str:
    """A code or an id as text, 3.0 as 3."""
    number = number_of(value)
    return str(value) if number is None else f"{number:.12g}"
