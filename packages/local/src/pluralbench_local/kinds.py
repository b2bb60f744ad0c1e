"""The kinds of local reward models: how each is recognized, loaded and read.

Scoring, serving and training know no kind by name: a new kind is an entry of `KINDS`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, PretrainedConfig

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_config, load_model, silence_transformers
from pluralbench_local.network import AGREEMENT, ReadableNetwork, network_of, using_default_attention
from pluralbench_local.packing import Tokens, to_device
from pluralbench_local.planning import VOCABULARY_ROWS

RULE = re.compile(r"^(logit|softmax):(-?\d+)$")

Rows = list[list[int]]
"""For each conversation the indices of its states."""


def _logits(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Logits of the last token of each conversation."""
    last = states[to_device([indices[-1] for indices in rows], states.device)]
    if network.head is None:
        return last.float()
    if mode == "fast":
        logits: Tensor = network.head(last)
    else:
        # A narrow matrix product is rounded depending on its number of rows: use as many as an unpacked batch has.
        pairs = zip(last, conversations, strict=True)
        logits = torch.stack([network.head(state.expand(1, len(tokens.ids), -1))[0, -1] for state, tokens in pairs])
    return logits.float()


@torch.inference_mode()
def _check_vocabulary(name: str, network: ReadableNetwork) -> None:
    """Raise `LocalError` unless `_language_model_logits` gives the logits of the model's forward pass."""
    ids = torch.arange(1, 9, device=network.device).unsqueeze(0)
    with using_default_attention(network):
        expected = network.model(input_ids=ids, use_cache=False).logits[0].float()
        logits = _language_model_logits(network, network.body(input_ids=ids, use_cache=False).last_hidden_state[0])
    if (expected - logits).abs().max() > AGREEMENT.get(network.dtype, 0.15) * expected.abs().max():
        raise LocalError(
            f"{name} is not supported as an implicit reward model: it computes its logits from its hidden states in an "
            "unknown way."
        )


def _log_probabilities(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Sum the log-probabilities of the tokens after each read position, by conversation, in float64."""
    owner = to_device([number for number, indices in enumerate(rows) for _ in indices], states.device)
    target = to_device([tokens.ids[place + 1] for tokens in conversations for place in tokens.reads], states.device)
    # Responses that share a prompt share the state that predicts their first token: project each state once.
    read_rows = np.array([index for indices in rows for index in indices], dtype=np.int64)
    distinct, numbers = np.unique(read_rows, return_inverse=True)
    by_number = numbers.argsort(kind="stable")
    starts = range(0, len(distinct), VOCABULARY_ROWS)
    ends = [int(end) for end in np.searchsorted(numbers[by_number], [start + VOCABULARY_ROWS for start in starts])]
    unique, inverse, order = (
        to_device(torch.from_numpy(each), states.device) for each in (distinct, numbers, by_number)
    )
    sums = torch.zeros(len(conversations), dtype=torch.float64, device=states.device)
    for start, begin, end in zip(starts, [0, *ends], ends, strict=False):
        logits = _language_model_logits(network, states[unique[start : start + VOCABULARY_ROWS]])
        chunk = order[begin:end]
        # `logsumexp` takes up to four times as long.
        values = logits.log_softmax(-1)[inverse[chunk] - start, target[chunk]]
        sums.index_add_(0, owner[chunk], values.double())
    return sums.unsqueeze(1)


def _language_model_logits(network: ReadableNetwork, states: Tensor) -> Tensor:
    """Logits as in the model's forward pass; some families scale or cap them."""
    assert network.head is not None  # noqa: S101 - a language model has one
    config = network.model.config.get_text_config()
    logits: Tensor = network.head(states).float()
    for name in ("logit_scale", "lm_head_multiplier"):
        logits = logits * (getattr(config, name, None) or 1.0)
    logits = logits / (getattr(config, "logits_scaling", None) or 1.0)
    cap = getattr(config, "final_logit_softcapping", None)
    return torch.tanh(logits / cap) * cap if cap else logits


@dataclass(frozen=True)
class ModelKind:
    """A kind of reward model.

    Attributes:
        name: Name in records, and `LocalModel.kind` if that selects it.
        recognize: Whether a model is of this kind, by its settings, files, configuration or tensor names.
        loader: Loads a reward model that scores in its own way, as "module:function" of a `LocalModel` and a
            `ScoringConfig`. Default: a network that the other fields describe.
        auto: Class of transformers that loads the network.
        head: The module of a loaded model that reads its hidden states; None if the model pools by itself.
        check: Raises `LocalError` if a loaded network cannot be read.
        append: Key in the model's configuration with the id of a token that it expects after a conversation.
        whole_response: Whether all tokens of the response are read, instead of the conversation's last token.
        numbers: Numbers of each conversation, of shape (conversations, labels), from the states that are read.
        option: What tells its numbers apart: the field `label` or `reference` of `LocalModel`.
        precision: Precision of its numbers. Default: that of the weights.
    """

    name: str
    recognize: Callable[[LocalModel], bool]
    loader: str = ""
    auto: Any = AutoModelForSequenceClassification
    head: Callable[[Any], nn.Module | None] = lambda model: getattr(model, "score", None)
    check: Callable[[str, ReadableNetwork], None] = lambda name, network: None
    append: str = ""
    whole_response: bool = False
    numbers: Callable[[ReadableNetwork, Tensor, Rows, Sequence[Tokens], Mode], Tensor] = _logits
    option: str = "label"
    precision: torch.dtype | None = None

    def appended(self, config: PretrainedConfig) -> tuple[int, ...]:
        """Return the token ids that the model expects after a conversation. Raises `LocalError`."""
        if not self.append:
            return ()
        token = getattr(config, self.append, None)
        if not isinstance(token, int):
            raise LocalError(f"The configuration of {config.name_or_path} has no number as `{self.append}`; add it.")
        return (token,)


def _declares(architecture: str) -> Callable[[LocalModel], bool]:
    return lambda source: architecture in (load_config(source).architectures or [])


LANGUAGE_MODEL = ModelKind(
    "implicit",
    lambda source: source.kind == "implicit",
    auto=AutoModelForCausalLM,
    head=lambda model: model.get_output_embeddings(),
    check=_check_vocabulary,
    whole_response=True,
    numbers=_log_probabilities,
    option="reference",
    precision=torch.float32,
)
"""The log-probability of the response, less that under a reference (as in DPO).

The factor beta changes no decision and is left out. The tokens of the response are all those after the template's
opening of the answer, including its closing tokens.
"""
CLASSIFIER = ModelKind("classifier", lambda source: True)
"""A logit of the conversation's last token. Of several, `label` selects one: "logit:K", or "softmax:K" for its
probability. Personalized RewardBench (section 4.1) uses "softmax:-1"."""

KINDS: tuple[ModelKind, ...] = (
    ModelKind(
        "personal",
        lambda source: source.personal() is not None,
        loader="pluralbench_local.personal.scoring:load_personal",
    ),
    LANGUAGE_MODEL,
    # internlm/internlm2-*-reward: `get_score` of the model's own code reads the reward token after the conversation.
    ModelKind(
        "classifier",
        _declares("InternLM2ForRewardModel"),
        auto=AutoModel,
        head=attrgetter("v_head"),
        append="reward_token_id",
    ),
    CLASSIFIER,
)
"""The first kind that recognizes a model is its kind."""


def kind_of(source: LocalModel) -> ModelKind:
    """Return the kind of a model. Raises `LocalError` if its configuration cannot be loaded."""
    return next(kind for kind in KINDS if kind.recognize(source))


def load_network(kind: ModelKind, source: LocalModel) -> ReadableNetwork:
    """Load a network, and check that it can be read.

    Raises:
        LocalError: If it cannot be loaded or read; or if its device is not available, or has too little memory.
    """
    model = load_model(kind.auto, source)
    with silence_transformers():
        network = network_of(model, kind.head(model))
    kind.check(source.name, network)
    return network


def check_label(name: str, logits: int, label: str | None) -> None:
    """Check the label of a classifier against the number of its logits.

    Raises:
        LocalError: If a head of several logits has no label, or the label does not fit the head.
    """
    if label is None:
        if logits > 1:
            raise LocalError(
                f"The head of {name} has {logits} logits; choose the reward with `label=...`: logit:K, or softmax:K "
                f"for its probability (K from 0 to {logits - 1}, or -1 for the last)."
            )
        return
    match = RULE.match(label)
    if match is None or not -logits <= int(match[2]) < logits:
        raise LocalError(
            f"The label {label!r} does not fit the head of {name}, which has {logits} logits; give logit:K or "
            "softmax:K as `label=...`."
        )


def reward_of(logits: Tensor, label: str | None) -> Tensor:
    """Return the reward of each row of logits, as `label` selects it."""
    match = RULE.match(label or "logit:0")
    assert match is not None  # noqa: S101 - `check_label` checks it
    values = logits.softmax(-1) if match[1] == "softmax" else logits
    return values[:, int(match[2])]
