"""A chat model and its connection as data, and the one maker of chat requests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import ChatModel, ConnectionConfig, Limits, Price, chat_request, check_connection
from pluralbench_runs import Recipe, RecipeError, check_recipe

HI = [{"role": "user", "content": "hi 你好"}]


class Asked(Recipe):
    """A recipe with a connection."""

    connection: ConnectionConfig


def connected(price: object) -> ConnectionConfig:
    return check_recipe(Asked, {"connection": {"price": price}}, "r.toml").connection


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_price_may_be_written_in_and_out(dollars_in: float, dollars_out: float) -> None:
    assert connected(f"{dollars_in!r}/{dollars_out!r}").price == Price(input=dollars_in, output=dollars_out)


def test_a_price_in_a_table_stays_one() -> None:
    connection = connected({"input": 0.25, "output": 2})
    assert connection.price == connected("0.25/2").price
    assert connection.limits() == Limits(price=Price(input=0.25, output=2.0))


@pytest.mark.parametrize("price", ["1", "", "1/x", "1/2/3", "-1/2", "nan/1", "1/inf", "/"])
def test_what_is_no_price_is_said_with_its_field(price: str) -> None:
    with pytest.raises(RecipeError) as refused:
        connected(price)
    message = f"Recipe r.toml: `connection.price`: {price!r} is not of the form IN/OUT, such as 0.25/2."
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("provider", "connection", "message"),
    [
        ("api.example.org", {}, "provider 'api.example.org' requires `connection.base_url=...`"),
        ("api.example.org", {"base_url": "ftp://x"}, "The base URL is not of the form https://HOST/v1."),
        ("local", {"batch": True}, "the embedded model has no Batch API; leave out `connection.batch=True`"),
        (
            "127.0.0.1",
            {"base_url": "http://127.0.0.1/v1", "batch": True, "pending": "calls.jsonl"},
            "`connection.batch=True` and `connection.pending=...` cannot be combined",
        ),
        (
            "127.0.0.1",
            {"base_url": "http://127.0.0.1/v1", "batch": True, "requests_per_minute": 9},
            "`connection.batch=True` and `connection.requests_per_minute=...` cannot be combined",
        ),
        ("local", {"max_cost": 1}, "`connection.max_cost=...` requires `connection.price=...`"),
    ],
)
def test_a_connection_that_does_not_fit_is_said(provider: str, connection: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        check_connection(ChatModel(provider=provider, model="m"), ConnectionConfig(**connection))
    assert str(refused.value) == message


def test_a_request_holds_what_the_model_says() -> None:
    model = ChatModel(provider="p", model="m", top_p=0.9, max_tokens=7, extra={"top_k": 5})
    request = chat_request(model, HI, seed=1, label="the greeting", attempt=2)
    assert (request.kind, request.provider, request.model, request.sample) == ("chat", "p", "m", 2)
    assert request.label == "the greeting, attempt 3"
    assert request.body == {"messages": HI, "temperature": 1.0, "max_tokens": 7, "top_k": 5, "top_p": 0.9}


def test_a_schema_goes_out_where_the_model_takes_one() -> None:
    schema = {"name": "n", "schema": {"type": "object"}}
    model = ChatModel.model_validate({"provider": "p", "model": "m", "token_limit_field": "max_completion_tokens"})
    body = chat_request(model, HI, seed=0, label="x", max_tokens=3, schema=schema).body
    assert body["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert (body["max_completion_tokens"], "max_tokens" in body) == (3, False)
    plain = model.model_copy(update={"structured_output": False})
    assert "response_format" not in chat_request(plain, HI, seed=0, label="x", schema=schema).body


def test_a_seed_is_sent_where_the_model_takes_one_and_depends_on_seed_label_and_attempt() -> None:
    model = ChatModel(provider="p", model="m", seeded=True)
    asked = [(0, "a", 0), (1, "a", 0), (0, "b", 0), (0, "a", 1)]
    seeds = {chat_request(model, HI, seed=s, label=name, attempt=n).body["seed"] for s, name, n in asked}
    assert len(seeds) == 4
    assert chat_request(model, HI, seed=0, label="a").body["seed"] in seeds


@pytest.mark.parametrize(("warmer", "expected"), [(0.0, [0.1001234] * 4), (0.2, [0.1, 0.3, 0.5, 0.7])])
def test_each_further_attempt_may_be_warmer(warmer: float, expected: list[float]) -> None:
    model = ChatModel(provider="p", model="m", temperature=0.1001234)
    requests = [chat_request(model, HI, seed=0, label="x", attempt=n, temperature_step=warmer) for n in range(4)]
    assert [request.body["temperature"] for request in requests] == expected


def test_the_key_of_a_recorded_request_does_not_change() -> None:
    model = ChatModel(provider="local", model="m", temperature=0.7, top_p=0.95, max_tokens=64, seeded=True)
    request = chat_request(model, HI, seed=42, label="chosen answer for a", attempt=1, schema={"name": "n"})
    assert request.key == "1602e02b87bf1721a5f1de73c1e2f934fc4eb321afd76bc903f82ac388441921"
