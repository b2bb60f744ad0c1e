"""The texts of items that are embedded: prompts with their responses, and user contexts."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pluralbench_rewards import Group, Message, Work
from pluralbench_runs import FrozenModel, digest
from torch import Tensor

from pluralbench_local.conversations import Template, encode_texts
from pluralbench_local.errors import LocalError

if TYPE_CHECKING:
    from array import array  # not to be subscripted before Python 3.12


Remaining = dict[int, list[int]]
"""Indices of texts that are still to be embedded, by unit."""


@dataclass(frozen=True)
class UserContextText:
    """A user context, as blocks in the data's order; `id` is that of an item of the user."""

    id: str
    blocks: tuple[str, ...]

    def text(self, blocks: int | None = None) -> str:
        """Return the first `blocks` blocks, or all, as one text."""
        return "\n".join(self.blocks[:blocks])


@dataclass
class Texts:
    """The distinct texts of some items, in units: first the prompts, then the user contexts.

    The unit of a prompt has the prompt at index 0, then its responses. The unit of a user context has a single text.
    """

    prompts: list[Group] = field(default_factory=list)
    contexts: list[UserContextText] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """Id of an item of each unit."""
        return [*(group.id for group in self.prompts), *(context.id for context in self.contexts)]


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts as a backbone reads them.

    Attributes:
        keys: Key of each text, by unit: 32 bytes. Texts with the same key have the same vector.
        cut: Number of tokens that the longest text of a unit lost.
        dropped: Why a unit is not embedded.
        vectors: Computes those of the remaining texts. Yields a unit, and vectors by the index of the text in it.
    """

    keys: list[list[bytes]]
    cut: list[int]
    dropped: dict[int, str]
    vectors: Callable[[Remaining, Work], Iterator[tuple[int, dict[int, Tensor]]]]


@dataclass(frozen=True)
class Item:
    """The units of an item's texts: of prompt and responses, and of its user, who may have none."""

    group: Group
    unit: int
    context: int | None
    persona: int | None
    earlier: list[int]

    @property
    def units(self) -> list[int]:
        """All units of the item."""
        contexts = [unit for unit in (self.context, self.persona) if unit is not None]
        return [self.unit, *contexts, *self.earlier]


def collect_texts(groups: Sequence[Group], posts: int) -> tuple[Texts, list[Item]]:
    """Collect the distinct texts of items with at most `posts` blocks of a context, and the units of each item."""
    prompt_units: dict[tuple[object, ...], int] = {}
    context_units: dict[tuple[str, ...], int] = {}
    texts = Texts()

    def add_prompt(name: str, prompt: Sequence[Message], responses: Sequence[str]) -> int:
        key = (*(tuple(sorted(message.items())) for message in prompt), *responses)
        if key not in prompt_units:
            prompt_units[key] = len(texts.prompts)
            texts.prompts.append(Group(name, prompt, list(responses)))
        return prompt_units[key]

    def add_context(name: str, blocks: Sequence[str]) -> int | None:
        if any(block.strip() for block in blocks) and tuple(blocks) not in context_units:
            context_units[tuple(blocks)] = len(texts.contexts)
            texts.contexts.append(UserContextText(name, tuple(blocks)))
        return context_units.get(tuple(blocks))

    rows = []
    for group in groups:
        person = group.person
        unit = add_prompt(group.id, group.prompt, group.responses)
        context = add_context(group.id, group.context[:posts])
        persona = None if person is None else add_context(group.id, person.persona)
        pairs = [] if person is None else person.earlier
        earlier = [add_prompt(group.id, pair.prompt, (pair.chosen, pair.rejected)) for pair in pairs]
        rows.append((group, unit, context, persona, earlier))
    first_context = len(texts.prompts)

    def context_unit(number: int | None) -> int | None:
        return None if number is None else first_context + number

    return texts, [
        Item(group, unit, context_unit(context), context_unit(persona), earlier)
        for group, unit, context, persona, earlier in rows
    ]


def context_tokens(
    contexts: Sequence[UserContextText], template: Template, limit: int
) -> "Iterator[tuple[array[int], int]]":
    """Tokenize user contexts, each as one message of the user; yields the ids, and the number of tokens that were cut.

    A context of more than `limit` tokens loses its last blocks, then the end of the first.

    Raises:
        LocalError: If the chat template is missing or fails, or alone makes more than `limit` tokens.
    """
    texts = (_render(context.text(), template) for context in contexts)
    for context, ids in zip(contexts, encode_texts(texts, template), strict=True):
        yield (ids, 0) if len(ids) <= limit else _shorten(context, template, limit, len(ids))


def fit_blocks(context: UserContextText, limit: int, length: Callable[[str], int]) -> str:
    """Return the text of as many first blocks as have at most the length `limit`, at least one."""
    numbers = range(1, len(context.blocks) + 1)
    return context.text(max(bisect_right(numbers, limit, key=lambda blocks: length(context.text(blocks))), 1))


def _shorten(context: UserContextText, template: Template, limit: int, before: int) -> "tuple[array[int], int]":
    def tokens(text: str) -> "array[int]":
        return next(template.encode([_render(text, template)]))

    text = fit_blocks(context, limit, lambda text: len(tokens(text)))
    ids = tokens(text)
    while len(ids) > limit and text:
        text = _drop_last_tokens(text, len(ids) - limit, template)
        ids = tokens(text)
    if len(ids) > limit:
        raise LocalError(
            f"The user context of {context.id} does not fit into {limit:,} tokens, since the chat template alone makes "
            f"{len(ids):,}; raise `max_length=...`."
        )
    return ids, before - len(ids)


def _render(text: str, template: Template) -> str:
    return template.render([{"role": "user", "content": text}])


def _drop_last_tokens(text: str, tokens: int, template: Template) -> str:
    encoding = template.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    offsets = encoding["offset_mapping"]
    # A character may have several tokens; at least one character is removed.
    return text[: min(offsets[-tokens][0], len(text) - 1)] if tokens < len(offsets) else ""


class BackboneRecord(FrozenModel):
    """Which backbone computed vectors, and how.

    Attributes:
        digest: SHA-256 of the files of a folder.
        pooling: "last" is the last hidden state of the last token. A sentence encoder has its own, such as "mean".
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


def key_of(record: BackboneRecord, text: bytes) -> bytes:
    """Return the key of a text as a backbone reads it: a SHA-256 of 32 bytes."""
    return hashlib.sha256(bytes.fromhex(record.identity) + text).digest()
