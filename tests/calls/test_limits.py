"""Rates, by a clock that skips what would be waited for, and the spending ceiling."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from asking import question
from chat_server import Reply, completion, serve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Backend, CallsError, Ledger, Limits, OpenAIChat, Price, Request, ask
from skipping_clock import Clock

CENT = Price(input=10_000.0, output=10_000.0)  # one cent a token


class Charging(Backend):
    """A backend in this process that charges a token for each byte of the question and all of `max_tokens`."""

    concurrency: int | None = None

    def __init__(self, share: float = 1.0) -> None:
        self.share = share

    async def send(self, request: Request) -> Answer:
        await asyncio.sleep(0)
        messages, most = request.body["messages"], request.body["max_tokens"]
        assert isinstance(messages, list)
        assert isinstance(most, int)
        charged = (len(messages[0]["content"].encode()), int(most * self.share))
        return Answer.to(request, "answer", "x", tokens=charged)


@pytest.mark.parametrize(
    ("limits", "count", "tokens", "seconds"),
    [
        (Limits(requests_per_minute=120), 12, 1, 0.0),  # 12 at once, then two a second
        (Limits(requests_per_minute=120), 14, 1, 1.0),
        (Limits(requests_per_minute=9), 2, 1, 60 / 9),  # one at once
        (Limits(tokens_per_minute=12_000), 4, 400, 2.62),  # 1,200 at once, then 200 a second; and the prompts' tokens
        (Limits(tokens_per_minute=10_000), 2, 1_200, 8.78),  # more than may go at once
    ],
)
def test_rates_hold_requests_back(
    tmp_path: Path, clock: Clock, limits: Limits, count: int, tokens: int, seconds: float
) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        ask([question(str(number), max_tokens=tokens) for number in range(count)], ledger, Charging(), limits=limits)
    assert clock.now == pytest.approx(seconds, abs=0.1)


@given(
    prices=st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)),
    ceiling=st.floats(0, 20),
    calls=st.lists(st.tuples(st.text(min_size=1, max_size=300), st.integers(1, 500)), min_size=1, max_size=12),
    share=st.floats(0, 1),
    concurrency=st.integers(1, 8),
)
@example(prices=(0.0, 0.0), ceiling=0.0, calls=[("free", 1)], share=1.0, concurrency=1)
@example(prices=(1.0, 1.0), ceiling=0.0, calls=[("dear", 1)], share=1.0, concurrency=1)
@settings(max_examples=40)
def test_the_ceiling_is_never_crossed(
    prices: tuple[float, float], ceiling: float, calls: list[tuple[str, int]], share: float, concurrency: int
) -> None:
    price = Price(input=prices[0], output=prices[1])
    limits = Limits(concurrency=concurrency, price=price, max_cost=ceiling)
    requests = [question(text, max_tokens=most) for text, most in calls]
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as ledger:
        try:
            ask(requests, ledger, Charging(share), limits=limits)
            stopped = False
        except CallsError:
            stopped = True
        spent = price.cost(*ledger.usage())
        assert spent <= ceiling + 1e-9
        assert stopped == (len(ledger) < len({request.key for request in requests}))
        # It does not stop early: the dearest request here, as escaped JSON with what a provider adds, costs no more.
        dearest = price.cost(300 * 6 + 200, 500)
        assert not stopped or spent + dearest > ceiling


def test_the_ceiling_stops_and_raising_it_goes_on(tmp_path: Path) -> None:
    requests = [question(str(number), max_tokens=5) for number in range(6)]  # 15 cents each, by the server's count
    with serve(lambda *_: Reply(tokens=(10, 5))) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        with pytest.raises(CallsError) as stopped:
            ask(requests, ledger, chat, limits=Limits(price=CENT, max_cost=2.0))
        sent = len(server.requests)
        assert 0 < sent < 6
        message = str(stopped.value)
        for part in [
            "ceiling of $2 is reached",
            f"${sent * 0.15:.4f} is spent",
            "raise `connection.max_cost=...`",
            f"{sent} of 6 calls",
        ]:
            assert part in message
        ask(requests, ledger, chat, limits=Limits(price=CENT, max_cost=5.0))
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, (10, 2_000)),
        ({"max_tokens": 300, "n": 3}, (10, 900)),
        ({"max_tokens": 10, "tools": [{"function": {"parameters": {"a_long_name_" * 400: {}}}}]}, (1_500, 10)),
    ],
    ids=["no max_tokens", "n", "names in a schema"],
)
def test_the_ceiling_counts_all_that_can_be_charged(
    tmp_path: Path, body: dict[str, Any], tokens: tuple[int, int]
) -> None:
    with serve(lambda *_: Reply(tokens=tokens)) as server, Ledger(tmp_path / "ledger") as ledger:
        with pytest.raises(CallsError):
            ask([question("hi", **body)], ledger, OpenAIChat(server.base_url), limits=Limits(price=CENT, max_cost=5.0))
        assert CENT.cost(*ledger.usage()) <= 5.0


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 1_120}, (100, 1_020)),  # xAI, Gemini
        ({"prompt_tokens": 100, "completion_tokens": 1_020, "total_tokens": 1_120}, (100, 1_020)),
        ({"prompt_tokens": 100, "completion_tokens": 20}, (100, 20)),
        ({"completion_tokens": 20, "total_tokens": 1_120}, (0, 20)),
        ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": "?"}, (100, 20)),
    ],
)
def test_thinking_that_only_the_total_counts_is_paid(
    tmp_path: Path, usage: dict[str, Any], tokens: tuple[int, int]
) -> None:
    reply = Reply(body=completion(Reply()) | {"usage": usage})
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        ask([question()], ledger, OpenAIChat(server.base_url))
        assert ledger.usage() == tokens


def test_what_the_ledger_holds_already_counts_as_spent(tmp_path: Path) -> None:
    limits = Limits(price=CENT, max_cost=10.0)
    held = Answer.to(question("another"), "answer", "x", tokens=(400, 600))
    with serve(lambda *_: Reply()) as server, Ledger(tmp_path / "ledger") as ledger:
        ledger.record(held)
        with pytest.raises(CallsError, match=r"\$10\.0000 is spent"):
            ask([question("hi", max_tokens=5)], ledger, OpenAIChat(server.base_url), limits=limits)
        assert not server.requests
        assert ask([question("another")], ledger, OpenAIChat(server.base_url), limits=limits) == [held]


def test_the_calls_ahead_and_their_cost_are_printed_before_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quarter of the bytes of a request, at most 10 tokens of a reply; recorded calls and free ones are left out."""
    requests = [question("x" * 4000, sample=number, max_tokens=10) for number in range(3)]
    with Ledger(tmp_path / "ledger") as ledger:
        ask(requests[:1], ledger, Charging(), label="votes")
        assert "ahead" not in capsys.readouterr().err
        ask(requests, ledger, Charging(), label="votes", limits=Limits(price=Price(input=1000.0, output=2000.0)))
        printed = capsys.readouterr().err
    dollars = float(printed.partition("2 votes are ahead, for at most about $")[2].partition(".\n")[0])
    assert 2 * (1000 * 1000 + 10 * 2000) / 1e6 <= dollars <= 2 * (1050 * 1000 + 10 * 2000) / 1e6
