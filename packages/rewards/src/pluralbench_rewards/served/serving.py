"""`ServingConfig`: the inference servers of a reward model."""

from typing import Any

from pluralbench_calls.backends.endpoint import provider_of
from pluralbench_calls.errors import CallsError
from pluralbench_runs import FrozenModel
from pydantic import Field, field_validator

from pluralbench_rewards.served.engine import EngineName

ADDRESSES = "URL[,URL...]"


class ServingConfig(FrozenModel):
    """Inference servers that hold a reward model, and how to query them. A resumed run may have other values."""

    server: tuple[str, ...] = Field(
        (),
        description="Score through these servers, which hold the same model and share the work.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    reference_server: tuple[str, ...] = Field(
        (),
        description="Servers that hold the reference of an implicit reward.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    engine: EngineName | None = Field(None, description="Software of the servers. Default: detected.")
    served_name: str | None = Field(
        None, description="The model's name on the servers; needed where a server holds several."
    )
    verify_items: int = Field(
        4,
        ge=0,
        description="Items to compare before scoring: with the local weights if available, else among the servers.",
    )
    batch_size: int = Field(32, ge=1, description="Conversations per request.")
    concurrency: int = Field(8, ge=1, le=10_000, description="Concurrent requests.")
    timeout: float = Field(120.0, gt=0, description="Timeout of a request in seconds, up to its last byte.")
    max_retries: int = Field(
        6, ge=0, le=100, description="Retries of a failed request; at most 1 before the first connection succeeds."
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable with the servers' API key. Default: no key.",
        json_schema_extra={"flag": "--server-api-key-env"},
    )

    @field_validator("server", "reference_server", mode="before")
    @classmethod
    def _several(cls, urls: Any) -> Any:
        return tuple(urls.split(",")) if isinstance(urls, str) else urls

    @field_validator("server", "reference_server")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        # The address of OpenAI's API ends in /v1 and is the same server's.
        plain = tuple(url.strip().rstrip("/").removesuffix("/v1").rstrip("/") for url in urls)
        for url in plain:
            try:
                provider_of(url)
            except CallsError:
                raise ValueError(
                    "a server's address has the form http://HOST:PORT, without user, password or query"
                ) from None
        twice = next((url for url in plain if plain.count(url) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is listed twice")
        return plain
