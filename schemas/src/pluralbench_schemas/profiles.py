"""Posts and rubric aspects of a user: their types, and a profile as text.

Nothing here needs pandera, so a command that reads profiles starts without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

POST = pl.Struct({"id": pl.String, "category": pl.String, "text": pl.String})
RUBRIC_ASPECT = pl.Struct({"aspect": pl.String, "evidence": pl.String, "reason": pl.String})


def render_profile(posts: Sequence[Mapping[str, Any]]) -> str:
    """Format posts for a prompt; see `render_posts`."""
    return "\n".join(render_posts(posts))


def render_posts(posts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format each post for a prompt: a header with its number and category (if any), then the text."""
    headers = [f"Post {number}, {post.get('category') or ''}" for number, post in enumerate(posts, start=1)]
    return [f"[{header.removesuffix(', ')}]\n{post['text']}" for header, post in zip(headers, posts, strict=True)]
