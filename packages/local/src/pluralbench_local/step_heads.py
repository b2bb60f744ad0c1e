"""Load networks that score the steps of an answer, and read their scores as one reward."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForTokenClassification

from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.labels import check_label, reward_of
from pluralbench_local.models import load_model, load_tokenizer, silence_transformers
from pluralbench_local.network import (
    ReadableNetwork,
    network_of,
    own_logits,
)
from pluralbench_local.packing import Tokens, to_device
from pluralbench_local.probes import plain_conversations, reads_as_model
from pluralbench_local.step_rewards import PROCESS_REWARDS, Aggregation, ProcessRewardName, StepReading
from pluralbench_local.steps import single_token, tokenize_steps
from pluralbench_local.token_heads import check_distinct, load_language_model, with_token_head
from pluralbench_local.value_heads import FAMILIES, HeadFamily, load_value_head
from pluralbench_local.weights import ModelFiles

ANY_HEAD = HeadFamily("process", "score", reads="step marks")
AGGREGATIONS: Mapping[Aggregation, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"min": torch.amin, "product": torch.prod, "mean": torch.mean, "last": lambda scores: scores[-1]}
)
"""The reward of an answer from the scores of its steps, of shape (steps,)."""


def is_process(files: ModelFiles) -> bool:
    """Return whether a model is one of process rewards, by its settings or its architecture."""
    source = files.source
    if source.kind is not None or source.has_steps():
        return source.kind in {None, "process"}
    return _known(files) is not None or _architecture(files).endswith("ForTokenClassification")


def reading_of(files: ModelFiles) -> StepReading:
    """Return how the steps of a model are read. Raises `LocalError` if neither its files nor its settings say it."""
    name = files.source.name
    reading = files.source.step_reading(_known(files))
    if reading is None:
        raise LocalError(
            f"The files of {name} do not say what marks the steps of an answer; give `step_mark=...`, or a published "
            f"way as `process_reward=...` ({', '.join(PROCESS_REWARDS)})."
        )
    if reading.aggregation is None:
        raise LocalError(
            f"No publication names how the scores of steps make a reward of {name}; give `aggregation=...` "
            f"({', '.join(AGGREGATIONS)})."
        )
    return reading


def step_template(source: LocalModel, template: Template) -> Template:
    """Return the template that tokenizes conversations with marked steps. Raises as `reading_of`."""
    reading = reading_of(ModelFiles(source))
    if reading.chat_template is not None and source.chat_template is None:
        template.tokenizer.chat_template = reading.chat_template
    return replace(template, steps=partial(tokenize_steps, reading=reading))


def load_step_network(files: ModelFiles) -> ReadableNetwork:
    """Load a network with a head that scores steps.

    Raises `LocalError` if it has no head for each token, or its logits do not make a score.
    """
    reading = reading_of(files)
    if reading.positive is not None and reading.negative is not None:
        network = _language_model(files, (reading.positive, reading.negative))
        label: str | None = "softmax:0"
    else:
        network, label = _with_own_head(files), reading.label
    outputs = getattr(network.head, "out_features", 1)
    names = network.model.config.id2label or {}
    check_label(files.source.name, outputs, label, names)
    return with_step_head(network, reading, partial(reward_of, label=label, names=names))


def _known(files: ModelFiles) -> ProcessRewardName | None:
    """The published way of reading a model, by its architecture."""
    return next((name for name, way in PROCESS_REWARDS.items() if _architecture(files) in way.architectures), None)


def _architecture(files: ModelFiles) -> str:
    return next(iter(files.config.architectures or ()), "")


def _language_model(files: ModelFiles, tokens: Sequence[str]) -> ReadableNetwork:
    template = Template(load_tokenizer(files.source), num_embeddings=files.config.get_text_config().vocab_size)
    ids = [single_token(token, template) for token in tokens]
    check_distinct(ids)
    return with_token_head(load_language_model(files), ids)


def _with_own_head(files: ModelFiles) -> ReadableNetwork:
    """Load a model whose head, or whose own code, gives logits of each token."""
    if _architecture(files).endswith("ForTokenClassification"):
        return _token_classifier(files)
    family = next((family for family in (ANY_HEAD, *FAMILIES) if family.recognizes(files)), None)
    if family is not None:
        return load_value_head(family, files)
    code = getattr(files.config, "auto_map", None) or {}
    auto: Any = next((auto for auto in (AutoModelForTokenClassification, AutoModel) if auto.__name__ in code), None)
    if auto is None:
        raise LocalError(
            f"{files.source.name} has no reward head; a language model says with tokens whether a step is right: give "
            "`positive_token=...` and `negative_token=...`, or `process_reward=...`."
        )
    return by_own_code(load_model(auto, files.source))


def _token_classifier(files: ModelFiles) -> ReadableNetwork:
    auto: Any = AutoModelForTokenClassification  # untyped
    model = load_model(auto, files.source)
    head = getattr(model, "score", None) or getattr(model, "classifier", None)
    if isinstance(head, nn.Linear):
        with silence_transformers():
            network = network_of(model, head)
        if reads_as_model(network, plain_conversations(model), head):
            return network
    return by_own_code(model)


class StepHead(nn.Module):
    """A head that reads the score of a step, in float64. `settings` is what a run records of the reading."""

    def __init__(
        self, head: nn.Module, score: Callable[[Tensor], Tensor], aggregation: Aggregation, settings: dict[str, Any]
    ) -> None:
        super().__init__()
        self.out_features = 1
        self.aggregation, self.settings = aggregation, settings
        self._head, self._score = head, score

    def forward(self, states: Tensor) -> Tensor:
        """Return the scores of states of shape (n, width), as (n,)."""
        return self._score(self._head(states).double())


def step_rewards(
    network: ReadableNetwork, states: Tensor, rows: list[list[int]], conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Rewards from the scores of the steps of each conversation, in float64. Shape (conversations, 1)."""
    head: Any = network.head
    aggregate = AGGREGATIONS[head.aggregation]
    scores = step_scores(network, states, rows, conversations, mode)
    return torch.stack([aggregate(each) for each in scores]).unsqueeze(1)


def step_scores(
    network: ReadableNetwork, states: Tensor, rows: list[list[int]], conversations: Sequence[Tokens], mode: Mode
) -> Sequence[Tensor]:
    """Scores of the steps of each conversation, in float64. Shape (steps,) each."""
    head: Any = network.head
    # Marks are positions among those that are read, so that no value of a score can move a step.
    marked = [
        [indices[mark - tokens.reads.start] for mark in tokens.marks]
        for indices, tokens in zip(rows, conversations, strict=True)
    ]
    if mode == "fast":
        places = to_device([place for each in marked for place in each], states.device)
        scores: Sequence[Tensor] = head(states[places]).split([len(each) for each in marked])
        return scores
    # A narrow matrix product is rounded depending on its number of rows: use as many as an unpacked batch has.
    return [
        head(_as_alone(states[to_device(places, states.device)], tokens))[: len(places)]
        for places, tokens in zip(marked, conversations, strict=True)
    ]


def _as_alone(states: Tensor, tokens: Tokens) -> Tensor:
    """States with as many rows as the conversation has tokens."""
    return torch.cat((states, states.new_zeros(len(tokens.ids) - len(states), states.shape[1])))


class OwnLogits(nn.Module):
    """A model that gives logits of each token by its own code, as a body whose states these are."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def forward(self, **inputs: Any) -> Any:
        """Return the logits of all tokens, of shape (batch, tokens, labels), as last hidden states."""
        inputs.pop("use_cache", None)
        logits = own_logits(self._model, **inputs)
        if logits.dim() != 3 or logits.shape[:2] != inputs["input_ids"].shape:
            raise LocalError(
                f"{self._model.name_or_path} returns logits of shape {tuple(logits.shape)} for "
                f"{tuple(inputs['input_ids'].shape)} tokens, not a row of each; it is not a process reward model."
            )
        return SimpleNamespace(last_hidden_state=logits)


def by_own_code(model: Any) -> ReadableNetwork:
    """Return a network that reads the logits of each token as the model's own code computes them."""
    head: Any = nn.Identity()
    head.out_features = model.config.num_labels
    attention = model.config._attn_implementation  # noqa: SLF001 - it has no public name
    return ReadableNetwork(model, OwnLogits(model), head, attention, "the model reads its tokens by its own code")


def with_step_head(
    network: ReadableNetwork, reading: StepReading, score: Callable[[Tensor], Tensor]
) -> ReadableNetwork:
    """Return a network whose head scores steps, by `score` from logits of shape (n, labels)."""
    assert network.head is not None  # noqa: S101 - it reads each token
    assert reading.aggregation is not None  # noqa: S101 - `reading_of` asks for it
    read = f"P({reading.positive}) against {reading.negative}" if reading.positive else str(reading.label)
    settings = {
        "steps": "at blank lines" if not reading.split else f"at {reading.split!r}",
        "mark": f"{reading.mark!r} as {reading.form}",
        "step score": read,
        "aggregation": reading.aggregation,
    }
    return replace(network, head=StepHead(network.head, score, reading.aggregation, settings))
