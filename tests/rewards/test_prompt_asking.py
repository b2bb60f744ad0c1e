"""What a judge with a prompt of its own sends: roles, several turns, a begun reply, and a rubric by a second model."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from asked_judges import ONE_BY_ONE, always, judge
from chat_server import Reply, Script, serve
from pluralbench_calls import LOCAL_MODEL, CallsError, ChatModel, ConnectionConfig
from pluralbench_rewards import Group, Question, RewardsError
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.prompts import JudgePrompt, load_prompt

TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Yes?"},
    {"role": "user", "content": "A quiet hobby?"},
]
PAIR = Question("q1", TURNS, ("Origami {question}.", "Drumming."))


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_turns_and_answers_have_roles_of_their_own(tmp_path: Path) -> None:
    with serve(always('{"score_1": 4, "score_2": 1, "ranking": 1}')) as server:
        [read] = judge(server, tmp_path, prompt=load_prompt("nemotron-genrm-json")).compare([PAIR])
    [body] = server.requests
    assert read.value == "A"
    assert body["messages"] == [
        *TURNS,
        {"role": "response_1", "content": PAIR.responses[0]},
        {"role": "response_2", "content": PAIR.responses[1]},
    ]


def test_a_begun_reply_is_continued_and_read_with_its_beginning(tmp_path: Path) -> None:
    prompt = load_prompt("boxed-assistant")
    begun = JudgePrompt.model_validate(
        prompt.model_dump()
        | {"messages": [*prompt.messages[:1], {"role": "assistant", "text": "The better is \\boxed{"}]}
    )
    replies = [Reply("Assistant 2}"), Reply("The better is \\boxed{Assistant 1}"), Reply("<think>Assistant 1}")]
    with serve(lambda _, number: replies[number]) as server:
        one = judge(server, tmp_path, prompt=begun, attempts=1, connection=ONE_BY_ONE)
        reads = [one.compare([replace(PAIR, responses=(PAIR.responses[0], text))])[0] for text in ("x", "y", "z")]
    body = server.requests[0]
    assert [read.value for read in reads] == ["B", "A", None], "some servers repeat the beginning"
    assert roles(body) == ["user", "assistant"]
    assert (body["add_generation_prompt"], body["continue_final_message"]) == (False, True)


OPENING = "Look at both. Then answer \\boxed{Assistant 1} or \\boxed{Assistant 2}.\n\n"


@pytest.mark.parametrize(
    ("verdict", "opening", "replies"),
    [
        ({}, OPENING, {"So \\boxed{Assistant 2}": "B", f"{OPENING}\\boxed{{Assistant 1}}": "A", "So.": None}),
        ({}, OPENING, {"\\boxed{Assistant 1} \\boxed{Assistant 2}": None, "not \\boxed{Assistant 1}": None}),
        ({"match": "first"}, OPENING, {"\\boxed{Assistant 2}, not \\boxed{Assistant 1}": "B"}),
        ({"match": "last"}, OPENING, {"\\boxed{Assistant 1}. \\boxed{Assistant 2}": "B", "So.": None}),
        ({}, "It is \\boxed{Assistant", {" 2}": "B", " 3}": None, " 1}, or \\boxed{Assistant 1}": "A"}),
        ({"after": "Verdict:"}, "Verdict: \\boxed{Assistant 1}? Verdict:", {"\\boxed{Assistant 2}": "B", "So.": None}),
        ({"after": "Verdict:"}, OPENING, {"Verdict: \\boxed{Assistant 2}": "B", "\\boxed{Assistant 2}": None}),
        ({}, f"<think>{OPENING}</think>", {"<think>So</think>\\boxed{Assistant 2}": "B", "<think>So": None}),
    ],
)
def test_only_what_the_model_writes_has_a_verdict(
    tmp_path: Path, verdict: dict[str, Any], opening: str, replies: dict[str, str | None]
) -> None:
    values = load_prompt("boxed-assistant").model_dump(exclude_unset=True)
    values["messages"] = [*values["messages"][:1], {"role": "assistant", "text": opening}]
    prompt = JudgePrompt.model_validate(values | {"verdict": values["verdict"] | verdict})
    for place, (text, expected) in enumerate(replies.items()):
        with serve(always(text)) as server:
            [read] = judge(server, tmp_path / str(place), prompt=prompt, attempts=1).compare([PAIR])
        assert (text, read.value) == (text, expected)


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs the embedded model")
def test_the_embedded_model_continues_a_begun_reply(tmp_path: Path) -> None:
    values = {
        "name": "mine",
        "messages": [
            {"role": "user", "text": "Count to twenty. {question} {responses}"},
            {"role": "assistant", "text": "1, 2, 3, 4,"},
        ],
        "verdict": {"regex": r"^1, 2, 3, 4, ?(\d+)", "values": {"5": "A", "6": "B"}},
    }
    model = ChatModel(provider="local", model=LOCAL_MODEL, temperature=0.0, max_tokens=8)
    ledger = tmp_path / "ledger.sqlite"
    one = Judge(model, ConnectionConfig(), ledger, attempts=1, prompt=JudgePrompt.model_validate(values))
    [read] = one.compare([Question("q", [{"role": "user", "content": ""}], ("", ""))])
    assert (read.value, read.reason) in {("A", ""), (None, "cut off at the token limit")}
    assert read.answer.text.startswith("1, 2, 3, 4, 5")


def notes_first(notes: Reply, verdict: str) -> Script:
    return lambda body, _: Reply(verdict) if "assistant" in roles(body) else notes


def test_the_model_writes_a_turn_before_its_verdict(tmp_path: Path) -> None:
    prompt, verdict = load_prompt("two-turns"), "[The Begin of Ranking Score]\n\\boxed{2}"
    with serve(notes_first(Reply("<think>hm</think>\nA is loud."), verdict)) as server:
        one = judge(server, tmp_path, prompt=prompt, connection=ONE_BY_ONE)
        reads = one.compare([PAIR], samples=2)
        assert [read.value for read in reads] == ["B", "B"]
        assert [roles(body) for body in server.requests] == [["user"]] * 2 + [["user", "assistant", "user"]] * 2
        assert server.requests[2]["messages"][1]["content"] == "A is loud."
        assert [len(read.calls) for read in reads] == [2, 2]
        again = judge(server, tmp_path, prompt=prompt).compare([PAIR], samples=2)
    assert again == reads
    assert len(server.requests) == 4, "all calls are recorded"


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        (Reply("A is", finish_reason="length"), "turn 1: cut off at the token limit"),
        (Reply("<think>A is"), "turn 1: thinking without an answer"),
        (Reply("<think>A</think>\n"), "turn 1: empty answer"),
    ],
)
def test_a_turn_that_is_not_complete_gives_no_verdict(tmp_path: Path, notes: Reply, reason: str) -> None:
    with serve(notes_first(notes, "[The Begin of Ranking Score]\n\\boxed{2}")) as server:
        [read] = judge(server, tmp_path, prompt=load_prompt("two-turns"), attempts=2).compare([PAIR])
    assert (read.value, read.reason, read.attempts) == (None, reason, 2)
    assert [roles(body) for body in server.requests] == [["user"]] * 2


def with_writer(one: Judge) -> Judge:
    return replace(one, rubric_writer=replace(one, model=one.model.model_copy(update={"model": "writer"}), prompt=None))


def test_a_second_model_writes_one_rubric_for_all_pairs_and_orders_of_a_question(tmp_path: Path) -> None:
    def script(body: dict[str, Any], _: int) -> Reply:
        if body["model"] == "writer":
            return Reply(f"1. Be quiet {{person}} {len(body['messages'][0]['content'])} [Hard Rule]")
        return Reply("Winner: Response A")

    first, second = PAIR.responses
    others = [PAIR, replace(PAIR, responses=(second, first)), replace(PAIR, responses=(first, "Chess."))]
    other = replace(PAIR, id="q2", prompt=TURNS[:2])
    with serve(script) as server:
        one = with_writer(judge(server, tmp_path, prompt=load_prompt("rubric-winner")))
        reads = one.compare([*others, other])
    models = [body["model"] for body in server.requests]
    assert (models.count("writer"), models.count("judge-1")) == (2, 4)
    asked = [body["messages"][0]["content"] for body in server.requests if body["model"] == "judge-1"]
    assert all("1. Be quiet {person}" in text for text in asked)
    assert [read.value for read in reads] == ["A"] * 4
    assert [len(read.calls) for read in reads] == [2] * 4


def test_without_a_rubric_nothing_is_decided(tmp_path: Path) -> None:
    with serve(
        lambda body, _: Reply("", finish_reason="length") if body["model"] == "writer" else Reply("A")
    ) as server:
        one = judge(server, tmp_path, prompt=load_prompt("rubric-winner"), attempts=2)
        [read] = with_writer(one).compare([PAIR])
        assert (read.value, read.reason) == (None, "no rubric: cut off at the token limit")
        assert {body["model"] for body in server.requests} == {"writer"}
        with pytest.raises(
            RewardsError, match="The prompt rubric-winner needs a rubric; name the model that writes it"
        ):
            one.compare([PAIR])
        [read] = one.compare([replace(PAIR, variables={"rubric": "Be quiet."})])
    assert "Be quiet." in server.requests[-1]["messages"][0]["content"]


def test_a_second_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply("no such model", status=404) if body["model"] == "writer" else Reply("Winner: Response A")

    with serve(script) as server, pytest.raises(CallsError, match="has no model 'writer'"):
        with_writer(judge(server, tmp_path, prompt=load_prompt("rubric-winner"))).compare([PAIR])


def test_a_variable_without_a_value_is_named_with_its_item(tmp_path: Path) -> None:
    values = {
        "name": "mine",
        "messages": [{"role": "user", "text": "{question} {responses} by {reference}"}],
        "verdict": {"box": True, "values": {"1": "A", "2": "B"}},
    }
    with serve(always("\\boxed{1}")) as server:
        one = judge(server, tmp_path, prompt=JudgePrompt.model_validate(values))
        with pytest.raises(RewardsError, match=r"prompt mine shows \{reference\}, which the item q1 does not have"):
            one.compare([PAIR])
        [read] = one.compare([replace(PAIR, variables={"reference": "Chess."})])
    assert read.value == "A"
    assert len(server.requests) == 1


def test_a_judge_with_a_prompt_of_one_answer_scores_like_a_reward_model(tmp_path: Path) -> None:
    replies = {"Origami.": "<score>8</score>", "Drumming.": "<score>2.5</score>", "Chess.": "<score>12</score>"}
    with serve(lambda body, _: Reply(next(replies[text] for text in replies if text in str(body)))) as server:
        one = judge(server, tmp_path, prompt=load_prompt("score-tag"), attempts=1)
        scored = one.score([Group("q", TURNS, [*replies])])
    assert scored.scores[0][:2] == [8.0, 2.5]
    assert scored.reasons == ["a score off the scale"]


def test_requests_have_the_sampling_of_the_model(tmp_path: Path) -> None:
    model = ChatModel(provider="127.0.0.1", model="m", temperature=0.6, extra={"top_k": 20})
    with serve(always("?")) as server:
        one = judge(server, tmp_path, model=model.model_dump(), prompt=load_prompt("letter"), temperature_step=0.0)
        [read] = replace(one, attempts=3).compare([PAIR])
    assert (read.value, read.attempts) == (None, 3)
    assert [(body["temperature"], body["top_k"]) for body in server.requests] == [(0.6, 20)] * 3
