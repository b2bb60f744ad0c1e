"""Options that every command with a chat model has, so that they are called and explained alike."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pluralbench_calls.chat import ChatConnection

_FIELDS = ChatConnection.model_fields

BaseUrl = Annotated[str | None, typer.Option(help=_FIELDS["base_url"].description)]
ApiKeyEnv = Annotated[str | None, typer.Option(help=_FIELDS["api_key_env"].description)]
TokenPrice = Annotated[str | None, typer.Option("--price", metavar="IN/OUT", help=_FIELDS["price"].description)]

Pending = Annotated[Path | None, typer.Option(metavar="FILE", help=_FIELDS["pending"].description)]
Import = Annotated[list[Path] | None, typer.Option("--import", metavar="FILE", help=_FIELDS["results"].description)]


def file_values(pending: Path | None, results: list[Path] | None) -> dict[str, Any]:
    """What files of calls on the command line change in a recipe, by dotted key."""
    return {
        "connection.pending": None if pending is None else str(pending),
        "connection.results": [str(path) for path in results] if results else None,
    }


def price_values(price: str | None) -> dict[str, Any]:
    """What a price on the command line changes in a recipe, by dotted key."""
    return {} if price is None else {"connection.price": price}
