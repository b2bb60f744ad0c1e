"""`ServingConfig`: the servers that hold a reward model, and how they are asked."""

from typing import Any

from pluralbench_calls.backends.endpoint import provider_of
from pluralbench_calls.errors import CallsError
from pluralbench_runs import FrozenModel
from pydantic import Field, field_validator

from pluralbench_rewards.served.engine import EngineName

ADDRESSES = "URL[,URL...]"


class ServingConfig(FrozenModel):
    """The servers that hold a reward model, and how they are asked. A run may go on under other values.

    server: addresses of servers that hold the same model; they share the work. reference_server: likewise of an
    implicit reward's reference. engine: without it the servers' own pages tell. served_name: the model's name there,
    which is needed where a server holds several. check: how many items are compared before the first score, with the
    weights here where they are to be had and fit, else among the servers.
    """

    server: tuple[str, ...] = Field(
        (),
        description="Score through servers that hold the model, which share the work.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    reference_server: tuple[str, ...] = Field(
        (),
        description="Servers that hold the reference of an implicit reward.",
        json_schema_extra={"as_text": True, "metavar": ADDRESSES},
    )
    engine: EngineName | None = Field(None, description="What the servers are; without it their pages tell.")
    served_name: str | None = Field(None, description="The model's name at the servers, where they hold several.")
    check: int = Field(
        4,
        ge=0,
        description="Items that are compared before the first score: with the weights where they are here and fit, "
        "else among the servers.",
    )
    batch_size: int = Field(32, ge=1, description="Conversations of a request.")
    concurrency: int = Field(8, ge=1, description="Requests that are in flight at once.")
    timeout: float = Field(
        120.0, gt=0, description="Seconds for one try of a request, until the last byte of its answer is there."
    )
    max_retries: int = Field(
        6,
        ge=0,
        description="Further tries where the endpoint is busy, fails or does not answer in time; at most 1 while no "
        "connection to it was ever made.",
    )
    api_key_env: str | None = Field(
        None,
        description="Environment variable with the servers' key; without it none is sent.",
        json_schema_extra={"flag": "--server-key-env"},
    )

    @field_validator("server", "reference_server", mode="before")
    @classmethod
    def _several(cls, urls: Any) -> Any:
        return tuple(urls.split(",")) if isinstance(urls, str) else urls

    @field_validator("server", "reference_server")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        # An address of OpenAI's protocol is the same server's.
        plain = tuple(url.strip().rstrip("/").removesuffix("/v1").rstrip("/") for url in urls)
        for url in plain:
            try:
                provider_of(url)
            except CallsError:
                raise ValueError(
                    "a server is given as http://HOST:PORT, without a user, a password or a query"
                ) from None
        twice = next((url for url in plain if plain.count(url) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is given twice")
        return plain
