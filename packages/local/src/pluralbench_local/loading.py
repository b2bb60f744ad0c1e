"""`load`: a reward model in this process, ready to score."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pluralbench_rewards import ScoringConfig

from pluralbench_local.classifiers import Classifier, Implicit, check_label, check_vocabulary, logits_of
from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.errors import ModelError
from pluralbench_local.models import (
    appended,
    load_classifier,
    load_config,
    load_language_model,
    load_tokenizer,
    rows_of,
)
from pluralbench_local.network import unpacked
from pluralbench_local.personal.scoring import Personal, load_personal
from pluralbench_local.scoring import RunOptions, token_limit

AnyModel = Classifier | Implicit | Personal


def load(model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None, **fields: Any) -> AnyModel:
    """Load a reward model from a folder or the Hub into this process; a personalized one from its folder.

    model: its description, or its name, with the other fields of `LocalModel` by keyword. scoring: how it runs when it
    is asked to score; `pluralbench_local.score` takes other ways.

    Raises `ModelError` and `DeviceError`.
    """
    model = described(model, **fields)
    if model.personal() is not None:
        return load_personal(model, scoring or ScoringConfig())
    options = RunOptions.of(scoring or ScoringConfig(), model)
    if model.kind == "classifier":
        return _classifier(model, options)
    return _implicit(model, options)


def template_of(model: LocalModel, scoring: ScoringConfig) -> tuple[Template, int]:
    """How a model reads conversations, and the most tokens of one; no weights are read. Raises `ModelError`."""
    sources = [model]
    if model.reference is not None:
        sources.append(model.model_copy(update={"name": model.reference, "revision": None}))
    configs = [load_config(source) for source in sources]
    tokenizer, whole = load_tokenizer(model, model.template()), model.kind == "implicit"
    template = Template(tokenizer, () if whole else appended(configs[0]), whole_response=whole)
    return template, scoring.max_length or token_limit(tokenizer, configs)


def load_to_score(model: LocalModel, scoring: ScoringConfig) -> AnyModel:
    """A described model for a run: it also measures the tolerance of its scores."""
    loaded = load(model, scoring=scoring)
    return replace(loaded, options=replace(loaded.options, measure_tolerance=True))


def _classifier(model: LocalModel, options: RunOptions) -> Classifier:
    if model.reference is not None:
        raise ModelError("A classifier has no `reference` model; that belongs to the kind implicit.")
    tokenizer = load_tokenizer(model, model.template())
    network, append = load_classifier(model)
    check_label(model.name, logits_of(network), model.label)
    template = Template(tokenizer, append, rows=rows_of(network.model))
    return Classifier(model.name, network, template, model.label, options)


def _implicit(model: LocalModel, options: RunOptions) -> Implicit:
    if model.label is not None:
        raise ModelError("An implicit reward has no `label`; that belongs to the kind classifier.")
    tokenizer = load_tokenizer(model, model.template())
    policy = load_language_model(model)
    reference = model.reference
    other = (
        None
        if reference is None
        else load_language_model(model.model_copy(update={"name": reference, "revision": None}))
    )
    if other is not None and other.model.config.vocab_size != policy.model.config.vocab_size:
        raise ModelError(f"{reference} has another vocabulary than {model.name}, so it cannot be its reference.")
    for name, network in ((model.name, policy), *([] if other is None else [(str(reference), other)])):
        check_vocabulary(name, network)
    if other is not None and bool(policy.unpackable) != bool(other.unpackable):
        why = policy.unpackable or other.unpackable
        policy, other = unpacked(policy, why), unpacked(other, why)
    template = Template(tokenizer, whole_response=True, rows=rows_of(policy.model))
    return Implicit(model.name, policy, other, template, options)
