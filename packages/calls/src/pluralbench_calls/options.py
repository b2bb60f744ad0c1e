"""Options that every command with a chat model has, so that they are called and explained alike."""

from typing import Annotated, Any

import typer

from pluralbench_calls.chat import OPENAI

BaseUrl = Annotated[str | None, typer.Option(help=f"OpenAI-compatible endpoint of the model; without it {OPENAI}.")]
ApiKeyEnv = Annotated[
    str | None, typer.Option(help="Environment variable with the endpoint's key; OPENAI_API_KEY for OpenAI.")
]
TokenPrice = Annotated[
    str | None,
    typer.Option("--price", metavar="IN/OUT", help="US dollars for a million tokens in and out, such as 0.25/2."),
]


def price_values(price: str | None) -> dict[str, Any]:
    """What a price on the command line changes in a recipe, by dotted key."""
    return {} if price is None else {"connection.price": price}
