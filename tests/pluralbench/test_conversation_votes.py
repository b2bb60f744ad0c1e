"""Votes of people in conversations: their turns, marks on answers, tables of people, and the history of a person."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from annotated_tables import Rows, benchmark, read, refused, votes_of
from pluralbench import find_benchmark, load_items
from pluralbench.data.benchmarks import Benchmark
from pluralbench.errors import DataError
from written_tables import write


def turns() -> Benchmark:
    return benchmark(
        {"vote": "choice", "annotator": "who", "picks": ["a", "b"], "by_person": True},
        columns={"id": "chat+turn", "responses": "answers"},
        turns={"prefixes": ["x_", "y_", "z_"], "picked": "choice", "missing": ["NONE"]},
    )


def turn(prefix: str, prompt: str, choice: str | None) -> dict[str, Any]:
    answers = {"a": f"{prompt} a", "b": f"{prompt} b", "answers": [f"{prompt} a", f"{prompt} b"]}
    return {f"{prefix}{name}": value for name, value in {"prompt": prompt, "choice": choice, **answers}.items()}


def test_turns_are_items_with_the_conversation_up_to_them(tmp_path: Path) -> None:
    rows = [
        {"chat": 1, "who": "ann"} | turn("x_", "p", "a") | turn("y_", "q", "b") | turn("z_", "r", "b"),
        {"chat": 2, "who": "ann"} | turn("x_", "s", "b") | turn("y_", "NONE", None) | turn("z_", "NONE", None),
        {"chat": 3, "who": "bob"} | turn("x_", "t", "a") | turn("y_", "u", None) | turn("z_", "v", "a"),
    ]
    described = turns()
    items = read(tmp_path, rows, described)
    prompts = {row["id"]: [one["content"] for one in row["prompt"]] for row in items.frame.iter_rows(named=True)}
    assert prompts == {
        "1/1": ["p"],
        "1/2": ["p", "p a", "q"],
        "1/3": ["p", "p a", "q", "q b", "r"],
        "2/1": ["s"],
        "3/1": ["t"],
    }
    assert [*prompts] == ["1/1", "1/2", "1/3", "2/1", "3/1"]
    assert items.source["left_out"] == {"v": 1}  # the third turn of chat 3, as nobody picked in its second
    assert items.source["annotations"] | {"items_without": 1, "votes": 5} == items.source["annotations"]
    assert "picks 'c' in `x_choice`, and there is no column `x_c`" in refused(
        tmp_path, [rows[0] | {"x_choice": "c"}], described
    )
    assert "has no column `x_choice`" in refused(tmp_path, [{"chat": 1, "x_prompt": "p"}], described)


def marked(folder: Path, people: Rows, utterances: Rows | None = None, suffix: str = ".jsonl") -> Path:
    """Choices in the shape of PRISM, and a table of the people."""
    rows = [
        {
            "interaction_id": f"i{number}",
            "user_id": number % 2,
            "turn": 0,
            "conversation_type": "unguided",
            "user_prompt": f"Question {number}?",
            "model_response": f"Answer {place}",
            "if_chosen": place == number,
        }
        for number in range(4)
        for place in range(3)
    ]
    write(folder / "utterances_train.jsonl", utterances or rows)
    write(folder / f"survey_train{suffix}", people)
    return folder


def person(number: object, **values: Any) -> dict[str, Any]:
    own = {"age": "18", "gender": None, "education": "None", "employment_status": "Prefer not to say"}
    objects = {"ethnicity": {"simplified": "X"}, "religion": {"simplified": "Y"}, "location": {"reside_region": "Asia"}}
    return {"user_id": number, **own, **objects, **values}


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_marks_are_votes_and_a_table_of_people_has_their_attributes(tmp_path: Path, suffix: str) -> None:
    known = find_benchmark("prism")
    items = load_items(known, str(marked(tmp_path / "a", [person("1"), person("7")], suffix=suffix)))
    votes = votes_of(items, known)
    # Nobody marked an answer to the last question, and the survey lacks the first person.
    assert votes.select("id", "annotator", "response").rows() == [("i0", "0", 0), ("i1", "1", 1), ("i2", "0", 2)]
    told = ["attribute_age", "attribute_gender", "attribute_employment", "attribute_religion", "attribute_region"]
    assert votes.select(told).rows() == [(None,) * 5, ("18", None, None, "Y", "Asia"), (None,) * 5]
    assert items.frame["rank"].to_list() == [[1, 2, 2], [2, 1, 2], [2, 2, 1]]
    assert items.source["annotations"] | {"items_without": 1, "missing": 1} == items.source["annotations"]
    persona = ["Age: 18.", "Education: None.", "Ethnicity: X.", "Religion: Y.", "Region: Asia."]
    assert items.frame["persona"].to_list() == [None, persona, None]


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ([person("1"), person("1"), person("2")], "has 1 person more than once (1)"),
        ([person("7")], "has none of the people of"),
        ([{"who": "1"}], "has no column `user_id` of the people's ids; it has who"),
        ([person("1", location={"birth_region": "Asia"})], "has no key 'reside_region'; it has birth_region"),
        (None, "has no table `survey` of the people who voted"),
    ],
)
def test_a_bad_table_of_people_is_refused_by_name(tmp_path: Path, people: Rows | None, said: str) -> None:
    folder = marked(tmp_path / "a", people or [])
    if people is None:
        (folder / "survey_train.jsonl").unlink()
    with pytest.raises(DataError, match=re.escape(said)):
        load_items("prism", str(folder))


def test_an_unknown_mark_is_refused_by_name(tmp_path: Path) -> None:
    row = {"interaction_id": "i", "user_id": 1, "turn": 0, "conversation_type": "unguided", "user_prompt": "Q?"}
    rows = [row | {"model_response": f"Answer {mark}", "if_chosen": mark} for mark in ("true", "maybe")]
    with pytest.raises(DataError, match=r"`if_chosen` has 'maybe'; expected: true, True \(right\)"):
        load_items("prism", str(marked(tmp_path / "a", [person("1")], rows)))


@pytest.mark.parametrize("name", ["community-alignment", "prism"])
def test_choices_of_people_have_their_history(name: str) -> None:
    items = load_items(name, "sample")
    seen: Counter[str] = Counter()
    for row in items.frame.iter_rows(named=True):
        assert row["earlier"] == seen[row["person"]]
        seen[row["person"]] += 1
        assert sum(rank == 1 for rank in row["rank"]) == 1
    last = items.frame.row(-1, named=True)
    before = items.history.before(last)
    assert before
    assert all(pair.chosen != pair.rejected for pair in before)
