"""Texts for an engine that takes no token ids: those of which it makes the very tokens that are wanted."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from pluralbench_local.errors import ConversationError


def text_of(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], name: str) -> str:
    """The text of which the tokenizer, special tokens added, makes these ids. name: the id of the prompt, for an error.

    Raises `ConversationError` where there is none: the template does not write the special tokens that the engine adds,
    or the tokens, cut or unknown, are no text's.
    """
    before, after = _added(tokenizer)
    inner = list(ids)[len(before) : len(ids) - len(after)]
    text = str(tokenizer.decode(inner, skip_special_tokens=False, clean_up_tokenization_spaces=False))
    if list(tokenizer(text, verbose=False)["input_ids"]) != list(ids):
        added = " ".join(tokenizer.convert_ids_to_tokens([*before, *after]))
        raise ConversationError(
            f"The conversation of id {name} cannot be sent as a text: the engine adds special tokens "
            f"({added or 'none'}), and no text makes the tokens that the chat template makes; score in this process, "
            "or give a `chat_template` that begins and ends with those tokens."
        )
    return text


def _added(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text."""
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    whole = list(tokenizer("a")["input_ids"])
    start = next((place for place in range(len(whole)) if whole[place : place + len(plain)] == plain), 0)
    return whole[:start], whole[start + len(plain) :]
