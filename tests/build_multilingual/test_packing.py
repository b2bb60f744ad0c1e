"""How texts are put into messages: none lost, none twice, no limit crossed, and hardly a message too many."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator, translator
from build_multilingual.translators._packing import pack, text_length
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import Request
from pluralbench_schemas import LANGUAGES

GOOGLE = (1024, 30_000)
SPANISH, ARABIC = LANGUAGES["spa_Latn"], LANGUAGES["arb_Arab"]


def named(name: str) -> Translator:
    return translator(TranslatorTable(name=name), ConnectionTable())


def requests(lengths: Sequence[int]) -> list[Request]:
    """A request for a text of each length; texts of the same length may be equal, their requests are not."""
    who = named("google")
    return [
        Request("translation", who.provider, who.model, who.body("é" * length, SPANISH), sample=number)
        for number, length in enumerate(lengths)
    ]


def check(messages: Sequence[Sequence[Request]], asked: Sequence[Request], limits: tuple[int, int]) -> None:
    """Every request once, and no message without texts or over a limit."""
    strings, code_points = limits
    assert Counter(request.key for message in messages for request in message) == Counter(
        request.key for request in asked
    )
    for message in messages:
        assert 1 <= len(message) <= strings
        assert sum(map(text_length, message)) <= code_points


lengths_and_groups = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), max_size=60)


@given(lengths_and_groups, st.integers(1, 7), st.integers(40, 90))
def test_each_request_is_packed_once_within_the_limits_and_groups_stay_apart(
    drawn: list[tuple[int, str]], strings: int, code_points: int
) -> None:
    asked = [
        Request("translation", "p", "m", {"text": "x" * length, "target": group}, sample=number)
        for number, (length, group) in enumerate(drawn)
    ]
    messages = pack(asked, lambda request: request.body["target"], strings=strings, code_points=code_points)
    check(messages, asked, (strings, code_points))
    for message in messages:
        assert len({request.body["target"] for request in message}) == 1
    for group in "abc":
        sizes = [
            (len(message), sum(map(text_length, message))) for message in messages if message[0].body["target"] == group
        ]
        for number, (count, total) in enumerate(sizes):
            for other_count, other_total in sizes[number + 1 :]:
                assert count + other_count > strings or total + other_total > code_points, "two that fit into one"


@pytest.mark.parametrize(
    ("lengths", "number"),
    [
        ([], 0),
        ([30_000, 1], 2),
        ([15_000, 15_000], 1),
        ([1] * 1025, 2),
        ([30] * 1000, 1),
        ([30] * 1001, 2),
        # The worst that is known of this way of packing: 9 would do.
        ([15_030] * 6 + [7_560] * 6 + [7_530] * 6 + [7_440] * 12, 11),
    ],
)
def test_at_the_limits(lengths: list[int], number: int) -> None:
    asked = requests(lengths)
    messages = named("google").pack(asked)
    check(messages, asked, GOOGLE)
    assert len(messages) == number


def test_what_google_is_asked_alike_goes_together_and_nothing_else() -> None:
    plain, glossed = named("google"), translator(TranslatorTable(name="google", glossary="g"), ConnectionTable())
    trained = translator(TranslatorTable(name="google", model="TL1"), ConnectionTable())
    asked = [
        Request("translation", who.provider, who.model, who.body(text, language))
        for who in (plain, glossed, trained)
        for language in (SPANISH, ARABIC)
        for text in ("one", "two")
    ]
    messages = plain.pack(asked)
    check(messages, asked, GOOGLE)
    assert sorted(map(len, messages)) == [2] * 6


def least(lengths: Sequence[int]) -> int:
    strings, code_points = GOOGLE
    return max(math.ceil(len(lengths) / strings), math.ceil(sum(lengths) / code_points))


@given(st.permutations([3, 1, 4, 1, 5, 9, 2, 6, 5, 3]))
def test_the_order_of_the_texts_changes_neither_number_nor_sizes_of_messages(lengths: list[int]) -> None:
    messages = pack(requests(lengths), lambda _: 0, strings=3, code_points=12)
    assert sorted(sorted(map(text_length, message)) for message in messages) == [[1, 2], [1, 5, 6], [3, 4, 5], [3, 9]]


@given(st.lists(st.integers(1, 4000), max_size=100) | st.lists(st.integers(1, 30), max_size=5000))
def test_it_takes_at_most_one_message_more_than_the_least_possible(lengths: list[int]) -> None:
    asked = requests(lengths)
    messages = named("google").pack(asked)
    check(messages, asked, GOOGLE)
    assert len(messages) <= least(lengths) + 1
