"""Responses that go before anybody is asked: by which rule, and that nothing else goes."""

from typing import Any

import polars as pl
import pytest
from build_chinese.recipe import Screening
from build_chinese.screening import (
    DROPS,
    EMPTY,
    GARBLED,
    JAPANESE,
    LONG,
    LONG_FOR_PROMPT,
    NOT_CHINESE,
    REFUSAL,
    REPEATED,
    TOO_FEW,
    dropped_by,
    screen,
)
from chinese_prompts import prompts_of, sample_prompts
from hypothesis import given, settings
from hypothesis import strategies as st

FINE = "把锅洗干净，擦干水分，再薄薄地抹一层油，放在通风的地方就不会生锈了。"
OTHERS = [FINE, "用完马上擦干，别泡在水里，这样最省事，也最不容易生锈。"]


def rule_on(text: str, *, category: tuple[str, str] = ("知识", "生活常识"), **rules: Any) -> str | None:
    """The rule that a response breaks among others that break none."""
    _, drops = screen(prompts_of({"p": [*OTHERS, text]}, category), Screening(**rules))
    assert set(drops["response"]) <= {"p-c"}
    return drops["rule"][0] if drops.height else None


def test_the_sample_loses_what_its_readme_says_and_nothing_else() -> None:
    kept, drops = screen(sample_prompts("responses.jsonl", "screened.jsonl"), Screening())
    assert kept.equals(sample_prompts())
    assert drops.schema == DROPS
    assert dict(drops.select("response", "rule").iter_rows()) == {
        "p02-x": LONG,
        "p06-x": NOT_CHINESE,
        "p10-x": GARBLED,
        "p14-x": GARBLED,
        "p17-x": REFUSAL,
        "p20-x": EMPTY,
        "p25-x": REPEATED,
        "p39-x": NOT_CHINESE,
    }
    values = dict(drops.select("response", "value").iter_rows())
    assert values["p02-x"] == "2533 characters, more than 600"
    assert values["p06-x"] == "1.3 %"
    assert values["p10-x"] == "100.0 %"
    assert values["p17-x"] == "抱歉，我无法回答"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", EMPTY),
        (FINE[:10] + "\ufffd" * 3 + FINE, GARBLED),
        (FINE.encode().decode("latin-1"), GARBLED),
        (FINE * 4, REPEATED),
        ("抱歉，我无法回答这个问题。", REFUSAL),
        ("作为一个人工智能语言模型，我没有办法帮您完成。", REFUSAL),
        ("I'm sorry, but I can't assist with that request.", REFUSAL),
        ("I cannot help with this.", REFUSAL),
        ("Dry the pan at once, and rub a little oil into it.", NOT_CHINESE),
        ("好的。Dry the pan at once, and rub a little oil into it.", NOT_CHINESE),
    ],
)
def test_what_goes(text: str, rule: str) -> None:
    assert rule_on(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "油。",
        "3.14 × 2 = 6.28",
        "用`pip install some-long-package-name`安装，再运行一次。",
        "这样写：\n```python\n" + "total = sum(value for value in values)\n" * 2 + "```\n最后打印结果就可以了。",
        "这样写：\n```python\nfor value in values:\n    print(value, end='')",  # cut off within the code
        "由公式 $$\\int_a^b f(x)\\,dx = F(b) - F(a)$$ 可得答案。",
        "\\begin{align*} f(x) &= ax + b \\\\ g(x) &= cx \\end{align*} 联立求解。",
        "古诗：床前明月光，疑是地上霜。举头望明月，低头思故乡。",
        "他写道：“对不起，我不能参加你的婚礼了。”",
        "Ça va, été, naïve：这些法语词的意思分别是还好、夏天和天真，读音要多练习。",
    ],
)
def test_what_stays(text: str) -> None:
    assert rule_on(text) is None


def test_a_refusal_stays_where_it_may_be_right_and_where_an_answer_follows() -> None:
    refusal = "抱歉，我不能提供开锁的方法。"
    assert rule_on(refusal) == REFUSAL
    assert rule_on(refusal, category=("安全", "违法请求")) is None
    assert rule_on(refusal, refusals_allowed=[]) == REFUSAL
    assert rule_on(refusal, category=("安全", "违法请求"), refusals_allowed=[]) == REFUSAL
    assert rule_on(refusal, refusals_allowed=["生活常识"]) is None  # a sub-category
    assert rule_on(refusal, refusals=False) is None
    assert rule_on(refusal + FINE + OTHERS[1] * 2, refusal_length=100) is None


def test_other_languages_stay_in_categories_that_ask_for_them() -> None:
    english = "Dry the pan at once, and rub a little oil into it."
    assert rule_on(english, other_languages=["翻译"]) == NOT_CHINESE
    assert rule_on(english, category=("翻译", "中译英"), other_languages=["翻译"]) is None


def numbered(characters: int) -> str:
    """A text of that length without repetition."""
    return "".join(chr(0x4E00 + number * 7 % 20000) for number in range(characters))


def test_lengths_are_compared_with_the_set_and_with_the_prompt() -> None:
    usual = {f"q{number}": [numbered(100 + number % 7), numbered(98)] for number in range(40)}
    prompts = prompts_of(usual | {"long": [numbered(900), numbered(95), numbered(105)]})
    _, drops = screen(prompts, Screening())
    assert drops.select("response", "rule").rows() == [("long-a", LONG)]
    _, drops = screen(prompts, Screening(longest=0))
    assert drops.rows() == [("long", "long-a", LONG_FOR_PROMPT, "900 characters, more than 420")]
    for rules in ({"longest": 0, "longest_for_prompt": 0}, {"always_fine": 900}):
        assert screen(prompts, Screening.model_validate(rules))[1].is_empty()


ENGLISH = "Dry the pan at once, and rub a little oil into it."
LAW = "下列哪一项属于合同无效的情形？\nA. 欺诈\nB．Force majeure clause\nC、恶意串通\nD) 显失公平"
CODE = "def area(r):\n    # pi times the radius squared\n    return 3.14 * r ** 2\n\nprint(area(2))"


def language_of(prompt: str, text: str, **rules: Any) -> str | None:
    """The rule of language that a response breaks as an answer to this prompt."""
    prompts = prompts_of({"p": [*OTHERS, text]}).with_columns(input=pl.lit(prompt))
    _, drops = screen(prompts, Screening(longest=0, longest_for_prompt=0, **rules))
    return drops["rule"][0] if drops.height else None


@pytest.mark.parametrize(
    ("prompt", "text", "switch"),
    [
        (LAW, "A、B、C、D", {"asked_options": False}),
        (LAW, "(ABCD).", {"asked_options": False}),
        (LAW, "B．Force majeure clause", {"asked_options": False}),
        ("把“把锅擦干”翻译成英文。", ENGLISH, {"asked_language": False}),
        ("请用英语写一句话，说明怎样保养铁锅。", ENGLISH, {"asked_language": False}),
        ("“お腹がすいた”是什么意思？", "お腹がすいた。", {"asked_language": False}),
        ("How do I keep a pan from rusting?", ENGLISH, {"asked_language": False}),
        ("写一个Python函数，计算圆的面积。", CODE + "\n" + "the result is shown below", {"asked_code": False}),
        ("最大的是哪个？", "TCP", {"few_letters": 0}),
    ],
)
def test_what_the_prompt_asks_for_stays_unless_its_switch_is_off(prompt: str, text: str, switch: Any) -> None:
    assert language_of(prompt, text) is None
    assert language_of(prompt, text, **switch) in {NOT_CHINESE, JAPANESE}
    assert language_of("怎样保养铁锅？", text * 2) is not None or "few_letters" in switch


@pytest.mark.parametrize(
    "lines",
    [
        CODE,
        '#include <stdio.h>\nint main() {\n    printf("hello");\n}',
        "SELECT name, price\nFROM items\nWHERE price > 10\nORDER BY price;",
        "<ul>\n<li>first item of the list</li>\n</ul>",
        "pip install some-package\ngit clone https://example.org/x",
    ],
)
def test_code_that_no_fence_marks_is_no_prose(lines: str) -> None:
    assert language_of("怎样计算？", "这样写：\n" + lines) is None
    prose = f"{ENGLISH} {lines.replace(chr(10), ' and then we do ')} and so on"
    assert language_of("怎样计算？", prose) == NOT_CHINESE


def test_what_each_rule_dropped_is_told_by_category() -> None:
    law = prompts_of({"a": [*OTHERS, ENGLISH, "x" * 9]}, ["法律"])
    cooking = prompts_of({"b": [FINE, ENGLISH], "c": [ENGLISH]})
    _, drops = screen(pl.concat([law, cooking]), Screening())
    # Of the responses of dropped prompts, one broke no rule itself.
    assert dropped_by(drops, {"a": "法律", "b": "知识", "c": "知识"}).rows() == [
        (NOT_CHINESE, "法律", 2),
        (NOT_CHINESE, "知识", 2),
        (TOO_FEW, "知识", 1),
    ]


def test_prompts_with_too_few_responses_left_go_and_are_counted() -> None:
    prompts = prompts_of({"none": [], "one": [FINE], "left": [FINE, ""], "good": OTHERS, "three": [*OTHERS, FINE]})
    kept, drops = screen(prompts, Screening())
    assert kept["id"].to_list() == ["good", "three"]
    assert drops.rows() == [
        ("left", "left-b", EMPTY, ""),
        ("none", None, TOO_FEW, "0"),
        ("one", None, TOO_FEW, "1"),
        ("left", None, TOO_FEW, "1"),
    ]
    assert screen(prompts, Screening(least_responses=3))[0]["id"].to_list() == ["three"]


PIECES = r"```|\(|\begin{|抱歉|作为AI|sorry |as an ai |ä½|烫烫|http://|x = |f(|if |</|用英"


@pytest.mark.heavy
def test_long_texts_are_screened() -> None:
    # A pattern that goes back and forth would take an hour, which the timeout of the tests ends.
    pieces = [*"`$~好 ", *PIECES.split("|")]
    texts = [(piece * 40_000)[:40_000] for piece in pieces]
    rules = Screening(longest=0, longest_for_prompt=0, refusal_length=10**6)
    kept, drops = screen(prompts_of({"p": [*texts, *("x" + text for text in texts), FINE, OTHERS[1]]}), rules)
    assert drops.height + kept["responses"].list.len().sum() == 2 * len(pieces) + 2


KANJI = "銅鍋洗浄後、水分完全除去し、薄く油を塗布する。"


def test_japanese_goes_however_many_chinese_characters_it_has() -> None:
    assert language_of("怎样保养铁锅？", KANJI) == JAPANESE
    assert language_of("怎样保养铁锅？", KANJI, kana=1) is None
    assert language_of("怎样保养铁锅？", FINE + "日语里叫“さび”。") is None
    assert rule_on(KANJI, category=("翻译", "中译日"), other_languages=["中译日"]) is None


@pytest.mark.heavy
@given(st.permutations(range(6)))
@settings(max_examples=10)
def test_the_order_of_the_prompts_changes_nothing_but_the_order(order: list[int]) -> None:
    prompts = prompts_of({f"p{n}": [FINE, OTHERS[1], "" if n % 2 else FINE * 5] for n in range(6)})
    kept, drops = screen(prompts, Screening())
    again, drops_again = screen(prompts[order], Screening())
    assert again.equals(kept[order])
    assert drops_again.sort("response").equals(drops.sort("response"))
