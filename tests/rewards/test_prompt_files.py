"""Prompts from files: what a file may say, what is refused by name, and how replies of any kind are read."""

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from asked_judges import read_reply
from foreign_prompts import FOREIGN, RUBRIC, write_sources
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls.retry import InvalidAnswer
from pluralbench_rewards import EarlierPair, RewardsError
from pluralbench_rewards.prompts import JudgePrompt, finding, load_prompt, read_list, read_pair, shipped_prompts
from pluralbench_rewards.prompts.prompt import Question, escape, fill, render
from pluralbench_rewards.prompts.reading import Reading
from pluralbench_runs import RecipeError

QUESTION = [{"role": "user", "content": "Hobby?"}]
PAIR: dict[str, Any] = {
    "messages": [{"role": "user", "text": "{question}\n{response_a}\n{response_b}"}],
    "verdict": {"regex": r"\[\[([AB])\]\]", "values": {"A": "A", "B": "B"}},
}
SHOWS_ONE = [{"role": "user", "text": "{question} {response}"}]
SHOWS_ALL = [{"role": "user", "text": "{question} {responses}"}]
SCALE = {"box": True, "scale": [1, 10]}


def written(folder: Path, values: Mapping[str, Any], name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(dict(values)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"messages": [{"role": "user", "text": "{question} {response_a} {response_c}"}]}, r"\{response_c\}"),
        (
            {"messages": [{"role": "usr", "text": "{question} {response_a} {response_b}"}]},
            "'usr'; use one of system, developer, user, assistant, or",
        ),
        ({"messages": [{"role": "response_1", "text": "{question} {responses}"}]}, "'response_1'; use one of"),
        ({"messages": [{"role": "user", "text": "{question} {response_a}"}]}, "do not show all responses"),
        ({"messages": [{"role": "user", "text": "{response_a} {response_b}"}]}, "do not show the question"),
        ({"messages": [{"role": "system", "text": "{question} {responses}"}]}, "asks for no reply"),
        ({"messages": [*SHOWS_ALL, {"reply": True}]}, "stands between"),
        ({"messages": [*SHOWS_ALL, {"reply": True, "role": "user"}, *SHOWS_ALL]}, "not as 'user'"),
        ({"messages": [*SHOWS_ALL, {"reply": True}, {"reply": True}, *SHOWS_ALL]}, "follow each other"),
        ({"messages": [{"role": "user"}]}, "has a role and a text"),
        ({"messages": [{"text": "{question} {responses}"}]}, "needs a role"),
        ({"blocks": {"person": "x"}}, "the block person has the name of a variable"),
        ({"blocks": {"more": "{who}"}}, r"\{who\} in the block more"),
        ({"each": {"response": "{text}"}}, r"\{text\} in each.response"),
        ({"each": {"first_turn": "{text}"}}, r"\{text\} in each.first_turn"),
        ({"rubric": {"messages": SHOWS_ALL}}, r"\{responses\}"),
        ({"rubric": {"messages": [{"role": "user", "text": "{question}"}]}}, r"do not use \{rubric\}"),
        ({"samplng": {}}, "unknown key `samplng`"),
        ({"verdict": {"regex": "([AB]", "values": {"A": "A", "B": "B"}}}, "is not valid"),
        ({"verdict": {"regex": r"\[\[[AB]\]\]", "values": {"A": "A", "B": "B"}}}, "has no group; put parentheses"),
        ({"verdict": {"regex": "([AB])?", "values": {"A": "A", "B": "B"}}}, "matches an empty reply"),
        ({"verdict": {"regex": "(x)", "box": True, "values": {"A": "A", "B": "B"}}}, "exactly one of"),
        ({"verdict": {"box": True, "after": "x", "match": "end", "scale": [1, 2]}}, "`after` cannot be combined"),
        ({"verdict": {"regex": "([AB])"}}, "needs `values`, `scale` or `ranges`"),
        ({"verdict": {"regex": "([AB])", "values": {"A": "A"}}}, "must name A and B"),
        ({"verdict": {"regex": "([AB])", "values": {"A": "A", "B": "B", "C": 0.5}}}, "must name A and B"),
        ({"verdict": {"regex": "(.)", "values": {"a": "A", "A": "B", "B": "B"}}}, "differ only in capital letters"),
        ({"verdict": {"regex": "([AB])", "values": {"A": "A", "B": "B"}, "scale": [1, 2]}}, "only one of"),
        ({"verdict": {"box": True, "scale": [10, 1]}}, "the lowest and the highest"),
        ({"verdict": {"box": True, "ranges": {"first": [1, 3], "second": [3, 6]}}}, "the ranges overlap"),
        ({"verdict": {"box": True, "ranges": {"first": [3, 1], "second": [4, 6]}}}, "must not end before it begins"),
        ({"verdict": {"regex": "{letter}: (.)", "values": {"A": "A", "B": "B"}}}, "need a `scale`"),
        (
            {"verdict": {"box": True, "values": {"A": "A", "B": "B"}, "ranking": {"box": True, "ranges": {}}}},
            "`verdict.ranking.ranges.first` is missing",
        ),
        ({"protocol": "pointwise", "messages": SHOWS_ONE}, "must be numbers"),
        ({"protocol": "pointwise", "messages": SHOWS_ONE, "verdict": {"box": True}}, "needs `scale`, or `values`"),
        ({"protocol": "listwise", "messages": SHOWS_ALL}, "has a `scale`, or is the number or letter"),
        (
            {
                "protocol": "listwise",
                "messages": SHOWS_ALL,
                "verdict": {"box": True, "ranges": {"first": [1, 2], "second": [3, 4]}},
            },
            "no `ranges`",
        ),
        ({"sampling": {"temperature": -1}}, "sampling.temperature"),
    ],
)
def test_what_makes_no_sense_in_a_file_is_named(tmp_path: Path, changes: dict[str, Any], names: str) -> None:
    assert load_prompt(written(tmp_path, PAIR)).name == "mine"
    with pytest.raises(RecipeError, match=names) as refused:
        load_prompt(written(tmp_path, PAIR | changes))
    assert str(refused.value).startswith(f"The prompt {tmp_path}")


def test_names_of_prompts_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="'leter'; did you mean `letter`"):
        load_prompt("leter")
    with pytest.raises(RecipeError, match=r"no prompt '.*nothing.toml'; the names are answer-letter, "):
        load_prompt(tmp_path / "nothing.toml")


def test_a_digest_covers_all_but_the_name() -> None:
    one, other = (JudgePrompt(name=name, about=name, **PAIR) for name in ("one", "other"))
    warmer = JudgePrompt(name="one", **PAIR, sampling={"temperature": 0.5})
    assert one.digest == other.digest != warmer.digest
    assert len({load_prompt(name).digest for name in shipped_prompts() if name not in FOREIGN}) == len(
        {*shipped_prompts()} - {*FOREIGN}
    )


def test_texts_of_others_are_read_where_they_are(tmp_path: Path) -> None:
    folder = write_sources(tmp_path)
    values = {"first": "A {b}", "second": "C"}
    for name in FOREIGN:
        prompt = load_prompt(f"{name}@{folder}")
        question = Question("q", QUESTION, (values["first"], values["second"]))
        *_, last = render(prompt.messages, question, prompt.values(question))
        assert "Hobby?" in last["content"]
        assert ("A {b}" in last["content"], "{x}" in last["content"]) == (True, name == "skywork-critic")
        if prompt.protocol == "pairwise":
            assert last["content"].index("A {b}") < last["content"].index("\nC")
        with pytest.raises(RecipeError, match=rf"takes its text from .* give its folder as `prompt=\"{name}@FOLDER\"`"):
            load_prompt(name)
    assert load_prompt(f"rm-r1@{folder}").messages[0].text == "Judge in tags: <type>{{x}}</type>\nthen an answer"
    assert load_prompt(f"prometheus-absolute@{folder}").blocks["helpfulness"] == escape(RUBRIC)
    assert load_prompt(f"prometheus-relative@{folder}").blocks["helpfulness"] == "[Is it quiet?]", "as its code does"


@pytest.mark.parametrize(
    ("source", "content", "names"),
    [
        ({"file": "p.py", "constant": "P"}, "P = f'{question} {responses}'", "has no text P"),
        ({"file": "p.py", "constant": "P.x"}, "P = {'y': ''}", "has no text P.x"),
        ({"file": "p.py", "constant": "P"}, "P = (", "has no text P"),
        ({"file": "p.py", "constant": "P"}, f"P = {'-' * 20_000}1", "has no text P that can be read"),
        ({"file": "p.py", "constant": "P"}, "P = '{question} {0} {1:>3}'", r"\{0\}, which is not the name"),
        ({"file": "p.py", "constant": "P"}, "P = '{question'", "is not a format string"),
        ({"file": "p.jinja"}, "{% if x %}{{ question }}{% endif %}", "more than variables"),
        ({"file": "q.jinja"}, "", "cannot be read"),
        ({"file": "p.jinja", "renam": {}}, "", "unknown key `renam`"),
        ({"file": "p.jinja"}, "{{ question }} {{ output_1 }}", r"no variable \{output_1\}"),
    ],
)
def test_texts_of_others_that_cannot_be_used_are_named(
    tmp_path: Path, source: dict[str, Any], content: str, names: str
) -> None:
    (tmp_path / source["file"].replace("q", "p")).write_text(content, encoding="utf-8")
    with pytest.raises(RecipeError, match=names):
        load_prompt(written(tmp_path, PAIR | {"messages": [{"role": "user", "text": source}]}))


@given(st.text("{}ab_ \n") | st.text())
def test_an_escaped_text_is_itself(text: str) -> None:
    assert fill(escape(text), {}) == text


@given(st.lists(st.text(), min_size=2, max_size=2), st.text())
def test_answers_are_shown_as_they_are_and_swapping_them_swaps_the_messages(responses: list[str], asked: str) -> None:
    prompt = JudgePrompt(name="p", **PAIR)

    def shown(first: str, second: str) -> str:
        question = Question("q", [{"role": "user", "content": asked}], (first, second))
        [message] = render(prompt.messages, question, prompt.values(question))
        return message["content"]

    first, second = responses
    assert shown(first, second) == f"{asked}\n{first}\n{second}"
    assert shown(second, first) == f"{asked}\n{second}\n{first}"


def test_blocks_lists_and_earlier_choices_are_written_as_the_file_says() -> None:
    prompt = load_prompt("history-scores")
    pairs = [EarlierPair(QUESTION, f"good {number}", f"bad {number}") for number in range(8)]
    question = Question("q", QUESTION, ("x", "y"), variables={"history": prompt.history(pairs)})
    system, user = render(prompt.messages, question, prompt.values(question))
    assert re.findall(r"They chose: good (\d)", system["content"]) == ["2", "3", "4", "5", "6", "7"]
    assert "About the person" not in user["content"]
    without = Question("q", QUESTION, ("x", "y"))
    bare = render(prompt.messages, without, prompt.values(without))
    assert bare[0]["content"] == "You predict which answer a person likes better. "


def test_turns_are_written_as_think_rm_writes_them(tmp_path: Path) -> None:
    prompt = load_prompt(f"think-rm@{write_sources(tmp_path)}")

    def shown(*turns: str) -> str:
        messages = [{"role": "assistant" if place % 2 else "user", "content": turn} for place, turn in enumerate(turns)]
        question = Question("q", messages, ("Chess.\n", "Go. "))
        return render(prompt.messages, question, prompt.values(question))[-1]["content"]

    body = 'Braces {{"x": 1}} and a question:\n{}\nChess.\nGo.'
    for turns, text in {
        ("Hobby?\n",): "Hobby?",
        ("Hobby? ", "Alone?\n", "Yes."): "Hobby?\n<extra_id_1>Assistant\nAlone?\n<extra_id_1>User\nYes.",
    }.items():
        assert shown(*turns) == body.format(text)


REPLIES = st.lists(
    st.sampled_from(
        ["[[A]]", "[[B]]", "[[C]]", "<think>", "</think>", "\\boxed{", "}", "3, 7", "{", '"score_1":', " \n"]
    )
    | st.text(max_size=8)
    | st.integers(-20, 20).map(str)
).map("".join)
OWN = [name for name in shipped_prompts() if name not in FOREIGN]


@settings(max_examples=300, deadline=None)
@given(REPLIES, st.sampled_from(OWN))
def test_any_reply_is_a_verdict_or_invalid(reply: str, name: str) -> None:
    prompt = load_prompt_once(name)
    try:
        scores = read_reply(prompt, reply, 3 if prompt.protocol == "listwise" else 2)
    except InvalidAnswer:
        return
    low, high = prompt.verdict.scale or (0, 1)
    assert all(0 <= score <= max(high, 1) for score in scores)
    assert prompt.protocol == "pairwise" or all(low <= score <= high for score in scores)


LOADED: dict[str, JudgePrompt] = {}


def load_prompt_once(name: str) -> JudgePrompt:
    if name not in LOADED:
        LOADED[name] = load_prompt(name)
    return LOADED[name]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["[[A]]", "[[B]]", "[[a]]", "[[C]]", "[A]", " then ", "\n"]) | st.text("xz.", max_size=4))
)
def test_letters_are_read_as_their_occurrences_say_and_renaming_them_swaps_the_verdict(parts: list[str]) -> None:
    own, text = load_prompt_once("letter").verdict, "".join(parts)
    named = {letter for letter in "AB" if f"[[{letter}]]" in re.sub(r"\[\[\s+|\s+\]\]", lambda m: m[0].strip(), text)}

    def read(reply: str) -> str | None:
        try:
            return read_pair(own, reply).verdict
        except InvalidAnswer:
            return None

    assert read(text) == (named.pop() if len(named) == 1 else None)
    swapped = text.translate(str.maketrans("AB", "BA"))
    assert read(swapped) == {"A": "B", "B": "A", None: None}[read(text)]


@settings(deadline=None)
@given(st.lists(st.integers(-3, 13), min_size=1, max_size=5), st.sampled_from([", ", ",", " ", " ; "]))
def test_boxed_scores_are_those_of_the_reply(scores: list[int], comma: str) -> None:
    own = load_prompt_once("boxed-list").verdict
    text = f"Because.\n\\boxed{{{comma.join(map(str, scores))}}}"
    if all(1 <= score <= 10 for score in scores):
        assert read_list(own, text, len(scores)) == scores
        pair = {"box": True, "scale": [1, 10]}
        if len(scores) == 2:
            first, second = scores
            expected = "C" if first == second else "A" if first > second else "B"
            assert read_pair(Reading.model_validate(pair), text) == (expected, (first, second))
    else:
        with pytest.raises(InvalidAnswer):
            read_list(own, text, len(scores))
    with pytest.raises(InvalidAnswer):
        read_list(own, text, len(scores) + 1)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["score_1", "score_2", "ranking", "x"]), st.integers(0, 7) | st.text(max_size=3))
)
def test_json_decides_as_its_numbers_say(values: dict[str, Any]) -> None:
    own = load_prompt_once("nemotron-genrm-json").verdict
    numbers = {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int) or re.fullmatch(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*", value)
    }
    first, second, ranking = (numbers.get(name, 0) for name in ("score_1", "score_2", "ranking"))
    expected = "A" if first > second else "B"
    if first == second:
        expected = "A" if 1 <= ranking <= 3 else "B" if 4 <= ranking <= 6 else ""
    is_valid = 1 <= first <= 5 and 1 <= second <= 5 and expected
    try:
        verdict = read_pair(own, f"Text {json.dumps(values)} text").verdict
    except InvalidAnswer:
        verdict = ""  # type: ignore[assignment]
    assert verdict == (expected if is_valid else "")


def test_an_expression_that_backtracks_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MATCH_SECONDS", 0.05)
    monkeypatch.setattr(finding, "TOO_SLOW", "the verdict takes too long")
    slow = Reading(regex=r"(a|aa)+$", values={"x": "A", "y": "B"})
    begun = time.thread_time()
    with pytest.raises(InvalidAnswer, match="takes too long"):
        read_pair(slow, "a" * 60 + "b")
    assert time.thread_time() - begun < 60 * finding.MATCH_SECONDS
    for _ in range(finding.MAX_SLOW - 2):
        with pytest.raises(InvalidAnswer):
            read_pair(slow, "a" * 60 + "b")
    with pytest.raises(RewardsError, match=r"'\(a\|aa\)\+\$', needs more than 0.05 s on each of 10 replies"):
        read_pair(slow, "a" * 60 + "b")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        *((call, "calls a part of itself") for call in ("((?R))", "(a|(?1)b)", r"\\(?R)(a)", "(?P<x>a|b(?&x))")),
        ("((((a{1000}){1000}){1000}){1000}){1000}", "is too long"),
        ("(?:a|b){10000000}(c)", "is too long"),
        ("x{0,3}(" + "a" * 900 + "){10000}", "is too long"),
        ("(" * 5_000 + "a" + ")" * 5_000, "is too long"),
        ("(a|" * 300 + "a" + ")" * 300, "is too long"),
        ("(|" * 300 + "a" + ")" * 300, "is not valid"),
    ],
)
def test_an_expression_without_a_bound_on_its_memory_is_refused_before_it_is_used(
    tmp_path: Path, expression: str, reason: str
) -> None:
    path = written(tmp_path, PAIR | {"verdict": {"regex": expression, "values": {"A": "A", "B": "B"}}})
    with pytest.raises(RecipeError, match=reason):
        load_prompt(path)


def test_parentheses_and_counts_of_ordinary_expressions_are_no_calls(tmp_path: Path) -> None:
    for expression in (r"\(?1?([AB])\)?", r"(?i)(?P<x>[AB]){1,3}x{0,9000}", r"\(\?R\) ([AB])", "(?-i:x)?([AB])"):
        verdict = {"regex": expression, "values": {"A": "A", "B": "B"}}
        assert load_prompt(written(tmp_path, PAIR | {"verdict": verdict})).verdict.regex == expression


def test_a_prompt_reads_no_file_but_those_of_its_folder(tmp_path: Path) -> None:
    folder, secret = tmp_path / "prompts", tmp_path / "secret.txt"
    (folder / "more").mkdir(parents=True)
    secret.write_text("{question} {responses}", encoding="utf-8")
    for inside in (folder / "more" / "mine.txt", folder / ".netrc"):
        inside.write_text("{question} {responses}", encoding="utf-8")
    (folder / "link.txt").symlink_to(secret)
    (folder / "inside.txt").symlink_to(folder / "more" / "mine.txt")

    def load(file: str, at: str = "") -> JudgePrompt:
        path = written(folder, PAIR | {"messages": [{"role": "user", "text": {"file": file}}]})
        return load_prompt(f"{path}{at}")

    for name in ("../secret.txt", str(secret), "link.txt", "more/../../secret.txt", ".netrc"):
        for at in ("", f"@{folder}"):
            with pytest.raises(RecipeError, match=r"is hidden or outside of .*; put a copy into that folder"):
                load(name, at)
    for name in ("more/mine.txt", "more/../more/mine.txt", "inside.txt", str(folder / "more" / "mine.txt")):
        assert load(name).messages[0].text == "{question} {responses}"
    assert load("secret.txt", f"@{tmp_path}").messages[0].text == "{question} {responses}"


@pytest.mark.heavy
def test_long_and_deep_replies_are_read_in_time() -> None:
    begun = time.thread_time()
    for text in ('{"a":' * 5_000, "{" * 5_000, "[RESULT] A" * 5_000):
        for name in OWN:
            with pytest.raises(InvalidAnswer):
                read_reply(load_prompt_once(name), text + "?", 2)
    assert time.thread_time() - begun < 30
