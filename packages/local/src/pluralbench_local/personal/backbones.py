"""The frozen language model that gives texts their vectors."""

from typing import Literal

from pluralbench_runs import Table


class BackboneRecord(Table):
    """What the frozen backbone of a personalized reward model is.

    name: a folder, or ORG/NAME on the Hub. digest: SHA-256 of the files of a folder. commit: of the Hub's repository.
    pooling: which hidden state is a text's vector. width: of a vector. template_digest: of the chat template.
    """

    name: str
    digest: str | None = None
    commit: str | None = None
    pooling: Literal["last", "mean"] | None = None
    width: int
    dtype: str | None = None
    template_digest: str | None = None
