"""Tokenize prompts and responses by the chat template, and handle conversations that are too long."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pluralbench_rewards import Group, Message, Overflow, RenderedConversation
from pluralbench_runs import one_line
from transformers import PreTrainedTokenizerBase

from pluralbench_local.errors import LocalError
from pluralbench_local.packing import Tokens, common_prefix
from pluralbench_local.rendering import apply_chat_template
from pluralbench_local.template_checks import check_template

MAX_TEXTS = 1024  # conversations in one call of the tokenizer
MAX_CHARACTERS = 2_000_000  # of several conversations in one call; the tokenizer needs about 200 bytes for each
Conversation = tuple[str, Sequence[Message], str | Sequence[str]]
"""Id of a prompt, its messages, and an answer: a text, or its steps."""
RESPONSE = "<pluralbench response>"  # looked for in a rendered conversation
MAX_NAMED_IDS = 5  # ids in an error message


@dataclass(frozen=True)
class Tokenized:
    """The tokenized conversations of a group.

    Attributes:
        conversations: One for each response; if the steps of one answer are read, this answer alone.
        cut: Number of tokens that the longest conversation lost.
        dropped: Why the group is not scored; empty if it is.
    """

    conversations: list[Tokens]
    cut: int = 0
    dropped: str = ""


@dataclass(frozen=True)
class Template:
    """How conversations become tokens.

    Attributes:
        append: Token ids that the model expects after a conversation.
        whole_response: Whether all tokens of the response are read, instead of the last token of the conversation.
        num_embeddings: Number of token ids of the model; token ids are checked against it. Default: not checked.
        edit: Changes the token ids of a rendered conversation; see `pluralbench_local.other_readings`.
        eos: Text of the token that ends each conversation, in place of newlines. Default: the template's end is kept.
        unread: A token id whose occurrences at the end of a conversation are not read.
        question: Message of the user after the response.
        opening: Whether the template opens a further reply of the model after that.
        prefill: Text that begins this reply.
        options: Further arguments of `apply_chat_template`, and variables of the template.
        steps: Tokenizes conversations whose steps are read; see `pluralbench_local.steps`.
        separator: Of a model that embeds segments: the token id before the response, the second segment, and how often
            it occurs after the response.
        labels: Token ids whose logits after a conversation are its reward.
    """

    tokenizer: PreTrainedTokenizerBase
    append: tuple[int, ...] = ()
    whole_response: bool = False
    num_embeddings: int | None = None
    edit: Callable[[list[int]], list[int]] | None = None
    eos: str | None = None
    unread: int | None = None
    question: str = ""
    opening: bool = False
    prefill: str = ""
    labels: tuple[int, ...] = ()
    separator: tuple[int, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: "Callable[[Sequence[Conversation], Template], Iterator[Tokens]] | None" = None

    def conversation(self, messages: Sequence[Message], response: str) -> str:
        """Render a prompt with a response as the model reads it. Raises as `render`."""
        turns = [*messages, {"role": "assistant", "content": response}]
        turns += [{"role": "user", "content": self.question}] if self.question else []
        return self.render(turns, opening=self.opening) + self.prefill

    def ending(self) -> str:
        """Return the text that follows the response in a rendered conversation; "" without a chat template."""
        if not self.tokenizer.chat_template:
            return ""
        _, found, ending = self.conversation([{"role": "user", "content": "?"}], RESPONSE).rpartition(RESPONSE)
        return ending if found else ""

    def render(self, messages: Sequence[Message], *, opening: bool = False) -> str:
        """Render a conversation as text, with the template's opening of an answer if asked for.

        Raises:
            LocalError: If there is no chat template, or it fails on these messages.
        """
        if not self.tokenizer.chat_template:
            raise LocalError("The tokenizer has no chat template; give one as `chat_template=...`.")
        try:
            text = str(
                apply_chat_template(
                    self.tokenizer, messages, tokenize=False, add_generation_prompt=opening, **self.options
                )
            )
        except Exception as error:  # noqa: BLE001 - a template is a program and may raise anything
            roles = ", ".join(message["role"] for message in messages)
            why = str(error) or type(error).__name__
            raise LocalError(
                f"The chat template fails on a conversation with the roles {roles} ({why}); give another one as "
                "`chat_template=...`."
            ) from None
        if self.eos is None or opening:
            return text
        text = text.rstrip("\n")  # as OpenRLHF's reward_dataset.py ends a conversation
        return text if text.endswith(self.eos) else f"{text} {self.eos}"

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> "Iterator[array[int]]":
        """Yield the token ids of rendered conversations, whose special tokens the template has written by default.

        Raises:
            LocalError: If the tokenizer fails, or the model does not have one of the token ids.
        """
        # `verbose=False`: `tokenize` handles conversations that are too long, so the tokenizer need not warn.
        try:
            batch = self.tokenizer(list(texts), add_special_tokens=add_special_tokens, verbose=False)["input_ids"]
        except BaseException as error:
            # `tokenizers` raises anything, and a panic of its Rust code, such as of an expression, is no `Exception`.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise LocalError(
                f"The tokenizer fails on a text ({one_line(error)}); use the model's own tokenizer."
            ) from None
        for ids in map(self.edit, batch) if self.edit else batch:
            if self.num_embeddings is not None and max((*ids, *self.append), default=0) >= self.num_embeddings:
                raise LocalError(
                    f"The tokenizer makes the token id {max(*ids, *self.append):,}, but the model has only "
                    f"{self.num_embeddings:,} token ids; use the model's own tokenizer, or remove its unknown special "
                    "tokens from the texts."
                )
            yield array("i", ids)

    def tokens(self, ids: "array[int]", opening: "array[int]") -> Tokens:
        """Return a conversation, given without `append`, with the positions that are read.

        `opening` has the ids of the prompt with the opening of the answer; it is empty unless `whole_response`. Raises
        `LocalError` if the conversation is empty.
        """
        ids_with_end = ids + array("i", self.append)
        if not ids_with_end:
            raise LocalError("The chat template makes no tokens of a conversation; give one as `chat_template=...`.")
        last = len(ids_with_end) - 1
        while last and ids_with_end[last] == self.unread:
            last -= 1
        if not self.whole_response:
            return Tokens(ids_with_end, range(last, last + 1), second=self.second_segment(ids_with_end))
        # The token before the response predicts its first token. Finished answers may begin differently than the
        # opening.
        pairs = enumerate(zip(ids, opening, strict=False))
        begin = next((position for position, (a, b) in pairs if a != b), len(opening))
        return Tokens(ids_with_end, range(max(min(begin, last) - 1, 0), last))

    def second_segment(self, ids: "Sequence[int]") -> int | None:
        """Return where the second segment of a conversation begins; None if the model embeds no segments."""
        if self.separator is None:
            return None
        token, after = self.separator
        places = [place for place, each in enumerate(ids) if each == token]
        return places[-after - 1] + 1 if len(places) > after else 0  # 0: the beginning was cut


def check_responses(groups: Iterable[Group]) -> None:
    """Raise `LocalError` if a prompt has no response."""
    for group in groups:
        if not group.responses:
            raise LocalError(f"The prompt {group.id} has no response to score; leave it out.")


def tokenize(groups: Sequence[Group], template: Template, limit: int, on_overflow: Overflow) -> list[Tokenized]:
    """Tokenize groups, and handle conversations of more than `limit` tokens.

    A group whose longest conversation is too long is handled as a whole, so that the responses to a prompt are compared
    in the same context. On overflow, `error` raises; `drop` drops the group; `truncate-left` removes the same number of
    tokens from the start of each conversation; `truncate-prompt` removes the least relevant blocks of the context, then
    the start of the prompt's longest message, while template and responses stay complete.

    Raises:
        LocalError: If a prompt has no response, a conversation is too long under `error`, or the template leaves out a
            message.
    """
    check_responses(groups)
    check_template(groups, template)
    tokenized = list(_tokenize_groups(groups, template))
    long = [index for index, result in enumerate(tokenized) if _longest(result) > limit]
    if long and on_overflow == "error":
        ids = named(groups[index].id for index in long)
        raise LocalError(
            f"{len(long):,} of {len(groups):,} prompts have conversations of more than {limit:,} tokens, the longest "
            f"{max(_longest(tokenized[index]) for index in long):,}{ids and f' (ids {ids})'}; "
            "raise `max_length=...`, or choose drop, truncate-left or truncate-prompt as `on_overflow=...`."
        )
    for index in long:
        if on_overflow == "drop":
            why = f"{_longest(tokenized[index]):,} tokens, more than {limit:,}"
            tokenized[index] = replace(tokenized[index], dropped=why)
        elif on_overflow == "truncate-left":
            tokenized[index] = _truncate_left(tokenized[index], limit)
            if any(tokens.marks[:1] < (0,) for tokens in tokenized[index].conversations if tokens.marks):
                raise LocalError(
                    f"Without their first tokens, the answers to the prompt {groups[index].id} lose steps that are "
                    f"beyond {limit:,} tokens; raise `max_length=...`, or choose drop as `on_overflow=...`."
                )
        else:
            tokenized[index] = _truncate_prompt(groups[index], tokenized[index], template, limit)
    return tokenized


def rendered_tokens(conversation: RenderedConversation, template: Template, limit: int) -> Tokens:
    """Tokenize a rendered conversation, whose last token is read; its token ids include `Template.append`.

    Raises:
        LocalError: If it is empty or too long, or the model does not have one of the token ids.
    """
    content = conversation.content
    if isinstance(content, str):
        [ids] = template.encode([content], add_special_tokens=conversation.add_special_tokens)
    else:
        template = replace(template, append=())
        highest = 2**31 if template.num_embeddings is None else template.num_embeddings
        unknown = next((token for token in content if not 0 <= token < highest), None)
        if unknown is not None:
            raise LocalError(
                f"A conversation has the token id {unknown:,}, but the model has only {highest:,} token ids."
            )
        ids = array("i", content)
    if not ids:
        raise LocalError("A conversation is empty.")
    tokens = template.tokens(ids, array("i"))
    if len(tokens.ids) > limit:
        raise LocalError(f"A conversation has {len(tokens.ids):,} tokens, more than {limit:,}; shorten it.")
    return tokens


def named(ids: Iterable[str]) -> str:
    """Return the first few of these ids, for an error."""
    names = list(dict.fromkeys(ids))
    return ", ".join(names[:MAX_NAMED_IDS]) + (", …" if len(names) > MAX_NAMED_IDS else "")


def identical_renderings(groups: Sequence[Group], tokenized: Sequence[Tokenized]) -> int:
    """Count the groups in which different responses have the same tokens, so that their scores tie.

    Raises:
        LocalError: If this is so in every group with different responses: the template drops their text.
    """
    different = identical = 0
    for group, result in zip(groups, tokenized, strict=True):
        texts = len(set(group.responses))
        one_each = len(result.conversations) == len(group.responses)
        if texts > 1 and one_each and not result.dropped:
            different += 1
            identical += len({(tokens.ids.tobytes(), tokens.marks) for tokens in result.conversations}) < texts
    if different and identical == different:
        raise LocalError(
            f"The chat template makes the same tokens of different responses, in all {different:,} items; give another "
            "one as `chat_template=...`."
        )
    return identical


def count_bos(tokenized: Sequence[Tokenized], template: Template) -> tuple[int, int]:
    """Count the scored conversations with two or more BOS tokens at the beginning, and those with none.

    The second count is 0 if the tokenizer has no BOS token.
    """
    bos = template.tokenizer.bos_token_id
    if not isinstance(bos, int):
        return 0, 0
    begins = [tokens.ids[:2].tolist() for one in tokenized if not one.dropped for tokens in one.conversations]
    return sum(begin == [bos, bos] for begin in begins), sum(begin[:1] != [bos] for begin in begins)


def count_ending_in_padding(tokenized: Sequence[Tokenized], template: Template) -> int | None:
    """Count the scored conversations that end with tokens which are not read; None if the last token always is."""
    if template.unread is None:
        return None
    kept = (one for one in tokenized if not one.dropped)
    return sum(tokens.ids[-1] == template.unread for one in kept for tokens in one.conversations)


def _tokenize_groups(groups: Sequence[Group], template: Template) -> Iterator[Tokenized]:
    if template.steps is not None:
        answers = [[group.steps] if group.steps else group.responses for group in groups]
        every = [(group.id, group.messages, one) for group, own in zip(groups, answers, strict=True) for one in own]
        with_steps = template.steps(every, template)
        yield from (Tokenized(list(islice(with_steps, len(own)))) for own in answers)
        return
    texts = (template.conversation(group.messages, response) for group in groups for response in group.responses)
    conversations_of = encode_texts(texts, template)
    openings = encode_texts((template.render(group.messages, opening=True) for group in groups), template)
    for group in groups:
        conversations = list(islice(conversations_of, len(group.responses)))
        opening = next(openings) if template.whole_response else array("i")
        yield Tokenized([template.tokens(ids, opening) for ids in conversations])


def encode_texts(texts: Iterable[str], template: Template) -> "Iterator[array[int]]":
    """Yield the token ids of any number of rendered conversations, in batches of bounded size."""
    batch: list[str] = []
    room = MAX_CHARACTERS
    for text in texts:
        if batch and (len(batch) == MAX_TEXTS or len(text) > room):
            yield from template.encode(batch)
            batch, room = [], MAX_CHARACTERS
        batch.append(text)
        room -= len(text)
    if batch:
        yield from template.encode(batch)


def _longest(tokenized: Tokenized) -> int:
    return max(len(tokens.ids) for tokens in tokenized.conversations)


def _truncate_left(tokenized: Tokenized, limit: int) -> Tokenized:
    cut = _longest(tokenized) - limit
    shared = common_prefix([tokens.ids for tokens in tokenized.conversations])
    # At most the shared prefix is removed from all: a response that alone exceeds the limit must not empty the others.
    common_cut = min(cut, shared) if len(tokenized.conversations) > 1 else cut
    lengths = [min(limit, len(tokens.ids) - common_cut) for tokens in tokenized.conversations]
    return Tokenized([_keep_last(*pair) for pair in zip(tokenized.conversations, lengths, strict=True)], cut)


def _keep_last(tokens: Tokens, keep: int) -> Tokens:
    cut = len(tokens.ids) - keep
    reads = range(max(tokens.reads.start - cut, 0), tokens.reads.stop - cut)
    second = None if tokens.second is None else max(tokens.second - cut, 0)
    return Tokens(tokens.ids[cut:], reads, tuple(mark - cut for mark in tokens.marks), second)


def _truncate_prompt(group: Group, tokenized: Tokenized, template: Template, limit: int) -> Tokenized:
    before = _longest(tokenized)
    # Whole blocks of context go first, the least relevant ones before others; then the prompt is shortened.
    while _longest(tokenized) > limit and group.context:
        group = group.without_least_relevant()
        tokenized = next(_tokenize_groups([group], template))
    messages = [dict(message) for message in group.prompt]
    excess = _longest(tokenized) - limit
    while excess > 0 and any(message["content"] for message in messages):
        longest = max(messages, key=lambda message: len(message["content"]))
        longest["content"] = _drop_first_tokens(longest["content"], excess, template)
        shortened = Group(group.id, messages, group.responses, steps=group.steps)
        tokenized = next(_tokenize_groups([shortened], template))
        excess = _longest(tokenized) - limit
    if excess > 0:
        return Tokenized(tokenized.conversations, dropped=f"an answer alone is longer than {limit:,} tokens")
    return Tokenized(tokenized.conversations, cut=before - _longest(tokenized))


def _drop_first_tokens(text: str, tokens: int, template: Template) -> str:
    encoding = template.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    # All tokens of a character have its offset, so a cut at a later offset never splits a character.
    starts = (start for start, _ in encoding["offset_mapping"][tokens:] if start > 0)
    return text[next(starts, len(text)) :]
