"""The embedded model, for real, and where its weights come from."""

import filecmp
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_repositories import Commit, File
from live_hub import CUT, GONE, Fault, Hub
from pluralbench_calls import LOCAL_MODEL, CallsError, EmbeddedModel, Ledger, Request, ask, embedded_weights
from pluralbench_calls.backends import local

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


def test_a_server_that_is_missing_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(
        CallsError, match=r"server is not installed: `uv sync --inexact --package pluralbench-calls"
    ) as no:
        ask([question("Hi.")], ledger, EmbeddedModel())
    assert "0 of 1 calls are recorded" in str(no.value)


@pytest.fixture
def weights(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A file that the Hub serves in place of the weights, which are not installed."""
    content = bytes(range(256)) * 400
    there = hub.create(local.REPOSITORY, "models")
    there.commits[local.COMMIT] = Commit({local.FILE: File(content, large=True)}, "Weights", oid=local.COMMIT)
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(local, "PACKAGE", "no_package_of_this_name")
    return content


def test_weights_that_are_not_installed_come_from_the_hub_once(hub: Hub, weights: bytes) -> None:
    file = embedded_weights()
    assert file.read_bytes() == weights
    assert f"/{local.COMMIT}/" in str(file)
    asked = len(hub.asked)
    assert embedded_weights() == file
    assert len(hub.asked) == asked


def test_other_weights_are_refused(weights: bytes, hub: Hub) -> None:
    there = hub.repository(local.REPOSITORY, "models")
    there.commits[local.COMMIT] = Commit({local.FILE: File(weights[::-1], large=True)}, "Others", oid=local.COMMIT)
    with pytest.raises(
        CallsError, match=rf"{local.FILE} is damaged or another file: its SHA-256 is not \w+...; delete it"
    ):
        embedded_weights()


@pytest.mark.usefixtures("weights")
def test_without_the_hub_both_ways_are_named(hub: Hub, ledger: Ledger) -> None:
    hub.faults = [Fault("GET", "api/models", GONE, times=99)]
    both = (
        r"cannot be fetched \(Server disc.*\); connect to the Hub, or install them: `uv sync --inexact --group local`"
    )
    with pytest.raises(CallsError, match=both):
        ask([question("Hi.")], ledger, EmbeddedModel())


@pytest.mark.heavy
def test_a_download_that_was_cut_goes_on_to_the_weights_of_the_package(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = embedded_weights()
    assert "site-packages" in str(installed)
    there = hub.create(local.REPOSITORY, "models")
    file = File(installed.read_bytes(), large=True)
    there.commits[local.COMMIT] = Commit({local.FILE: file}, "Weights", oid=local.COMMIT)
    monkeypatch.setattr(local, "PACKAGE", "no_package_of_this_name")
    hub.faults = [Fault("GET", local.FILE, CUT)]
    assert filecmp.cmp(embedded_weights(), installed, shallow=False)
    got = [one for one in hub.asked if one.startswith("GET") and local.FILE in one]
    assert [one.rpartition(" ")[2] for one in got] == ["200", "206"]
