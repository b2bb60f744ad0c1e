"""A request's key: what is part of it, what is not, and that it stays what published ledgers hold."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import CallsError, Request, provider_of


def test_the_key_is_the_digest_of_canonical_json() -> None:
    request = Request(
        "chat", "localhost", "m", {"temperature": 1.0, "messages": [{"content": "你好\u2028", "a": 1}]}, 3
    )
    canonical = (
        '{"body":{"messages":[{"a":1,"content":"你好\u2028"}],"temperature":1},'
        '"kind":"chat","model":"m","provider":"localhost","sample":3}'
    )
    assert request.key == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    ("base_url", "provider"),
    [
        ("https://api.example.com/v1", "api.example.com"),
        ("HTTPS://API.Example.com/v1", "api.example.com"),
        ("http://api.example.com:8443/other/", "api.example.com"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1"),
        ("http://[::1]:8000/v1", "::1"),
    ],
)
def test_the_provider_is_the_host_without_port_and_path(base_url: str, provider: str) -> None:
    assert provider_of(base_url) == provider


NO_URL = "The base URL is not of the form https://HOST/v1."
PRIVATE = "api.example.com has a user, a password or a query"
REFUSED_URLS = {
    **dict.fromkeys(("", "api.example.com/v1", "localhost:8000/v1", "ftp://example.com", "http:///v1"), NO_URL),
    **dict.fromkeys(("http://[::1/v1", "https://host:port/v1", "https://host:99999/v1", "https://h /v1"), NO_URL),
    **dict.fromkeys(("user:hunter2@api.example.com/v1", "api.example.com/v1?key=hunter2"), NO_URL),
    "ftp://me:hunter2@example.com": NO_URL,
    **{f"https://{user}@api.example.com/v1": PRIVATE for user in ("user:hunter2", "hunter2", ":hunter2")},
    **{f"https://api.example.com/v1{end}": PRIVATE for end in ("?key=hunter2", "#hunter2")},
    "https://api.example.com/v1/chat/completions/": "ends in /chat/completions, which is added to it",
}


@pytest.mark.parametrize(("base_url", "sentence"), REFUSED_URLS.items())
def test_what_is_no_base_url_is_refused_without_repeating_it(base_url: str, sentence: str) -> None:
    with pytest.raises(CallsError) as refused:
        provider_of(base_url)
    assert sentence in str(refused.value)
    assert "hunter2" not in str(refused.value)


LEAF = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text()


JSON = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


BODY = st.dictionaries(st.text(), JSON, max_size=4)


WORDS = ("", "chat", "rank", "中文", "مرحبا", "🙂")


REQUEST = st.builds(
    Request,
    kind=st.sampled_from(WORDS),
    provider=st.sampled_from(WORDS),
    model=st.sampled_from(WORDS),
    body=BODY,
    sample=st.integers(0, 2),
    label=st.sampled_from(WORDS),
)


def backwards(value: object) -> object:
    """The same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: backwards(item) for key, item in reversed(value.items())}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def identity(request: Request) -> str:
    parts = [request.kind, request.provider, request.model, request.body, request.sample]
    return json.dumps(parts, sort_keys=True)


@given(REQUEST, REQUEST)
def test_keys_are_equal_when_all_but_the_label_and_the_order_of_keys_is(one: Request, other: Request) -> None:
    assert (one.key == other.key) == (identity(one) == identity(other))
    body = backwards(one.body)
    assert isinstance(body, dict)
    assert replace(one, label=other.label, body=body).key == one.key


@given(REQUEST)
def test_every_field_but_the_label_is_part_of_the_key(request_: Request) -> None:
    changed = [
        replace(request_, kind=request_.kind + "x"),
        replace(request_, provider=request_.provider + "x"),
        replace(request_, model=request_.model + "x"),
        replace(request_, body={**request_.body, "a name that is not drawn": None}),
        replace(request_, sample=request_.sample + 1),
    ]
    assert len({request_.key, *(request.key for request in changed)}) == 6
