"""What a backbone is: a frozen model that gives one vector for a text, and the record of which one it was."""

import hashlib
from typing import Any, Protocol, Self

import torch
from pluralbench_rewards import Work
from pluralbench_runs import FrozenModel, digest

from pluralbench_local.personal.texts import Texts, TokenizedTexts
from pluralbench_local.scoring import RunOptions


class BackboneRecord(FrozenModel):
    """Which backbone made vectors, and how.

    name: a folder, or ORG/NAME on the Hub. digest: SHA-256 of the files of a folder. commit: of the Hub's repository.
    pooling: "last" is the last hidden state of the last token; a sentence encoder has its own, such as "mean". width:
    of a vector. dtype: of the weights. template_digest: of the chat template; None where there are no roles.
    plain: whether the model has no chat template, so that it reads the contents of messages alone.
    """

    name: str
    digest: str | None = None
    commit: str | None = None
    pooling: str = "last"
    width: int
    dtype: str | None = None
    template_digest: str | None = None
    plain: bool = False

    @property
    def identity(self) -> str:
        """SHA-256 of all that vectors depend on, in 64 hexadecimal digits; only vectors that share it can be compared.

        The name is in it where neither content nor commit is known.
        """
        known = self.digest or self.commit
        return digest(self.model_dump(mode="json", exclude={"name"} if known else None))

    def __str__(self) -> str:
        """The name, and in brackets what tells it from another of that name."""
        content = self.digest or self.commit
        parts = [
            f"content {content[:12]}" if content else "content unknown",
            f"{self.pooling} pooling",
            f"{self.dtype}" if self.dtype else "",
            "plain text" if self.plain else "",
            f"chat template {self.template_digest[:12]}" if self.template_digest else "",
        ]
        return f"{self.name} ({', '.join(filter(None, parts))})"


class Backbone(Protocol):
    """A frozen model that gives one vector for a text."""

    @property
    def record(self) -> BackboneRecord:
        """What it is."""

    @property
    def precision(self) -> torch.dtype:
        """What a vector is rounded to."""

    def shown(self) -> dict[str, Any]:
        """What loading it showed, as fields of `pluralbench_rewards.ModelRecord`."""

    def work(self) -> Work:
        """How it will compute; nothing is computed yet. Raises `ConversationError`."""

    def read(self, texts: Texts) -> TokenizedTexts:
        """Texts as it reads them; their vectors are computed when they are asked for. Raises `ConversationError`."""

    def running(self, options: RunOptions) -> Self:
        """The same, running in another way."""


def key_of(record: BackboneRecord, text: bytes) -> bytes:
    """The key of a text as a backbone reads it: SHA-256, 32 bytes."""
    return hashlib.sha256(bytes.fromhex(record.identity) + text).digest()
