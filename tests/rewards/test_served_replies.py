"""What replies of servers are made into, and what comparing two sources of scores finds."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_rewards.served.comparing import compare, detect_activation
from pluralbench_rewards.served.engine import Conversation, ReplyError, ServerInfo, ServingConfig
from pluralbench_rewards.served.engines import ENGINES, LLAMACPP, VLLM
from pluralbench_runs import UserError

ABOUT = ServerInfo("1", ("m",), labels=("LABEL_0",))
SCORES = st.floats(-50, 50, allow_nan=False, width=32)


def conversations(number: int) -> list[Conversation]:
    return [Conversation([1, place], "", range(1)) for place in range(number)]


@given(st.lists(SCORES, min_size=1, max_size=8), st.randoms())
def test_rows_are_put_in_the_order_of_the_conversations(values: list[float], draw: Any) -> None:
    rows = [{"index": place, "probs": [value]} for place, value in enumerate(values)]
    draw.shuffle(rows)
    reply = json.loads(json.dumps({"data": rows, "usage": {"prompt_tokens": 2 * len(values)}}))
    assert VLLM.read(reply, conversations(len(values)), ABOUT) == [[value] for value in values]


@given(st.lists(st.lists(SCORES, min_size=2, max_size=4), min_size=1, max_size=4), st.floats(0.5, 2))
def test_a_constant_is_told_and_changes_no_decision(scores: list[list[float]], shift: float) -> None:
    scores[0][0] = 50.0  # the scale
    compared = compare(scores, [[value + 100 * shift for value in row] for row in scores], "float32")
    assert compared.constant == pytest.approx(100 * shift)
    assert not compared.agree
    same = compare(scores, [[value + 1e-6 for value in row] for row in scores], "float32")
    assert (same.agree, same.constant, same.changed) == (True, 0.0, 0) or same.changed > 0


def test_what_an_activation_leaves_is_told() -> None:
    assert detect_activation([[1.0], [1.0]]) == "all scores are 1, as after a softmax over one logit"
    assert detect_activation([[0.2], [0.9]]) == "all scores lie between 0 and 1, as after a sigmoid or a softmax"
    assert detect_activation([[0.2], [-0.1]]) == detect_activation([[0.5]]) == ""


@pytest.mark.parametrize(
    ("given_as", "said"),
    [
        ("http://a:1,http://a:1/v1/", "http://a:1 is listed twice"),
        ("gpu1:8000", "a server's address has the form http://HOST:PORT"),
        ("http://me:secret@a:1", "without user, password or query"),
    ],
)
def test_an_address_that_is_none_is_refused(given_as: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        ServingConfig(server=given_as)
    assert "secret" not in str(refused.value)


LLAMA = ServerInfo("b1", ("tiny",))
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
        LLAMACPP.read(reply, ASKED, LLAMA)


def test_states_come_in_the_order_of_their_index() -> None:
    backwards = rows([[1.0, 2.0]], [[3.0, 4.0]])[::-1]
    assert LLAMACPP.read(backwards, ASKED, LLAMA) == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("pages", [{}, {"/v1/models": {"data": [{"owned_by": "vllm", "id": "m"}]}}, {"/v1/models": []}])
def test_pages_of_others_are_not_llama_cpps(pages: dict[str, Any]) -> None:
    assert LLAMACPP.identify(pages | {"/props": {"default_generation_settings": {"n_ctx": 64}}}) is None


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


GOOD: dict[str, Any] = {
    "vllm": {
        "data": [{"index": place, "probs": [0.5]} for place in range(2)],
        "choices": [{"index": place, "prompt_logprobs": [None, {str(place): {"logprob": -1.0}}]} for place in range(2)],
        "usage": {"prompt_tokens": 4},
    },
    "sglang": [{"embedding": [0.5], "meta_info": {"prompt_tokens": 2}} for _ in range(2)],
    "tei": [[{"score": 0.5, "label": "LABEL_0"}] for _ in range(2)],
}


OWNERS = ("vllm", "sglang", "llamacpp")


PAGES: dict[str, Any] = {
    "/version": {"version": "0.32.0"},
    "/v1/models": {"data": [{"id": "m", "owned_by": owner, "max_model_len": 9, "root": "m"} for owner in OWNERS]},
    "/model_info": {"model_path": "m", "is_generation": False},
    "/server_info": {"version": "0.5.23"},
    "/props": {"default_generation_settings": {"n_ctx": 9}, "build_info": "b1"},
    "/info": {"model_id": "m", "model_type": {"classifier": {"id2label": {"0": "a"}}}, "max_client_batch_size": 32},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in JSON, by keys and numbers."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in inner for found in places(part, (*path, key)))]


@st.composite
def changed(draw: Any, good: Any) -> Any:
    """JSON of which one part is another."""
    new = json.loads(json.dumps(good))
    path = draw(st.sampled_from(places(good)))
    other = draw(ANY_JSON)
    if not path:
        return other
    part = new
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = other
    return new


@given(st.sampled_from([engine for engine in ENGINES if engine.name in GOOD]), st.data())
def test_any_reply_is_a_row_of_numbers_for_each_conversation_or_an_error(engine: Any, draw: st.DataObject) -> None:
    reply = draw.draw(changed(GOOD[engine.name]))
    for read in filter(None, (engine.read, engine.read_implicit)):
        with suppress(ReplyError):
            rows = read(reply, conversations(2), ABOUT)
            assert len(rows) == 2
            assert all(isinstance(value, float) for row in rows for value in row)


@given(st.sampled_from(ENGINES), changed(PAGES))
def test_any_pages_are_an_engine_s_or_not(engine: Any, pages: Any) -> None:
    with suppress(ReplyError):
        about = engine.identify(pages if isinstance(pages, dict) else {})
        assert about is None or about.models
