"""Local reward models: sequence classifiers, and language models as implicit reward models."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pluralbench_local.batches import Read
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.network import AGREEMENT, ReadableNetwork, using_default_attention
from pluralbench_local.packing import Tokens
from pluralbench_local.planning import VOCABULARY_ROWS
from pluralbench_local.scoring import RunOptions, record_of, score_locally, tolerance, unmeasured
from pluralbench_local.transfer import to_device

RULE = re.compile(r"^(logit|softmax):(-?\d+)$")


@dataclass(frozen=True)
class Classifier:
    """A sequence classifier whose reward is a logit of the conversation's last token.

    Attributes:
        name: Folder, or ORG/NAME on the Hub.
        network: The loaded network.
        template: How conversations become tokens.
        label: Which of several logits is the reward: "logit:K", or "softmax:K" for its probability. A negative K
            counts from the end. Personalized RewardBench (section 4.1) uses "softmax:-1". Default: the only logit.
        options: How it scores.
    """

    name: str
    network: ReadableNetwork
    template: Template
    label: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    kind = "classifier"
    record, score, unmeasured, tolerance = record_of, score_locally, unmeasured, tolerance

    @property
    def networks(self) -> list[ReadableNetwork]:
        """Networks that have to run."""
        return [self.network]

    @property
    def precision(self) -> torch.dtype:
        """Precision of a reward."""
        return self.network.dtype

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """Compute the reward of each conversation, in order, and return the number of tokens computed too."""
        states, rows, computed = read(self.network, groups)
        last = states[to_device([indices[-1] for indices in rows], states.device)]
        if self.network.head is None:
            logits = last
        elif self.options.mode == "fast":
            logits = self.network.head(last)
        else:
            # A narrow matrix product is rounded depending on its number of rows: use as many as an unpacked batch has.
            lengths = [len(tokens.ids) for group in groups for tokens in group]
            pairs = zip(last, lengths, strict=True)
            logits = torch.stack([self.network.head(state.expand(1, length, -1))[0, -1] for state, length in pairs])
        check_label(self.name, logits.shape[1], self.label)
        return reward_of(logits.float(), self.label).tolist(), computed


@dataclass(frozen=True)
class Implicit:
    """A language model whose reward is the summed log-probability of the response (as in DPO).

    The sum of a reference model is subtracted, if there is one. The factor beta changes no decision and is left out.
    The tokens of the response are all those after the template's opening of the answer, including its closing tokens.

    Attributes:
        name: Folder, or ORG/NAME on the Hub.
        policy: The network whose log-probabilities count.
        reference: The network whose log-probabilities are subtracted.
        template: How conversations become tokens.
        options: How it scores.
    """

    name: str
    policy: ReadableNetwork
    reference: ReadableNetwork | None
    template: Template
    options: RunOptions = field(default_factory=RunOptions)
    kind = "implicit"
    record, score, unmeasured, tolerance = record_of, score_locally, unmeasured, tolerance

    @property
    def networks(self) -> list[ReadableNetwork]:
        """Networks that have to run."""
        return [self.policy] if self.reference is None else [self.policy, self.reference]

    @property
    def precision(self) -> torch.dtype:
        """Precision of a log-probability."""
        return torch.float32

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """Compute the reward of each conversation, in order, and return the tokens that each network computed too."""
        sums, computed = _log_probabilities(self.policy, groups, read)
        if self.reference is not None:
            sums = sums - _log_probabilities(self.reference, groups, read)[0]
        return sums.tolist(), computed


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


@torch.inference_mode()
def check_vocabulary(name: str, network: ReadableNetwork) -> None:
    """Check that the logits of `Implicit` are those of the model's forward pass.

    Raises:
        LocalError: If they are not.
    """
    ids = torch.arange(1, 9, device=network.device).unsqueeze(0)
    with using_default_attention(network):
        expected = network.model(input_ids=ids, use_cache=False).logits[0].float()
        logits = _language_model_logits(network, network.body(input_ids=ids, use_cache=False).last_hidden_state[0])
    if (expected - logits).abs().max() > AGREEMENT.get(network.dtype, 0.15) * expected.abs().max():
        raise LocalError(
            f"{name} is not supported as an implicit reward model: it computes its logits from its hidden states in an "
            "unknown way."
        )


def _log_probabilities(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[Tensor, int]:
    """Sum the log-probabilities of the tokens after each read position, by conversation, in float64."""
    states, rows, computed = read(network, groups)
    conversations = [tokens for group in groups for tokens in group]
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
    return sums, computed


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
