"""A backbone: a frozen model that gives one vector for a text."""

from typing import Literal

from pluralbench_runs import Table


class BackboneRecord(Table):
    """Which backbone made vectors, and how: vectors of two records are not comparable.

    name: a folder, or ORG/NAME on the Hub. digest: SHA-256 of the files of a folder. commit: of the Hub's repository.
    pooling: "last" is the last hidden state of the last token, "mean" what a sentence encoder makes of all of them.
    width: of a vector. dtype: of the weights. template_digest: of the chat template; None where texts are plain.
    """

    name: str
    digest: str | None = None
    commit: str | None = None
    pooling: Literal["last", "mean"] = "last"
    width: int
    dtype: str | None = None
    template_digest: str | None = None
