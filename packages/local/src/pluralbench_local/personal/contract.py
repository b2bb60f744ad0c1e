"""The interface of backbones: frozen models that compute a vector for each text."""

import hashlib
from typing import Any, Protocol, Self

import torch
from pluralbench_rewards import Work
from pluralbench_runs import FrozenModel, digest

from pluralbench_local.personal.texts import Texts, TokenizedTexts
from pluralbench_local.scoring import RunOptions


class BackboneRecord(FrozenModel):
    """Which backbone computed vectors, and how.

    Attributes:
        name: Folder, or ORG/NAME on the Hub.
        digest: SHA-256 of the files of a folder.
        commit: Commit of the repository on the Hub.
        pooling: "last" is the last hidden state of the last token. A sentence encoder has its own, such as "mean".
        width: Size of a vector.
        dtype: Precision of the weights.
        template_digest: Digest of the chat template; None if there are no roles.
        plain: Whether the model has no chat template, and reads only the contents of messages.
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
        """SHA-256 of everything that vectors depend on. Only vectors with the same identity can be compared.

        The name is part of it only if neither digest nor commit is known.
        """
        content = self.digest or self.commit
        return digest(self.model_dump(mode="json", exclude={"name"} if content else None))

    def __str__(self) -> str:
        """Return the name, and in brackets what distinguishes it from others of that name."""
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
    """A frozen model that computes a vector for each text."""

    @property
    def record(self) -> BackboneRecord:
        """The backbone's record."""

    @property
    def precision(self) -> torch.dtype:
        """Precision of a vector."""

    def loaded_fields(self) -> dict[str, Any]:
        """Return the fields of `pluralbench_rewards.ModelRecord` that are known only after loading."""

    def work(self) -> Work:
        """Return how it will compute, before anything is computed. Raises `LocalError`."""

    def read(self, texts: Texts) -> TokenizedTexts:
        """Tokenize texts. Vectors are computed later, by the result. Raises `LocalError`."""

    def with_options(self, options: RunOptions) -> Self:
        """Return a copy with other options."""


def key_of(record: BackboneRecord, text: bytes) -> bytes:
    """Return the key of a text as a backbone reads it: a SHA-256 of 32 bytes."""
    return hashlib.sha256(bytes.fromhex(record.identity) + text).digest()
