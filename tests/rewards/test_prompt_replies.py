"""Replies in the format of every prompt of the package: right, cut, empty, malformed, and with two verdicts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asked_judges import judge, read_reply
from chat_server import Reply, serve
from foreign_prompts import FOREIGN, write_sources
from pluralbench_calls import ParsedReply
from pluralbench_rewards import Question
from pluralbench_rewards.prompts import JudgePrompt, load_prompt, shipped_prompts

QUESTION = [{"role": "user", "content": "Name a quiet hobby."}]
TURNS = [*QUESTION, {"role": "assistant", "content": "Alone?"}, {"role": "user", "content": "Yes."}]
TEXTS = ("Origami.", "Drumming 鼓.", "Knitting {question}.")
THINKING = "<think>Two ways to see it: {}.</think>\n"


class Format(NamedTuple):
    """Replies in a format; `|` adds valid ones.

    Attributes:
        valid: What each reply means.
        unclear: Replies that say no verdict, two, or one off the scale.
    """

    valid: Mapping[str, Any]
    unclear: Sequence[str]

    def __or__(self, more: Mapping[str, Any]) -> "Format":
        return self._replace(valid={**self.valid, **more})


def letters(form: str, *, names: str = "AB", tail: str = "") -> Format:
    """A format that names one of two responses."""
    first, second = (form.format(name) + tail for name in names)
    other = form.format("C") + tail
    return Format({f"Because.\n{first}": "A", second: "B"}, [f"{first} {second} either", "Because.", other])


def boxes(scores: str, ranking: str) -> str:
    return (
        f"[The Begin of Individual Scores]\n\\boxed{{{scores}}}\n[The End of Individual Scores]\n"
        f"[The Begin of Ranking Score]\n\\boxed{{{ranking}}}\n[The End of Ranking Score]"
    )


ANSWER = letters("<answer>{}</answer>") | {"<answer> [[A]] </answer>": "A", "<answer>**Assistant B**.</answer>": "B"}
BRACKETS = letters("[[{}]]")
NUMBER = Format(
    {
        "<answer>-2</answer>": "A",
        "Better.\n<answer> 1 </answer>": "B",
        "<answer>+3</answer>": "B",
        "<answer>−2</answer>": "A",
    },
    ["<answer>0</answer>", "<answer>4</answer>", "<answer>-1</answer><answer>2</answer>", "-2"],
)
RESULT = Format(
    {"Fine. [RESULT] A": "A", "[RESULT] A is wrong. [RESULT] (B)\n": "B", "[Result] a": "A", "**[RESULT]** [B]": "B"},
    ["[RESULT] A, or so", "[RESULT] C", "A", "[RESULT] A or B"],
)
SCORE = Format(
    {
        "[RESULT] [4]": 4.0,
        "[Result]: 4 out of 5": 4.0,
        "Fine. [RESULT] 4": 4.0,
        "[RESULT] (5)": 5.0,
        "[RESULT] 2 / 5": 2.0,
        "Of [RESULT] 4, no: [RESULT] 3": 3.0,
    },
    ["[RESULT] 6", "[RESULT] 4 is fine", "4", "[RESULT] 4.5", "[RESULT] five"],
)
BOLD = letters("**Reasoning:** so. **Result:** {}") | dict.fromkeys(
    ("**Result**: A", "**Result:** **A**", "**Result:** a", "**Result: Response A**", "**Result:**\n\nA."), "A"
)
OUTPUT = letters("Output ({})", names="ab")
PAIR_BOX = Format(
    {"Criteria.\n\\boxed{7, 4}": "A", "\\boxed{3,10}": "B", "\\boxed{5, 5}": "C"}
    | dict.fromkeys(("\\boxed{3，8}", "\\boxed{3、8}", "\\boxed{3, \\quad 8}", "\\boxed{[3, 8]}", "\\boxed{3~8}"), "B"),
    ["\\boxed{7}", "\\boxed{7, 4, 1}", "\\boxed{11, 4}", "\\boxed{0, 4}", "\\boxed{A, B}", "7, 4", "\\boxed{7, 4"],
)
FORMATS: dict[str, Format] = {
    "letter": BRACKETS,
    "rm-r1": letters("<type>Chat</type><answer>[[{}]]</answer>"),
    "rm-r1-distill": letters("<answer>[[{}]]</answer>"),
    "skywork-critic": BRACKETS,
    "rise-judge": BRACKETS,
    "answer-letter": ANSWER,
    "think-rm": ANSWER,
    "answer-number": NUMBER,
    "think-rm-multiclass": NUMBER,
    "boxed-assistant": Format(
        {"So \\boxed{Assistant 1}": "A", "\\boxed{\\text{Assistant 2}}": "B", "\\boxed{Assistant~2}": "B"},
        ["\\boxed{Assistant 3}", "\\boxed{Assistant 1} or \\boxed{Assistant 2}", "Assistant 1", "\\boxed{}"],
    ),
    "boxed-pair": PAIR_BOX,
    "boxed-list": Format(
        {"Criteria.\n\\boxed{7, 4, 10}": [7.0, 4.0, 10.0], "\\boxed{1 2 2}": [1.0, 2.0, 2.0]},
        ["\\boxed{7, 4}", "\\boxed{7, 4, 11}", "\\boxed{7, 4, x}", "\\boxed{1,2,3} \\boxed{1,2,4}", "7, 4, 10"],
    ),
    "nemotron-genrm": Format(
        {boxes("4, 3", "5"): "A", boxes("2, 5", "1"): "B", boxes("3, 3", "2"): "A", boxes("3, 3", "6"): "B"},
        [
            boxes("4, 3", "1") + boxes("3, 4", "1"),
            boxes("6, 3", "1"),
            boxes("3", "1"),
            boxes("3, 3", "7"),
            boxes("3, 3", "x"),
            "\\boxed{4, 3}",
        ],
    ),
    "nemotron-genrm-one": Format({boxes("4", ""): 4.0}, [boxes("4, 3", ""), boxes("0", ""), "\\boxed{4}"]),
    "nemotron-genrm-json": Format(
        {
            '{"score_1": 4, "score_2": 3, "ranking": 6}': "A",
            'Well:\n```json\n{"score_1": "2", "score_2": "4", "ranking": 5}\n```': "B",
            '{"score_1": 3, "score_2": 3, "ranking": 4}': "B",
            '{"rubric_evaluations": [{"x": 1}], "overall": {"score_1": 4, "score_2": 2, "ranking": 1}}': "A",
            '{"overall": {"score_1": 3, "score_2": 3, "ranking": 5}}': "B",
            '{"overall": "A is good", "score_1": 4, "score_2": 3, "ranking": 6}': "A",
        },
        [
            '{"score_1": 4, "ranking": 1}',
            '{"overall": {"score_1": 4, "score_2": 3}} {"overall": {"score_1": 2, "score_2": 3}}',
            '{"score_1": 4, "score_2": 3, "overall": {"score_1": 4}}',
            '{"score_1": 4, "score_2": 6, "ranking": 1}',
            '{"score_1": 3, "score_2": 3}',
            '{"score_1": 4, "score_2": 3, "ranking": 6',
            '{"score_1": true, "score_2": 3, "ranking": 1}',
            '{"score_1": 4, "score_2": 3} {"score_1": 2, "score_2": 3}',
        ],
    ),
    "nemotron-principle": Format(
        {"It is.\nFinal Judgement: Yes": 1.0, "final judgement: no": 0.0}
        | dict.fromkeys(("**Final Judgement:** Yes", "Final Judgment: **Yes**."), 1.0),
        ["Yes", "Final Judgement: maybe", "Final Judgement: Yes. Final Judgement: No"],
    ),
    "two-turns": Format(
        {boxes("", "1"): "A", "[The Begin of Ranking Score]\n\\boxed{ 2 }": "B"},
        [boxes("", "3"), boxes("", "1") + boxes("", "2"), "\\boxed{1}", boxes("", "1 or 2")],
    ),
    "score-tag": Format(
        {
            "<score>7/10</score>": 7.0,
            "<score>7.5 out of 10</score>": 7.5,
            "Good. <score>7.5</score>": 7.5,
            "<score> 10 </score>": 10.0,
            "<score>0</score>": 0.0,
        },
        ["<score>11</score>", "<score>good</score>", "7.5", "<score>7</score><score>8</score>", "<score>7"],
    ),
    "score-tags": Format(
        {
            "So. <score_A>7.5</score_A> <score_B>4</score_B>": "A",
            "<score_A>3/10</score_A>\n<score_B> 10 </score_B>": "B",
            "<score_B>5.0</score_B><score_A>5</score_A>": "C",
        },
        [
            "<score_A>7</score_A>",
            "<score_A>7</score_A><score_B>11</score_B>",
            "<score_A>7</score_A><score_A>8</score_A><score_B>4</score_B>",
            "<score>7</score>",
        ],
    ),
    "result-score": SCORE,
    "prometheus-absolute": SCORE,
    "result-letter": RESULT,
    "prometheus-relative": RESULT,
    "bold-result": BOLD,
    "selene": BOLD,
    "json-choice": Format(
        {
            '{"Choice": "Model A"}': "A",
            '{"Choice": "[Model A]"}': "A",
            '{"Choice": "B"}': "B",
            'Because {}.\n```json\n{"Choice": "model b"}\n```': "B",
        },
        [
            '{"Choice": "Model C"}',
            '{"choice": "Model A"}',
            '{"Choice": "Model A"',
            '{"Choice": "Model A", "Choice": "Model B"}',
            "Model A",
            '{"Choice": null}',
        ],
    ),
    "con-j": Format(
        {'{"原因": "好", "更好的回答": 1}': "A", '{"更好的回答": "２"}': "B"},
        ['{"更好的回答": 3}', "更好的回答: 1", '{"更好的回答": 1} {"更好的回答": 2}'],
    ),
    "output-letter": OUTPUT,
    "offsetbias": OUTPUT,
    "rubric-winner": Format(
        {
            "Gate: both.\nWinner: Response A": "A",
            "**Winner: Response B**": "B",
            "Winner: A": "A",
            "### Final Winner: **Response B**": "B",
            "Winner: Response A\nWinner: Response B": "B",
        },
        ["Response A", "Winner: Response C", "The winner: Response A", "Winner: Response A\nWinner: Response A or B"],
    ),
    "history-scores": Format(
        {
            '<JSON_START>{"rationale": "a\nb", "better_response": {"response_1": 9, "response_2": 10}}<JSON_END>': "B",
            '<JSON_START>{"better_response": {"response_1": "9", "response_2": "10"}}<JSON_END>': "B",
            '<JSON_START>{"better_response": {"response_1": 8.5, "response_2": 2}}': "A",
            '<JSON_START>{"better_response": {"response_1": 4, "response_2": 4}}<JSON_END>': "C",
        },
        [
            '<JSON_START>{"scores": {"response_1": 9, "response_2": 2}}<JSON_END>',
            '<JSON_START>{"better_response": {"response_1": 9}}<JSON_END>',
            '<JSON_START>{"better_response": {"response_1": 11, "response_2": 2}}<JSON_END>',
            '<JSON_START>{"better_response": "response_1"}<JSON_END>',
            '{"better_response": {"response_1": 9, "response_2": 2}}',
        ],
    ),
    "pick-letter": Format(
        {"So [[C]]": [0.0, 0.0, 1.0], "[[A]]": [1.0, 0.0, 0.0]}, ["[[D]]", "[[A]] or [[B]]", "A", "[[1]]"]
    ),
    "rating-end": Format(
        {"Good: 8": 8.0, "Of ten points.\n\n**10**\n": 10.0, "Rating (1-10): 7": 7.0},
        ["8.", "0", "11", "8/10", "3.5", "eight"],
    ),
}


def ask(prompt: JudgePrompt, replies: Sequence[Reply], folder: Path) -> list[ParsedReply[Any]]:
    """What a judge that replies this, each to a question of its own, is understood to say."""
    variables = [{"rubric": "Be quiet.", "history": "Chose silence.", "reference": "Chess."}] * len(replies)
    prompts = [[*TURNS[:-1], {"role": "user", "content": f"case {number}"}] for number in range(len(replies))]

    def script(body: dict[str, Any], _: int) -> Reply:
        texts = [message["content"] for message in body["messages"]]
        case = int(next(found for text in texts if (found := re.search(r"case (\d+)", text)))[1])
        is_first_turn = any(message.reply for message in prompt.messages) and "Some notes." not in texts
        return Reply("Some notes.") if is_first_turn else replies[case]

    with serve(script) as server:
        asked = judge(server, folder, prompt=prompt, attempts=1)
        count = {"pairwise": 2, "pointwise": 1, "listwise": 3}[prompt.protocol]
        questions = [
            Question("q", turns, TEXTS[:count], variables=own) for turns, own in zip(prompts, variables, strict=True)
        ]
        if prompt.protocol == "pairwise":
            return [*asked.compare(questions)]
        if prompt.protocol == "listwise":
            return [*asked.score_lists(questions)]
        return [rating for ratings in asked.rate(questions) for rating in ratings]


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of the form in which others publish their prompts."""
    return write_sources(tmp_path_factory.mktemp("sources"))


def prompt_of(name: str, sources: Path) -> JudgePrompt:
    return load_prompt(f"{name}@{sources}" if name in FOREIGN else name)


def test_every_prompt_has_replies_here() -> None:
    assert sorted(FORMATS) == shipped_prompts()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_replies_are_read_as_the_format_says(name: str, sources: Path) -> None:
    prompt = prompt_of(name, sources)
    for reply, meaning in FORMATS[name].valid.items():
        wanted = (
            {"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.5, 0.5]}.get(meaning, meaning)
            if isinstance(meaning, str)
            else meaning
        )
        wanted = wanted if isinstance(wanted, list) else [wanted]
        count = 3 if prompt.protocol == "listwise" else 2
        for text in (reply, THINKING.format(" or ".join(FORMATS[name].valid)) + reply):
            assert read_reply(prompt, text, count) == wanted, text


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_nothing_but_a_verdict_counts(name: str, sources: Path, tmp_path: Path) -> None:
    prompt = prompt_of(name, sources)
    [good, *_] = FORMATS[name].valid
    unclear = [Reply(text) for text in [*FORMATS[name].unclear, f"<think>{good}", f"<think>{good}</think>"]]
    incomplete = [Reply(good, finish_reason="length"), Reply(""), Reply(None, refusal="No.")]
    valid, *others = ask(prompt, [Reply(good), *unclear, *incomplete], tmp_path)
    assert (valid.reason, valid.value is None) == ("", False)
    texts = [reply.text for reply in [*unclear, *incomplete]]
    assert [text for text, read in zip(texts, others, strict=True) if read.value is not None or not read.reason] == []
    assert [bool(re.search("cut off|empty|refused", read.reason)) for read in others[-3:]] == [True] * 3
