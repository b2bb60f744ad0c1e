"""Compare how a network is read with its model's own forward pass, and padded batches with single conversations.

Both on a few short conversations of different lengths, when a model is loaded.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from pluralbench_rewards import Group
from torch import Tensor

from pluralbench_local.conversations import Template, tokenize
from pluralbench_local.errors import LocalError
from pluralbench_local.network import (
    ReadableNetwork,
    must_be_alone,
    own_logits,
    read_padded,
    using_default_attention,
    without_packing,
)
from pluralbench_local.packing import Tokens, last_states, to_device

if TYPE_CHECKING:
    from transformers import PreTrainedModel

HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day. How are you?"}]
QUESTION = [{"role": "user", "content": "Name a quiet hobby for rainy days."}]
ANSWERS = ("Chess.", "Origami, because paper is cheap.\n\nA square sheet and a flat table are all that it needs.")
LONGEST = 10**6  # tokens: more than any probe has
# Largest difference of the same computation, relative to the largest number.
SAME = {torch.float32: 1e-3, torch.float16: 0.01}
SAME_IN_BFLOAT16 = 0.03
# Largest difference that padding may make, relative to the largest deviation from the mean of the conversations.
PADDED = {torch.float32: 1e-3, torch.float16: 0.1}
PADDED_IN_BFLOAT16 = 0.5


def probe_conversations(template: Template, model: "PreTrainedModel") -> list[Tokens]:
    """Return short conversations as the template writes them, or plain ones if it cannot write these.

    They differ in their length, and in their turns if the template has several.
    """
    # RoBERTa's table has two more rows than positions.
    limit = (getattr(model.config.get_text_config(), "max_position_embeddings", None) or LONGEST) - 2
    for turns in ([*HELLO, *QUESTION], QUESTION):
        groups = [Group("short", QUESTION, list(ANSWERS)), Group("long", turns, list(ANSWERS[:1]))]
        try:
            return [tokens for each in tokenize(groups, template, limit, "error") for tokens in each.conversations]
        except LocalError:
            continue
    return plain_conversations(model)


def plain_conversations(model: "PreTrainedModel") -> list[Tokens]:
    """Return short conversations of arbitrary tokens with one, two and three eos tokens."""
    config = model.config.get_text_config()
    given, pad = (getattr(config, name, None) for name in ("eos_token_id", "pad_token_id"))
    eos = given if isinstance(given, int) else config.vocab_size - 1
    parts = [[7 * token % config.vocab_size for token in part] for part in (range(1, 6), range(6, 15), range(15, 19))]
    kept = [[token for token in part if token not in {eos, pad}] + [eos] for part in parts]
    ids = [array("i", [token for part in kept[:number] for token in part]) for number in (1, 2, 3)]
    return [Tokens(run, range(len(run) - 1, len(run))) for run in ids]


@torch.inference_mode()
def reads_as_model(network: ReadableNetwork, conversations: Sequence[Tokens], read: Callable[[Tensor], Tensor]) -> bool:
    """Return whether `read`, of hidden states, gives the logits of the model's own forward pass; no if that fails.

    If the model gives a row of logits for a conversation, it is compared with those at the last token that is read; if
    it gives a row for each token, all are. Padding tokens at the end of conversations are left out if they are read, as
    classes do not.
    """
    pad = getattr(network.model.config.get_text_config(), "pad_token_id", None)
    pairs = []
    for tokens in conversations:
        ids, place = list(tokens.ids), tokens.reads[-1]
        if place == len(ids) - 1:
            while len(ids) > 1 and ids[-1] == pad:
                ids.pop()
            place = len(ids) - 1
        batch = to_device([ids], network.device)
        with using_default_attention(network):
            try:
                expected = own_logits(network.model, input_ids=batch, attention_mask=torch.ones_like(batch)).float()
                states = network.body(input_ids=batch, use_cache=False).last_hidden_state[0]
            except (LocalError, TypeError):
                return False
        found = read(states).float()
        pairs.append((expected[0], found) if expected.dim() > 2 else (expected.reshape(-1), found[place]))
    if any(expected.shape != found.shape for expected, found in pairs):
        return False
    limit = SAME.get(network.dtype, SAME_IN_BFLOAT16) * max(float(expected.abs().max()) for expected, _ in pairs)
    return all(float((expected - found).abs().max()) <= limit for expected, found in pairs)


def by_own_forward_pass(network: ReadableNetwork) -> ReadableNetwork:
    """Return a network whose states are the logits of the model's own forward pass."""
    why = "its own forward pass gives other rewards than its head at the last token"
    if not network.unpackable:
        network = without_packing(network, why)
    settings = {"reads": "the logits of its own forward pass, which differ from those of its head at the last token"}
    return replace(network, body=network.model, head=None, unpackable=why, settings=network.settings | settings)


@torch.inference_mode()
def with_probed_padding(network: ReadableNetwork, conversations: Sequence[Tokens]) -> ReadableNetwork:
    """Return a network that says why its conversations must not be padded, if that changes what is read."""
    why = _padding_problem(network, conversations)
    settings = {"batches": f"one conversation each, since {why}"} if why else {}
    return replace(network, unpaddable=why, settings=network.settings | settings)


def _padding_problem(network: ReadableNetwork, conversations: Sequence[Tokens]) -> str:
    if not network.unpackable or must_be_alone(network):
        return ""
    try:
        alone = torch.cat([_read(network, [tokens]) for tokens in conversations])
    except LocalError:  # scoring will say it
        return ""
    try:
        together = _read(network, conversations)
    except LocalError:
        return "its forward pass fails on padded batches"
    limit = PADDED.get(network.dtype, PADDED_IN_BFLOAT16) * (alone - alone.mean(0)).abs().max()
    return "" if (together - alone).abs().max() <= limit else "padding changes its scores"


def _read(network: ReadableNetwork, conversations: Sequence[Tokens]) -> Tensor:
    """What is read last of each conversation in one batch, of shape (conversations, numbers)."""
    with using_default_attention(network):
        states, rows, _ = read_padded(network, conversations)
    return last_states(states, rows).float()
