"""Configuration of chat models and connections, and requests to them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pluralbench_runs import FrozenModel, RecipeError, rng_for
from pluralbench_runs.recipe_options import Overrides
from pydantic import AfterValidator, Field, field_validator

from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES, Endpoint, provider_of
from pluralbench_calls.errors import CallsError
from pluralbench_calls.limits import Limits, Price
from pluralbench_calls.logprobs import TOP
from pluralbench_calls.records import Backend, Request

if TYPE_CHECKING:
    from pluralbench_calls.ledger import Ledger

LOCAL = "local"
OPENAI = "https://api.openai.com/v1"
MAX_TIMEOUT = 86_400.0
BYTES_PER_LOGPROB = 160  # of a token in JSON, with some room
MAX_ATTEMPTS = 100
"""Maximum number of attempts at one sample of a reply; see `chat_request`."""

OWN_FIELDS = {"model", "messages", "temperature", "top_p", "max_tokens", "seed", "response_format", "logprobs"}
OWN_FIELDS |= {"n", "stream"}
"""Request fields that the program sets, or whose replies it could not read."""

Message = dict[str, str]
"""A message with `role` and `content`."""


def _check_extra(extra: dict[str, Any]) -> dict[str, Any]:
    own = next((name for name in extra if name in OWN_FIELDS), None)
    if own is not None:
        raise ValueError(f"the request field `{own}` is set by the program; use its own option if there is one")
    return extra


ExtraFields = Annotated[
    dict[str, Any],
    AfterValidator(_check_extra),
    Field(
        description="Further field of each request, as JSON; repeatable.",
        json_schema_extra={"metavar": "KEY=JSON", "example": "reasoning_effort='\"low\"'"},
    ),
]
"""Additional fields of requests, such as `{"reasoning_effort": "low"}`."""


class ChatModel(FrozenModel):
    """A chat model and its sampling."""

    provider: str = Field(
        description="Provider of the model: `local` (the embedded model), the host of an OpenAI-compatible endpoint, "
        "or a name that the builder defines."
    )
    model: str = Field(description="Name of the model at its provider.")
    temperature: float = Field(1.0, ge=0, description="Sampling temperature; 0 is greedy.")
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling: cumulative probability.")
    max_tokens: int = Field(512, ge=1, description="Maximum tokens per reply.")
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="Request field that holds the maximum number of tokens."
    )
    seeded: bool = Field(False, description="Send a seed with each request; some servers refuse it.")
    structured_output: bool = Field(
        True, description="Send a JSON schema with requests for JSON; some servers refuse it."
    )
    extra: dict[str, Any] = Field(default_factory=dict, description="Additional request fields, sent unchanged.")


class ConnectionConfig(FrozenModel):
    """Endpoint of a chat model, its rate limits and its cost. A resumed run may have other values."""

    base_url: str | None = Field(
        None, description="OpenAI-compatible endpoint, such as https://HOST/v1. Default: OpenAI's API."
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable with the key. Default: OPENAI_API_KEY for OpenAI's API, else none.",
    )
    timeout: float = Field(
        120.0, gt=0, le=MAX_TIMEOUT, description="Timeout of a request in seconds, up to its last byte."
    )
    max_retries: int = Field(
        6, ge=0, le=100, description="Retries of a failed request; at most 1 before the first connection."
    )
    max_answer_bytes: int = Field(
        MAX_ANSWER_BYTES,
        ge=1,
        description="Maximum bytes of a response; longer ones count as truncated.",
    )
    concurrency: int = Field(8, ge=1, le=10_000, description="Concurrent requests.")
    requests_per_minute: float | None = Field(None, gt=0, description="Rate limit in requests per minute.")
    tokens_per_minute: float | None = Field(
        None, gt=0, description="Rate limit in tokens per minute, of prompts and replies (estimated)."
    )
    batch: bool = Field(
        False,
        description="Use the Batch API: replies within 24 hours at a lower price.",
    )
    price: Price = Field(
        Price(),
        description="US dollars per million prompt and reply tokens, such as 0.25/2.",
        json_schema_extra={"as_text": True, "metavar": "IN/OUT"},
    )
    max_cost: float | None = Field(
        None,
        ge=0,
        description="Spending limit in US dollars by --price; requests that could exceed it are not sent.",
    )

    @field_validator("price", mode="before")
    @classmethod
    def _parse_price(cls, price: object) -> object:
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
    def _none_to_empty(cls, results: object) -> object:
        return results or ()

    @field_validator("base_url")
    @classmethod
    def _strip(cls, base_url: str | None) -> str | None:
        return base_url and base_url.strip()

    @field_validator("api_key_env")
    @classmethod
    def _empty_to_none(cls, name: str | None) -> str | None:
        return name or None

    pending: Path | None = Field(
        None,
        exclude=True,
        description="Send nothing; write missing calls to this file in OpenAI's batch format; exit status 75.",
        json_schema_extra={"flag": "--pending", "metavar": "FILE"},
    )
    results: tuple[Path, ...] = Field(
        (),
        exclude=True,
        description="Result file of a batch, or folder of .jsonl files, to take replies from; repeatable.",
        json_schema_extra={"flag": "--import", "metavar": "FILE"},
    )

    def explicit_values(self) -> dict[str, Any]:
        """Return the values that were set explicitly, to create another connection with the same ones."""
        pending = None if self.pending is None else str(self.pending)
        files = {"pending": pending, "results": [str(path) for path in self.results]}
        return self.model_dump(exclude_unset=True) | files

    def limits(self) -> Limits:
        """Return the limits for sending requests."""
        return Limits(self.concurrency, self.requests_per_minute, self.tokens_per_minute, self.price, self.max_cost)


def check_connection(model: ChatModel, connection: ConnectionConfig, own: Sequence[str] = ()) -> None:
    """Raise `ValueError` if a connection does not fit a model. The providers `own` need none."""
    if model.provider not in {LOCAL, *own} and connection.base_url is None:
        raise ValueError(f"provider {model.provider!r} requires `connection.base_url=...`")
    if connection.batch and model.provider == LOCAL:
        raise ValueError("the embedded model has no Batch API; leave out `connection.batch=True`")
    if connection.batch and connection.pending is not None:
        raise ValueError("`connection.batch=True` and `connection.pending=...` cannot be combined")
    if connection.batch and (connection.requests_per_minute or connection.tokens_per_minute):
        limit = "requests_per_minute" if connection.requests_per_minute else "tokens_per_minute"
        raise ValueError(f"`connection.batch=True` and `connection.{limit}=...` cannot be combined")
    if connection.base_url is not None:
        try:
            provider_of(connection.base_url)
        except CallsError as error:
            raise ValueError(str(error)) from None
    if connection.max_cost is not None and connection.price == Price():
        raise ValueError("`connection.max_cost=...` requires `connection.price=...`")


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
    """Create a chat request. It does not depend on the server of the model; see `OpenAIChat` for that.

    Args:
        model: The model and its sampling parameters.
        messages: The conversation.
        seed: Seeds the request, together with `label` and `attempt`, if the model takes a seed.
        label: What the call is for, in words.
        attempt: 0, 1, ...; part of the request's key, so that each attempt is another sample. Attempts from
            `MAX_ATTEMPTS` on belong to further samples: those at sample s begin with s * `MAX_ATTEMPTS`.
        max_tokens: Maximum number of tokens to generate. Default: the model's.
        schema: JSON schema of the reply, with a `name` and the `schema` itself.
        temperature_step: Added to the temperature with each further attempt at a sample.
    """
    sample, retry = divmod(attempt, MAX_ATTEMPTS)
    body: dict[str, Any] = {
        "messages": list(messages),
        "temperature": round(model.temperature + temperature_step * retry, 3)
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
    name = f"{label}, sample {sample + 1}" if sample else label
    return Request("chat", model.provider, model.model, body, sample=attempt, label=f"{name}, attempt {retry + 1}")


def chat_backend(model: ChatModel, connection: ConnectionConfig) -> Backend:
    """Create the backend of a model: the embedded model, the endpoint of the connection, or files in its place."""
    from pluralbench_calls.backends.local import EmbeddedModel
    from pluralbench_calls.backends.openai import OpenAIChat
    from pluralbench_calls.batches.backend import OpenAIBatches
    from pluralbench_calls.batches.file_backend import FileBackend

    if model.provider == LOCAL:
        return EmbeddedModel()
    options = connection.model_dump(include={"api_key_env", "timeout", "max_retries", "max_answer_bytes"})
    if model.extra.get("logprobs"):
        options["max_answer_bytes"] += model.max_tokens * (TOP + 1) * BYTES_PER_LOGPROB
    online = (OpenAIBatches if connection.batch else OpenAIChat)(connection.base_url or "", **options)
    if connection.pending is None and not connection.results:
        return online
    return FileBackend(
        online,
        pending=connection.pending,
        results=connection.results,
        max_answer_bytes=options["max_answer_bytes"],
    )


def check_endpoint(model: ChatModel, connection: ConnectionConfig, ledger: "Ledger | None" = None) -> None:
    """Check before other work that the endpoint of a model can be reached and takes the key (`Endpoint.check`).

    A model in this process, calls that go to a file or come from one, and a model with an answer in the ledger need
    none.

    Raises:
        CallsError: It cannot be reached, or the key is missing or not accepted.
    """
    if ledger is not None and ledger.has_answer_from(model.provider):
        return
    if connection.base_url is not None and connection.pending is None and not connection.results:
        backend = chat_backend(model, connection)
        if isinstance(backend, Endpoint):
            from pluralbench_calls.loops import run

            run(backend.check())


def model_overrides(
    table: str, name: str, base_url: str | None, api_key_env: str | None, local: Mapping[str, Any]
) -> dict[str, Any]:
    """Map dotted keys of a recipe's `table` to the values that select a model by name.

    Without `api_key_env` the key is OPENAI_API_KEY for OpenAI, otherwise there is none. `local` has further values of
    the table for the embedded model.
    """
    if name == LOCAL:
        from pluralbench_calls.backends.local import LOCAL_MODEL

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
    overrides: Overrides, table: str, flag: str, local: Mapping[str, Any], own: Mapping[str, str] | None = None
) -> Overrides:
    """Replace the name of a model in a command's overrides by all values of `model_overrides`.

    `own` has providers that need no connection, with the model name of each.

    Raises:
        RecipeError: The overrides have an endpoint without a model.
    """
    name, url = overrides.get(f"{table}.model"), overrides.get("connection.base_url")
    if name is None:
        if url is not None:
            raise RecipeError(
                f"`connection.base_url=...` requires a model of that endpoint in place of the recipe's; name it with "
                f"{flag}."
            )
        return overrides
    if own is not None and name in own:
        return overrides | {f"{table}.provider": name, f"{table}.model": own[name]}
    return overrides | model_overrides(table, name, url, overrides.get("connection.api_key_env"), local)
