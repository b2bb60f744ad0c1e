"""A chat model as a recipe names it: which one, how it is sampled, and how it is reached."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pluralbench_runs import Table, stream
from pydantic import Field, field_validator

from pluralbench_calls.ask import Limits, Price
from pluralbench_calls.backends.local import MODEL as LOCAL_MODEL
from pluralbench_calls.backends.local import LocalModel
from pluralbench_calls.backends.openai import OpenAIChat, provider_of
from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Backend, Request

LOCAL = "local"
OPENAI = "https://api.openai.com/v1"

Message = dict[str, str]
"""A message with `role` and `content`."""


class ChatModel(Table):
    """A model that answers chat requests, and how it is sampled.

    provider: `local` (the embedded model), the host of an OpenAI-compatible endpoint, or a name of the builder's own.
    max_tokens: the most tokens of an answer. seeded: send a seed with each request; some servers refuse one.
    structured_output: send a JSON schema where JSON is wanted; some servers take none.
    extra: further fields of each request.
    """

    provider: str
    model: str
    temperature: float = Field(1.0, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int = Field(512, ge=1)
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - no secret
    seeded: bool = False
    structured_output: bool = True
    extra: dict[str, Any] = Field(default_factory=dict)


class ChatPrice(Table):
    """US dollars for a million tokens."""

    input: float = Field(0.0, ge=0)
    output: float = Field(0.0, ge=0)


class ChatConnection(Table):
    """How to reach a chat model, how fast and how dear. A build may go on under other values.

    api_key_env: the environment variable that holds the key; "" is none.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    timeout: float = Field(120.0, gt=0)
    max_retries: int = Field(6, ge=0)
    concurrency: int = Field(8, ge=1)
    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)
    price: ChatPrice = ChatPrice()
    max_cost: float | None = Field(None, ge=0)

    @field_validator("api_key_env")
    @classmethod
    def _named(cls, name: str | None) -> str | None:
        return name or None

    def limits(self) -> Limits:
        """The limits of every step of the build."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            price=Price(self.price.input, self.price.output),
            max_cost=self.max_cost,
        )


def check_reachable(model: ChatModel, connection: ChatConnection, own: Sequence[str] = ()) -> None:
    """Raise `ValueError`, one sentence for a recipe's reader, where the connection does not fit the model.

    own: providers that the builder serves itself.
    """
    if model.provider not in {LOCAL, *own} and connection.base_url is None:
        raise ValueError(f"provider {model.provider!r} needs a `base_url` under [connection]")
    if connection.base_url is not None:
        try:
            provider_of(connection.base_url)
        except CallsError as error:
            raise ValueError(str(error)) from None
    if connection.max_cost is not None and connection.price == ChatPrice():
        raise ValueError("a `max_cost` needs a `price` under [connection] (or --price) to be reckoned by")


def chat_request(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    seed: int,
    label: str,
    attempt: int = 0,
    max_tokens: int | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Request:
    """A chat request. What it sends as seed, where the model takes one, depends on seed, label and attempt alone.

    max_tokens: in place of the model's. schema: of the JSON that is wanted.
    """
    body: dict[str, Any] = {
        "messages": list(messages),
        "temperature": model.temperature,
        model.token_limit_field: max_tokens or model.max_tokens,
        **model.extra,
    }
    if model.top_p is not None:
        body["top_p"] = model.top_p
    if model.seeded:
        body["seed"] = stream(seed, "llm", label, attempt).randrange(2**31)
    if schema is not None and model.structured_output:
        body["response_format"] = {"type": "json_schema", "json_schema": dict(schema)}
    return Request("chat", model.provider, model.model, body, sample=attempt, label=f"{label}, attempt {attempt + 1}")


def chat_backend(model: ChatModel, connection: ChatConnection) -> Backend:
    """Who answers for the model: the embedded one, or the endpoint of the connection."""
    if model.provider == LOCAL:
        return LocalModel()
    return OpenAIChat(
        connection.base_url or "",
        api_key_env=connection.api_key_env,
        timeout=connection.timeout,
        max_retries=connection.max_retries,
    )


def chosen_model(
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
