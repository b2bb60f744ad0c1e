"""`pluralbench show`: items of a run with their texts, scores and replies, as they were and safe to print."""

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from hypothesis import given
from hypothesis import strategies as st
from persona_tables import knows, release
from persona_tables import rows as persona_rows
from pluralbench.contract import Group, Person
from pluralbench.reports.html.items import decided_items, orders_of
from pluralbench.reports.items import item_page
from pluralbench.results import Run
from pluralbench.results.examples import read_texts
from rich.cells import cell_len
from rich.console import Console
from verbs import by_length
from written_tables import write

Row = dict[str, Any]
Rows = list[Row]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(6))


@pytest.fixture
def shown(run: Command) -> Callable[..., dict[str, Any]]:
    """What `show --json` prints."""

    def parsed(*words: str | Path) -> dict[str, Any]:
        status, out, error = run("show", *words, "--json")
        assert (status, error) == (0, "")
        found: dict[str, Any] = json.loads(out)
        return found

    return parsed


def of(items: dict[str, Any]) -> list[str]:
    return [item["id"] for item in items["items"]]


def by_prompt(groups: Sequence[Group]) -> list[list[float]]:
    """Scores drawn by the prompts, some of them missing or alike."""
    margins = [3.0, 1.0, 0.0, -0.5, -2.0, float("nan")]
    return [[random.Random(str(group.prompt)).choice(margins), 0.0] for group in groups]


@pytest.fixture
def made(pairs: Callable[..., Rows], score: Callable[..., Run], tmp_path: Path) -> Run:
    return score("pairs", write(tmp_path / "w.jsonl", pairs(40)), by_prompt)


def judged(reply: Any, data: str | Path, out: Path, **options: Any) -> Run:
    """The run of a judge that replies so."""
    with serve(reply) as server:
        return verbs.judge("j", data=data, base_url=server.base_url, out=out, **{"benchmark": "pairs"} | options)


def test_what_is_asked_for_is_shown_in_its_order(made: Run, shown: Callable[..., dict[str, Any]]) -> None:
    margins = dict(made.items.select("id", "margin").iter_rows())
    whole = shown(made.path, "--limit", "99")
    assert of(whole) == made.items["id"].to_list()
    assert whole["outcomes"] == dict(made.items["outcome"].value_counts().iter_rows())
    for option, outcome in (("--lost", "loss"), ("--invalid", "invalid"), ("--tied", "tie")):
        found = shown(made.path, option, "--limit", "99")
        assert sorted(of(found)) == sorted(made.items.filter(outcome=outcome)["id"])
        assert found["matches"] == len(of(found)) > 1
    lost = [margins[item] for item in of(shown(made.path, "--lost"))]
    assert (len(lost), lost) == (5, sorted(lost))
    close = [abs(margins[item]) for item in of(shown(made.path, "--closest", "20"))]
    assert close == sorted(abs(margin) for margin in margins.values() if margin is not None)[:20]
    assert of(shown(made.path, "--id", "q7", "--id", "q3")) == ["q3", "q7"]


def joined(said: str) -> str:
    """What is said, without the breaks of its lines."""
    return " ".join(said.split())


def test_what_a_function_could_read_as_data_is_said(run: Command, score: Callable[..., Run]) -> None:
    seen: list[Person] = []

    def reader(groups: Sequence[Group]) -> list[list[float]]:
        seen.extend(group.person for group in groups if group.person)
        return by_length(groups)

    made = score("personalized-training", "sample", by=reader)
    assert {(*person.profile, *person.persona) for person in seen} == {()}
    _, said, _ = run("show", made.path, "--id", "tomas-1")
    assert "The model read no user context.\n" in said, "this one decided nothing before"
    _, said, _ = run("show", made.path, "--id", "tomas-3")
    assert "no user context. As data, it could also read 2 earlier decisions of the user. " in joined(said)
    raw = score("personalized-training", "sample", by=reader, profile="raw")
    _, said, _ = run("show", raw.path, "--id", "tomas-2")
    also = "posts of the user. As data, it could also read 1 earlier decision of the user and the user's persona. "
    assert also in joined(said)


def test_an_item_is_shown_with_its_person_texts_and_scores(
    run: Command, people: Callable[..., Rows], score: Callable[..., Run], tmp_path: Path, shown: Any
) -> None:
    rows = people(3)
    rows[1]["rejected"] = "word " * 400
    made = score("personalized", write(tmp_path / "Art.jsonl", rows), profile="raw", profile_size=2)
    [item] = shown(made.path, "--id", "p0-1")["items"]
    assert item["prompt"] == [{"role": "user", "content": rows[1]["question"]}]
    assert [answer["text"] for answer in item["answers"]] == [rows[1]["chosen"], rows[1]["rejected"]]
    row = made.items.filter(id="p0-1").row(0, named=True)
    assert [answer["score"] for answer in item["answers"]] == [row["score_chosen"], row["score_rejected"]]
    assert [post["text"] for post in item["person"]["posts"]] == [post["text"] for post in rows[1]["profile"]]
    status, said, _ = run("show", made.path, "--limit", "2")
    assert status == 0
    for part in (
        "Personalized RewardBench (Art.jsonl), 3 items",
        "The model read the first 2 posts of the user.",
        "1 more posts are not shown.",
        "more characters)",
        "2 of 3 items; --limit 3 shows all.",
        f"Chosen, score {row['score_chosen']:.4g}",
    ):
        assert part in said
    assert run("show", made.path, "--id", "p0-1", "--full")[1].count("word") == 400


def test_a_judges_replies_are_shown_as_they_came_in_both_orders(
    data: Path, tmp_path: Path, shown: Any, run: Command
) -> None:
    def reply(body: dict[str, Any], number: int) -> Reply:
        text = body["messages"][-1]["content"]
        if " 0!" in text:
            return Reply(f"mumble {number}")
        return Reply(None, refusal="I won't.") if " 1!" in text else Reply("Sure.\n[[A]]")

    made = judged(reply, data, tmp_path / "run", attempts=3, concurrency=1)
    first, second, third = shown(made.path, "--limit", "3")["items"]
    for order, name in zip(first["decisions"][0]["orders"], ("chosen", "rejected"), strict=True):
        assert (order["first"], order["verdict"]) == (name, "invalid")
        numbers = [int(one["text"].removeprefix("mumble ")) for one in order["replies"]]
        assert (len(numbers), numbers) == (3, sorted(numbers)), "all tries, in their order"
    assert {one["outcome"] for order in second["decisions"][0]["orders"] for one in order["replies"]} == {"refusal"}
    assert third["outcomes"] == {"tie": 1}
    assert [order["replies"] for order in third["decisions"][0]["orders"]] == [
        [{"outcome": "answer", "text": "Sure.\n[[A]]"}]
    ] * 2
    assert of(shown(made.path, "--invalid")) == ["q0", "q1"]
    text = run("show", made.path, "--id", "q0")[1]
    assert "\nInvalid: no verdict." in text, "the reason is of the pair, not of the last reply"


def test_replies_that_vote_are_shown_with_how_each_was_read(data: Path, tmp_path: Path, run: Command) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        if body["model"] == "b":
            return Reply("mumble")
        return Reply("[[A]]")

    options: dict[str, Any] = {"samples": 2, "temperature": 0.7, "attempts": 2, "limit": 1, "orders": "both"}
    with serve(reply) as server:
        made = verbs.judge(
            ["a", "b"], benchmark="pairs", data=data, base_url=server.base_url, out=tmp_path / "run", **options
        )
    text = run("show", made.path)[1]
    votes = "Votes: prefers {} 2, invalid 2."
    for side, lines in (("chosen", votes.format("chosen")), ("rejected", votes.format("rejected"))):
        assert f"Judge, {side} shown first: prefers {side}\n  {lines}\n" in text
    for part in (
        "  Reply 1 of 6 (a, sample 1), prefers chosen:\n    [[A]]",
        "  Reply 2 of 6 (a, sample 2), prefers chosen:\n    [[A]]",
        "  Reply 3 of 6 (b, sample 1):\n    mumble",
        "  Reply 4 of 6 (b, sample 1), invalid: no verdict:\n    mumble",
    ):
        assert part in text


@pytest.mark.parametrize("protocol", ["pointwise", "listwise"])
def test_scores_and_picks_that_vote_are_shown_with_how_each_was_read(
    tmp_path: Path, run: Command, protocol: str
) -> None:
    rows = [{"id": f"r{n}", "prompt": "?", "responses": ["xx", "y", "z"], "rank": [1, 2, 2]} for n in range(2)]
    table = write(tmp_path / "r.jsonl", rows)
    options: dict[str, Any] = {"samples": 2, "temperature": 0.7, "protocol": protocol, "limit": 1}
    made = judged(lambda *_: Reply("[[2]]"), table, tmp_path / "run", benchmark="rankings", **options)
    text = run("show", made.path)[1]
    if protocol == "pointwise":
        assert text.count("Votes: score 2 2.\n  Reply 1 of 2 (sample 1), score 2:\n") == 3
    else:
        [pick] = set(re.findall(r"Reply [12] of 2 \(sample [12]\), (picks answer \d):", text))
        assert f"Judge, all answers in one list\n  Votes: {pick} 2.\n" in text


def test_rankings_have_all_answers_and_ratings_their_replies(
    tmp_path: Path, shown: Any, run: Command, score: Callable[..., Run]
) -> None:
    rows = [{"id": f"r{n}", "prompt": "?", "responses": [f"x{n}", "yy", "zzz"], "rank": [2, 1, 2]} for n in range(3)]
    table = write(tmp_path / "r.jsonl", rows)
    made = score("rankings", table, by_length)
    [item] = shown(made.path, "--id", "r1")["items"]
    assert [(answer["name"], answer["rank"], answer["text"], answer["score"]) for answer in item["answers"]] == [
        ("0", 2, "x1", 2.0),
        ("1", 1, "yy", 2.0),
        ("2", 2, "zzz", 3.0),
    ]
    assert [(one["chosen"], one["rejected"], one["outcome"]) for one in item["decisions"]] == [
        ("1", "0", "tie"),
        ("1", "2", "loss"),
    ]
    assert item["credit"] == 0.0

    def rate(body: dict[str, Any], _: int) -> Reply:
        return Reply(f"[[{len(body['messages'][-1]['content']) % 9 + 1}]]")

    rated = judged(rate, table, tmp_path / "rated", benchmark="rankings", protocol="pointwise")
    for answer in shown(rated.path)["items"][0]["answers"]:
        assert [reply["text"] for reply in answer["replies"]] == [f"[[{answer['score']:g}]]"]
    said = run("show", made.path, "--lost", "--limit", "1")[1]
    title, facts = said.splitlines()[4:6]
    assert title.startswith("? ──")
    assert facts.endswith(", credit 0")
    assert "Prompt" not in said, "the title is the prompt"
    assert "Answer 1, rank 1, score 2" in said
    assert "Answer 1 over answer 2: lost, margin -1" in said


def test_a_person_judged_for_is_shown_with_what_was_told(tmp_path: Path, shown: Any, run: Command) -> None:
    data = release(tmp_path / "data", prism=persona_rows("prism", 3))
    with serve(lambda body, _: Reply(f"[[{knows(body)}]] [[70]]")) as server:
        made = verbs.judge_personas(
            "j", data=data, base_url=server.base_url, variables="key", orders="both", out=tmp_path / "run"
        )
    item = shown(made.path)["items"][1]
    assert item["person"]["persona"] == ["The age of this person is 21.", "The country of this person is Norway."]
    assert item["person"]["withheld"] == ["The religion of this person is none of yours."]
    assert [answer["text"] for answer in item["answers"]] == ["A 1 of prism", "B 1 of prism (theirs)"]
    [decision] = item["decisions"]
    assert (decision["truth"], decision["verdict"], decision["certainty"]) == ("B", "B", 70)
    assert [(one["first"], one["replies"][0]["text"]) for one in decision["orders"]] == [
        ("A", "[[B]] [[70]]"),
        ("B", "[[A]] [[70]]"),
    ]
    assert "Verdict B, certainty 70; the label is B" in run("show", made.path)[1]


def test_data_that_moved_is_found_and_data_that_changed_is_refused(
    run: Command, score: Callable[..., Run], data: Path, tmp_path: Path, shown: Any
) -> None:
    made = score("pairs", data)
    moved = tmp_path / "elsewhere" / "named otherwise.jsonl"
    moved.parent.mkdir()
    shutil.move(data, moved)
    status, said, error = run("show", made.path)
    assert (status, said) == (2, "")
    assert " ".join(error.split()) == (
        f"Error: {made.path} contains no texts, and its data cannot be read: {data} does not exist, and it is not the "
        "name of a dataset on the Hub (ORG/NAME). If the data has moved, give its location with `--data`."
    )
    assert len(shown(made.path, "--data", moved)["items"]) == 5
    rows = [json.loads(line) for line in moved.read_text(encoding="utf-8").splitlines()]
    rows[1]["chosen"] += "!"
    write(data, rows)
    status, said, error = run("show", made.path)
    assert (status, said) == (2, "")
    assert " ".join(error.split()) == (
        f"Error: {data} does not have the texts that {made.path} was made with (id q1 of p); give the original "
        "data (`--data`)."
    )
    status, said, _ = run("show", made.path, "--id", "q0")
    assert (status, f"{data} has changed" in said) == (0, True), "what is as it was can be shown"


CASES: dict[str, dict[str, Any]] = {
    "a split": {"benchmark": "pairs", "split": "train"},
    "a limit and a config": {"benchmark": "pairs", "limit": 2, "configs": ("fr",)},
    "columns": {"benchmark": "pairs", "columns": ("prompt=chosen", "chosen=prompt", "id=#")},
    "what is empty left out": {"benchmark": "pairs", "on_empty": "drop"},
    "English from elsewhere": {"benchmark": "multilingual", "english": "english.jsonl"},
}


@pytest.mark.parametrize("case", CASES)
def test_data_is_read_again_as_it_was_read(
    case: str, pairs: Callable[..., Rows], score: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for config in ("fr", "zh"):
        for split in ("test", "train"):
            write(tmp_path / "d" / config / f"{split}.jsonl", pairs(4, seed=len(split)))
    empty = {"id": "e", "prompt": "?", "chosen": "", "rejected": "x"}
    write(tmp_path / "d" / "zh" / "test.jsonl", [*pairs(4), empty] if "empty" in case else pairs(4))
    write(tmp_path / "english.jsonl", pairs(9, seed=7))
    made = score(data="d", **CASES[case])
    texts = read_texts(made)
    assert texts.same
    assert {(row["id"], row["digest"]) for row in made.items.iter_rows(named=True)} == texts.items.keys()


def test_flipped_are_those_whose_label_is_another_in_english(
    pairs: Callable[..., Rows],
    score: Callable[..., Run],
    shown: Callable[..., dict[str, Any]],
    run: Command,
    tmp_path: Path,
) -> None:
    for seed, config in enumerate(("eng_Latn", "ita_Latn", "por_Latn")):
        write(tmp_path / "d" / f"{config}.jsonl", pairs(8, seed=seed))
    made = score("multilingual", tmp_path / "d", by_prompt)
    labels = {
        (config, item): None if math.isnan(chosen) else (chosen > rejected) - (chosen < rejected)
        for config, item, chosen, rejected in made.items.select(
            "config", "id", "score_chosen", "score_rejected"
        ).iter_rows()
    }
    expected = {
        (config, item): theirs
        for (config, item), ours in labels.items()
        if (theirs := labels["eng_Latn", item]) is not None and ours is not None and ours != theirs
    }
    assert 3 < len(expected) < 16
    found = shown(made.path, "--flipped", "--limit", "20")["items"]
    words = {1: "win", 0: "tie", -1: "loss"}
    assert {(item["config"], item["id"]): item["english"] for item in found} == {
        key: words[label] for key, label in expected.items()
    }
    assert "; in English " in run("show", made.path, "--flipped", "--limit", "1")[1]
    orders = orders_of(decided := decided_items([made]), [made])
    assert {decided.select("config", "id").row(place) for place in orders["flipped"]} == expected.keys()
    alone = score("pairs", write(tmp_path / "p.jsonl", pairs(3)))
    status, _, error = run("show", alone.path, "--flipped")
    assert (status, error.strip()) == (
        2,
        f"Error: {alone.path} has no item with decisions in English and in another language.",
    )


def test_two_wishes_and_none_that_fits_are_refused_in_a_sentence(run: Command, made: Run, data: Path) -> None:
    for words, sentence in (
        (["--lost", "--closest", "3"], "--lost and --closest select different items; choose one of them."),
        (["--id", "x"], f"{made.path} has no item of id x; its first id is q0."),
    ):
        status, said, error = run("show", made.path, *words)
        assert (status, said, " ".join(error.split())) == (2, "", f"Error: {sentence}")
    assert run("show", data)[0] == 2


def test_verdicts_have_no_margins(run: Command, data: Path, tmp_path: Path) -> None:
    made = judged(lambda *_: Reply("[[A]]"), data, tmp_path / "run")
    assert (
        "has no margins, because its judge compares responses without scores."
        in run("show", made.path, "--closest", "1")[2]
    )
    status, said, _ = run("show", made.path, "--lost")
    assert (status, said.strip().splitlines()[-1]) == (0, "No item matches.")


PAGE_TEXT = st.text(min_size=1, max_size=200)


@given(prompt=PAGE_TEXT, answer=PAGE_TEXT, reply=PAGE_TEXT, name=PAGE_TEXT)
def test_a_page_is_no_wider_than_the_terminal(prompt: str, answer: str, reply: str, name: str) -> None:
    order = {"first": "chosen", "verdict": "A", "replies": [{"outcome": "answer", "text": reply}]}
    example: Row = {
        "config": "c",
        "id": name,
        "subset": None,
        "outcomes": {"win": 1},
        "prompt": [{"role": "user", "content": prompt}],
        "person": {},
        "answers": [{"name": "chosen", "rank": 1, "text": answer, "score": None}],
        "decisions": [{"chosen": "chosen", "rejected": "rejected", "outcome": "win", "orders": [order]}],
    }
    console = Console(width=80)
    for line in item_page(example, console, full=True):
        assert "\n" not in line.plain
        assert cell_len(line.plain) <= 80
