"""Replies that say both, neither or no in the right form: no prompt of the package guesses a verdict."""

from collections.abc import Callable
from pathlib import Path

import pytest
from asked_judges import read_reply
from foreign_prompts import FOREIGN, write_sources
from pluralbench_calls import InvalidAnswer, Rule, parse_choice, parse_pick, parse_rating
from pluralbench_rewards.prompts import load_prompt, shipped_prompts

# Each prompt's verdict with "@" for what it says, and two things that it may say.
FORMS: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(
        ("letter", "pick-letter", "rm-r1", "rm-r1-distill", "skywork-critic", "rise-judge"), ("[[@]]", "A", "B")
    ),
    **dict.fromkeys(("answer-letter", "think-rm"), ("<answer>@</answer>", "A", "B")),
    **dict.fromkeys(("answer-number", "think-rm-multiclass"), ("<answer>@</answer>", "-1", "1")),
    **dict.fromkeys(("bold-result", "selene"), ("**Reasoning:** so.\n\n**Result:** @", "A", "B")),
    **dict.fromkeys(("result-letter", "prometheus-relative"), ("[RESULT] @", "A", "B")),
    **dict.fromkeys(("result-score", "prometheus-absolute"), ("[RESULT] @", "4", "3")),
    **dict.fromkeys(("output-letter", "offsetbias"), ("Output (@)", "a", "b")),
    "boxed-assistant": ("\\boxed{Assistant @}", "1", "2"),
    "boxed-pair": ("\\boxed{@}", "7, 4", "4, 7"),
    "boxed-list": ("\\boxed{@}", "7, 4, 4", "4, 7, 4"),
    "two-turns": ("[The Begin of Ranking Score]\n\\boxed{@}\n[The End of Ranking Score]", "1", "2"),
    "nemotron-genrm": ("[The Begin of Individual Scores]\n\\boxed{@}\n[The End of Individual Scores]", "4, 3", "2, 3"),
    "nemotron-genrm-one": ("[The Begin of Individual Scores]\n\\boxed{@}\n[The End of Individual Scores]", "4", "3"),
    "nemotron-genrm-json": ('{"overall": {"score_1": @, "score_2": 3, "ranking": 1}}', "4", "2"),
    "nemotron-principle": ("It is so.\nFinal Judgement: @", "Yes", "No"),
    "history-scores": ('<JSON_START>{"better_response": {"response_1": @, "response_2": 5}}<JSON_END>', "9", "2"),
    "score-tag": ("<score>@</score>", "7.5", "2"),
    "score-tags": ("<score_A>@</score_A>\n<score_B>5</score_B>", "7.5", "2"),
    "rating-end": ("Clear and useful.\n@", "8", "3"),
    "json-choice": ('{"Choice": "Model @"}', "A", "B"),
    "con-j": ('{"更好的回答": "@"}', "1", "2"),
    "rubric-winner": ("Gate: both.\nWinner: Response @", "A", "B"),
}
HEADED = {
    "two-turns",
    "nemotron-genrm",
    "nemotron-genrm-one",
    "nemotron-principle",
    "history-scores",
    "bold-result",
    "selene",
}
HEADED |= {"rubric-winner"}
"""Prompts whose verdict has a line of its own, so that words before it are no part of its sentence."""


def cases(table: str) -> list[str]:
    """Return the texts between bars and line ends; ⏎ is a line end in one."""
    return [text.replace("⏎", "\n") for text in table.strip().replace("\n", " | ").split(" | ")]


# In the place of a verdict: {a} and {b} are the two.
INSIDE = cases("""
{a} or {b} | {a}/{b} | {a} / {b} | {a} and {b} are equally good | {a} & {b} | {a} = {b} | {a}, or {b}
{a} oder {b} | {a} 或 {b} | {a} und {b} | {a} et {b} | {a} y {b} | {a}与{b}一样好 | neither {a} nor {b}
not {a} | Not {a} | either | neither | both | tie | a tie | A tie | it depends | none | unclear
{a} is not the better one | {a} is worse than {b}, so {b} | {a} or so | probably {a}? | {a}? | no doubt, {b}
{a} (or {b}) | {a} > {b} > {a} | C | D | Z | 平局 | 都好 | 不是{a} | nicht {a} | pas {a} | no {a} | keine
ninguna | Response {a} or Response {b} | {a} tie {b} | both {a} and {b} | {a} isn't better | {a} 不更好
undecided | ? | ... | – | N/A | null
""")

# Around a verdict that is complete: {A} and {B} are the two.
AROUND = cases("""
Not {A} | It is not {A}. | not {A} but | I don't think {A} wins. | I don’t think {A} | Never {A} | neither {A}
I doubt {A} | {A}? | {A} or {B} | {A} and {B} | {A}/{B} | {A} {B} | {A}, no: {B}, no: {A} | {A}⏎{B}
rather than {A} | instead of {A} | If the tone counts {A} | unless {A} | 不是{A} | 并非{A} | 我不认为{A}
nicht {A} | Ich denke nicht dass {A} | Je ne pense pas que {A} | No es {A} | não é {A} | не {A} | ليس {A}
≠ {A} | != {A} | ❌ {A} | hardly {A} | cannot be {A} | unlikely {A}
""")

# In the place of a score: nothing that is one number of the scale.
NUMBERS = cases("""
7 or 8 | 7-8 | 7–8 | 7 to 8 | between 7 and 8 | 7~8 | -3 | −3 | -2 | -10 | 4,5 | 8,5 | 11 | 100 | 1e1 | seven
sieben | 八 | VII | 7 von 20 | 7 of 20 | 3/4 | 7/20 | 7 out of 20 | step 3 | GPT-4 | x10 | A9 | US$5 | $5 | #5
满分10 | 1 to 10 | 1-10 | on a scale of 1 to 10 | 7..8 | 5% | 7±1 | 7+ | >5 | <5 | ~5 | about 5 | 5? | not 5
5 5 5 5 | 5.5.5 | 5th | 5 stars | inf | nan | true | True | null | None | "" | ٥ to ٦ | ⑤ | 5²
""")

# At the end of a sentence, where a rating is.
ENDS = cases("""
I would rate this 7 out of 10 | I would rate this 8 / 10 | 8/10 | Ich gebe 8 von 10 | Je donne 8 sur 10
Le doy un 8 de 10 | 满分10 | 8分，满分10 | On a scale of 1 to 10 | Score: -2 | Rating: −3 | -3 | -10 | 4,5 | 8,5
It is a 7-8 | Rating: 7-8 | Rating: 7 or 8 | 7 or 8 | from 7 to 8 | as good as GPT-4 | US$5 | it fails in step 3
x10 | A9 | No. 5 | 3.5 | Rating: 3.5 | 10:8 | 4 + 4 = 8 | it does not deserve a 10 | Rating: 11 | 0 | eight | 8?
8% | nearly all of the top 10 | see page 4 | in 1 of 3 | better than 9 | 8th | 8 points | (8 | 7, 8 | 7; 8
7 & 8 | at most 5 | not 5 | 5 or less
""")

NUMERIC = {name for name, (_, first, _) in FORMS.items() if first[-1].isdigit() and name != "boxed-assistant"} - {
    "con-j"
}
TWICE = {"{A} {B}", "{A}\n{B}", "{A}, no: {B}, no: {A}"}  # of which the one at the end counts
FITTING = {
    "answer-number": {"-3", "−3", "-2"},
    "boxed-pair": {"4,5", "8,5", "7~8"},
    "nemotron-genrm": {"4,5", "7~8"},
    "nemotron-genrm-one": {"~5"},
    "nemotron-genrm-json": {"1e1"},
    "history-scores": {"1e1"},
    "result-letter": TWICE,
    "result-score": TWICE,
    "pick-letter": {"C"},
}
FITTING |= {"think-rm-multiclass": FITTING["answer-number"]}
FITTING |= {"prometheus-relative": TWICE, "prometheus-absolute": TWICE}
"""What is a verdict after all."""


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sources(tmp_path_factory.mktemp("sources"))


def doubtful(name: str) -> list[str]:
    """Replies in the form of a prompt that do not say one verdict."""
    form, first, second = FORMS[name]
    a, b = form.replace("@", first), form.replace("@", second)
    if name == "rating-end":
        return [f"Clear and useful{stop} {end}" for end in ENDS for stop in (":", ".", ",", "\n")]
    numbers = [
        form.replace("@", number) for number in NUMBERS if name in NUMERIC and number not in FITTING.get(name, ())
    ]
    texts = [text.replace("{a}", first).replace("{b}", second) for text in INSIDE if text not in FITTING.get(name, ())]
    around = [] if name in HEADED else [text for text in AROUND if text not in FITTING.get(name, ())]
    return [
        *(form.replace("@", text) for text in texts),
        *numbers,
        *(text.replace("{A}", a).replace("{B}", b) for text in around),
    ]


def test_every_prompt_has_a_form() -> None:
    assert sorted(FORMS) == shipped_prompts()


@pytest.mark.parametrize("name", sorted(FORMS))
def test_no_prompt_guesses_a_verdict(name: str, sources: Path) -> None:
    prompt = load_prompt(f"{name}@{sources}" if name in FOREIGN else name)
    form, *both = FORMS[name]
    count = 3 if prompt.protocol == "listwise" else 2
    first, second = (read_reply(prompt, form.replace("@", one), count) for one in both)
    assert first > second, "the forms are read"
    read = {}
    for reply in doubtful(name):
        try:
            read[reply] = read_reply(prompt, reply, count)
        except InvalidAnswer:
            continue
    assert read == {}


PARSERS: dict[str, tuple[str, Callable[[str, Rule], object]]] = {
    "[[A]]": ("[[B]]", parse_choice),
    "[[7]]": ("[[8]]", parse_rating),
    "[[2]]": ("[[1]]", lambda reply, rule: parse_pick(reply, 3, rule)),
}
MORE = cases("""
{A}⏎⏎Note: {B} would be better if short. | Verdict: {A}⏎I would also accept {B}. | {A} would not win
{A} cannot win | {A} is worse. | {A} n'est pas | {A} ist nicht besser | {A} 并不更好 | {A}不是更好的
{A}ではない | {A}가 아니다 | Neither; {A} isn't better. | B is better than {A} | whether {A}
""")

CLEAR = cases("""
{A} | **{A}** | Since the other does not address it, {A} | 综上所述，我认为{A}更好。 | 我非常喜欢{A} | {A}非常好
毫无疑问{A} | 不过{A}更好 | B 不错，但{A}更好 | There is no doubt that {A} is better
{A} is better than the rest because it does not ramble | Final: {A} (not by much) | B is not good so {A}
{A} and I am sure | Se prefiere la segunda: {A}, por ser la que no miente | {A}⏎Not that the other is bad
Answer: {A}, not B | in my view {A} over B | Die bessere Antwort ist {A}. | La plus utile est {A}.
I'd go with {A} as B isn't right | {A} would be the better choice for her
No geral {A} | com base no contexto {A} | Als bessere sehe ich {A} | {A} 不错 | لا شك أن {A} أفضل
""")


RULES: tuple[Rule, ...] = ("strict", "lenient")


@pytest.mark.parametrize("marker", PARSERS)
def test_the_default_parsers_guess_no_verdict_either(marker: str) -> None:
    other, parse = PARSERS[marker]
    read = {}
    for text in {*AROUND, *MORE} - {"{A}\n{B}"}:  # which has a verdict alone in its last line
        for rule in RULES:
            reply = text.replace("{A}", marker).replace("{B}", other)
            try:
                read[reply, rule] = parse(reply, rule)
            except InvalidAnswer:
                continue
    assert read == {}


@pytest.mark.parametrize("marker", PARSERS)
def test_what_is_said_around_a_clear_verdict_changes_nothing(marker: str) -> None:
    _, parse = PARSERS[marker]
    wide = marker.translate({code - 0xFEE0: code for code in range(0xFF01, 0xFF5F)})
    for text in CLEAR:
        for written in (marker, wide, marker.replace("[[", "【【").replace("]]", "】】"), wide.replace("［", "[")):
            assert parse(text.replace("{A}", written), "lenient") == parse(marker, "strict"), text
    assert parse(f"Because.\n{wide}", "strict") == parse(marker, "strict")


def test_a_prompt_reads_a_clear_verdict_whatever_is_said_around_it() -> None:
    for text in CLEAR:
        assert read_reply(load_prompt("letter"), text.replace("{A}", "[[A]]"), 2) == [1.0, 0.0], text
