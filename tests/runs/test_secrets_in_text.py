"""Secrets of the environment do not survive in a text; words beside them do."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import environment_secrets, redact

KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=8).filter(
    lambda key: len(key.strip()) >= 8
)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path) -> Iterator[None]:
    """An environment that holds nothing but what a test adds."""
    with mock.patch.dict(os.environ, {"HOME": str(tmp_path)}, clear=True):
        yield


@given(KEYS)
def test_no_form_of_a_secret_survives(key: str) -> None:
    with mock.patch.dict(os.environ, {"SOME_API_KEY": key}):
        key = key.strip()
        for form in (key, quote(key), quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1]):
            assert redact(f"a {form} b") == "a [key] b"


@given(st.text())
def test_a_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "my_api_key"])
def test_a_variable_is_known_by_the_end_of_its_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, " value-of-it\n")
    assert environment_secrets() == ["value-of-it"]
    assert redact("Bearer value-of-it.") == "Bearer [key]."


def test_a_short_value_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "seven77")
    assert environment_secrets() == []


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_password_of_a_proxy_is_a_secret_and_its_user_is_a_word(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://somebody:pass%2Fword@host:notaport")
    message = redact("somebody at http://somebody:pass%2Fword@host:notaport with pass/word")
    assert message == "somebody at http://[key]@host:notaport with [key]"


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, ".cache/huggingface/token"),
        ({"XDG_CACHE_HOME": "{home}/cache"}, "cache/huggingface/token"),
        ({"HF_HOME": "$HOME/hub"}, "hub/token"),
        ({"HF_TOKEN_PATH": "~/mine"}, "mine"),
    ],
)
def test_the_token_of_the_hubs_client_is_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], place: str
) -> None:
    assert environment_secrets() == []
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("hf_of-the-file\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    assert environment_secrets() == ["hf_of-the-file"]


def test_a_variable_of_any_name_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT", "value-of-it")
    assert redact("value-of-it", "UNSET") == "value-of-it"
    assert redact("value-of-it", "ENDPOINT") == "[key]"


def test_of_two_secrets_the_longer_is_replaced_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "12345678")
    monkeypatch.setenv("B_KEY", "1234567890")
    assert redact("1234567890 12345678") == "[key] [key]"
