"""The model in training: a language model with a new head or a classifier, whole or by adapters, and its rewards."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from pluralbench_runs import Table
from pydantic import Field
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from pluralbench_local.conversations import Template
from pluralbench_local.description import LocalModel
from pluralbench_local.errors import DeviceError, ModelError
from pluralbench_local.models import REWARD_HEADS, device_of, from_pretrained, loaded, quiet
from pluralbench_local.network import Network, read_padded
from pluralbench_local.packing import Tokens

# Tokens of a forward pass. On a CPU what pads least is fastest, measured; for a GPU it is an estimate.
BUDGET = {"cpu": 512, "cuda": 8192}


class Lora(Table):
    """Low-rank adapters instead of all weights (the extra `lora`), merged into the weights when saved.

    The rest of the weights stays in the type it was saved in; adapters and head train in float32.
    alpha: the adapters' sum counts alpha / rank times. targets: "all-linear", or the names of modules.
    """

    rank: int = Field(16, ge=1)
    alpha: int = Field(32, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: str | tuple[str, ...] = "all-linear"


@dataclass(frozen=True)
class Trainee:
    """A model in training. whole: the module that holds all weights, adapters included. base: their type as loaded.

    budget: tokens, padding included, of a forward pass.
    """

    network: Network
    whole: nn.Module
    base: torch.dtype
    budget: int


def load_trainee(
    source: LocalModel, *, lora: Lora | None, gradient_checkpointing: bool, token_budget: int | None, seed: int
) -> Trainee:
    """The model with a head of one logit, on its device; without adapters in float32, whatever it was saved in.

    A language model gets a linear head without bias, drawn from N(0, 1 / (width + 1)), the second the variance
    (CHEEMS, section 5). The draw, and all that torch draws after it, is by `seed`. Raises `ModelError`, `DeviceError`.
    """
    device = device_of(source.device)
    torch.manual_seed(seed)
    kind: Any = AutoModelForSequenceClassification
    wanted: dict[str, Any] = {"num_labels": 1, "dtype": "auto", "output_loading_info": True}
    wanted |= from_pretrained(source) | {"ignore_mismatched_sizes": True}  # said below, in words
    with quiet():
        model, info = loaded("model", source, lambda: kind.from_pretrained(source.name, **wanted))
    mismatched = sorted(name for name, *_ in info["mismatched_keys"])
    if mismatched:
        raise ModelError(
            f"The {mismatched[0]} of {source.name} is not of the shape that a classifier of one logit has; give one, "
            "or a language model."
        )
    missing = sorted(info["missing_keys"])
    strange = [name for name in missing if name.split(".")[0] not in REWARD_HEADS]
    if strange:
        raise ModelError(f"{source.name} holds no weights for {', '.join(strange[:3])}, and not for want of a head.")
    if "score.weight" in missing:
        nn.init.normal_(model.score.weight, std=(model.score.weight.shape[1] + 1) ** -0.5)
    base = model.dtype
    whole = model.float() if lora is None else _with_adapters(model, lora)
    if gradient_checkpointing:
        _checkpoint_activations(source.name, model)
    try:
        whole.to(device)
    except torch.OutOfMemoryError:
        raise DeviceError(f"{source.name} does not fit into the memory of {device}; try lora.") from None
    return Trainee(_network(model), whole, base, token_budget or BUDGET.get(device.type, BUDGET["cpu"]))


def finished(trainee: Trainee, dtype: torch.dtype) -> Trainee:
    """The model as it is to be saved: adapters merged, weights rounded to `dtype`."""
    merge: Callable[[], PreTrainedModel] | None = getattr(trainee.whole, "merge_and_unload", None)
    model = trainee.network.model if merge is None else merge()
    for weights in model.parameters():
        weights.data = weights.data.to(dtype)
    return Trainee(_network(model), model, trainee.base, trainee.budget)


def rewards_of(
    trainee: Trainee, conversations: Sequence[Tokens], precision: Callable[[], AbstractContextManager[Any]]
) -> Tensor:
    """The reward of each conversation in float32, [conversations], with a gradient; each is encoded once.

    Conversations of like length share a forward pass, under `precision`; the head is outside of it.
    """
    network = trainee.network
    order = sorted(range(len(conversations)), key=lambda place: len(conversations[place].ids))
    parts: list[list[int]] = []
    for place in order:
        # In ascending order, each row is padded to the newest.
        if not parts or len(conversations[place].ids) * (len(parts[-1]) + 1) > trainee.budget:
            parts.append([])
        parts[-1].append(place)
    rewards = []
    for part in parts:
        with precision():
            states, rows, _ = read_padded(network, [conversations[place] for place in part])
        last = states[[places[-1] for places in rows]]
        logits = last if network.head is None else network.head(last.to(next(network.head.parameters()).dtype))
        rewards.append(logits[:, 0].float())
    return torch.cat(rewards)[torch.tensor(order, device=network.device).argsort()]


def set_pad_token(model: PreTrainedModel, template: Template, conversations: Iterable[Tokens]) -> None:
    """Choose a pad token that ends no conversation, in the model's configuration and the tokenizer.

    Transformers reads a classifier at the last token that is no pad token. One that also closes conversations would
    let it read another token than the one that was trained.
    """
    tokenizer = template.tokenizer
    ends = {tokens.ids[-1] for tokens in conversations}
    special = [tokenizer.pad_token_id, *tokenizer.all_special_ids]
    pad = next((token for token in special if token is not None and token not in ends), None)
    if pad is not None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad)
    # Without one, batches of several are refused, and one at a time is read at its end.
    model.config.get_text_config().pad_token_id = pad


def _checkpoint_activations(name: str, model: Any) -> None:
    # Transformers 5.23 calls it by another name than 5.0.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    try:
        enable()
    except ValueError:
        raise ModelError(f"{name} is of an architecture without gradient_checkpointing; leave it out.") from None


def _network(model: PreTrainedModel) -> Network:
    head = getattr(model, "score", None)
    return Network(model, model if head is None else model.base_model, head, "", "training pads its batches")


def _with_adapters(model: PreTrainedModel, lora: Lora) -> nn.Module:
    try:
        from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - an extra
    except ImportError:
        raise ModelError('LoRA needs an extra: `pip install "pluralbench-local[lora]"`.') from None
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    settings = LoraConfig(
        task_type="SEQ_CLS", r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets
    )
    try:
        with warnings.catch_warnings():
            # Peft 0.21 reads a name that transformers 5.23 is about to drop, which no user can mend.
            warnings.simplefilter("ignore", FutureWarning)
            whole: nn.Module = get_peft_model(model, settings)
    except ValueError as error:
        raise ModelError(f"LoRA cannot be put on this model: {' '.join(str(error).split())[:300]}") from None
    for name, weights in whole.named_parameters():
        if weights.requires_grad or name.split(".")[2] in REWARD_HEADS:  # below two wrappers of peft's
            weights.data = weights.data.float()
    return whole
