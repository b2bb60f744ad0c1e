"""Rows into a language: whole first, then cut; what is recorded, copied, asked once and set aside."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.masking import mask
from build_multilingual.recipe import ChecksTable
from build_multilingual.source import PAIRS
from build_multilingual.translate import ROWS, SET_ASIDE, TranslationContext, mask_all, translate
from build_multilingual.translators import Translator
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Backend, Ledger, Limits, Outcome, Request, read_ledger
from pluralbench_runs import Json
from pluralbench_schemas import LANGUAGES, MULTILINGUAL_PAIRS, Language, validate

SPANISH = LANGUAGES["spa_Latn"]
# The texts here are too short for their language to be told, or made up.
CHECKS = ChecksTable(least_characters_langid=10_000)
WORD = re.compile(r"[^\W\d_]+")
Reply = str | tuple[Outcome, str]
ANSWER: Outcome = "answer"


def foreign(text: str) -> str:
    """A text in a language of its own: each word backwards and longer."""
    return WORD.sub(lambda match: f"{match[0][::-1]}o", text)


class Fake(Translator):
    """A translator in this process, three texts a message, which answers what `reply` says of a text and its attempt.

    sent: the messages, as texts with their attempts.
    """

    provider = "fake.example"
    model = "fake-1"

    def __init__(self, reply: Callable[[str, int], Reply] = lambda text, _: foreign(text), longest: int = 1000) -> None:
        self.reply, self.longest = reply, longest
        self.sent: list[list[tuple[str, int]]] = []

    def body(self, text: str, language: Language) -> dict[str, Json]:
        return {"text": text, "target": language.code}

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        return [list(requests[start : start + 3]) for start in range(0, len(requests), 3)]

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        self.sent.append([(str(request.body["text"]), request.sample) for request in requests])
        answers = []
        for request in requests:
            reply = self.reply(str(request.body["text"]), request.sample)
            outcome, text = reply if isinstance(reply, tuple) else (ANSWER, reply)
            answers.append(Answer.to(request, outcome, text, model=f"made by {self.model}"))
        yield answers

    @property
    def texts(self) -> list[tuple[str, int]]:
        """Everything that was sent."""
        return [entry for message in self.sent for entry in message]


def pairs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    """English pairs; what a row does not say is made up."""
    made = [
        {
            "id": number,
            "prompt": f"Question {number}?",
            "chosen": "The better one.",
            "rejected": "A worse one.",
            "chosen_model": "m1",
            "rejected_model": "m2",
            "subset": "donotanswer",
            "category": "Safety",
        }
        | row
        for number, row in enumerate(rows)
    ]
    return pl.DataFrame(made, schema=PAIRS)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as opened:
        yield opened


def translated(
    pairs: pl.DataFrame,
    ledger: Ledger,
    who: Fake,
    *,
    backend: Backend | None = None,
    language: Language = SPANISH,
    checks: ChecksTable = CHECKS,
    limits: Limits | None = None,
) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    """The rows and what was set aside: id, language, field, reason, translation."""
    asking = TranslationContext(who, backend or who, ledger, limits or Limits(concurrency=1), checks)
    ((frame, aside),) = translate(pairs, [language], mask_all(pairs), asking, ["hep-*"])
    assert frame.schema == ROWS
    assert aside.schema == SET_ASIDE
    assert frame.height == pairs.height
    return frame.to_dicts(), aside.rows()


def kept(*given: Any, **more: Any) -> list[dict[str, Any]]:
    """The rows, of which nothing was set aside."""
    rows, aside = translated(*given, **more)
    assert aside == []
    return rows


def key(text: str, sample: int = 0, language: Language = SPANISH) -> str:
    """The key of the call for a text."""
    return Request("translation", Fake.provider, Fake.model, Fake().body(text, language), sample=sample).key


def test_a_row_comes_back_with_its_calls(ledger: Ledger) -> None:
    pairs = pairs_of({"id": 7, "prompt": "Run `ls` now!\n\nYes?", "rejected": "Wait for 5 minutes."})
    who = Fake()
    [row] = kept(pairs, ledger, who)
    assert row == {
        "id": 7,
        "language": "spa_Latn",
        "prompt": "nuRo `ls` wono!\n\nseYo?",
        "chosen": "ehTo rettebo enoo.",
        "rejected": "tiaWo rofo 5 setunimo.",
        "chosen_model": "m1",
        "rejected_model": "m2",
        "source": "donotanswer",
        "category": "Safety",
        "translator": "made by fake-1",
        "prompt_calls": [key("Run [0] now!\n\nYes?")],
        "chosen_calls": [key("The better one.")],
        "rejected_calls": [key("Wait for [0] minutes.")],
    }
    assert who.sent == [[("Run [0] now!\n\nYes?", 0), ("The better one.", 0), ("Wait for [0] minutes.", 0)]]
    validate(pl.DataFrame([row], schema=ROWS), MULTILINGUAL_PAIRS, file="x")


def test_every_call_is_recorded_under_its_key(ledger: Ledger, tmp_path: Path) -> None:
    pairs = pairs_of({}, {"prompt": "Lose the `mark` here."})
    rows, _ = translated(pairs, ledger, Fake(lambda text, _: foreign(text.replace("the [0]", "the"))))
    named = {name for row in rows for field in ("prompt", "chosen", "rejected") for name in row[f"{field}_calls"]}
    recorded = read_ledger(tmp_path / "ledger")
    assert named <= {*recorded["key"]}
    assert {*recorded["key"]} - named == {key("Lose the [0] here.")}  # which was answered, and not followed
    by_key = {entry["key"]: entry for entry in recorded.to_dicts()}
    entry = by_key[key("Question [0]?")]
    assert (entry["kind"], entry["provider"], entry["outcome"]) == ("translation", "fake.example", "answer")
    assert entry["text"] == "noitseuQo [0]?"
    assert entry["label"] == "the prompt of 0 in spa_Latn"
    assert ledger.used == {*recorded["key"]}


def test_what_loses_a_mark_is_asked_again_in_pieces(ledger: Ledger) -> None:
    who = Fake(lambda text, _: foreign(text.replace("[0]", "")))
    pairs = pairs_of({"prompt": "First do this. Then run `ls` and {name}. 5!\n"})
    [row] = kept(pairs, ledger, who)
    assert row["prompt"] == "tsriFo odo siht".replace("siht", "sihto") + ". nehTo nuro `ls` dnao {name}. 5!\n"
    second = [text for text, sample in who.texts if sample == 1]
    assert second == ["First do this.", "Then run", "and"]
    assert row["prompt_calls"] == [key(text, 1) for text in second]
    assert row["chosen_calls"] == [key("The better one.")]


LONG = "The library is closed today, and so is the museum beside it."
FAULTS: dict[str, tuple[Callable[[str], Reply], str]] = {
    "nothing": (lambda _: ("empty", ""), "empty"),
    "an error": (lambda _: ("error", "no such text"), "refused by the translator"),
    "a filter": (lambda _: ("content_filter", "half"), "refused by the translator"),
    "half of it": (lambda text: ("length", foreign(text)), "cut off"),
    "no letters": (lambda _: "… 1!", "no letters"),
    "the same": (lambda text: text, "unchanged"),
    "too little": (lambda _: "Oy.", "too short"),
    "too much": (lambda text: foreign(text) * 4, "too long"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_fails_twice_is_set_aside_with_its_reason(ledger: Ledger, name: str) -> None:
    fault, reason = FAULTS[name]
    who = Fake(lambda text, _: fault(text) if text == LONG else foreign(text))
    [row, other], aside = translated(pairs_of({"id": 3, "chosen": LONG}, {"id": 4}), ledger, who)
    reply = fault(LONG)
    text = reply.strip() if isinstance(reply, str) else ""
    assert aside == [(3, "spa_Latn", "chosen", reason, text)]
    assert row["chosen"] == text
    assert row["chosen_calls"] == [key(LONG, 1)]
    assert other["chosen"] == foreign("The better one.")
    assert [sent for sent, sample in who.texts if sample == 1] == [LONG], "only what failed is asked again"


@pytest.mark.parametrize("name", FAULTS)
def test_what_fails_once_is_mended_by_the_second_way(ledger: Ledger, name: str) -> None:
    fault, _ = FAULTS[name]
    who = Fake(lambda text, sample: fault(text) if text == LONG and sample == 0 else foreign(text))
    [row] = kept(pairs_of({"chosen": LONG}), ledger, who)
    assert (row["chosen"], row["chosen_calls"]) == (foreign(LONG), [key(LONG, 1)])


def test_one_piece_that_is_refused_is_enough(ledger: Ledger) -> None:
    who = Fake(lambda text, _: ("error", "no") if "[" in text or "never" in text else foreign(text))
    [row], aside = translated(pairs_of({"prompt": "Do this. Then never `ls`. And this."}), ledger, who)
    assert row["prompt"] == "oDo sihto.  `ls`. dnAo sihto."
    assert aside == [(0, "spa_Latn", "prompt", "refused by the translator", "oDo sihto.  `ls`. dnAo sihto.")]
    assert row["prompt_calls"] == [key(text, 1) for text in ("Do this.", "Then never", "And this.")]


def test_real_languages_are_told(ledger: Ledger) -> None:
    replies = {
        LONG: "La biblioteca está cerrada hoy, y también lo está el museo que hay al lado.",
        "The better one.": "La mejor.",
        "A worse one.": "Una peor.",
        "Question [0]?": "¿Pregunta [0]?",
    }
    pairs = pairs_of({"chosen": LONG})
    kept(pairs, ledger, Fake(lambda text, _: replies[text]), checks=ChecksTable())
    german = "Die Bibliothek ist heute geschlossen, und das Museum daneben auch."
    who = Fake(lambda text, _: german if text == LONG else replies[text])
    who.model = "fake-2"
    _, aside = translated(pairs, ledger, who, checks=ChecksTable())
    assert aside == [(0, "spa_Latn", "chosen", "reads as German", german)]


def test_code_is_copied_and_only_its_prompt_is_asked(ledger: Ledger) -> None:
    code = {"chosen": "def f():\n    return 'yes'", "rejected": "def f(): pass", "subset": "hep-python"}
    who = Fake()
    [row] = kept(pairs_of(code), ledger, who)
    assert (row["chosen"], row["rejected"], row["source"]) == (code["chosen"], code["rejected"], "hep-python")
    assert (row["prompt_calls"], row["chosen_calls"], row["rejected_calls"]) == ([key("Question [0]?")], [], [])
    assert who.texts == [("Question [0]?", 0)]
    assert row["translator"] == "made by fake-1"


def test_answers_that_become_the_same_are_asked_again_and_set_aside(ledger: Ledger) -> None:
    who = Fake(lambda text, _: "El mismo." if "one" in text else foreign(text))
    [row, code], aside = translated(pairs_of({}, {"subset": "hep-js", "chosen": "a", "rejected": "b"}), ledger, who)
    assert aside == [
        (0, "spa_Latn", "chosen", "identical answers", "El mismo."),
        (0, "spa_Latn", "rejected", "identical answers", "El mismo."),
    ]
    assert row["chosen_calls"] == [key("The better one.", 1)]
    assert code["chosen"] == "a"


def test_texts_without_letters_are_kept_without_a_call(ledger: Ledger) -> None:
    who = Fake()
    texts = {"prompt": "3 + 4 = 7?\n", "chosen": "`x = 7`", "rejected": ""}
    [row] = kept(pairs_of(texts), ledger, who)
    assert {name: row[name] for name in texts} == texts
    assert [row[f"{name}_calls"] for name in texts] == [[], [], []]
    assert row["translator"] == "none"
    assert (who.sent, len(ledger)) == ([], 0)


def test_a_long_text_is_asked_in_parts(ledger: Ledger) -> None:
    who = Fake(longest=40)
    text = "This is the first sentence. " * 3 + "See `a` and `b` too."
    [row] = kept(pairs_of({"prompt": text}), ledger, who)
    assert row["prompt"] == foreign("This is the first sentence. ") * 3 + "eeSo `a` dnao `b` ooto."
    assert row["prompt_calls"] == [key("This is the first sentence.")] * 3 + [key("See [0] and [1] too.")]
    assert all(len(sent) <= 40 for sent, _ in who.texts)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_build_is_the_same_however_it_is_sent(tmp_path: Path, concurrency: int) -> None:
    def reply(text: str, sample: int) -> Reply:
        number = int(re.sub(r"\D", "", text) or 1)
        return ("empty", "") if number % 3 == 0 or number % 3 == sample + 1 else foreign(text)

    pairs = pairs_of(*({"prompt": f"Is it word{number}?", "chosen": f"The word{number}."} for number in range(20)))
    made = []
    for name in ("a", "b"):
        with Ledger(tmp_path / name) as ledger:
            made.append(translated(pairs, ledger, Fake(reply), limits=Limits(concurrency=concurrency)))
    assert made[0] == made[1]
    assert made[0][1]
    with Ledger(tmp_path / "c") as ledger:
        backwards, _ = translated(pairs.reverse(), ledger, Fake(reply))
    assert backwards[::-1] == made[0][0]


texts = st.lists(
    st.sampled_from(
        ["Tea.", "漢字", "`a`", "{x}", "5", "\n", "Is it?", "[3]", "https://a.b", "``` ", "$x$", "🍵", "\r\n"]
    ),
    max_size=8,
).map(" ".join)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=3), st.integers(0, 2), st.integers(5, 60))
@settings(max_examples=30)
def test_whatever_the_texts_nothing_that_must_survive_is_lost(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], spoiled: int, longest: int
) -> None:
    def reply(text: str, sample: int) -> Reply:
        spoil = spoiled == 2 or (spoiled == 1 and sample == 0)
        return re.sub(r"\[\d+\]", "", foreign(text)) if spoil else foreign(text)

    names = ("prompt", "chosen", "rejected")
    pairs = pairs_of(*(dict(zip(names, row, strict=True)) for row in rows))
    with Ledger(tmp_path_factory.mktemp("any") / "ledger") as ledger:
        result, aside = translated(pairs, ledger, Fake(reply, longest), checks=ChecksTable(shortest=0.01, longest=100))
    failed = {(row[0], row[2]) for row in aside if row[3] != "identical answers"}
    for row in result:
        for name in names:
            english = pairs[name][row["id"]]
            if (row["id"], name) not in failed:
                assert sorted(span for _, span in mask(row[name]).spans) == sorted(s for _, s in mask(english).spans)


def test_answers_that_differ_in_what_survives_are_not_the_same(ledger: Ledger) -> None:
    who = Fake(lambda _text, _: "Es [0].")
    [row] = kept(pairs_of({"prompt": "Is it 7?", "chosen": "It is 4.", "rejected": "That is 5."}), ledger, who)
    assert (row["chosen"], row["rejected"]) == ("Es 4.", "Es 5.")
