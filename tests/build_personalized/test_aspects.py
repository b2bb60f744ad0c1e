"""Aspects from narratives: sentences, the parser, and what happens when the model does not do as asked."""

import json
from pathlib import Path
from typing import Any

import pytest
from build_personalized.aspects import NO_NARRATIVE, TITLE_WORDS, add_aspects, parse_aspects
from build_personalized.screening import split_sentences
from chat_server import Reply
from hypothesis import example, given
from hypothesis import strategies as st
from personal_questions import asking, question, questions
from pluralbench_calls import InvalidAnswer

NARRATIVE = "I brew at home. My flat is tiny! Can it be quiet?"
SENTENCES = ["I brew at home.", "My flat is tiny!", "Can it be quiet?"]


def aspect(sentence: Any = 1, title: Any = "Brewing at home", reason: Any = "They brew.") -> dict[str, Any]:
    return {"sentence": sentence, "aspect": title, "reason": reason}


def reply(*aspects: dict[str, Any]) -> str:
    return json.dumps({"aspects": aspects})


@pytest.mark.parametrize(
    ("narrative", "sentences"),
    [
        (NARRATIVE, SENTENCES),
        ("Dr. Smith is 3.5 m away, e.g. there. Right?", ["Dr. Smith is 3.5 m away, e.g. there.", "Right?"]),
        ("No full stop\n\nA new paragraph", ["No full stop", "A new paragraph"]),
        ("我喜欢啤酒。不要太苦！真的吗？", ["我喜欢啤酒。", "不要太苦！", "真的吗？"]),
        ("Stop. ... 12! Go.", ["Stop.", "Go."]),
        ("I asked on history.SE about it. Then I left.", ["I asked on history.SE about it.", "Then I left."]),
    ],
)
def test_sentences(narrative: str, sentences: list[str]) -> None:
    assert split_sentences(narrative) == sentences


@pytest.mark.parametrize(
    ("language", "narrative", "sentences"),
    [
        ("de", "Bier kostet ca. 3 Euro. Zu viel?", ["Bier kostet ca. 3 Euro.", "Zu viel?"]),
        ("zh-Hant", "我喜歡啤酒。貴嗎？", ["我喜歡啤酒。", "貴嗎？"]),
        ("xx", "One. Two.", ["One.", "Two."]),
    ],
)
def test_sentences_of_another_language(language: str, narrative: str, sentences: list[str]) -> None:
    assert split_sentences(narrative, language) == sentences


@given(st.text(st.characters(exclude_categories=["Cs"], include_characters=".!?。\n\t\u2028'\"")))
def test_each_sentence_is_a_part_of_the_narrative(narrative: str) -> None:
    rest = narrative
    for sentence in split_sentences(narrative):
        assert sentence == sentence.strip()
        assert sentence in rest, "in their order, none twice"
        rest = rest[rest.index(sentence) + len(sentence) :]


@pytest.mark.parametrize(
    "text",
    [
        reply(aspect(2, "A tiny flat", "No room.")),
        f"```json\n{reply(aspect(2, 'A tiny flat', 'No room.'))}\n```",
        f"Here they are:\n{reply(aspect(2, 'A tiny flat', 'No room.'))}\nAnything else?",
        reply(aspect(2, "  A tiny\n flat ", "No\n\nroom."), aspect(3, "a TINY flat", "The same again.")),
        reply(aspect(2, "A tiny flat", "No room.") | {"more": 1}),
        reply(aspect(2, "1. A tiny flat", "No room.")),
    ],
)
def test_aspects_are_read_with_their_evidence(text: str) -> None:
    expected = [{"aspect": "A tiny flat", "evidence": "My flat is tiny!", "reason": "No room."}]
    assert parse_aspects(text, SENTENCES, 6) == expected


def test_at_most_so_many_aspects_are_kept() -> None:
    result = parse_aspects(reply(*(aspect(1, f"Title {letter}") for letter in "abcdefgh")), SENTENCES, 6)
    assert [item["aspect"] for item in result] == [f"Title {letter}" for letter in "abcdef"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not the JSON asked for"),
        ('{"aspects": ', "not the JSON asked for"),
        (json.dumps({"aspects": [{"sentence": 1, "aspect": "Title"}]}), "not the JSON asked for"),
        (reply(aspect("one")), "not the JSON asked for"),
        (reply(), "no aspects named"),
        (reply(aspect(0)), "a sentence that is not there"),
        (reply(aspect(1), aspect(4)), "a sentence that is not there"),
        (reply(aspect(1, " ")), "no usable title"),
        (reply(aspect(1, "word " * (TITLE_WORDS + 1))), "no usable title"),
    ],
)
def test_what_cannot_be_used_is_named(text: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer, match=reason):
        parse_aspects(text, SENTENCES, 6)


def spoken(number: int, narrative: str = NARRATIVE, **changes: Any) -> dict[str, Any]:
    return question(number, narrative=narrative, **changes)


def test_aspects_are_added_where_there_were_none(tmp_path: Path) -> None:
    given_aspects = [{"aspect": "Given", "evidence": "", "reason": ""}]
    rows = [spoken(1), spoken(2, rubric_aspects=given_aspects), spoken(3, " \n"), spoken(4, "")]
    with asking(tmp_path, lambda *_: Reply(reply(aspect(3, "Quiet")))) as (given, server):
        filled, drops = add_aspects(questions(*rows), *given)
    assert len(server.requests) == 1
    assert (
        "1. I brew at home.\n2. My flat is tiny!\n3. Can it be quiet?" in server.requests[0]["messages"][1]["content"]
    )
    result = [{"aspect": "Quiet", "evidence": "Can it be quiet?", "reason": "They brew."}]
    assert filled.select("id", "rubric_aspects").rows() == [("q1", result), ("q2", given_aspects)]
    assert drops.rows() == [("beer", "aspects", NO_NARRATIVE, "q3"), ("beer", "aspects", NO_NARRATIVE, "q4")]


def test_what_the_person_quotes_is_no_evidence(tmp_path: Path) -> None:
    quotes = "A friend wrote\n\n> Take a bitter stout.\n>\n> - Or two.\n\nI like it sweet.\n\n- > Nobody does.\n"
    own = f"{quotes}- \\> 5 % is much."
    rows = [spoken(1, own), spoken(2, "> Take a bitter stout.\n\n---")]
    with asking(tmp_path, lambda *_: Reply(reply(aspect(2)))) as (given, server):
        filled, drops = add_aspects(questions(*rows), *given)
    shown = server.requests[0]["messages"][1]["content"]
    assert "1. A friend wrote\n2. I like it sweet.\n3. - \\> 5 % is much." in shown
    assert [item["evidence"] for item in filled["rubric_aspects"][0]] == ["I like it sweet."]
    assert drops.rows() == [("beer", "aspects", NO_NARRATIVE, "q2")]


@pytest.mark.parametrize("structured", [True, False])
def test_the_schema_is_sent_where_the_recipe_says_so(tmp_path: Path, structured: bool) -> None:
    with asking(tmp_path, lambda *_: Reply(reply(aspect())), llm={"structured_output": structured}) as (given, server):
        add_aspects(questions(spoken(1)), *given)
    (request,) = server.requests
    assert ("response_format" in request) is structured
    if structured:
        schema = request["response_format"]["json_schema"]["schema"]["properties"]["aspects"]
        assert schema["maxItems"] == 6
        assert schema["items"]["properties"]["sentence"]["maximum"] == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


ITEMS = st.fixed_dictionaries({"sentence": st.integers(-1, 5) | JSON, "aspect": st.text() | JSON, "reason": st.text()})


REPLIES = (
    st.text()
    | JSON.map(json.dumps)
    | st.lists(ITEMS, max_size=4).map(lambda items: reply(*items))
    | st.lists(ITEMS, max_size=4).map(lambda items: json.dumps({"aspects": items}, ensure_ascii=False))
)


@given(text=REPLIES, narrative=st.text(min_size=1).filter(str.strip))
@example(text="{" * 10_000 + "}" * 10_000, narrative="x")
@example(text='{"aspects": [{"sentence": 1, "aspect": "\\ud800 x", "reason": ""}]}', narrative="x")
def test_any_reply_is_refused_or_gives_quoted_evidence(text: str, narrative: str) -> None:
    try:
        result = parse_aspects(text, split_sentences(narrative), 6)
    except InvalidAnswer:
        return
    assert 1 <= len(result) <= 6
    for item in result:
        assert item["evidence"] in narrative
        assert item["aspect"]
