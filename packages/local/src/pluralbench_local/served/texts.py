"""Texts for engines that accept no token ids: texts that the engine tokenizes to given ids."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from pluralbench_local.errors import LocalError


def decode_exactly(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], name: str) -> str:
    """Return the text that the tokenizer, adding special tokens, turns into these ids.

    Args:
        tokenizer: The tokenizer.
        ids: Token ids of a conversation.
        name: Id of the prompt, for the error.

    Raises:
        LocalError: If there is no such text: the template does not write the special tokens that the engine
            adds, or the ids are cut or unknown.
    """
    before, after = _special_tokens_around(tokenizer)
    inner = list(ids)[len(before) : len(ids) - len(after)]
    text = str(tokenizer.decode(inner, skip_special_tokens=False, clean_up_tokenization_spaces=False))
    if list(tokenizer(text, verbose=False)["input_ids"]) != list(ids):
        added = " ".join(tokenizer.convert_ids_to_tokens([*before, *after]))
        raise LocalError(
            f"The conversation {name} cannot be sent as text: the engine adds special tokens ({added or 'none'}); "
            "score locally, or give a `chat_template=...` that begins and ends with these tokens."
        )
    return text


def _special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer adds before and after a text."""
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    ids = list(tokenizer("a")["input_ids"])
    start = next((index for index in range(len(ids)) if ids[index : index + len(plain)] == plain), 0)
    return ids[:start], ids[start + len(plain) :]
