"""What of some items is embedded: prompts with their responses, and what is told of the persons."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pluralbench_rewards import Group, Message, Work
from torch import Tensor

from pluralbench_local.conversations import Template, check_text_size, encoded
from pluralbench_local.errors import ConversationError

if TYPE_CHECKING:
    from array import array  # not to be subscripted before Python 3.12

Left = dict[int, list[int]]
"""Places that are still to embed, by unit."""


@dataclass(frozen=True)
class UserContextText:
    """What is told of a person, in blocks, in the data's order. id: of an item of theirs."""

    id: str
    blocks: tuple[str, ...]

    def text(self, blocks: int | None = None) -> str:
        """The first of its blocks, or all, as one text."""
        return "\n".join(self.blocks[:blocks])


@dataclass
class Texts:
    """The different texts of some items, in units: first the prompts, then what is told.

    The unit of a prompt has the prompt at place 0, then its responses; one of what is told has a single text.
    """

    prompts: list[Group] = field(default_factory=list)
    told: list[UserContextText] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """By unit, the id of an item that it is of."""
        return [*(group.id for group in self.prompts), *(told.id for told in self.told)]


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts as a backbone reads them.

    keys: of each text by unit, 32 bytes; texts with the same key have the same vector. cut: by unit, how many tokens
    its longest text lost. dropped: by unit, why it is not embedded. vectors: gives the vectors [texts, width] of what
    is left, as they come, by unit and place.
    """

    keys: list[list[bytes]]
    cut: list[int]
    dropped: dict[int, str]
    vectors: Callable[[Left, Work], Iterator[tuple[int, dict[int, Tensor]]]]


@dataclass(frozen=True)
class Item:
    """Where the texts of an item are. told, persona: None where there is nothing to tell."""

    group: Group
    unit: int
    told: int | None
    persona: int | None
    earlier: list[int]

    @property
    def units(self) -> list[int]:
        """All that it needs."""
        return [self.unit, *self.about, *self.earlier]

    @property
    def about(self) -> list[int]:
        """What is told of the person."""
        return [unit for unit in (self.told, self.persona) if unit is not None]


def collect_texts(groups: Sequence[Group], posts: int) -> tuple[Texts, list[Item]]:
    """The different texts of items, and where each item's are. posts: the most blocks of an item's context."""
    asked: dict[tuple[object, ...], int] = {}
    told: dict[tuple[str, ...], int] = {}
    texts = Texts()

    def ask(name: str, prompt: Sequence[Message], responses: Sequence[str]) -> int:
        key = (*(tuple(sorted(message.items())) for message in prompt), *responses)
        if key not in asked:
            asked[key] = len(texts.prompts)
            texts.prompts.append(Group(name, prompt, list(responses)))
        return asked[key]

    def tell(name: str, blocks: Sequence[str]) -> int | None:
        if any(block.strip() for block in blocks) and tuple(blocks) not in told:
            told[tuple(blocks)] = len(texts.told)
            texts.told.append(UserContextText(name, tuple(blocks)))
        return told.get(tuple(blocks))

    found = []
    for group in groups:
        person = group.person
        unit = ask(group.id, group.prompt, group.responses)
        context = tell(group.id, group.context[:posts])
        persona = None if person is None else tell(group.id, person.persona)
        pairs = [] if person is None else person.earlier
        earlier = [ask(group.id, pair.prompt, (pair.chosen, pair.rejected)) for pair in pairs]
        found.append((group, unit, context, persona, earlier))
    begin = len(texts.prompts)

    def place(unit: int | None) -> int | None:
        return None if unit is None else begin + unit

    return texts, [
        Item(group, unit, place(context), place(persona), earlier) for group, unit, context, persona, earlier in found
    ]


def context_tokens(
    told: Sequence[UserContextText], template: Template, limit: int
) -> "Iterator[tuple[array[int], int]]":
    """Token ids of what is told, each as one message of the user, and how many tokens it lost to keep to `limit`.

    The last blocks go first, and whole; of one that is too long alone, the end goes.
    Raises `ConversationError`.
    """
    whole = encoded((check_text_size(one.id, _rendered(one.text(), template)) for one in told), template)
    for one, ids in zip(told, whole, strict=True):
        yield (ids, 0) if len(ids) <= limit else _shortened(one, template, limit, len(ids))


def fitting(told: UserContextText, limit: int, length: Callable[[str], int]) -> str:
    """As many of the first blocks as have a `length` of at most `limit` together, and the first in any case."""
    numbers = range(1, len(told.blocks) + 1)
    return told.text(max(bisect_right(numbers, limit, key=lambda blocks: length(told.text(blocks))), 1))


def _shortened(told: UserContextText, template: Template, limit: int, before: int) -> "tuple[array[int], int]":
    def tokens(text: str) -> "array[int]":
        return next(template.encode([_rendered(text, template)]))

    text = fitting(told, limit, lambda text: len(tokens(text)))
    ids = tokens(text)
    while len(ids) > limit and text:
        text = _without_end(text, len(ids) - limit, template)
        ids = tokens(text)
    if len(ids) > limit:
        raise ConversationError(
            f"What is told of the person of id {told.id} does not fit into {limit:,} tokens, since the chat template "
            f"alone makes {len(ids):,}; raise `max_length`."
        )
    return ids, before - len(ids)


def _rendered(text: str, template: Template) -> str:
    return template.render([{"role": "user", "content": text}])


def _without_end(text: str, tokens: int, template: Template) -> str:
    found = template.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    offsets = found["offset_mapping"]
    # A character may be of several tokens; something has to go in any case.
    return text[: min(offsets[-tokens][0], len(text) - 1)] if tokens < len(offsets) else ""
