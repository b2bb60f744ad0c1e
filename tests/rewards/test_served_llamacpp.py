"""What llama.cpp's pages and replies must be."""

import math
from typing import Any

import pytest
from pluralbench_rewards.served.engine import Conversation, ReplyError, ServerInfo
from pluralbench_rewards.served.llamacpp import identify, read

ABOUT = ServerInfo("b1", ("tiny",))
ASKED = [Conversation([5, 6], "", range(0)), Conversation([7], "", range(0))]


def rows(*states: list[list[float]] | None) -> list[dict[str, object]]:
    return [{"index": place, "embedding": state} for place, state in enumerate(states)]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (rows([[1.0, 2.0]]), "sent 1 results for 2 conversations"),
        (rows([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]), "sent 2 hidden states of one conversation; start it with "),
        (rows([[0.6, 0.8]], [[-1.0, 0.0]]), "normalizes hidden states although `embd_normalize` is -1"),
        (rows([[math.nan, 0.8]], [[-1.0, 2.0]]), "sent nan as a score"),
        (rows([[1.0, 2.0]], None), "sent 0 hidden states of one conversation; start it with --embeddings --pooling "),
        ({"error": "busy"}, "sent dict instead of a list of results"),
    ],
)
def test_a_reply_that_is_not_one_state_for_each_conversation_is_refused(reply: Any, said: str) -> None:
    with pytest.raises(ReplyError, match=f"^{said}"):
        read(reply, ASKED, ABOUT)


def test_states_come_in_the_order_of_their_index() -> None:
    backwards = rows([[1.0, 2.0]], [[3.0, 4.0]])[::-1]
    assert read(backwards, ASKED, ABOUT) == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("pages", [{}, {"/v1/models": {"data": [{"owned_by": "vllm", "id": "m"}]}}, {"/v1/models": []}])
def test_pages_of_others_are_not_llama_cpps(pages: dict[str, Any]) -> None:
    assert identify(pages | {"/props": {"default_generation_settings": {"n_ctx": 64}}}) is None
