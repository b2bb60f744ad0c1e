"""The model in training: a language model with a new head or a classifier, whole or by adapters, and its rewards."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pluralbench_runs import install_command
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.errors import DeviceError, ModelError
from pluralbench_local.models import REWARD_HEADS, device_of, load_weights
from pluralbench_local.network import ReadableNetwork, read_padded
from pluralbench_local.packing import Tokens
from pluralbench_local.training_options import LoraOptions

SMALL_HEAD = 0.02  # the deviation with which transformers draws a head
# Tokens of a forward pass. On a CPU what pads least is fastest, measured; for a GPU it is an estimate.
BUDGET = {"cpu": 512, "cuda": 8192}


@dataclass(frozen=True)
class TrainableModel:
    """A model in training. whole: the module that holds all weights, adapters included. base: their type as loaded.

    budget: tokens, padding included, of a forward pass.
    """

    network: ReadableNetwork
    whole: nn.Module
    base: torch.dtype
    budget: int


def load_trainee(
    source: LocalModel,
    *,
    lora: LoraOptions | None,
    gradient_checkpointing: bool,
    token_budget: int | None,
    seed: int,
    new_head: Literal["small", "large"] = "small",
    head_alone: bool = False,
) -> TrainableModel:
    """The model with a head of one logit, on its device; without adapters in float32, whatever it was saved in.

    A language model gets a linear head without bias, drawn from a normal distribution with a deviation of 0.02, or the
    large one of CHEEMS (section 5) with a variance of 1 / (width + 1). The draw, and all that torch draws after it, is
    by `seed`. head_alone: all other weights stay as they are. Raises `ModelError`, `DeviceError`.
    """
    device = device_of(source.device)
    torch.manual_seed(seed)
    wanted = {"num_labels": 1, "dtype": "auto", "ignore_mismatched_sizes": True}  # what is mismatched is refused below
    model, info = load_weights(AutoModelForSequenceClassification, source, **wanted)
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
        width = model.score.weight.shape[1]
        nn.init.normal_(model.score.weight, std=SMALL_HEAD if new_head == "small" else (width + 1) ** -0.5)
    base = model.dtype
    whole = model.float() if lora is None else _with_adapters(model, lora)
    if head_alone:
        _freeze(source.name, model)
    if gradient_checkpointing:
        checkpoint_activations(source.name, model)
    try:
        whole.to(device)
    except torch.OutOfMemoryError:
        raise DeviceError(f"{source.name} does not fit into the memory of {device}; try lora.") from None
    return TrainableModel(_network(model), whole, base, token_budget or BUDGET.get(device.type, BUDGET["cpu"]))


def finished(trainee: TrainableModel, dtype: torch.dtype) -> TrainableModel:
    """The model as it is to be saved: adapters merged, weights rounded to `dtype`."""
    merge: Callable[[], PreTrainedModel] | None = getattr(trainee.whole, "merge_and_unload", None)
    model = trainee.network.model if merge is None else merge()
    for weights in model.parameters():
        weights.data = weights.data.to(dtype)
    return TrainableModel(_network(model), model, trainee.base, trainee.budget)


def states_of(
    trainee: TrainableModel, conversations: Sequence[Tokens], precision: Callable[[], AbstractContextManager[Any]]
) -> Tensor:
    """What the head reads of each conversation, [conversations, width], with a gradient; each is encoded once.

    Conversations of like length share a forward pass, under `precision`. Where the model pools by itself, its rewards,
    [conversations, 1].
    """
    network = trainee.network
    order = sorted(range(len(conversations)), key=lambda place: len(conversations[place].ids))
    parts: list[list[int]] = []
    for place in order:
        # In ascending order, each row is padded to the newest.
        if not parts or len(conversations[place].ids) * (len(parts[-1]) + 1) > trainee.budget:
            parts.append([])
        parts[-1].append(place)
    last = []
    for part in parts:
        with precision():
            states, rows, _ = read_padded(network, [conversations[place] for place in part])
        last.append(states[[places[-1] for places in rows]])
    return torch.cat(last)[torch.tensor(order, device=network.device).argsort()]


def read_by_head(trainee: TrainableModel, states: Tensor) -> Tensor:
    """The reward of each of some states in float32, [states]. The head computes in its own precision."""
    head = trainee.network.head
    logits = states if head is None else head(states.to(next(head.parameters()).dtype))
    rewards: Tensor = logits[:, 0].float()
    return rewards


def rewards_of(
    trainee: TrainableModel, conversations: Sequence[Tokens], precision: Callable[[], AbstractContextManager[Any]]
) -> Tensor:
    """The reward of each conversation in float32, [conversations], with a gradient; see `states_of`."""
    return read_by_head(trainee, states_of(trainee, conversations, precision))


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


def checkpoint_activations(name: str, model: Any) -> None:
    """Compute activations again in the backward pass. Raises `ModelError` for an architecture that cannot."""
    # Transformers 5.23 calls it by another name than 5.0.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    try:
        enable()
    except ValueError:
        raise ModelError(f"{name} is of an architecture without gradient_checkpointing; leave it out.") from None


def _freeze(name: str, model: PreTrainedModel) -> None:
    """Let the head alone be trained."""
    head = _network(model).head
    if head is None:
        raise ModelError(f"The head of {name} cannot be trained alone, since the model pools by itself; train all.")
    model.requires_grad_(requires_grad=False)
    head.requires_grad_(requires_grad=True)


def _network(model: PreTrainedModel) -> ReadableNetwork:
    head = getattr(model, "score", None)
    body = model if head is None else model.base_model
    return ReadableNetwork(model, body, head, "", "training pads its batches")


def _with_adapters(model: PreTrainedModel, lora: LoraOptions) -> nn.Module:
    try:
        from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - an extra
    except ImportError:
        raise ModelError(f"LoRA needs an extra: {install_command('pluralbench-local', 'lora')}.") from None
    targets = lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules)
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
