"""Your own people, questions and choices in three CSV files, the format for any other source.

- people.csv: `user`, and a column for each variable of the persona;
- questions.csv: `question` (its id), `text` (the question, or the topic of both options; may be empty), `option_1` and
  `option_2`;
- choices.csv: `user`, `question`, `choice`, which is 1, 2 or tie.

Equal rows of one user, question or choice are merged. Rows that differ are an error.
"""

from pathlib import Path
from typing import Any

from pluralbench_release.errors import SourceError
from pluralbench_runs import public_location

from build_persona_judge.pairing import Pair
from build_persona_judge.persona import clean_value, variables_of
from build_persona_judge.recipe import PeopleTable
from build_persona_judge.sources.loaded import Loaded, deduplicate, merge_people, personas_of, read_file, source_of

HOW = (
    "Use a folder with people.csv (user and variables), questions.csv (question, text, option_1, option_2) and "
    "choices.csv (user, question, choice)."
)
QUESTION = ("text", "option_1", "option_2")
CHOICES = ("1", "2", "tie")


def load(table: PeopleTable) -> Loaded[Pair]:
    """Load a pair for each choice. Raises `SourceError`."""
    folder = Path(table.location)
    people = read_file(folder / "people.csv", ["user"], HOW)
    questions = read_file(folder / "questions.csv", ["question", *QUESTION], HOW)
    choices = read_file(folder / "choices.csv", ["user", "question", "choice"], HOW)
    columns = [name for row in people[:1] for name in row if name != "user"]
    for name in (*table.sentences, *(variable for chosen in table.sets.values() for variable in chosen)):
        if name not in columns:
            raise SourceError(f"{folder / 'people.csv'} has no variable `{name}`; it has {', '.join(columns)}.")
    listed = [row for _, row in deduplicate(people, ["user"], columns, str(folder / "people.csv"))]
    by_user = merge_people({str(folder / "people.csv"): listed}, "user", columns, table.missing_values)
    personas, dropped = personas_of(by_user, variables_of(columns, table.sentences, table.sets), table.missing_values)
    listed_once = deduplicate(questions, ["question"], QUESTION, str(folder / "questions.csv"))
    questions_by_key = {clean_value(row["question"]): row for _, row in listed_once}
    pairs: list[Pair] = []
    for number, row in deduplicate(choices, ["user", "question"], ["choice"], str(folder / "choices.csv")):
        user, key, choice = (
            clean_value(row["user"]),
            clean_value(row["question"]),
            (clean_value(row["choice"]) or "").lower(),
        )
        where = f"{folder / 'choices.csv'}: row {number}"
        if user not in by_user or key not in questions_by_key:
            name, file = ("user", "people.csv") if user not in by_user else ("question", "questions.csv")
            raise SourceError(f"{where} names the {name} {row[name]!r}, which is not in {file}.")
        if choice not in CHOICES:
            raise SourceError(
                f"{where} has the choice {row['choice'] or ''!r}, which is not one of {', '.join(CHOICES)}."
            )
        pair = _pair(questions_by_key[key], user or "", choice)
        if user not in personas:
            dropped.append(("choice", pair.id, "nothing is known of the person"))
        elif not (clean_value(pair.own) and clean_value(pair.other)) or pair.own == pair.other:
            dropped.append(("choice", pair.id, "the options are empty or the same"))
        else:
            pairs.append(pair)
    source = source_of(
        table,
        choices,
        people,
        questions,
        name=table.task,
        attribution=f"The owners of {public_location(table.location)}.",
    )
    return Loaded(sorted(pairs, key=lambda pair: pair.id), personas, sorted(dropped), source)


def _pair(question: dict[str, Any], user: str, choice: str) -> Pair:
    own, other = ("2", "1") if choice == "2" else ("1", "2")
    key = question["question"]
    return Pair(
        id=f"{key}-{user}",
        user=user,
        context=question["text"] or "",
        own=question[f"option_{own}"] or "",
        other=question[f"option_{other}"] or "",
        origin_own=f"option_{own} of {key}",
        origin_other=f"option_{other} of {key}",
        tie=choice == "tie",
    )
