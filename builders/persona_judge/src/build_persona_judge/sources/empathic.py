"""Empathic Conversations: essays that people wrote after reading a news article.

A folder with the files of the WASSA shared task (2023 and 2024), an essay, a person and an article a row:

- trac3_EMP_train.csv: `article_id`, `person_id`, `person_essay`, `person_empathy`, `person_distress`;
- trac4_PER_train.csv: `person_id`, `gender`, `education`, `race`, `age`, `income`, and five columns `personality_...`,
  codes and numbers. A person may be in several rows; what these say differently is not known;
- articles_adobe_AMT.csv: `article_id`, `text`.
"""

from pathlib import Path

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
    folder = Path(location_of(table, "empathic"))
    written = read_file(folder / "trac3_EMP_train.csv", ESSAYS, HOW)
    persons = read_file(folder / "trac4_PER_train.csv", ["person_id", *VARIABLES], HOW)
    articles = read_file(folder / "articles_adobe_AMT.csv", ["article_id", "text"], HOW)
    people = merged(persons, "person_id", VARIABLES, str(folder / "trac4_PER_train.csv"))
    personas, left_out = personas_of(people, EMPATHIC_CONVERSATIONS)
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
