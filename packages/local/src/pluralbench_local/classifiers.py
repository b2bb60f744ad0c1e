"""Reward models that run in this process: classifiers, and language models as implicit reward models."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pluralbench_local.batches import Read
from pluralbench_local.conversations import Template
from pluralbench_local.errors import ModelError
from pluralbench_local.network import AGREEMENT, ReadableNetwork, usual_attention
from pluralbench_local.packing import Tokens
from pluralbench_local.scoring import RunOptions, record_of, score_locally, tolerance, unmeasured

RULE = re.compile(r"^(logit|softmax):(-?\d+)$")
VOCABULARY_ROWS = 256  # hidden states that are read through the vocabulary at a time, to bound memory


@dataclass(frozen=True)
class Classifier:
    """A sequence classifier: its reward is a logit of the conversation's last token.

    label: which of several logits is the reward, "logit:K", or "softmax:K" for its probability; K counts from the
    end when negative. The paper of Personalized RewardBench (section 4.1) takes "softmax:-1" of several.
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
        """What has to run."""
        return [self.network]

    @property
    def precision(self) -> torch.dtype:
        """What a reward is rounded to."""
        return self.network.dtype

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """One reward a conversation, in order, and how many tokens were computed for them."""
        states, rows, computed = read(self.network, groups)
        last = states[[places[-1] for places in rows]]
        if self.network.head is None:
            logits = last
        elif self.options.mode == "fast":
            logits = self.network.head(last)
        else:
            # How a product with few columns is rounded depends on its rows: each state goes among as many as alone.
            lengths = [len(tokens.ids) for group in groups for tokens in group]
            alone = zip(last, lengths, strict=True)
            logits = torch.stack([self.network.head(state.expand(1, length, -1))[0, -1] for state, length in alone])
        return reward_of(logits.float(), self.label).tolist(), computed


@dataclass(frozen=True)
class Implicit:
    """A language model as a reward model (direct preference optimisation): the summed log-probability of the response.

    With a reference, the reference's sum is subtracted; the factor beta changes no decision and is left out. The
    response's tokens are all that follow the opening of the answer, what the template closes it with included.
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
        """What has to run."""
        return [self.policy] if self.reference is None else [self.policy, self.reference]

    @property
    def precision(self) -> torch.dtype:
        """What a log-probability is rounded to."""
        return torch.float32

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """One reward a conversation, in order, and how many tokens each of the networks computed."""
        sums, computed = _log_probabilities(self.policy, groups, read)
        if self.reference is not None:
            sums = sums - _log_probabilities(self.reference, groups, read)[0]
        return sums.tolist(), computed


def logits_of(network: ReadableNetwork) -> int:
    """How many logits the head of a classifier gives."""
    weight = getattr(network.head, "weight", None)
    return weight.shape[0] if isinstance(weight, Tensor) else int(network.model.config.num_labels or 1)


def check_label(name: str, logits: int, label: str | None) -> None:
    """Raise `ModelError` where a head of several logits has no rule, or the rule does not fit."""
    if label is None:
        if logits > 1:
            raise ModelError(
                f"The head of {name} has {logits} logits; say which is the reward by the `label` logit:K, or softmax:K "
                f"for its probability (K from 0 to {logits - 1}, or -1 for the last)."
            )
        return
    matched = RULE.match(label)
    if matched is None or not -logits <= int(matched[2]) < logits:
        raise ModelError(f"The `label` {label!r} does not fit a head of {logits} logits; give logit:K or softmax:K.")


def reward_of(logits: Tensor, label: str | None) -> Tensor:
    """The reward of each row of logits, by the rule of `label`."""
    matched = RULE.match(label or "logit:0")
    assert matched is not None  # noqa: S101 - check_label saw it
    values = logits.softmax(-1) if matched[1] == "softmax" else logits
    return values[:, int(matched[2])]


@torch.inference_mode()
def check_vocabulary(name: str, network: ReadableNetwork) -> None:
    """Raise `ModelError` where the logits that are computed here are not those of the model's own forward pass."""
    ids = torch.arange(1, 9, device=network.device).unsqueeze(0)
    with usual_attention(network):
        own = network.model(input_ids=ids, use_cache=False).logits[0].float()
        ours = _vocabulary_logits(network, network.body(input_ids=ids, use_cache=False).last_hidden_state[0])
    if (own - ours).abs().max() > AGREEMENT.get(network.dtype, 0.15) * own.abs().max():
        raise ModelError(
            f"{name} makes its logits from its hidden states in a way that is not known here, so its log-probabilities "
            "would be wrong."
        )


def _log_probabilities(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[Tensor, int]:
    """Summed log-probability of the tokens after each read position, a conversation each; in float64."""
    states, rows, computed = read(network, groups)
    conversations = [tokens for group in groups for tokens in group]
    owner = torch.tensor([number for number, places in enumerate(rows) for _ in places], device=states.device)
    place = torch.tensor([place for places in rows for place in places], device=states.device)
    following = [tokens.ids[position + 1] for tokens in conversations for position in tokens.reads]
    target = torch.tensor(following, device=states.device)
    # Responses that share a prompt share the state that predicts their first token: read each state once.
    used, place = torch.unique(place, return_inverse=True)
    order = place.argsort(stable=True)
    bounds = torch.searchsorted(place[order], torch.arange(0, len(used) + VOCABULARY_ROWS, VOCABULARY_ROWS).to(place))
    sums = torch.zeros(len(conversations), dtype=torch.float64, device=states.device)
    for number, start in enumerate(range(0, len(used), VOCABULARY_ROWS)):
        logits = _vocabulary_logits(network, states[used[start : start + VOCABULARY_ROWS]])
        here = order[bounds[number] : bounds[number + 1]]
        rows_here = place[here] - start
        chosen = logits.log_softmax(-1)[rows_here, target[here]]  # `logsumexp` takes up to four times as long
        sums.index_add_(0, owner[here], chosen.double())
    return sums, computed


def _vocabulary_logits(network: ReadableNetwork, states: Tensor) -> Tensor:
    """Logits as the model's own forward pass makes them: some families scale or cap them."""
    assert network.head is not None  # noqa: S101 - a language model has one
    config = network.model.config.get_text_config()
    logits: Tensor = network.head(states).float()
    for name in ("logit_scale", "lm_head_multiplier"):
        logits = logits * (getattr(config, name, None) or 1.0)
    logits = logits / (getattr(config, "logits_scaling", None) or 1.0)
    cap = getattr(config, "final_logit_softcapping", None)
    return torch.tanh(logits / cap) * cap if cap else logits
