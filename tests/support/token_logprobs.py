"""Tokens of a reply with their logprobs, as vLLM and OpenAI send them."""

import math
from collections.abc import Sequence
from typing import Any


def token(text: str, **top: float) -> dict[str, Any]:
    """A token and its probability (`own`), with those of other tokens in its place."""
    every = {text: top.pop("own", 0.9), **top}
    entries = [{"token": one, "logprob": math.log(p), "bytes": [*one.encode()]} for one, p in every.items()]
    return {**entries[0], "top_logprobs": entries}


def sent(pieces: Sequence[str | dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The text of these tokens, and their logprobs as the server sends them."""
    tokens = [token(piece) if isinstance(piece, str) else piece for piece in pieces]
    return "".join(one["token"] for one in tokens), {"content": tokens}
