"""Load reward models into this process."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pluralbench_rewards import AnyRewardModel, ScoringConfig
from pluralbench_rewards.cluster import on_devices
from pluralbench_runs import log_status, step

from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.general_preference import GeneralPreferenceModel
from pluralbench_local.labels import check_label
from pluralbench_local.model_kinds import ModelKind, kind_of
from pluralbench_local.models import (
    ALL_GPUS,
    all_gpus,
    describe_weights,
    load_tokenizer,
    num_embeddings,
    quantization_settings,
)
from pluralbench_local.network import ReadableNetwork, without_packing
from pluralbench_local.pairwise import LocalPairwiseModel
from pluralbench_local.personal.scoring import Personal
from pluralbench_local.scoring import LocalRewardModel
from pluralbench_local.weights import ModelFiles

AnyModel = LocalRewardModel | Personal
AnyPairwiseModel = LocalPairwiseModel | GeneralPreferenceModel


def load(model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None, **fields: Any) -> AnyModel:
    """Load a reward model from a folder or the Hub into this process.

    Args:
        model: The model's configuration, or its name.
        scoring: How it scores by default; `pluralbench_local.score` can override it.
        **fields: Fields of `LocalModel`.

    Raises:
        LocalError: If the model cannot be loaded, is of another kind, or only compares two responses; or if its device
            is not available, or has too little memory.
    """
    loaded = _load_any(described(model, **fields), scoring or ScoringConfig())
    if isinstance(loaded, AnyModel):
        return loaded
    raise LocalError(
        f"{loaded.scorer.name} only compares two responses and gives no score of a single one; load it with "
        "`load_pairwise`, or score with `pluralbench score`."
    )


def load_pairwise(
    model: str | Path | LocalModel, *, scoring: ScoringConfig | None = None, **fields: Any
) -> AnyPairwiseModel:
    """Load a model that only compares two responses; arguments as of `load`.

    Raises:
        LocalError: As `load`, or if the model scores single responses.
    """
    loaded = _load_any(described(model, **fields), scoring or ScoringConfig())
    if isinstance(loaded, AnyPairwiseModel):
        return loaded
    raise LocalError(f"{described(model).name} gives a score of each response; load it with `load`.")


def _load_any(model: LocalModel, scoring: ScoringConfig) -> AnyModel | AnyPairwiseModel:
    files = ModelFiles(model)
    kind = kind_of(files)
    if kind.loader:
        loaded: AnyModel | AnyPairwiseModel = resolve_name(kind.loader)(model, scoring)
        return loaded
    with step(f"Loading {describe_weights(model)}"):
        return _load(kind, files, scoring)


def load_to_score(model: LocalModel, scoring: ScoringConfig) -> AnyRewardModel:
    """Load a model for a run, in which it also measures the tolerance of its scores. Raises as `load`.

    With the device "all", a process for each GPU loads it.
    """
    if model.device == ALL_GPUS:
        models = {device: model.model_copy(update={"device": device}) for device in all_gpus()}
        return on_devices(
            {device: partial(load_to_score, one, scoring) for device, one in models.items()}, model.record()
        )
    loaded = _load_any(model, scoring)
    if isinstance(loaded, AnyPairwiseModel):
        return loaded
    return replace(loaded, measures_tolerance=True)


def _load(kind: ModelKind, files: ModelFiles, scoring: ScoringConfig) -> LocalRewardModel:
    model = files.source
    tokenizer = load_tokenizer(model)
    network = kind.network(files)
    config = network.model.config
    template = kind.template(model, tokenizer, config, num_embeddings(network.model))
    network = kind.probed(network, template)
    network, reference = (network, None) if model.reference is None else _with_reference(kind, model, network, template)
    outputs = getattr(network.head, "out_features", None)  # without it, the first batch shows the number of labels
    label = model.rule() if kind.option == "label" else None
    if kind.option == "label" and outputs is not None:
        check_label(model.name, outputs, label, config.id2label or {})
    if network.head is None and kind.by_class:  # it pools its tokens by itself
        if model.read is not None:
            raise LocalError(f"{model.name} reads its tokens by its own forward pass; leave out `read=...`.")
        template = replace(template, unread=None)
    if settings := kind.settings(network) | quantization_settings(config):
        log_status(f"{model.name}: {'; '.join(f'{name} {value}' for name, value in settings.items())}.")
    return LocalRewardModel(model.name, kind, network, template, label, reference, scoring, model)


def _with_reference(
    kind: ModelKind, model: LocalModel, network: ReadableNetwork, template: Template
) -> tuple[ReadableNetwork, ReadableNetwork]:
    """Both networks; if one cannot be packed, neither is."""
    assert model.reference is not None  # noqa: S101 - for mypy
    base = model.other(model.reference)
    reference = kind.probed(kind.network(ModelFiles(base)), template)
    if reference.model.config.vocab_size != network.model.config.vocab_size:
        raise LocalError(f"{model.reference} has another vocabulary than {model.name}, so it cannot be its reference.")
    if bool(network.unpackable) == bool(reference.unpackable):
        return network, reference
    why = network.unpackable or reference.unpackable
    return without_packing(network, why), without_packing(reference, why)
