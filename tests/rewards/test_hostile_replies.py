"""A reward server that answers what none should: a sentence, and no more memory than a reply may take."""

import asyncio
from typing import Any

import pytest
from pluralbench_rewards.served.client import Client
from pluralbench_rewards.served.engine import (
    Conversation,
    EngineRequest,
    ReplyError,
    ServerError,
    ServerInfo,
    ServingConfig,
)
from pluralbench_rewards.served.vllm import VLLM
from raw_server import http, serve_raw

GOOD = b'{"data": [{"index": 0, "probs": [0.5]}]}'
NO_TEXT = ["hex", "zlib", "base64", "rot13", "undefined", "idna", "utf-7"]


def posted(answer: bytes) -> Any:
    async def post(url: str) -> Any:
        async with Client(url, ServingConfig(server=url, max_retries=0)) as client:
            return await client.post(EngineRequest("/classify", {}))

    with serve_raw(lambda _: [answer]) as server:
        return asyncio.run(post(server.base_url.removesuffix("/v1")))


@pytest.mark.parametrize("codec", NO_TEXT)
def test_whatever_codec_a_server_names_json_is_utf_8(codec: str) -> None:
    answer = http(GOOD).replace(b"application/json", f"application/json; charset={codec}".encode())
    assert posted(answer) == {"data": [{"index": 0, "probs": [0.5]}]}


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
def test_json_that_has_no_end_is_not_parsed(status: str) -> None:
    with pytest.raises(ServerError, match=r"sent a reply that is not JSON|rejects the request"):
        posted(http(b"[" * 100_000 + b"]" * 100_000, status=status))


def test_a_number_that_no_float_holds_is_no_score() -> None:
    reply = {"data": [{"index": 0, "probs": [10**400]}]}
    with pytest.raises(ReplyError, match=r"^sent 10{39} as a score$"):
        VLLM.read(reply, [Conversation([1, 2], "", range(1))], ServerInfo("1", ("m",)))
