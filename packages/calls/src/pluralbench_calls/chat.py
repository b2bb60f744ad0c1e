"""A chat model as a recipe names it: which one, how it is sampled, and how it is reached; and requests to it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pluralbench_runs import FrozenModel, RecipeError, rng_for
from pluralbench_runs.options import Overrides
from pydantic import Field, field_validator

from pluralbench_calls.ask import Limits, Price
from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES, provider_of
from pluralbench_calls.backends.local import MODEL as LOCAL_MODEL
from pluralbench_calls.backends.local import EmbeddedModel
from pluralbench_calls.backends.openai import OpenAIChat
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.file_backend import FileBackend
from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Backend, Request

LOCAL = "local"
OPENAI = "https://api.openai.com/v1"
MAX_TIMEOUT = 86_400.0

Message = dict[str, str]
"""A message with `role` and `content`."""


class ChatModel(FrozenModel):
    """A model that answers chat requests, and how it is sampled."""

    provider: str = Field(
        description="Who serves the model: `local` (the embedded model), the host of an OpenAI-compatible endpoint, or "
        "a name of the builder's own."
    )
    model: str = Field(description="The model's name, as its server knows it.")
    temperature: float = Field(1.0, ge=0, description="Sampling temperature; 0 takes the likeliest token.")
    top_p: float | None = Field(
        None, gt=0, le=1, description="Draw from the likeliest tokens of this total probability only."
    )
    max_tokens: int = Field(512, ge=1, description="The most tokens of an answer.")
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="The name under which the most tokens are sent."
    )
    seeded: bool = Field(False, description="Send a seed with each request, which some servers refuse.")
    structured_output: bool = Field(
        True, description="Send a JSON schema where JSON is wanted, which some servers refuse."
    )
    extra: dict[str, Any] = Field(default_factory=dict, description="Further fields of each request, sent as they are.")


class ConnectionConfig(FrozenModel):
    """How a chat model is reached, how fast it is asked and what it may cost. A run may go on under other values."""

    base_url: str | None = Field(
        None, description="OpenAI-compatible endpoint of the model, such as https://HOST/v1; without it OpenAI's."
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable with the endpoint's key; without it OPENAI_API_KEY for OpenAI, else none.",
    )
    timeout: float = Field(
        120.0,
        gt=0,
        le=MAX_TIMEOUT,
        description="Seconds for one try of a request, until the last byte of its answer is there.",
    )
    max_retries: int = Field(
        6,
        ge=0,
        description="Further tries where the endpoint is busy, fails or does not answer in time; at most 1 while no "
        "connection to it was ever made.",
    )
    max_answer_bytes: int = Field(
        MAX_ANSWER_BYTES,
        ge=1,
        description="The most bytes of an answer as the server sends it; a longer one is not read to its end, and "
        "counts as cut off.",
    )
    concurrency: int = Field(8, ge=1, description="Requests that are in flight at once.")
    requests_per_minute: float | None = Field(None, gt=0, description="The most requests that are sent in a minute.")
    tokens_per_minute: float | None = Field(
        None, gt=0, description="The most tokens, sent and answered, in a minute, by a cautious estimate."
    )
    batch: bool = Field(
        False,
        description="Ask through the endpoint's Batch API, which answers within 24 hours and costs less; the price is "
        "then that of a batch.",
    )
    price: Price = Field(
        Price(),
        description="US dollars for a million tokens of prompts and of replies, such as 0.25/2.",
        json_schema_extra={"as_text": True, "metavar": "IN/OUT"},
    )
    max_cost: float | None = Field(
        None,
        ge=0,
        description="Spending ceiling in US dollars, by the price; no request is sent that may cross it.",
    )

    @field_validator("price", mode="before")
    @classmethod
    def _in_and_out(cls, price: object) -> object:
        if not isinstance(price, str):
            return price
        try:
            dollars = [float(part) for part in price.split("/")]
        except ValueError:
            dollars = []
        if len(dollars) != 2 or not all(0 <= amount < math.inf for amount in dollars):
            raise ValueError(f"{price!r} is not of the form IN/OUT, such as 0.25/2")
        return Price(input=dollars[0], output=dollars[1])

    @field_validator("results", mode="before")
    @classmethod
    def _some(cls, results: object) -> object:
        return results or ()

    @field_validator("api_key_env")
    @classmethod
    def _named(cls, name: str | None) -> str | None:
        return name or None

    pending: Path | None = Field(
        None,
        exclude=True,
        description="Send nothing: write the calls that are still needed to this file, in OpenAI's batch format, and "
        "stop with exit status 75.",
        json_schema_extra={"flag": "--pending", "metavar": "FILE"},
    )
    results: tuple[Path, ...] = Field(
        (),
        exclude=True,
        description="Take answers from this result file of a batch, or from the .jsonl files of this folder; "
        "repeatable.",
        json_schema_extra={"flag": "--import", "metavar": "FILE"},
    )

    def given(self) -> dict[str, Any]:
        """The values that were given, and no defaults, for a connection that is made of them."""
        pending = None if self.pending is None else str(self.pending)
        files = {"pending": pending, "results": [str(path) for path in self.results]}
        return self.model_dump(exclude_unset=True) | files

    def limits(self) -> Limits:
        """The limits under which requests are sent."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            price=self.price,
            max_cost=self.max_cost,
        )


def check_connection(model: ChatModel, connection: ConnectionConfig, own: Sequence[str] = ()) -> None:
    """Raise `ValueError`, one sentence for a recipe's reader, where the connection does not fit the model.

    own: providers that the builder serves itself.
    """
    if model.provider not in {LOCAL, *own} and connection.base_url is None:
        raise ValueError(f"provider {model.provider!r} needs a `base_url` under [connection]")
    if connection.batch and model.provider == LOCAL:
        raise ValueError("the embedded model takes no batches; leave out `batch` (--batch)")
    if connection.batch and connection.pending is not None:
        raise ValueError("calls go out as a batch (`batch`) or into a file (`pending`), and not both")
    if connection.batch and (connection.requests_per_minute or connection.tokens_per_minute):
        raise ValueError(
            "a batch is sent as a whole, so `requests_per_minute` and `tokens_per_minute` do not go with `batch`"
        )
    if connection.base_url is not None:
        try:
            provider_of(connection.base_url)
        except CallsError as error:
            raise ValueError(str(error)) from None
    if connection.max_cost is not None and connection.price == Price():
        raise ValueError("a `max_cost` needs a `price` under [connection] to be reckoned by")


def chat_request(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    seed: int,
    label: str,
    attempt: int = 0,
    max_tokens: int | None = None,
    schema: Mapping[str, Any] | None = None,
    temperature_step: float = 0.0,
) -> Request:
    """A chat request: the one maker of them. Nothing here depends on who serves the model; see `OpenAIChat` for that.

    Args:
        model: The model and its sampling parameters.
        messages: The conversation.
        seed: Seeds the request, together with `label` and `attempt`, if the model takes a seed.
        label: What the call is for, in words.
        attempt: 0, 1, ...; part of the request's key, so that each attempt is another sample.
        max_tokens: Maximum number of tokens to generate. Default: the model's.
        schema: JSON schema of the reply, with a `name` and the `schema` itself.
        temperature_step: Added to the temperature with each further attempt.
    """
    body: dict[str, Any] = {
        "messages": list(messages),
        "temperature": round(model.temperature + temperature_step * attempt, 3)
        if temperature_step
        else model.temperature,
        model.token_limit_field: max_tokens or model.max_tokens,
        **model.extra,
    }
    if model.top_p is not None:
        body["top_p"] = model.top_p
    if model.seeded:
        body["seed"] = rng_for(seed, "llm", label, attempt).randrange(2**31)
    if schema is not None and model.structured_output:
        body["response_format"] = {"type": "json_schema", "json_schema": dict(schema)}
    return Request("chat", model.provider, model.model, body, sample=attempt, label=f"{label}, attempt {attempt + 1}")


def chat_backend(model: ChatModel, connection: ConnectionConfig) -> Backend:
    """Who answers for the model: the embedded one, or the endpoint of the connection, or files in its place."""
    if model.provider == LOCAL:
        return EmbeddedModel()
    options = connection.model_dump(include={"api_key_env", "timeout", "max_retries", "max_answer_bytes"})
    online = (OpenAIBatches if connection.batch else OpenAIChat)(connection.base_url or "", **options)
    if connection.pending is None and not connection.results:
        return online
    return FileBackend(
        online, pending=connection.pending, results=connection.results, max_answer_bytes=connection.max_answer_bytes
    )


def model_overrides(
    table: str, name: str, base_url: str | None, api_key_env: str | None, local: Mapping[str, Any]
) -> dict[str, Any]:
    """What a model's name on the command line changes in a recipe, by dotted key.

    table: where the recipe has its model. name: `local`, or a model of `base_url` (without one, OpenAI's).
    local: values of the table for the embedded model.
    """
    if name == LOCAL:
        changes: dict[str, Any] = {"provider": LOCAL, "model": LOCAL_MODEL, **local}
        return {f"{table}.{key}": value for key, value in changes.items()}
    url = base_url or OPENAI
    return {
        f"{table}.provider": provider_of(url),
        f"{table}.model": name,
        "connection.base_url": url,
        "connection.api_key_env": api_key_env or ("OPENAI_API_KEY" if url == OPENAI else ""),
    }


def resolve_model_option(
    given: Overrides, table: str, flag: str, local: Mapping[str, Any], own: Mapping[str, str] | None = None
) -> Overrides:
    """What the command line says, with the model of `table` in place of its name.

    flag: of the option that names the model. local: values of the table for the embedded model. own: providers that the
    builder serves itself, with the model that the recipe then has. Raises `RecipeError` for an endpoint without model.
    """
    name, url = given.get(f"{table}.model"), given.get("connection.base_url")
    if name is None:
        if url is not None:
            raise RecipeError(f"--base-url says where a model is served; say which one with {flag}.")
        return given
    if own is not None and name in own:
        return given | {f"{table}.provider": name, f"{table}.model": own[name]}
    return given | model_overrides(table, name, url, given.get("connection.api_key_env"), local)
