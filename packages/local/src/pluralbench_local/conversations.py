"""From prompts and responses to tokens: the tokenizer's own chat template, and what happens to what is too long."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pluralbench_rewards import Group, Message, Overflow
from pluralbench_tables.limits import TEXT_CHARACTERS, length_error
from transformers import PreTrainedTokenizerBase

from pluralbench_local.errors import ConversationError
from pluralbench_local.packing import Tokens, common_prefix

IN_ONE_GO = 1024  # conversations handed to the tokenizer at once
CHARACTERS = 2_000_000  # of them all, but for one that is longer; the tokenizer takes some 200 bytes for each
NAMED = 5  # ids that an error names


@dataclass(frozen=True)
class Tokenized:
    """The conversations of a group in tokens. cut: how many tokens its longest conversation lost.

    dropped: why none of them is scored, or nothing.
    """

    conversations: list[Tokens]
    cut: int = 0
    dropped: str = ""


@dataclass(frozen=True)
class Template:
    """How conversations become tokens.

    append: token ids that the model wants after a conversation.
    whole_response: whether all tokens of the response are read, rather than the last token alone.
    rows: how many token ids the model has; None where that is not known yet.
    """

    tokenizer: PreTrainedTokenizerBase
    append: tuple[int, ...] = ()
    whole_response: bool = False
    rows: int | None = None

    def render(self, messages: Sequence[Message], *, opening: bool = False) -> str:
        """The conversation as text; `opening` adds what begins an answer. Raises `ConversationError`."""
        if not self.tokenizer.chat_template:
            raise ConversationError("The tokenizer has no chat template; give one as `chat_template`.")
        try:
            return str(
                self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=opening)
            )
        except Exception as error:  # noqa: BLE001 - a template is a program and may raise anything
            roles = ", ".join(message["role"] for message in messages)
            raise ConversationError(
                f"The chat template does not take a conversation of the roles {roles} ({error}); "
                "give another as `chat_template`."
            ) from None

    def encode(self, texts: Sequence[str]) -> "Iterator[array[int]]":
        """Token ids of rendered conversations. The template writes the special tokens, so none is added."""
        # What is longer than the model's limit is dealt with here, so the tokenizer need not warn of it.
        try:
            found = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        except (TypeError, UnicodeEncodeError):
            raise ConversationError(
                "The chat template, or a text, holds half a character (a lone surrogate); mend it."
            ) from None
        for ids in found:
            if self.rows is not None and max((*ids, *self.append), default=0) >= self.rows:
                raise ConversationError(
                    f"The tokenizer makes the token id {max(*ids, *self.append):,}, but the model has {self.rows:,} "
                    "token ids; leave out the texts with special tokens that it was not trained on, or take its own "
                    "tokenizer."
                )
            yield array("i", ids)


def tokenize(groups: Sequence[Group], template: Template, limit: int, on_overflow: Overflow) -> list[Tokenized]:
    """Tokenize every group; `limit` is the most tokens of a conversation.

    A conversation that is longer is dealt with by group, so that the answers to a prompt are judged by the same
    context: `truncate-left` takes the same tokens from the start of all; `truncate-prompt` leaves out the least
    relevant blocks of the context, then shortens the prompt's longest message from its start, and leaves template and
    responses whole; `drop` drops the group.
    Raises `ConversationError` under `error`, naming the first ids, and for a conversation of more characters than
    `pluralbench_tables.limits.TEXT_CHARACTERS`, which is not tokenized.
    """
    bare = next((group for group in groups if not group.responses), None)
    if bare is not None:
        raise ConversationError(f"The prompt of id {bare.id} has no response to score.")
    tokenized = list(_tokenized(groups, template))
    long = [
        (group, place)
        for place, (group, result) in enumerate(zip(groups, tokenized, strict=True))
        if _longest(result) > limit
    ]
    if long and on_overflow == "error":
        ids = ", ".join(group.id for group, _ in long[:NAMED]) + (", …" if len(long) > NAMED else "")
        raise ConversationError(
            f"{len(long):,} of {len(groups):,} prompts have conversations of more than {limit:,} tokens, the longest "
            f"of {max(_longest(tokenized[place]) for _, place in long):,} (ids {ids}); raise `max_length` if the model "
            "can take it, or choose `on_overflow` drop, truncate-left or truncate-prompt."
        )
    shorten: dict[str, Callable[[Group, Tokenized, Template, int], Tokenized]] = {
        "drop": _drop,
        "truncate-left": _truncate_left,
        "truncate-prompt": _truncate_prompt,
    }
    for group, place in long:
        tokenized[place] = shorten[on_overflow](group, tokenized[place], template, limit)
    return tokenized


def identical_renderings(groups: Sequence[Group], tokenized: Sequence[Tokenized]) -> int:
    """In how many groups responses that differ make the same tokens, so that nothing tells them apart.

    Raises `ConversationError` where that is so in each group whose responses differ: the template drops what they say.
    """
    differ = alike = 0
    for group, result in zip(groups, tokenized, strict=True):
        texts = len(set(group.responses))
        if texts > 1 and not result.dropped:
            differ += 1
            alike += len({tokens.ids.tobytes() for tokens in result.conversations}) < texts
    if differ and alike == differ:
        raise ConversationError(
            f"The chat template makes the same tokens of responses that differ, in all {differ:,} items; give another "
            "as `chat_template`."
        )
    return alike


def _tokenized(groups: Sequence[Group], template: Template) -> Iterator[Tokenized]:
    texts = (_rendered(group, response, template) for group in groups for response in group.responses)
    conversations_of = encoded(texts, template)
    openings = encoded((template.render(group.messages, opening=True) for group in groups), template)
    for group in groups:
        conversations = list(islice(conversations_of, len(group.responses)))
        opening = next(openings) if template.whole_response else array("i")
        yield Tokenized([_tokens(ids, opening, template) for ids in conversations])


def _rendered(group: Group, response: str, template: Template) -> str:
    return check_text_size(group.id, template.render([*group.messages, {"role": "assistant", "content": response}]))


def check_text_size(name: str, text: str) -> str:
    """A text as it is. name: the id of its prompt. Raises `ConversationError` for one that is not tokenized."""
    if len(text) > TEXT_CHARACTERS:
        raise ConversationError(f"The prompt of id {name} makes a conversation of {length_error(len(text))}.")
    return text


def encoded(texts: Iterable[str], template: Template) -> "Iterator[array[int]]":
    """Token ids of rendered conversations, of any number of them."""
    several: list[str] = []
    left = CHARACTERS
    for text in texts:
        if several and (len(several) == IN_ONE_GO or len(text) > left):
            yield from template.encode(several)
            several, left = [], CHARACTERS
        several.append(text)
        left -= len(text)
    if several:
        yield from template.encode(several)


def _tokens(ids: "array[int]", opening: "array[int]", template: Template) -> Tokens:
    whole = ids + array("i", template.append)
    if not whole:
        raise ConversationError("The chat template makes no token of a conversation; give one as `chat_template`.")
    last = len(whole) - 1
    if not template.whole_response:
        return Tokens(whole, range(last, last + 1))
    # The token before the response predicts its first one. A template may close differently than it opens.
    begin = next((place for place, (a, b) in enumerate(zip(ids, opening, strict=False)) if a != b), len(opening))
    return Tokens(whole, range(max(min(begin, last) - 1, 0), last))


def _longest(tokenized: Tokenized) -> int:
    return max(len(tokens.ids) for tokens in tokenized.conversations)


def _drop(_: Group, tokenized: Tokenized, __: Template, limit: int) -> Tokenized:
    return Tokenized(tokenized.conversations, dropped=f"{_longest(tokenized):,} tokens, more than {limit:,}")


def _truncate_left(_: Group, tokenized: Tokenized, __: Template, limit: int) -> Tokenized:
    cut = _longest(tokenized) - limit
    shared = common_prefix([tokens.ids for tokens in tokenized.conversations])
    # Where an answer alone is longer than the limit, the others keep what they can.
    alike = min(cut, shared) if len(tokenized.conversations) > 1 else cut
    return Tokenized([_last(tokens, min(limit, len(tokens.ids) - alike)) for tokens in tokenized.conversations], cut)


def _last(tokens: Tokens, keep: int) -> Tokens:
    cut = len(tokens.ids) - keep
    reads = range(max(tokens.reads.start - cut, 0), tokens.reads.stop - cut)
    return Tokens(tokens.ids[cut:], reads)


def _truncate_prompt(group: Group, tokenized: Tokenized, template: Template, limit: int) -> Tokenized:
    before = _longest(tokenized)
    # What is least relevant of what is told about the person goes first, and whole; then the prompt is cut.
    while _longest(tokenized) > limit and group.context:
        group = group.without_least_relevant()
        tokenized = next(_tokenized([group], template))
    messages = [dict(message) for message in group.prompt]
    excess = _longest(tokenized) - limit
    while excess > 0 and any(message["content"] for message in messages):
        longest = max(messages, key=lambda message: len(message["content"]))
        longest["content"] = _without_start(longest["content"], excess, template)
        tokenized = next(_tokenized([Group(group.id, messages, group.responses)], template))
        excess = _longest(tokenized) - limit
    if excess > 0:
        return Tokenized(tokenized.conversations, dropped=f"an answer alone is longer than {limit:,} tokens")
    return Tokenized(tokenized.conversations, cut=before - _longest(tokenized))


def _without_start(text: str, tokens: int, template: Template) -> str:
    found = template.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    # A character may be of several tokens, of which each but the last leaves it where it is.
    starts = (start for start, _ in found["offset_mapping"][tokens:] if start > 0)
    return text[next(starts, len(text)) :]
