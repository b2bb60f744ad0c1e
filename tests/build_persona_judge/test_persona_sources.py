"""The loaders: what they take, what they leave out and count, and one sentence for what is missing or renamed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import persona_sources as files
import pytest
from build_persona_judge.persona import text_of
from build_persona_judge.recipe import EmpathicTable, OpinionQaTable, PeopleTable, PrismTable, RedditTable
from build_persona_judge.sources import empathic, opinion_qa, people_csv, personal_reddit, prism
from build_persona_judge.sources.loaded import Loaded
from pluralbench_release.errors import SourceError
from written_tables import write

TWO = [files.utterance("int7", "falcon", 90), files.utterance("int7", "llama", 20)]
BINARY = {"Q1": ["Yes", "No", "Refused"], "Q2": ["a", "b", "c"]}
EVERYTHING: dict[str, tuple[Callable[[Path], Loaded[Any]], Callable[[Path], Path]]] = {
    "prism": (lambda path: prism.load(PrismTable(location=str(path))), lambda path: files.prism(path, TWO)),
    "opinion_qa": (
        lambda path: opinion_qa.load(OpinionQaTable(location=str(path))),
        lambda path: files.wave(path / "W1", BINARY, [{"QKEY": "1", "Q1": "Yes", "Q2": "a"}]).parent,
    ),
    "empathic": (
        lambda path: empathic.load(EmpathicTable(location=str(path))),
        lambda path: files.empathic(path, [(1, "p", 1, 1), (1, "q", 5, 5)]),
    ),
    "personal_reddit": (
        lambda path: personal_reddit.load(RedditTable(location=str(path / "pr.jsonl"))),
        lambda path: write(path / "pr.jsonl", [files.post("cook", "q1"), files.post("nurse", "q2")]).parent,
    ),
    "people_csv": (lambda path: people_csv.load(PeopleTable(location=str(path), task="drinks")), files.people_csv),
}


def refused(load: Callable[[Path], Loaded[Any]], path: Path, *parts: str) -> None:
    with pytest.raises(SourceError) as caught:
        load(path)
    said = str(caught.value)
    for part in parts:
        assert part in said, said


@pytest.mark.parametrize(
    ("source", "file", "column"),
    [
        ("prism", "survey.jsonl", "reside_country"),
        ("prism", "utterances.jsonl", "model_response"),
        ("opinion_qa", "W1/responses.csv", "POLPARTY"),
        ("empathic", "trac4_PER_train.csv", "personality_openess"),
        ("personal_reddit", "pr.jsonl", "city_country"),
        ("people_csv", "choices.csv", "choice"),
    ],
)
def test_a_renamed_column_is_named_with_what_is_there(tmp_path: Path, source: str, file: str, column: str) -> None:
    load, write = EVERYTHING[source]
    broken = write(tmp_path) / file
    text = broken.read_text(encoding="utf-8")
    renamed = (
        text.replace(f'"{column}"', '"other_name"') if file.endswith("jsonl") else text.replace(column, "other_name", 1)
    )
    assert renamed != text
    broken.write_text(renamed, encoding="utf-8")
    refused(load, tmp_path, str(broken), f"{column}`", "other_name")


@pytest.mark.parametrize(
    ("source", "file", "part"),
    [
        ("prism", "survey.jsonl", "HannahRoseKirk/prism-alignment"),
        ("opinion_qa", "W1/info.csv", "tatsu-lab/opinions_qa"),
        ("personal_reddit", "pr.jsonl", "eth-sri/llmprivacy"),
    ],
)
def test_a_missing_file_is_named_with_how_to_get_it(tmp_path: Path, source: str, file: str, part: str) -> None:
    load, write = EVERYTHING[source]
    (write(tmp_path) / file).unlink()
    refused(load, tmp_path, Path(file).stem, str(tmp_path), part)


@pytest.mark.parametrize("source", EVERYTHING)
def test_a_missing_folder_is_named(tmp_path: Path, source: str) -> None:
    refused(EVERYTHING[source][0], tmp_path / "nowhere" / "at" / "all", "nowhere")


@pytest.mark.parametrize("source", EVERYTHING)
def test_what_loads_has_a_persona_for_everybody_and_a_digest_that_no_order_changes(tmp_path: Path, source: str) -> None:
    load, write = EVERYTHING[source]
    path = write(tmp_path)
    loaded = load(path)
    assert loaded.rows
    assert loaded.dropped == []
    assert loaded.source.license == "unknown"
    for file in path.rglob("*.*"):
        head, *rows = file.read_text(encoding="utf-8").splitlines(keepends=True)
        turned = [head, *rows[::-1]] if file.suffix == ".csv" else [*rows[::-1], head]
        file.write_text("".join(turned), encoding="utf-8")
    again = load(path)
    assert again.source.digest == loaded.source.digest
    assert again.personas == loaded.personas


def test_prism_takes_the_start_of_a_conversation_without_families_refusals_and_gaps(tmp_path: Path) -> None:
    rows = [
        *TWO,
        files.utterance("int7", "GPT-4o", 99),
        files.utterance("int7", "claude-2", 99),
        files.utterance("int7", "command-r", 99),
        files.utterance("int7", "falcon2", 99, "I am an AI."),
        files.utterance("int7", "falcon3", 99, "As a language model"),
        files.utterance("int7", "falcon4", 99, "Air raid, said the chat."),
        files.utterance("int7", "falcon5", 99, "I am only a chatbot."),
        files.utterance("int7", "falcon6", 99, " "),
        files.utterance("int7", "falcon7", None),
        files.utterance("int8", "falcon", 99, turn=1),
        files.utterance("int9", "falcon", 99, user_id="user2"),
        files.utterance("int10", "falcon", 99, user_id="user3"),
    ]
    nobody: files.Row = dict.fromkeys(files.PERSON) | {"ethnicity": {"simplified": "Prefer not to say"}}
    nobody |= {"religion": {"simplified": ""}, "location": {"birth_country": None, "reside_country": None}}
    people = [{"user_id": "user1"} | files.PERSON, {"user_id": "user2"} | nobody]
    loaded = prism.load(PrismTable(location=str(files.prism(tmp_path, rows, people))))
    assert sorted(row.model for row in loaded.rows) == ["falcon", "falcon4", "llama"]
    assert {(row.number, row.user, row.question) for row in loaded.rows} == {(7, "user1", "Question of int7?")}
    assert sorted(reason for _, _, reason in loaded.dropped) == [
        "every variable of the persona is missing",
        "no score",
        "no text",
        *["nothing is known of the person"] * 2,
        *(f"of a model family that is left out: {name}" for name in ("claude", "command", "gpt")),
        *["taken for a refusal"] * 3,
    ]
    assert "The person was born in Kenya." in text_of(loaded.personas["user1"])
    own = prism.load(PrismTable(location=str(tmp_path), exclude_families=["llama"], refusals=[]))
    assert {"GPT-4o", "falcon2"} <= {row.model for row in own.rows}
    assert "llama" not in {row.model for row in own.rows}


def test_opinion_qa_takes_questions_with_two_options(tmp_path: Path) -> None:
    answers = [
        {"QKEY": "1", "Q1": "Yes", "Q2": "a", "Q3": "x"},
        {"QKEY": "2", "Q1": "Refused", "Q2": "b", "Q3": "y"},
        {"QKEY": "3", "Q1": "Refused", "Q2": "", "Q3": ""},
        {"QKEY": "4", "Q1": "No", "Q2": "c", "Q3": ""},
    ]
    asked = BINARY | {"Q3": ["x", "y"], "Q4": ["one", "Refused"], "Q5": ["in", "out"]}
    files.wave(tmp_path / "W1", asked, answers)
    files.wave(tmp_path / "disagreement_500", BINARY, answers)
    (tmp_path / "notes").mkdir()
    loaded = opinion_qa.load(OpinionQaTable(location=str(tmp_path)))
    [wave] = loaded.rows
    assert wave.questions == {"Q1": ("What of Q1?", ("Yes", "No")), "Q3": ("What of Q3?", ("x", "y"))}
    assert wave.answers == {"Q1": {"W1 1": "Yes", "W1 4": "No"}, "Q3": {"W1 1": "x", "W1 2": "y"}}
    assert loaded.dropped == [
        ("question", "W1 Q4", "not in responses.csv"),
        ("question", "W1 Q5", "not in responses.csv"),
        ("respondent", "W1 3", "answered no question"),
    ]
    assert "income" not in text_of(loaded.personas["W1 1"])


def test_opinion_qa_names_what_it_cannot_read(tmp_path: Path) -> None:
    load = EVERYTHING["opinion_qa"][0]
    files.wave(tmp_path / "W1", BINARY, [{"QKEY": "1", "Q1": "Yes", "Q2": "a"}] * 2)
    refused(load, tmp_path, "responses.csv has the QKEY 1 more than once")
    files.wave(tmp_path / "W1", BINARY, [{"QKEY": "1", "Q1": "Yes", "Q2": "a"}])
    info = tmp_path / "W1/info.csv"
    info.write_text(info.read_text(encoding="utf-8").replace("{1.0", "[1.0", 1), encoding="utf-8")
    refused(load, tmp_path, "the `option_mapping` of Q1 is not a dict")


def test_empathic_takes_essays_with_both_scores(tmp_path: Path) -> None:
    essays = [(1, "p", 1, 1), (1, "q", "", 5), (1, "r", 5, 5), (2, "p", 3, 3), (1, "p", 2, 2), (1, "s", 4, "unknown")]
    people: dict[object, files.Row] = {"p": {}, "q": {}, "r": {"gender": 9}, "s": {}}
    path = files.empathic(tmp_path, essays, people)
    articles = files.write_csv(path / "articles_adobe_AMT.csv", [{"article_id": "1.0", "text": "News 1."}])
    loaded = empathic.load(EmpathicTable(location=str(articles.parent)))
    assert sorted((row.article, row.user, row.context) for row in loaded.rows) == [
        ("1", "p", "News 1."),
        ("1", "r", "News 1."),
    ]
    assert loaded.dropped == [
        ("essay", "1-p", "the person's second one on the article"),
        ("essay", "1-q", "no score"),
        ("essay", "1-s", "no score"),
        ("essay", "2-p", "no article"),
        ("value", "r", "no known gender: 9"),
    ]
    assert "stability" not in text_of(loaded.personas["p"])


def test_personal_reddit_knows_people_by_what_is_known_of_them(tmp_path: Path) -> None:
    nothing = dict.fromkeys(files.PERSONALITY)
    rows = [
        files.post("cook", "q1"),
        files.post("cook", "q2", income_level="low"),
        files.post("cook", "q1"),
        files.post("nurse", "q1", relationship_status=None),
        files.post("pilot", "q1", ""),
        {"personality": nothing, "question_asked": "q1", "response": "Guess who."},
    ]
    del rows[3]["personality"]["birth_city_country"]
    loaded = personal_reddit.load(RedditTable(location=str(write(tmp_path / "pr.jsonl", rows))))
    assert sorted(post.option for post in loaded.rows) == [
        "Question: q1\nAnswer: cook on q1",
        "Question: q1\nAnswer: nurse on q1",
        "Question: q2\nAnswer: cook on q2",
    ]
    cooks = {post.user for post in loaded.rows if "cook" in post.text}
    assert len(cooks) == 1
    assert len(loaded.personas) == 3
    assert sorted(reason for _, _, reason in loaded.dropped) == [
        "every variable of the persona is missing",
        "no text",
        "nothing is known of the person",
        "the same post twice",
    ]


def test_people_csv_is_a_source_of_ones_own(tmp_path: Path) -> None:
    table = PeopleTable(
        location=str(files.people_csv(tmp_path)),
        task="drinks",
        sentences={"town": "{}, by the sea."},
        sets={"key": ["town"]},
    )
    loaded = people_csv.load(table)
    assert [(pair.id, pair.own, pair.other, pair.tie) for pair in loaded.rows] == [
        ("q1-an", "Tea", "Coffee", False),
        ("q1-bo", "Coffee", "Tea", False),
        ("q2-an", "A cup", "A mug", True),
    ]
    assert text_of(loaded.personas["an"]) == "The person's age: 34. Cork, by the sea."
    assert [entry["sets"] for entry in loaded.personas["an"]] == [[], ["key"]]
    assert [entry["value"] for entry in loaded.personas["bo"]] == [None, "Galway"]


CHOICE = {"user": "an", "question": "q1", "choice": "1"}
QUESTION = {"question": "q1", "text": "First?", "option_1": "Tea", "option_2": "Coffee"}
PERSON = {"user": "an", "age": "34", "town": "Cork"}


@pytest.mark.parametrize(
    ("table", "rows", "said"),
    [
        ("choices", [CHOICE | {"user": "cy"}], ": row 1 names the user 'cy', which is not in people.csv"),
        ("choices", [CHOICE | {"choice": "A"}], ": row 1 has the choice 'A', which is not one of 1, 2, tie"),
        ("choices", [CHOICE | {"choice": ""}], ": row 1 has the choice '', which is not one of 1, 2, tie"),
        *(
            (table, [row, row | {name: " "}], f": row 2 has no `{name}`; add one, or remove the row.")
            for table, row, name in (("people", PERSON, "user"), ("questions", QUESTION, "question"))
        ),
        (
            "people",
            [PERSON, PERSON | {"town": "Galway"}],
            ": rows 1 and 2 both have the user an but differ in `town`; keep one.",
        ),
        (
            "choices",
            [CHOICE, CHOICE | {"choice": "2"}],
            ": rows 1 and 2 both have the user an and the question q1 but differ in `choice`",
        ),
    ],
)
def test_people_csv_names_the_row(tmp_path: Path, table: str, rows: list[files.Row], said: str) -> None:
    refused(EVERYTHING["people_csv"][0], files.people_csv(tmp_path, **{table: rows}), f"{table}.csv{said}")


def test_people_csv_refuses_an_unknown_variable(tmp_path: Path) -> None:
    table = PeopleTable(location=str(files.people_csv(tmp_path)), task="drinks", sets={"least": ["city"]})
    refused(lambda _: people_csv.load(table), tmp_path, "no variable `city`; it has age, town")


def test_a_recipe_says_what_is_missing(tmp_path: Path) -> None:
    people = [{"user": "an", "age": "NA", "town": "Cork"}, {"user": "bo", "age": "Keine  Angabe", "town": "NA"}]
    table = PeopleTable(
        location=str(files.people_csv(tmp_path, people=people)), task="drinks", missing=["keine Angabe"]
    )
    told = {user: [entry["value"] for entry in persona] for user, persona in people_csv.load(table).personas.items()}
    assert told == {"an": ["NA", "Cork"], "bo": [None, "NA"]}


@pytest.mark.parametrize("source", ["prism", "empathic", "personal_reddit"])
def test_missing_values_are_missing_in_every_source(tmp_path: Path, source: str) -> None:
    rows = {
        "prism": lambda: files.prism(tmp_path, TWO, [{"user_id": "user1"} | files.PERSON | {"age": "N/A"}]),
        "empathic": lambda: files.empathic(tmp_path, [(1, "p", 1, 1), (1, "q", 5, 5)], {"p": {"age": "."}, "q": {}}),
        "personal_reddit": lambda: write(tmp_path / "pr.jsonl", [files.post("cook", "q1", age="-")]),
    }
    rows[source]()
    persona = next(iter(EVERYTHING[source][0](tmp_path).personas.values()))
    assert {entry["variable"]: entry["value"] for entry in persona}["age"] is None


def test_empathic_reads_several_files_of_essays_and_people(tmp_path: Path) -> None:
    path = files.empathic(tmp_path, [(1, "p", 1, 1), (1, "q", 5, 5)])
    files.empathic(path, [(1, "q", 5, 5), (1, "r", 3, 3)], {"q": {"age": 52}, "r": {}}, part="dev")
    table = EmpathicTable(
        location=str(path),
        essays=["trac3_EMP_train.csv", "trac3_EMP_dev.csv"],
        persons=["trac4_PER_train.csv", "trac4_PER_dev.csv"],
    )
    loaded = empathic.load(table)
    assert sorted(row.user for row in loaded.rows) == ["p", "q", "r"]
    assert loaded.dropped == [("essay", "1-q", "the person's second one on the article")]
    told = {entry["variable"]: entry["value"] for entry in loaded.personas["q"]}
    assert (told["age"], told["gender"]) == (None, "female")
    persons = [{"person_id": name} | files.AUTHOR for name in ("p", "")]
    files.write_csv(path / "trac4_PER_dev.csv", persons)
    refused(lambda _: empathic.load(table), path, "trac4_PER_dev.csv: row 2 has no `person_id`")


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    table = RedditTable(location=str(tmp_path))
    refused(lambda _: personal_reddit.load(table), tmp_path, f"{tmp_path} is a folder, not a file. Personal Reddit is")


def test_what_two_rows_of_a_person_say_differently_is_missing(tmp_path: Path) -> None:
    path = files.empathic(tmp_path, [(1, "p", 1, 1)])
    persons = [{"person_id": "p"} | files.AUTHOR | change for change in ({}, {"age": 52}, {"age": 41})]
    files.write_csv(path / "trac4_PER_train.csv", persons)
    persona = empathic.load(EmpathicTable(location=str(path))).personas["p"]
    told = {entry["variable"]: entry["value"] for entry in persona}
    assert (told["age"], told["gender"]) == (None, "female")


def test_respondents_without_numbers_are_told_by_their_rows(tmp_path: Path) -> None:
    files.wave(tmp_path / "W1", BINARY, [{"Q1": "Yes", "Q2": "a"}, {"Q1": "No", "Q2": "b"}])
    [wave] = opinion_qa.load(OpinionQaTable(location=str(tmp_path))).rows
    assert wave.answers == {"Q1": {"W1 row1": "Yes", "W1 row2": "No"}}


def test_people_csv_joins_choices_that_differ_in_what_nobody_reads(tmp_path: Path) -> None:
    choices = [CHOICE | {"at": time} for time in ("9:00", "9:01")]
    loaded = EVERYTHING["people_csv"][0](files.people_csv(tmp_path, choices=choices))
    assert [pair.id for pair in loaded.rows] == ["q1-an"]


def test_people_csv_joins_rows_that_say_the_same(tmp_path: Path) -> None:
    load = EVERYTHING["people_csv"][0]
    once = load(files.people_csv(tmp_path / "once"))
    folder = files.people_csv(tmp_path / "twice")
    for name in ("people", "questions", "choices"):
        path = folder / f"{name}.csv"
        head, *rows = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([head, *rows, *(f" {row} " for row in rows)]) + "\n", encoding="utf-8")
    twice = load(folder)
    assert (twice.rows, twice.personas, twice.dropped) == (once.rows, once.personas, once.dropped)


def test_what_a_survey_writes_for_nothing_is_no_value_of_a_persona(tmp_path: Path) -> None:
    words = ["NA", " n/a ", "N.A.", "-", "--", "—", ".", "?", "#N/A", "NULL", "Prefer not to say", ""]
    people = [{"user": f"an{place}", "age": word, "town": "Cork"} for place, word in enumerate(words)]
    people += [{"user": user, "age": "NA", "town": "-"} for user in ("an", "bo")]
    loaded = EVERYTHING["people_csv"][0](files.people_csv(tmp_path, people=people))
    assert len(loaded.personas) == len(words)
    assert {tuple(entry["value"] for entry in persona) for persona in loaded.personas.values()} == {(None, "Cork")}
    assert ("person", "bo", "every variable of the persona is missing") in loaded.dropped
