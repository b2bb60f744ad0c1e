"""Stack Exchange dumps, written for tests."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any


def post(number: int, user: str | None = "1", **changes: Any) -> str:
    """A `<row>` of Posts.xml: a question of `user`, a day later for each number; None leaves an attribute out."""
    values: dict[str, Any] = {
        "Id": number,
        "PostTypeId": 1,
        "CreationDate": f"2016-01-{number:02}T10:00:00.000",
        "Body": f"<p>body {number}</p>",
        "OwnerUserId": user,
        "Title": f"title {number}",
        "Tags": "<first><second>",
    }
    attributes = " ".join(f'{name}="{escape(str(v))}"' for name, v in (values | changes).items() if v is not None)
    return f"  <row {attributes} />\n"


def dump(folder: Path, posts: Sequence[str], name: str = "beer.stackexchange.com/Posts.xml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(posts), encoding="utf-8-sig")
    return path


def text_of(posts: Sequence[str]) -> str:
    """The text of a dump."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n<posts>\n{"".join(posts)}</posts>\n'
