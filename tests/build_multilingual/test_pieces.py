"""A text in pieces: put together again they are the text, and none is longer than a request takes."""

import re
from itertools import pairwise

import pytest
from build_multilingual.masking import MARK, has_letters, mask
from build_multilingual.pieces import Piece, Strategy, join_pieces, sentences, split_pieces
from hypothesis import example, given, settings
from hypothesis import strategies as st

STRATEGIES: tuple[Strategy, ...] = ("whole", "cut")
TEXT = "Boil 2 litres. Then add `salt` to it!\n\n- Wait for {minutes} minutes.\n- $x$\n\n  Done? "
SCRIPTS = [
    "Dr. Smith left at 3 p.m. He came back, e.g. on Monday. Really?! Yes… No.",
    "第一句。第二句！「第三句？」 Fourth.",
    "الجملة الأولى. هل هذه الثانية؟ نعم.",
    "זה משפט. זה עוד אחד.",
    "यह पहला वाक्य है। यह दूसरा है।",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙. 😀👩‍👩‍👧 Next. e\u0301 a\u0308.\u200d Z\u0335\u0336.",
    "\u202eright to left\u202c. Next.\u2028Line.\u2029Paragraph.\x85Next\x0bline\x0cpage\x1cfile. End",
    "a\r\nb\rc\n\rd\t\u00a0\u3000 e.  ",
    "\ufeffFirst. \0 Second. \ud7ff\ue000\ufffd.",
]
SIGNS = "Tea 漢字 שלום e.g. Mr. Yes! No? 😀 e\u0301 `a`b {x} $y$ 3.14 [7] a@b.cd https://a.b/c . …"
words = st.sampled_from([*SIGNS.split(), "`a b`", "```\n", "\n", "\r\n", "\u2028", "\t", "  ", "\u00a0", "\0"])
texts = (
    st.lists(words, max_size=20).map(" ".join) | st.lists(words, max_size=20).map("".join) | st.text(max_size=60)
) | st.sampled_from(SCRIPTS)


def asked(result: list[Piece]) -> list[str]:
    return [piece.text for piece in result if piece.translate]


def test_what_is_put_together_has_the_translations_in_order() -> None:
    for way in STRATEGIES:
        result = split_pieces(mask(TEXT), way, 30)
        numbers = iter(f"<{number}>" for number in range(100))
        made = join_pieces(result, numbers)
        assert re.findall(r"<(\d+)>", made) == [str(number) for number in range(len(asked(result)))]
        assert next(numbers) == f"<{len(asked(result))}>"


@pytest.mark.parametrize("text", ["", " ", "\n\n", "5", "`code`", "3 + 4 = 7!", "```\nx\n```\n", "https://a.b", "🙂 …"])
@pytest.mark.parametrize("way", STRATEGIES)
def test_nothing_is_asked_of_a_text_without_letters(text: str, way: Strategy) -> None:
    masked = mask(text)
    [piece] = split_pieces(masked, way, 5)
    assert not piece.translate
    assert (masked.restore(piece.text) if way == "whole" else piece.text) == text


@pytest.mark.heavy
@given(texts, st.sampled_from(STRATEGIES), st.integers(1, 80))
@example("`a` `b` [0] 。" * 4, "whole", 1)
@example("", "cut", 1)
@settings(max_examples=400)
def test_pieces_put_together_are_the_text(text: str, way: Strategy, longest: int) -> None:
    masked = mask(text)
    result = split_pieces(masked, way, longest)
    whole = join_pieces(result, iter(asked(result)))
    assert whole == (masked.text if way == "whole" else text)
    for piece in asked(result):
        assert len(piece) <= longest
        assert piece == piece.strip()
        assert has_letters(piece)


@given(st.lists(words.filter(lambda word: not word.isspace()), min_size=1, max_size=30), st.integers(0, 40))
@settings(max_examples=200)
def test_a_mark_is_not_cut_where_there_are_blanks(several: list[str], more: int) -> None:
    masked = mask(" ".join(several))
    longest = max(len(word) for word in re.split("[ \n]", masked.text)) + 1 + more
    marks = [int(match[1]) for piece in split_pieces(masked, "whole", longest) for match in MARK.finditer(piece.text)]
    assert marks == list(range(len(masked.spans)))


def test_a_long_text_is_cut_at_ends_of_sentences_then_at_blanks_then_anywhere() -> None:
    one, two = "This is one sentence.", "That is the other, and it is a longer one."
    assert asked(split_pieces(mask(f"{one} {two}"), "whole", 50)) == [one, two]
    assert asked(split_pieces(mask(f"{one} {one} {two}"), "whole", 50)) == [f"{one} {one}", two]
    assert asked(split_pieces(mask(two), "whole", 20)) == ["That is the other,", "and it is a longer", "one."]
    assert asked(split_pieces(mask("a" * 25), "whole", 10)) == ["a" * 10, "a" * 10, "a" * 5]
    for way in STRATEGIES:
        long = asked(split_pieces(mask(f"{one} {two} " * 200), way, 100))
        assert all(piece.endswith(".") for piece in long)


def test_sentences_end_where_sentences_end() -> None:
    assert sentences("Dr. Smith left. He came back, e.g. on Monday.\nReally? Yes!  Ok") == [
        "Dr. Smith left. ",
        "He came back, e.g. on Monday.\n",
        "Really? ",
        "Yes!  ",
        "Ok",
    ]
    assert sentences("😀😀 One. Two 𝔘. Three.") == ["😀😀 One. ", "Two 𝔘. ", "Three."]
    assert sentences("One\r\nTwo\u2028Three") == ["One\r\n", "Two\u2028", "Three"]


@given(texts)
@settings(max_examples=300)
def test_sentences_lose_nothing_of_any_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(st.lists(st.sampled_from(["One.", "Two!", "Is it three?", "𝔘 four."]), min_size=1, max_size=8))
@settings(max_examples=30)
def test_every_sentence_is_one(several: list[str]) -> None:
    result = sentences(" ".join(several))
    assert [sentence.strip() for sentence in result] == several
    assert all(sentence.endswith(" ") for sentence, _ in pairwise(result))
