"""Options that every command with a chat model has, so that they are called and explained alike."""

from typing import Annotated, Any

import typer

from pluralbench_calls.chat import ChatConnection

_FIELDS = ChatConnection.model_fields

BaseUrl = Annotated[str | None, typer.Option(help=_FIELDS["base_url"].description)]
ApiKeyEnv = Annotated[str | None, typer.Option(help=_FIELDS["api_key_env"].description)]
TokenPrice = Annotated[str | None, typer.Option("--price", metavar="IN/OUT", help=_FIELDS["price"].description)]


def price_values(price: str | None) -> dict[str, Any]:
    """What a price on the command line changes in a recipe, by dotted key."""
    return {} if price is None else {"connection.price": price}
