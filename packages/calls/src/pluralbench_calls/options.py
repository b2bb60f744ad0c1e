"""Options that every command with a chat model has, so that they are called and explained alike."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pluralbench_calls.chat import ChatConnection

_FIELDS = ChatConnection.model_fields

BaseUrl = Annotated[str | None, typer.Option(help=_FIELDS["base_url"].description)]
ApiKeyEnv = Annotated[str | None, typer.Option(help=_FIELDS["api_key_env"].description)]
TokenPrice = Annotated[str | None, typer.Option("--price", metavar="IN/OUT", help=_FIELDS["price"].description)]
Batch = Annotated[bool, typer.Option("--batch", help=_FIELDS["batch"].description)]
Pending = Annotated[Path | None, typer.Option(metavar="FILE", help=_FIELDS["pending"].description)]
Import = Annotated[list[Path] | None, typer.Option("--import", metavar="FILE", help=_FIELDS["results"].description)]


def connection_values(
    price: str | None, pending: Path | None, results: list[Path] | None, *, batch: bool
) -> dict[str, Any]:
    """What the command line changes of a recipe's connection, by dotted key."""
    return {
        "connection.price": price,
        "connection.pending": None if pending is None else str(pending),
        "connection.results": [str(path) for path in results] if results else None,
        "connection.batch": batch or None,
    }
