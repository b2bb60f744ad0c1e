"""Probabilities of verdicts: labels as servers send them, and the one token that decides a reply."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from batch_results import result
from chat_server import Reply, serve
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import (
    ChatModel,
    ConnectionConfig,
    InvalidAnswer,
    Ledger,
    LedgerError,
    OpenAIChat,
    PermanentError,
    Replay,
    Request,
    ask_until_valid,
    chat_backend,
    chat_request,
    parse_choice,
    parse_rating,
    read_ledger,
)
from pluralbench_calls.logprobs import FIELDS, record_labels, soft_verdict
from pluralbench_calls.verdicts import parse_certain_choice
from token_logprobs import sent, token

ASKED = ChatModel(provider="127.0.0.1", model="m", temperature=0.0, extra=FIELDS)


def verdict(pieces: Sequence[str | dict[str, Any]], parse: Callable[[str], Any] = parse_choice) -> Any:
    """The probabilities of the verdicts of a reply, and whether one is a bound; None if no token decides."""
    text, logprobs = sent(pieces)
    soft = soft_verdict(text, record_labels(logprobs["content"], text), parse, InvalidAnswer)
    if soft is None:
        return None
    return {str(value): round(p, 6) for value, p in zip(soft.values, soft.probabilities, strict=True)}, soft.bounded


def lenient(reply: str) -> str:
    return parse_choice(reply, "lenient")


A = token("A", own=0.7, B=0.2, I=0.05)
BOTH = ({"A": 0.7, "B": 0.2}, False)


@pytest.mark.parametrize(
    ("pieces", "parse", "expected"),
    [
        (["Because", ".\n", "[[", A, "]]"], parse_choice, BOTH),
        (["[[", A, "]]", "<|im_end|>"][:3], lenient, BOTH),
        (['{"', "verdict", '":', ' "', A, '"}'], parse_choice, BOTH),
        (["<think>", "[[", token("B"), "]]", "</think>", "[[", A, "]]"], parse_choice, BOTH),
        (["Response ", token("B"), " lies", ".\n", token(" A"), " wins", ".\n", "[[", A, "]]"], lenient, BOTH),
        (["[[", A, "]]", ", as ", token("A"), " is short"], lenient, BOTH),
        (["[[", token("B"), "]]", "?\n", "[[", A, "]]"], lenient, BOTH),
        (["[[", token(" A", own=0.5, A=0.2, B=0.1, **{" B": 0.1}), " ]]"], parse_choice, BOTH),
        (["[", token("[A", own=0.7, **{"[B": 0.2}), "]]"], parse_choice, BOTH),
        (["[[", token("A", own=0.9, C=0.05), "]]"], parse_choice, ({"A": 0.9, "B": 0.05}, True)),
        (["[[", token("7", own=0.6, **{"8": 0.3}), "]]"], parse_rating, None),
        (["[[", token("A"), "]]", " or so ", "[[", token("A"), "]]"], lenient, None),
        (["[[", "A]]"], parse_choice, ({"A": 0.9, "B": 0.9}, True)),
    ],
)
def test_the_token_of_the_verdict_is_found_in_every_form_of_reply(
    pieces: Sequence[Any], parse: Callable[[str], Any], expected: Any
) -> None:
    if parse is parse_rating:
        ratings, bounded = verdict(pieces, parse)
        assert (ratings["7.0"], ratings["8.0"], ratings["3.0"], bounded) == (0.6, 0.3, 0.3, True)
    else:
        assert verdict(pieces, parse) == expected


def test_a_certainty_is_not_taken_for_the_verdict() -> None:
    pieces: list[Any] = ["[[", A, "]]", " [[", token("85", own=0.5, **{"70": 0.4}), "]]"]
    found, bounded = verdict(pieces, parse_certain_choice)
    assert (found, bounded) == (
        {"CertainChoice(choice='A', certainty=85)": 0.7} | {"CertainChoice(choice='B', certainty=85)": 0.2},
        False,
    )
    numbered: list[Any] = ["Assistant ", token("1", own=0.6, **{"2": 0.3}), " is best"]

    def parse(reply: str) -> str:
        found = re.search(r"Assistant ([12]) is", reply)
        if found is None:
            raise InvalidAnswer
        return "AB"[int(found[1]) - 1]

    assert verdict(numbered, parse) == ({"A": 0.6, "B": 0.3}, False)
    assert verdict(["Assistant ", "1", "0", " is best"], lambda _: "A") is None


@given(
    before=st.text(alphabet=st.sampled_from("A B\n是🙂éAB12."), max_size=30),
    thinking=st.lists(st.sampled_from(["[[", "A", "B", "是", "</think>\n\n"]), max_size=6),
    cuts=st.lists(st.integers(1, 4), min_size=40, max_size=40),
    chosen=st.sampled_from("AB"),
    probabilities=st.tuples(st.floats(1e-6, 0.5), st.floats(1e-6, 0.4)),
    end=st.sampled_from([[], ["<|im_end|>"], ["\n", "</s>"]]),
)
def test_whatever_stands_before_a_verdict_its_own_token_counts(
    before: str,
    thinking: list[str],
    cuts: list[int],
    chosen: str,
    probabilities: tuple[float, float],
    end: list[str],
) -> None:
    """Tokens may split a character, belong to thinking that the server removes, or end the turn."""
    other = "AB"[chosen == "A"]
    encoded = f"{before}\n[[".encode()
    pieces: list[bytes] = []
    for size in cuts:
        pieces, encoded = [*pieces, encoded[:size]], encoded[size:]
    split = [
        {"token": piece.decode(errors="replace"), "bytes": [*piece], "logprob": 0.0, "top_logprobs": []}
        for piece in [*pieces, encoded]
        if piece
    ]
    own = token(chosen, own=probabilities[0], **{other: probabilities[1]})
    content = [*map(token, thinking), *split, own, token("]]"), *map(token, end)]
    text = f"{before}\n[[{chosen}]]"
    soft = soft_verdict(text, record_labels(content, text), parse_choice, InvalidAnswer)
    assert soft is not None
    assert not soft.bounded
    found: dict[str, float] = dict(zip(soft.values, soft.probabilities, strict=True))
    assert [found[letter] for letter in (chosen, other)] == pytest.approx(probabilities, rel=1e-5)


@given(st.text(), st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_what_is_no_list_of_tokens_has_no_labels(text: str, content: Any) -> None:
    assert record_labels(content, text) == ""
    odd = [
        {"token": content, "bytes": content, "logprob": content, "top_logprobs": [{"token": "A", "logprob": content}]}
    ]
    assert json.loads(record_labels(odd, text)) is not None


@pytest.mark.parametrize(
    "labels", ["?", "{}", "[1]", '[{"at": -1, "top": {}, "least": -1}]', '[{"at": 0, "top": {"A": 5}, "least": -1}]']
)
def test_what_a_ledger_holds_in_place_of_labels_is_refused(labels: str) -> None:
    with pytest.raises(LedgerError, match="logprobs of another form"):
        soft_verdict("[[A]]", labels, parse_choice, InvalidAnswer)


def request(item: str, attempt: int) -> Request:
    return chat_request(ASKED, [{"role": "user", "content": item}], seed=0, label=item, attempt=attempt)


def test_probabilities_are_recorded_replayed_and_imported(tmp_path: Path) -> None:
    text, logprobs = sent(["Because", ".\n", "[[", A, "]]"])
    reply = Reply(text, logprobs=logprobs)

    def ask(ledger: Ledger, backend: Any) -> Any:
        return ask_until_valid(["one"], request, lambda _, said: parse_choice(said), ledger, backend, attempts=1)

    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        first = ask(ledger, OpenAIChat(server.base_url))
        assert {name: server.requests[0][name] for name in FIELDS} == {"logprobs": True, "top_logprobs": 20}
        ledger.export(tmp_path / "ledger.parquet")
        plain = chat_request(ASKED.model_copy(update={"extra": {}}), [], seed=0, label="plain")
        run(plain, ledger, server.base_url)
        ledger.export(tmp_path / "plain.parquet", [plain.key])
    assert first[0].soft.probabilities == pytest.approx((0.7, 0.2), abs=1e-6)
    stored = read_ledger(tmp_path / "ledger.parquet")["logprobs"][0]
    assert len(stored) < 100
    assert "logprobs" not in pl.read_parquet_schema(tmp_path / "plain.parquet")
    with Ledger(tmp_path / "replayed") as ledger:
        ledger.add_from(tmp_path / "ledger.parquet")
        assert ask(ledger, Replay()) == first
    with Ledger(tmp_path / "imported") as ledger:
        results = tmp_path / "results.jsonl"
        results.write_text(json.dumps(result(request("one", 0).key, reply)), encoding="utf-8")
        connection = ConnectionConfig(base_url="http://127.0.0.1:9/v1", results=(results,))
        imported = ask(ledger, chat_backend(ASKED, connection))
        assert (imported[0].value, imported[0].soft) == (first[0].value, first[0].soft)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("[[A]]"), r"m at 127\.0\.0\.1 answers without logprobs"),
        (
            Reply("[[A]]", logprobs={"content": [{"token": "[[", "logprob": -1.0, "top_logprobs": []}]}),
            "without logprobs",
        ),
        (Reply("'logprobs' is not supported with this model", status=400), "127.0.0.1 refuses logprobs"),
        (
            Reply("Requested sample logprobs of 20, which is greater than max allowed: 5", status=400),
            "top_logprobs",
        ),
        (Reply("You are not allowed to request logprobs from this model", status=403), "127.0.0.1 refuses logprobs"),
    ],
)
def test_a_server_without_logprobs_is_refused_by_name(tmp_path: Path, reply: Reply, reason: str) -> None:
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(PermanentError, match=reason):
            run(request("one", 0), ledger, server.base_url)
        assert len(ledger) == 0


def run(asked: Request, ledger: Ledger, url: str) -> Any:
    return ask_until_valid(
        [asked], lambda one, _: one, lambda _, said: said, ledger, OpenAIChat(url, max_retries=0), attempts=1
    )
