"""Load reward models into this process."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pluralbench_rewards import RewardModel, ScoringConfig
from pluralbench_rewards.cluster import on_devices
from pluralbench_runs import step
from torch import Tensor

from pluralbench_local.classifiers import Classifier, Implicit, check_label, check_vocabulary
from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.models import (
    ALL_GPUS,
    all_gpus,
    describe_weights,
    load_classifier,
    load_language_model,
    load_tokenizer,
    num_embeddings,
)
from pluralbench_local.network import without_packing
from pluralbench_local.personal.scoring import Personal, load_personal
from pluralbench_local.scoring import RunOptions

AnyModel = Classifier | Implicit | Personal


def load(model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None, **fields: Any) -> AnyModel:
    """Load a reward model from a folder or the Hub into this process.

    A personalized reward model is loaded from its folder.

    Args:
        model: The model's configuration, or its name.
        scoring: How it scores by default; `pluralbench_local.score` can override it.
        **fields: Fields of `LocalModel`.

    Raises:
        LocalError: If the model cannot be loaded, or is of another kind; or if its device is not available, or has too
            little memory.
    """
    model = described(model, **fields)
    if model.personal() is not None:
        return load_personal(model, scoring or ScoringConfig())
    options = RunOptions.of(scoring or ScoringConfig(), model)
    with step(f"Loading {describe_weights(model)}"):
        return _classifier(model, options) if model.kind == "classifier" else _implicit(model, options)


def load_to_score(model: LocalModel, scoring: ScoringConfig) -> RewardModel:
    """Load a model for a run, in which it also measures the tolerance of its scores. Raises as `load`.

    With the device "all", a process for each GPU loads it.
    """
    if model.device == ALL_GPUS:
        models = {device: model.model_copy(update={"device": device}) for device in all_gpus()}
        return on_devices(
            {device: partial(load_to_score, one, scoring) for device, one in models.items()}, model.record()
        )
    loaded = load(model, scoring=scoring)
    return replace(loaded, options=replace(loaded.options, measure_tolerance=True))


def _classifier(model: LocalModel, options: RunOptions) -> Classifier:
    if model.reference is not None:
        raise LocalError('A classifier has no reference model; leave out `reference=...`, or set `kind="implicit"`.')
    tokenizer = load_tokenizer(model, model.template())
    network, append = load_classifier(model)
    weight = getattr(network.head, "weight", None)  # without it, the first batch tells the number of logits
    if isinstance(weight, Tensor):
        check_label(model.name, len(weight), model.label)
    template = Template(tokenizer, append, num_embeddings=num_embeddings(network.model))
    return Classifier(model.name, network, template, model.label, options)


def _implicit(model: LocalModel, options: RunOptions) -> Implicit:
    if model.label is not None:
        raise LocalError('An implicit reward has no label; leave out `label=...`, or set `kind="classifier"`.')
    tokenizer = load_tokenizer(model, model.template())
    policy = load_language_model(model)
    name = model.reference
    reference = None if name is None else load_language_model(model.model_copy(update={"name": name, "revision": None}))
    if reference is not None and reference.model.config.vocab_size != policy.model.config.vocab_size:
        raise LocalError(f"{name} has another vocabulary than {model.name}, so it cannot be its reference.")
    check_vocabulary(model.name, policy)
    if reference is not None:
        check_vocabulary(str(name), reference)
        if bool(policy.unpackable) != bool(reference.unpackable):
            why = policy.unpackable or reference.unpackable
            policy, reference = without_packing(policy, why), without_packing(reference, why)
    template = Template(tokenizer, whole_response=True, num_embeddings=num_embeddings(policy.model))
    return Implicit(model.name, policy, reference, template, options)
