"""Read rewards from the logits of a language model's next token: its template, its token ids, and its head."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from pluralbench_runs import one_line
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedTokenizerBase

from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_model, silence_transformers
from pluralbench_local.network import ReadableNetwork, network_of
from pluralbench_local.probes import plain_conversations, reads_as_model
from pluralbench_local.weights import ModelFiles

PROMPT, RESPONSES = "What is a quiet hobby?", ("Origami.", "走路 with an old dog")
"""Texts by which the end of a chat template is examined."""
SCALES = ("logit_scale", "lm_head_multiplier", "logits_scaling", "final_logit_softcapping")
"""Keys of a configuration with which a family scales or caps its logits."""


def scale_logits(logits: Tensor, config: PretrainedConfig) -> Tensor:
    """Scale and cap the products of states and head as the forward pass of some families does."""
    values = _scales(config)
    for name in ("logit_scale", "lm_head_multiplier"):
        logits = logits * values.get(name, 1.0)
    logits = logits / values.get("logits_scaling", 1.0)
    cap = values.get("final_logit_softcapping")
    return torch.tanh(logits / cap) * cap if cap else logits


def _scales(config: PretrainedConfig) -> dict[str, float]:
    text = config.get_text_config()
    return {name: value for name in SCALES if (value := getattr(text, name, None))}


def load_language_model(files: ModelFiles) -> ReadableNetwork:
    """Load a language model, whose head is read.

    Raises `LocalError` also if it computes its logits from its hidden states in an unknown way.
    """
    model: Any = load_model(AutoModelForCausalLM, files.source)
    with silence_transformers():
        network = network_of(model, model.get_output_embeddings())
    if not reads_as_model(network, plain_conversations(model), partial(language_model_logits, network)):
        raise LocalError(
            f"{files.source.name} is not supported as a language model: it computes its logits from its hidden states "
            "in an unknown way."
        )
    return network


def language_model_logits(network: ReadableNetwork, states: Tensor) -> Tensor:
    """Return the logits of all tokens as the model's forward pass computes them."""
    assert network.head is not None  # noqa: S101 - a language model has one
    return scale_logits(network.head(states).float(), network.model.config)


class TokenHead(nn.Module):
    """The rows of a language model's head for a few tokens, in float64."""

    def __init__(self, head: Any, labels: Sequence[int], config: PretrainedConfig) -> None:
        super().__init__()
        self.out_features = len(labels)
        self._config = config
        bias = getattr(head, "bias", None)
        self._weight = head.weight.detach()[list(labels)].double()
        self._bias = None if bias is None else bias.detach()[list(labels)].double()

    def forward(self, states: Tensor) -> Tensor:
        """Return the logits of the tokens for states of shape (n, width), as (n, tokens)."""
        wide = states.double()
        # A matrix product of a few columns is rounded depending on its number of rows; these sums are not.
        logits = torch.stack([(wide * row).sum(-1) for row in self._weight.to(states.device)], -1)
        logits = logits if self._bias is None else logits + self._bias.to(states.device)
        return scale_logits(logits, self._config)


def with_token_head(network: ReadableNetwork, labels: Sequence[int]) -> ReadableNetwork:
    """Return a network that reads only the logits of these tokens of a language model.

    Raises `LocalError` if the head is no plain matrix, such as a quantized one, or lacks a row.
    """
    weight = getattr(network.head, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        raise LocalError(
            f"The head of {network.model.name_or_path} ({type(network.head).__name__}) has no rows of weights to read; "
            "use a copy whose `lm_head` is not quantized."
        )
    return replace(network, head=TokenHead(network.head, labels, network.model.config))


def token_template(source: LocalModel, template: Template) -> Template:
    """Return how a conversation continues up to the token of the reward, with the ids of the tokens.

    Raises `LocalError` if the template ends where no reward is read, or a token is not a single one there.
    """
    reading = source.reading()
    template = replace(
        template, question=reading.question, opening=reading.position == "reply", prefill=reading.prefill
    )
    texts = [template.conversation([{"role": "user", "content": PROMPT}], response) for response in RESPONSES]
    tail = _common_tail(texts)
    asks_itself = reading.needs_question and not reading.question
    if reading.chat_template is None and not asks_itself:  # else a template is of the model's whole format
        _check_opening(template, texts[0])
    if reading.ends_turn:
        _check_end_of_turn(template, texts[0])
    tokens = [token for token in (reading.positive, reading.negative) if token is not None]
    labels = tuple(_token_id(token, texts, tail, template) for token in tokens)
    check_distinct(labels)
    return replace(template, labels=labels)


def check_distinct(labels: Sequence[int]) -> None:
    """Raise `LocalError` if the positive and the negative token have the same id."""
    if len(set(labels)) < len(labels):
        raise LocalError(f"The positive and the negative token are the same (id {labels[0]}); give two tokens.")


def _check_opening(template: Template, text: str) -> None:
    """An opening of a reply ends a conversation where that is asked for, and only there."""
    prompt = [{"role": "user", "content": PROMPT}]
    closed, opened = template.render(prompt), template.render(prompt, opening=True)
    before, found, _ = template.render([*prompt, {"role": "assistant", "content": RESPONSES[0]}]).rpartition(
        RESPONSES[0]
    )
    same = next((place for place, (a, b) in enumerate(zip(closed, opened, strict=False)) if a != b), len(closed))
    opening = opened[same:]
    if found and closed == before:  # the opening, or what takes its place, is always there
        opening = closed.rpartition(PROMPT)[2]
    opens = bool(opening) and text.removesuffix(template.prefill).endswith(opening)
    if template.opening and not opens:
        raise LocalError(
            "The chat template opens no reply here (it ignores `add_generation_prompt`), so a token would be read at "
            "another place; give one that does as `chat_template=...`."
        )
    if not template.opening and opens:
        raise LocalError(
            "The chat template opens a reply at the end of every conversation, so the token after the response cannot "
            "be read; give one with `add_generation_prompt` as `chat_template=...`."
        )


def _common_tail(texts: Sequence[str]) -> str:
    """What follows the response in both texts."""
    tails = {
        text.rpartition(response)[2] if response in text else ""
        for text, response in zip(texts, RESPONSES, strict=True)
    }
    if len(tails) != 1 or tails == {""}:
        raise LocalError(
            "The chat template writes no fixed text after a response, where the token of the reward would be read; "
            "give another one as `chat_template=...`."
        )
    return tails.pop()


def _check_end_of_turn(template: Template, text: str) -> None:
    [ids] = template.encode([text])
    added: Mapping[int, Any] = getattr(template.tokenizer, "added_tokens_decoder", {})
    if ids[-1] not in template.tokenizer.all_special_ids and not getattr(added.get(ids[-1]), "special", False):
        raise LocalError(
            f"The chat template ends with {template.tokenizer.decode(list(ids[-1:]))!r}, and this reward is read at "
            "the token that ends a turn; give a template that ends with it as `chat_template=...`."
        )


def _token_id(token: str, texts: Sequence[str], tail: str, template: Template) -> int:
    if token.startswith("id:"):
        number = token.removeprefix("id:")
        size = template.num_embeddings or len(template.tokenizer)
        if not number.isdecimal() or int(number) >= size:
            raise LocalError(f"{token!r} is not the id of one of the model's {size:,} tokens; give id:N.")
        return int(number)
    before = list(template.encode(texts))
    after = list(template.encode([text + token for text in texts]))
    ids = {
        tuple(longer[len(shorter) :]) if longer[: len(shorter)] == shorter else ()
        for shorter, longer in zip(before, after, strict=True)
    }
    one = next(iter(ids)) if len(ids) == 1 else ()
    if len(one) != 1 or one[0] == template.tokenizer.unk_token_id:
        [alone] = template.encode([token])
        names = " ".join(map(str, template.tokenizer.convert_ids_to_tokens(list(one or alone))))
        raise LocalError(
            f"{token!r} is not a single token after the end of the chat template ({one_line(repr(tail), 60)}): "
            f"{names or 'no token'}; give another text, or the id of a token as id:N."
        )
    return one[0]


def vllm_options(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, labels: Sequence[int]) -> str:
    """Return the options with which vLLM serves the rows of these tokens in a model's head as a classifier.

    Raises `LocalError` if the model scales or caps its logits, which such a classifier does not.
    """
    if scales := _scales(config):
        raise LocalError(
            f"{config.name_or_path} changes its logits ({', '.join(scales)}), which vLLM's classification of tokens "
            "leaves out; score locally, or start the server with --runner generate."
        )
    causal = next(iter(config.architectures or ()), "")
    overrides = {
        "architectures": [causal.replace("ForCausalLM", "ForSequenceClassification")],
        "classifier_from_token": tokenizer.convert_ids_to_tokens(list(labels)),
        "method": "no_post_processing",
    }
    return f"--runner pooling --hf-overrides '{json.dumps(overrides, ensure_ascii=False)}'"
