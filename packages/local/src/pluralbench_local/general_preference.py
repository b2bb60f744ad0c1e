"""General preference models: a vector of each response, compared by a skew-symmetric form."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pluralbench_rewards import Cached, Group, Message, Mode, ModelRecord, OnScored, Pairs, Scored, ScoringConfig
from pluralbench_runs import log_status, step
from torch import Tensor, nn
from transformers import AutoModel

from pluralbench_local.batches import Read
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template, tokenize
from pluralbench_local.errors import LocalError
from pluralbench_local.model_kinds import ModelKind, Rows
from pluralbench_local.models import describe_weights, load_model, load_tokenizer, num_embeddings
from pluralbench_local.network import ReadableNetwork, network_of
from pluralbench_local.packing import Tokens
from pluralbench_local.pairwise import make_scorer, without_own_code
from pluralbench_local.scoring import LocalRewardModel, compute_scores, read_unpacked, tolerance_from
from pluralbench_local.value_heads import check_width
from pluralbench_local.weights import ModelFiles

SCALES = {
    "scaled": "softmax(prompt head / √width) · pairs of dimensions, vectors as they are",
    "plain": "softmax(prompt head), vectors as they are",
    "normalized": "softmax(prompt head), vectors of length 1",
}
"""How general preference models weight their dimensions, by label: the code of 2025, and two versions of 2024."""


def probability(logit: float) -> float:
    """Return the logistic function of a logit."""
    return 1 / (1 + math.exp(-logit)) if logit > 0 else 1 - 1 / (1 + math.exp(logit))


@dataclass(frozen=True)
class GeneralPreferenceModel:
    """A loaded general preference model (GPM, arXiv 2410.02197): a vector of each response, and a skew-symmetric form.

    The preference s(a, b) is the sum over pairs of dimensions k of w_k (a_2k b_2k+1 - a_2k+1 b_2k), where the weights w
    come from the prompt; its logistic function is the probability that a is better. So s(a, b) = -s(b, a) exactly, and
    preferences can be cyclic.
    """

    scorer: LocalRewardModel

    def record(self) -> ModelRecord:
        """Return the record of the model."""
        return self.scorer.record()

    def compare(
        self, groups: Sequence[Group], pairs: Sequence[Pairs], *, cached: Cached = None, on_scored: OnScored = None
    ) -> Scored:
        """Compare responses in pairs; see `pluralbench_rewards.PairwiseRewardModel.compare`."""
        return compute_scores(
            self.scorer,
            self._vectors,
            groups,
            cached,
            on_scored,
            lambda index, vectors: preferences(vectors, pairs[index]),
        )

    def tolerance(self, groups: Sequence[Group], pairs: Sequence[Pairs], scored: Scored) -> float:
        """Measure how far probabilities of another mode may lie from these; see `LocalRewardModel.tolerance`."""
        if scored.work is None:
            return 0.0
        differences, probabilities = [0.0], [0.0]
        for group, own, before in zip(groups, pairs, scored.scores, strict=True):
            if not before:
                continue
            [tokenized] = tokenize(
                [group], self.scorer.template, scored.work.max_length, self.scorer.scoring.on_overflow
            )
            with torch.inference_mode():
                alone = [self._vectors([[one]], read_unpacked)[0][0] for one in tokenized.conversations]
            again = preferences(alone, own)
            probabilities += again
            differences += [one - other for one, other in zip(again, before, strict=True)]
        return tolerance_from(differences, probabilities, self.scorer.network.dtype)

    def _vectors(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[list[float]], int]:
        scorer = self.scorer
        conversations = [tokens for group in groups for tokens in group]
        states, rows, computed = read(scorer.network, groups)
        numbers = scorer.kind.numbers(scorer.network, states, rows, conversations, scorer.scoring.mode)
        return numbers.tolist(), computed


def preferences(vectors: Sequence[Sequence[float]], pairs: Pairs) -> list[float]:
    """Return the probabilities of pairs, from vectors with the weights of their pairs of dimensions behind them.

    All responses of a group take the weights of the first one, so that rounding does not break the antisymmetry.
    """
    size = len(vectors[0]) // 3
    weights = vectors[0][2 * size :]

    def preference(a: Sequence[float], b: Sequence[float]) -> float:
        terms = (a[2 * k] * b[2 * k + 1] - a[2 * k + 1] * b[2 * k] for k in range(size))
        return sum(weight * term for weight, term in zip(weights, terms, strict=True))

    return [probability(preference(vectors[one], vectors[other])) for one, other in pairs]


class GeneralPreferenceTemplate(Template):
    """A conversation that ends with eos in place of its last token, read from the end of the prompt on.

    Source: general-preference-model `rewardbench_utils.py`, `CustomLeftPadRewardBenchPipeline`; of several turns, all
    before the response are the prompt here.
    """

    def render(self, messages: Sequence[Message], *, opening: bool = False) -> str:
        """Render a conversation; a prompt without the opening of an answer."""
        del opening
        return super().render(messages)

    def tokens(self, ids: "array[int]", opening: "array[int]") -> Tokens:
        """Return a conversation that is read from the last token of the prompt to its own."""
        eos = self.tokenizer.eos_token_id
        assert isinstance(eos, int)  # noqa: S101 - checked when it is loaded
        start = min(len(opening), len(ids)) - 1
        return Tokens(ids[:-1] + array("i", [eos]), range(max(start, 0), len(ids)))


class GeneralPreferenceHead(nn.Module):
    """The heads of a general preference model.

    `value` gives the vector of a response, `prompt` the weights of its pairs of dimensions (None: all are 1), which are
    used as `scale` says, a key of `SCALES`.
    """

    def __init__(self, value: Tensor, prompt: Tensor | None, scale: str) -> None:
        super().__init__()
        self.value = _linear(value)
        self.prompt = None if prompt is None else _linear(prompt)
        self.scale = scale
        self.out_features = len(value) // 2 * 3

    def forward(self, prompt: Tensor, last: Tensor) -> Tensor:
        """Return vector and weights from the states at the end of the prompt and of the conversation."""
        size = self.value.out_features // 2
        vector = self.value(last.to(self.value.weight.dtype)).float()
        if self.scale == "normalized":
            vector = nn.functional.normalize(vector, dim=-1)
        if self.prompt is None:
            return torch.cat([vector, vector.new_ones(size)])
        gates = self.prompt(prompt.to(self.prompt.weight.dtype)).float()
        if self.scale == "scaled":
            return torch.cat([vector, (gates / math.sqrt(self.prompt.in_features)).softmax(-1) * size])
        return torch.cat([vector, gates.softmax(-1)])


def _linear(weight: Tensor) -> nn.Linear:
    outputs, inputs = weight.shape
    layer = nn.Linear(inputs, outputs, bias=False, dtype=weight.dtype)
    layer.weight.data = weight
    return layer


def _vectors(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Vector and weights of each conversation, one by one: a matrix product is rounded depending on its rows."""
    del conversations, mode
    assert network.head is not None  # noqa: S101 - for mypy
    head = network.head
    return torch.stack([head(states[indices[0]], states[indices[-1]]) for indices in rows])


def load_general_preference(source: LocalModel, scoring: ScoringConfig) -> GeneralPreferenceModel:
    """Load a general preference model.

    Source: general-preference-model `rw_model_general_preference.py`, which weights dimensions in three ways.
    """
    with step(f"Loading {describe_weights(source)}"):
        files, tokenizer = ModelFiles(source), load_tokenizer(source)
        if tokenizer.eos_token_id is None:
            raise LocalError(f"The tokenizer of {source.name} has no eos token, which GPM reads; set its `eos_token`.")
        head = _general_preference_head(files)
        body = load_model(AutoModel, without_own_code(files))
        check_width(source.name, "value_head", head.value.in_features, body)
        network = network_of(body, head, body)
        body.reward_head = head.to(device=network.device).eval()
    log_status(
        f"{source.name}: general preference model of {head.value.out_features} dimensions, {SCALES[head.scale]}."
    )
    kind = ModelKind("pairwise", lambda files: True, numbers=_vectors)
    template = GeneralPreferenceTemplate(tokenizer, whole_response=True, num_embeddings=num_embeddings(body))
    return GeneralPreferenceModel(make_scorer(kind, source, network, template, scoring, lacking=("reference",)))


def _general_preference_head(files: ModelFiles) -> GeneralPreferenceHead:
    tensors, name = files.tensors(["value_head.weight", "prompt_head.weight"]), files.source.name
    value, prompt = tensors.get("value_head.weight"), tensors.get("prompt_head.weight")
    if value is None:
        raise LocalError(f"{name} has prompt_head.weight, but no value_head.weight, so it cannot compare responses.")
    if len(value) % 2 or (prompt is not None and prompt.shape != (len(value) // 2, value.shape[1])):
        shapes = f"{tuple(value.shape)} and {None if prompt is None else tuple(prompt.shape)}"
        raise LocalError(
            f"The heads of {name} do not fit together: value_head.weight and prompt_head.weight have the shapes "
            f"{shapes}, instead of an even number of rows and half as many."
        )
    label = files.source.label or ("plain" if prompt is None else "")
    if label not in SCALES:
        ways = "; ".join(f"{key}: {how}" for key, how in SCALES.items())
        why = f"{label!r} is none of its labels" if label else "its files do not say how"
        raise LocalError(
            f"{name} weights its dimensions by the prompt, and {why}; name the way of the program that trained it as "
            f"`label=...` ({ways})."
        )
    if files.source.dtype != "auto":
        dtype = getattr(torch, files.source.dtype)
        value, prompt = value.to(dtype), None if prompt is None else prompt.to(dtype)
    return GeneralPreferenceHead(value, prompt, label)
