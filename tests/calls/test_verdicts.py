"""What counts as a verdict: by the strict rule the last line of a reply, alone in it; by the lenient one more."""

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pluralbench_calls import (
    InvalidAnswer,
    Rule,
    legacy_choice,
    legacy_score,
    parse_choice,
    parse_pick,
    parse_rating,
    parse_verdict,
    parse_with_all_rules,
)
from pluralbench_calls.verdicts import CertainChoice, parse_certain_choice, require_single_marker

VERDICTS = {
    "[[A]]": "A",
    "[[B]]": "B",
    "[[ b ]]": "B",
    "Verdict: [[A]]": "A",
    "**Verdict:** [[B]]": "B",
    "**Final verdict: [[B]]**": "B",
    "Result - [[A]]": "A",
    "[[A]].": "A",
    "  [[A]]  \n\n  \n": "A",
    "[[A]] would be the short one.\n[[B]]": "B",
    "好的。\r\n[[B]]\r\n": "B",
    "<think>[[A]]\n[[A]]</think>[[B]]": "B",
    '{"verdict": "A"}': "A",
    '<think>[[A]]</think>\n{"verdict": "B"}\n': "B",
}
NO_VERDICTS = [
    "",
    " \n\t\n",
    "[A]",
    "[[C]]",
    "[[A]] or [[B]]",
    "I choose [[A]]",
    "[[A]] is better",
    "[[A]]\nBut I am not sure.",
    "[[A]]?",
    "[[tie]]",
    "<think>[[A]]",
    "[[А]]",  # Cyrillic
    "Verdict: neither. [[A]]",
    "Rating: [[A]]",
    '{"verdict": "C"}',
    '{"verdict": null}',
    '{"verdict": "A"',
    "{}",
    *(f"{sign} [[A]]" for sign in ("?", "≠", "!=", "❌", "~~", "[[ ]]")),  # which may deny it
]


@pytest.mark.parametrize(("reply", "choice"), VERDICTS.items())
def test_verdicts(reply: str, choice: str) -> None:
    assert parse_choice(reply) == choice


@pytest.mark.parametrize("reply", NO_VERDICTS)
def test_no_verdicts(reply: str) -> None:
    with pytest.raises(InvalidAnswer):
        parse_choice(reply)


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("[[1]]", 1.0),
        ("[[10]]", 10.0),
        ("Rating: [[7]]", 7.0),
        ("Score: [[10/10]]", 10.0),
        ("[[8 / 10]].", 8.0),
        ("It could be [[3]].\n\n[[4]]", 4.0),
        ('{"rating": 10}', 10.0),
    ],
)
def test_ratings(reply: str, rating: float) -> None:
    assert parse_rating(reply) == rating


JSON = ['{"rating": 0}', '{"rating": 11}', '{"rating": 7.5}', '{"rating": -1}', '{"rating": true}', '{"verdict": 7}']
OFF = ["[[0]]", "[[11]]", "[[100]]", "[[1000]]", "[[-1]]", "[[7.5]]", "[[7/5]]", "[[7-8]]", "[[seven]]", "[[A]]"]
MORE = ["[[7]] of 10", "I give [[7]]", "[[7]]\nor less", "[[7]] [[8]]", "<think>[[7]]", "Verdict: [[7]]"]


@pytest.mark.parametrize("reply", ["", "7", "[7]", *OFF, *MORE, *JSON])
def test_no_ratings(reply: str) -> None:
    with pytest.raises(InvalidAnswer):
        parse_rating(reply)


def test_an_invalid_reply_has_a_reason() -> None:
    for reply, reason in {"[[11]]": "a rating off the scale", "7": "no rating in the last line"}.items():
        with pytest.raises(InvalidAnswer, match=reason):
            parse_rating(reply)
    with pytest.raises(InvalidAnswer, match="no verdict in the last line"):
        parse_choice("A")


LINES = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=40)
REPLIES = st.lists(LINES | st.sampled_from(["[[A]]", "[[B]]", "[[5]]", "Verdict: [[A]]"]), max_size=5).map("\n".join)
WORDS = st.lists(st.sampled_from(["[[A]]", "[[B]]", "[[7]]", "or", "better", "not", "I"]), min_size=1, max_size=5)


@given(REPLIES, WORDS.map(" ".join))
def test_a_reply_whose_last_line_says_more_is_never_valid(before: str, last: str) -> None:
    assume(re.search(r"[a-zI]", last) or last.count("[[") > 1)
    with pytest.raises(InvalidAnswer):
        parse_choice(f"{before}\n{last}")
    with pytest.raises(InvalidAnswer):
        parse_rating(f"{before}\n{last}")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("[[C]]", "C"),
        ("结论：[[A]]", "A"),
        ("**最终结论：** [[C]]。", "C"),
        ('{"verdict": "C"}', "C"),
        ("好。\n[[b]]", "B"),
    ],
)
def test_verdicts_that_may_be_ties(reply: str, verdict: str) -> None:
    assert parse_verdict(reply) == verdict


@pytest.mark.parametrize("reply", ["", "结论：C", "[[D]]", "我认为[[A]]", "[[A]]或[[C]]"])
def test_what_is_no_verdict_even_where_ties_are(reply: str) -> None:
    with pytest.raises(InvalidAnswer, match="no verdict in the last line"):
        parse_verdict(reply)


CERTAIN = {
    "[[A]] [[85]]": ("A", 85),
    "[[A]] 100": ("A", 100),
    "[[A]] 85%": ("A", 85),
    "[[A]] [[85/100]]": ("A", 85),
    "**[[A]]** **[[85]]**": ("A", 85),
    "Verdict: [[B]], certainty: [[ 7 ]]": ("B", 7),
    "**Verdict:** [[B]]\n\n**Certainty:** 61": ("B", 61),
    "She likes tea.\n[[A]] [[20]]": ("A", 20),
    "<think>[[B]] [[3]]</think>[[A]] [[9]]": ("A", 9),
    '{"verdict": "A", "certainty": 85}': ("A", 85),
    '<think>?</think>{"certainty": "85", "verdict": "B"}': ("B", 85),
}
UNCERTAIN = {
    "": "no verdict in the last line",
    "A 85": "no verdict in the last line",
    "[[C]] [[85]]": "no verdict in the last line",
    "I choose [[A]] [[85]]": "no verdict in the last line",
    "[[A]] [[85]]\nBut I am not sure.": "no verdict in the last line",
    "not [[A]]\n[[85]]": "no verdict in the last line",
    '{"certainty": 85}': "no verdict in the last line",
    "<think>[[A]] [[85]]": "thinking without an answer",
    "[[A]]": "no certainty after the verdict",
    '{"verdict": "A"}': "no certainty after the verdict",
    "[[A]] [[ninety]]": "a certainty that is no whole number",
    "[[A]] [[٩٠]]": "a certainty that is no whole number",
    "[[A]] [[8.5]]": "a certainty that is no whole number",
    "[[A]] -5": "a certainty off the scale",
    "[[A]] 80-90": "a certainty that is no whole number",
    '{"verdict": "A", "certainty": 8.5}': "a certainty that is no whole number",
    "[[A]] [[0]]": "a certainty off the scale",
    f"[[A]] {'9' * 5000}": "a certainty off the scale",
    '{"verdict": "A", "certainty": 0}': "a certainty off the scale",
    "[[A]] [[B]] [[85]]": "two different markers",
    "[[A]] [[20]]\n[[A]] [[80]]": "two different markers",
    '{"verdict": "A", "verdict": "B", "certainty": 3}': "two different markers",
}


@pytest.mark.parametrize(("reply", "message"), CERTAIN.items())
def test_choices_with_a_certainty(reply: str, message: tuple[str, int]) -> None:
    assert parse_certain_choice(reply) == message


@pytest.mark.parametrize(("reply", "reason"), UNCERTAIN.items())
def test_what_is_no_choice_with_a_certainty_and_why(reply: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer, match=rf"^{reason}$"):
        parse_certain_choice(reply)


FORMS = [
    "[[{}]] [[{}]]",
    "[[{}]] {}",
    "[[{}]]\n[[{}]]",
    "Choice: [[{}]], certainty {}.",
    '{{"verdict": "{}", "certainty": {}}}',
]


@given(st.sampled_from(FORMS), st.sampled_from("AB"), st.integers(1, 100), st.text("ab .\n", max_size=30))
def test_a_choice_and_its_certainty_come_back(form: str, choice: str, certainty: int, thought: str) -> None:
    written = f"<think>{thought}</think>{form.format(choice, certainty)}"
    assert parse_certain_choice(written) == CertainChoice(choice, certainty)  # type: ignore[arg-type]


# What judges really write: strict, lenient, and as M-RewardBench's code counts it.
READINGS: dict[str, tuple[str | None, str | None, str | None]] = {
    "A is short and right; B is long.\n\n[[A]]": ("A", "A", "A"),
    "A is short and right; B is long.\n\n**Verdict:** [[B]].": ("B", "B", "B"),
    "Overall, I find Response B more helpful. My verdict is [[B]].": (None, "B", "B"),
    "Both are fine.\nTherefore, the better response is: **[[A]]**": (None, "A", "A"),
    "**Reasoning:** B knows the person.\n\n**Final Decision (better response):** [[B]]": (None, "B", "B"),
    "Se prefiere la segunda respuesta: [[B]], por ser más completa.": (None, "B", "B"),
    "综上所述，我认为[[A]]更好。": (None, "A", "A"),
    "في رأيي الإجابة الأفضل هي [[B]].": (None, "B", "B"),
    "[[A]]\n\nResponse A answers what was asked, and B does not.": (None, "A", "A"),
    "[[A]]\nI chose [[A]] because it is right.": (None, "A", "A"),
    "If brevity decides, it is [[A]].\nAll in all, [[B]] is better.": (None, "B", "A"),
    '```json\n{"verdict": "A"}\n```': (None, "A", None),
    '{"verdict": "B"}': ("B", "B", None),
    "<think>[[A]]? No.</think>\nIt is [[B]].": (None, "B", "A"),
    "Not [[A]] but [[B]].": (None, None, "A"),
    "[[A]] or [[B]]": (None, None, "A"),
    "I would say [[B]], though [[A]] is close.": (None, None, "A"),
    "[[B]] is right on facts.\n[[A]] is right on tone.\nI cannot decide.": (None, None, "A"),
    "It is not [[B]].": (None, None, "B"),
    "绝对不是[[A]]": (None, None, "A"),
    "[[C]]": (None, None, None),
    "Both are equal: [[C]].": (None, None, None),
    "Response A is better.": (None, None, None),
    "[[Response A]]": (None, None, None),
    "<think>[[A]]": (None, None, "A"),
    "": (None, None, None),
}


@pytest.mark.parametrize(("reply", "expected"), READINGS.items())
def test_how_each_rule_reads_a_reply(reply: str, expected: tuple[str | None, ...]) -> None:
    assert tuple(parse_with_all_rules(reply).values()) == expected
    assert list(parse_with_all_rules(reply)) == ["strict", "lenient", "legacy"]
    assert legacy_choice(reply) == expected[2]


def test_a_tie_is_read_where_ties_are_allowed() -> None:
    assert parse_with_all_rules("Both are equal: [[C]].", parse_verdict) == {
        "strict": None,
        "lenient": "C",
        "legacy": None,
    }
    with pytest.raises(InvalidAnswer, match="no verdict"):
        parse_choice("Both are equal: [[C]].", "lenient")


def test_the_legacy_count_gives_half_a_point_for_what_it_cannot_read() -> None:
    replies = {"[[B]]": 1.0, "[[B]], not [[A]]": 0.0, "It is [[A]].": 0.0, "B": 0.5, "": 0.5}
    assert {reply: legacy_score(reply, "B") for reply in replies} == replies


@pytest.mark.parametrize(
    ("reply", "reason"),
    {
        "Not [[A]] but [[B]].": "a marker that is denied",
        "[[A]] or [[B]]": "two different markers",
        "A": "no verdict",
        "<think>[[A]]": "thinking without an answer",
    }.items(),
)
def test_what_the_lenient_rule_cannot_read_has_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"^{reason}$"):
        parse_choice(reply, "lenient")


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("I give it [[7]].", 7.0),
        ("Overall score: [[8/10]], as it is right.", 8.0),
        ("[[9]]\n\nIt could hardly be better.", 9.0),
        ("Facts [[3]], tone [[9]].\nTogether I rate it [[6]].", 6.0),
        ('```json\n{"rating": 4}\n```', 4.0),
        ("I give it [[7]] to [[8]].", None),
        ("I give it [[11]].", None),
        (f"I give it [[{'9' * 5000}]].", None),
        ("It is not [[7]].", None),
    ],
)
def test_ratings_by_the_lenient_rule(reply: str, rating: float | None) -> None:
    if rating is None:
        with pytest.raises(InvalidAnswer):
            parse_rating(reply, "lenient")
    else:
        assert parse_rating(reply, "lenient") == rating


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("I choose [[A]] with a certainty of [[85]].", ("A", 85)),
        ("I choose [[B]].\nCertainty: [[60%]].", ("B", 60)),
        ("On tone [[A]].\nStill, [[B]], and I am [[70/100]] sure.", ("B", 70)),
    ],
)
def test_certain_choices_by_the_lenient_rule(reply: str, message: tuple[str, int]) -> None:
    assert parse_certain_choice(reply, "lenient") == message


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I choose [[A]].", "no certainty after the verdict"),
        ("I choose [[A]], [[101]] sure.", "a certainty off the scale"),
        ("I choose [[A]], [[8.5]] sure.", "a certainty that is no whole number"),
        ("I choose [[A]], [[80]] or [[90]] sure.", "two different markers"),
        ("I am [[80]] sure.", "no verdict"),
    ],
)
def test_what_is_no_certain_choice_by_the_lenient_rule(reply: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"^{reason}$"):
        parse_certain_choice(reply, "lenient")


PIECES = ["[[A]]", "[[b]]", "[[C]]", "[[7]]", "[[tie]]", "not ", "Verdict: ", "I say ", ".", "\n", "```", "</think>"]
MARKED = st.lists(st.sampled_from(PIECES) | st.text("ab [.", max_size=3), max_size=8).map("".join) | REPLIES


@given(MARKED, st.sampled_from([parse_choice, parse_verdict, parse_rating, parse_certain_choice]))
def test_what_the_strict_rule_reads_the_lenient_one_reads_the_same(reply: str, parse: Any) -> None:
    try:
        strict = parse(reply)
    except InvalidAnswer:
        return
    assert parse(reply, "lenient") == strict


@pytest.mark.parametrize("rule", ["strict", "lenient"])
@pytest.mark.parametrize(
    ("reply", "pick"),
    [
        ("[[1]]", 1),
        ("Because.\n**[[ 7 ]]**", 7),
        ("Best answer: it depends.\nAnswer: [[12]].", 12),
        ("<think>[[9]]</think>[[2]]", 2),
        ('{"best": 31}', 31),
    ],
)
def test_picks(reply: str, pick: int, rule: Rule) -> None:
    assert parse_pick(reply, 32, rule) == pick


@pytest.mark.parametrize("rule", ["strict", "lenient"])
@pytest.mark.parametrize(
    "reply",
    [
        *("", "3", "[3]", "[[A]]", "[[0]]", "[[33]]", "[[-1]]", "[[3.0]]", "[[3-4]]", "[[1, 2]]", "[[]]", "[[three]]"),
        *("[[3]] or [[4]]", "[[3]]\n[[4]] and [[5]]", "not [[3]]", "<think>[[3]]", "[[99999]]"),
        *('{"best": "A"}', '{"best": true}', '{"best": 0}', '{"best": 2.0}', '{"best": [1]}', '{"rating": 1}'),
    ],
)
def test_no_picks(reply: str, rule: Rule) -> None:
    with pytest.raises(InvalidAnswer):
        parse_pick(reply, 32, rule)


SENTENCE = st.text("abe 好ب,'.", max_size=20)


@given(REPLIES, LINES)
def test_without_brackets_in_its_last_line_no_reply_is_valid(before: str, last: str) -> None:
    assume(last.strip() and "[[" not in last)
    for parse in (parse_choice, parse_rating):
        with pytest.raises(InvalidAnswer):
            parse(f"{before}\n{last}")


@given(REPLIES, st.sampled_from(["[[A]]", "[[B]]", "**Verdict:** [[B]]"]), st.integers(1, 10))
def test_what_comes_before_the_last_line_changes_nothing(before: str, verdict: str, rating: int) -> None:
    assume("<think>" not in before and not before.lstrip().startswith("{"))  # which is JSON to the end
    assert parse_choice(f"{before}\n{verdict}") == parse_choice(verdict)
    assert parse_rating(f"{before}\n[[{rating}]]") == rating


@given(st.sampled_from(FORMS), st.sampled_from("AB"), st.integers().filter(lambda number: not 1 <= number <= 100))
def test_a_certainty_off_the_scale_never_comes_back(form: str, choice: str, certainty: int) -> None:
    with pytest.raises(InvalidAnswer):
        parse_certain_choice(form.format(choice, certainty))


@given(
    st.text(max_size=60) | st.lists(st.sampled_from(["[[A]]", "[[b]]", "[[7]]", "0", "9", "-", "\n", "."])).map("".join)
)
def test_any_text_has_a_certainty_on_the_scale_or_a_reason(text: str) -> None:
    reason, said = "", None
    try:
        said = parse_certain_choice(text)
    except InvalidAnswer as invalid:
        reason = str(invalid)
    assert bool(reason) != bool(said)
    if said is not None:
        assert 1 <= said.certainty <= 100
        assert re.search(rf"\[\[\s*{said.choice}\s*\]\]|\"verdict\"", text, re.IGNORECASE)


@pytest.mark.parametrize("reply", ["", "[[A]]", "[[A]], as I said: [[a]]", "<think>[[B]]</think>[[A]]", "A or B"])
def test_one_marker_is_one_however_often(reply: str) -> None:
    assert require_single_marker(reply) == reply


@pytest.mark.parametrize("reply", ["[[A]]\n[[B]]", "[[C]] or [[A]]", '{"verdict": "A", "verdict": "A"}'])
def test_two_markers_are_no_reply(reply: str) -> None:
    with pytest.raises(InvalidAnswer, match="two different markers"):
        require_single_marker(reply)


@given(MARKED)
def test_a_lenient_verdict_is_the_only_one_of_its_closing_line_or_of_the_reply(reply: str) -> None:
    read = parse_with_all_rules(reply, parse_verdict)["lenient"]
    after = reply.rpartition("</think>")[2]
    assume(not after.lstrip().startswith(("{", "```")))
    closing = [line for line in after.split("\n") if re.search(r"\w", line)][-1:]
    for part in ("".join(closing), after):
        said = {letter.upper() for letter in re.findall(r"\[\[\s*([ABC])\s*\]\]", part, re.IGNORECASE)}
        if said:
            assert read in {None, *said}
            assert len(said) == 1 or read is None
            return
    assert read is None


@given(st.sampled_from("AB"), REPLIES, SENTENCE, SENTENCE)
def test_a_marker_in_a_sentence_at_the_end_is_read(choice: str, before: str, start: str, end: str) -> None:
    assume("<think>" not in before and not before.lstrip().startswith(("{", "```")))
    reply, other = f"{before}\nSo {start} [[{choice}]] {end}.", "[[B]]" if choice == "A" else "[[A]]"
    if {f"{label}{other}" for label in ("", "Verdict: ")} & {line.strip() for line in before.split("\n")}:
        with pytest.raises(InvalidAnswer, match="two different markers"):
            parse_choice(reply, "lenient")
    else:
        assert parse_choice(reply, "lenient") == choice


@given(REPLIES, st.integers(1, 40), st.integers(1, 40))
def test_a_pick_is_the_number_in_the_last_line_if_a_response_has_it(before: str, pick: int, responses: int) -> None:
    assume("<think>" not in before and not before.lstrip().startswith("{"))
    rules: tuple[Rule, ...] = ("strict", "lenient")
    for rule in rules:
        if pick <= responses:
            assert parse_pick(f"{before}\n[[{pick}]]", responses, rule) == pick
        else:
            with pytest.raises(InvalidAnswer, match="a number that no response has"):
                parse_pick(f"{before}\n[[{pick}]]", responses, rule)
