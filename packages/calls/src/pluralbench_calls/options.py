"""Options that every command with a chat model has, so that they are called and explained alike."""

from typing import Annotated, Any

import typer

from pluralbench_calls.chat import ChatConnection

_FIELDS = ChatConnection.model_fields

BaseUrl = Annotated[str | None, typer.Option(help=_FIELDS["base_url"].description)]
ApiKeyEnv = Annotated[str | None, typer.Option(help=_FIELDS["api_key_env"].description)]
TokenPrice = Annotated[str | None, typer.Option("--price", metavar="IN/OUT", help=_FIELDS["price"].description)]
Batch = Annotated[bool, typer.Option("--batch", help=_FIELDS["batch"].description)]


def connection_values(price: str | None, *, batch: bool) -> dict[str, Any]:
    """What the command line changes of a recipe's connection, by dotted key."""
    return {"connection.price": price, "connection.batch": batch or None}
