"""The reward model in training: a classifier or a language model with a new head, full or with LoRA adapters."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from accelerate import Accelerator
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import install_command, progress
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from pluralbench_local.batches import Read, in_batches
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template, Tokenized
from pluralbench_local.errors import LocalError
from pluralbench_local.model_kinds import CLASSIFIER, kind_of
from pluralbench_local.models import REWARD_HEADS, load_tokenizer, load_weights, resolve_device, silence_transformers
from pluralbench_local.network import ReadableNetwork, must_be_alone, network_of, read_padded, without_packing
from pluralbench_local.own_code import is_own_code
from pluralbench_local.packing import Tokens, last_states, to_device
from pluralbench_local.probes import by_own_forward_pass, plain_conversations, reads_as_model
from pluralbench_local.scoring import LocalRewardModel, work_of
from pluralbench_local.training_batches import Data
from pluralbench_local.training_config import LoraOptions
from pluralbench_local.value_heads import heads_of
from pluralbench_local.weights import ModelFiles

HEAD_STD = 0.02  # transformers' standard deviation of a new head
# Tokens of a forward pass. On a CPU small batches are fastest (measured), as they pad least; for a GPU it is a guess.
DEFAULT_BUDGETS = {"cpu": 512, "cuda": 8192}


@dataclass(frozen=True)
class TrainableModel:
    """A model in training.

    Attributes:
        whole: The module with all weights, including adapters; with the head alone, a module of the head.
        base: Precision of the weights as loaded.
        budget: Maximum number of tokens of a forward pass, padding included.
    """

    network: ReadableNetwork
    whole: nn.Module
    base: torch.dtype
    budget: int


def training_template(source: LocalModel) -> Template:
    """Return how conversations become tokens in training: as the base's own reward is read, at the last token.

    `set_pad_token` chooses a padding token by which the trained model's class reads the same token.

    Raises:
        LocalError: If the base is an adapter, or has a reward head that training would not load; or if its tokenizer,
            its configuration or the names of its tensors cannot be read.
    """
    source.check_merged()
    files = ModelFiles(source)
    dropped = [name for name in heads_of(files.shapes) if name != "score.weight"]
    if dropped:
        raise LocalError(
            f"{source.name} has a value head ({dropped[0]}), which training would drop; give the language model that "
            "it was trained from, which gets a new head, or a sequence classifier."
        )
    return replace(kind_of(files).template(source, load_tokenizer(source), files.config, None), unread=None)


def load_trainee(
    source: LocalModel,
    *,
    lora: LoraOptions | None,
    gradient_checkpointing: bool,
    token_budget: int | None,
    seed: int,
    new_head: Literal["fixed", "by-width"] = "fixed",
    head_alone: bool = False,
) -> TrainableModel:
    """Load a model with a head of one logit for training, on its device.

    Weights that are trained are converted to float32. A language model gets a linear head without bias, whose weights
    are drawn with a standard deviation of 0.02 ("fixed"), or with a variance of 1 / (width + 1) ("by-width"; CHEEMS,
    section 5). `seed` is of this head, and of everything that torch draws afterwards.

    Raises:
        LocalError: If the model cannot be loaded or trained in this way; or if its device is not available, or has too
            little memory.
    """
    device = resolve_device(source.device)
    torch.manual_seed(seed)
    # Mismatched sizes raise below, with a clearer message.
    options = {"num_labels": 1, "dtype": "auto", "ignore_mismatched_sizes": True}
    model, info = load_weights(AutoModelForSequenceClassification, source, **options)
    mismatched = sorted(name for name, *_ in info["mismatched_keys"])
    if mismatched:
        raise LocalError(
            f"The {mismatched[0]} of {source.name} has another shape than in a classifier of one logit; give such a "
            "classifier, or a language model."
        )
    missing = sorted(info["missing_keys"])
    unexpected = [name for name in missing if name.split(".")[0] not in REWARD_HEADS]
    if unexpected:
        raise LocalError(
            f"{source.name} has no weights for {', '.join(unexpected[:3])}, which are not part of the head; save the "
            "whole model."
        )
    if "score.weight" in missing:
        width = model.score.weight.shape[1]
        nn.init.normal_(model.score.weight, std=HEAD_STD if new_head == "fixed" else (width + 1) ** -0.5)
    base = model.dtype
    if head_alone:
        whole = _trainable_head(source.name, model)
    else:
        whole = model.float() if lora is None else _add_adapters(model, lora)
    if gradient_checkpointing:
        checkpoint_activations(source.name, model)
    try:
        model.to(device)  # with its adapters
    except torch.OutOfMemoryError:
        raise LocalError(f"{source.name} does not fit into the memory of {device}; try `lora=...`.") from None
    return TrainableModel(
        _network(model), whole, base, token_budget or DEFAULT_BUDGETS.get(device.type, DEFAULT_BUDGETS["cpu"])
    )


def finalize(trainee: TrainableModel, dtype: torch.dtype) -> TrainableModel:
    """Prepare the model for saving: merge adapters, and round the weights to `dtype`."""
    merge: Callable[[], PreTrainedModel] | None = getattr(trainee.whole, "merge_and_unload", None)
    model = trainee.network.model if merge is None else merge()
    for weights in model.parameters():
        weights.data = weights.data.to(dtype)
    return TrainableModel(_network(model), model, trainee.base, trainee.budget)


def states_of(
    trainee: TrainableModel, conversations: Sequence[Tokens], precision: Callable[[], AbstractContextManager[Any]]
) -> Tensor:
    """Compute the last hidden state of each conversation, of shape (conversations, width), with gradients.

    Conversations of similar length share a forward pass, in the context `precision`. A model that pools by itself gives
    its rewards, of shape (conversations, 1).
    """
    network = trainee.network
    order = sorted(range(len(conversations)), key=lambda index: len(conversations[index].ids))
    budget = 1 if must_be_alone(network) else trainee.budget
    parts: list[list[int]] = []
    for index in order:
        # In ascending order, each row is padded to the newest.
        if not parts or len(conversations[index].ids) * (len(parts[-1]) + 1) > budget:
            parts.append([])
        parts[-1].append(index)
    last = []
    for part in parts:
        with precision():
            states, rows, _ = read_padded(network, [conversations[index] for index in part])
        last.append(last_states(states, rows))
    place = {index: number for number, index in enumerate(order)}
    return torch.cat(last)[to_device([place[index] for index in range(len(order))], network.device)]


def apply_head(trainee: TrainableModel, states: Tensor) -> Tensor:
    """Return the reward of each hidden state, of shape (states,), in float32. The head keeps its own precision."""
    head = trainee.network.head
    logits = states if head is None else head(states.to(next(head.parameters()).dtype))
    rewards: Tensor = logits[:, 0].float()
    return rewards


def rewards_of(
    trainee: TrainableModel, conversations: Sequence[Tokens], precision: Callable[[], AbstractContextManager[Any]]
) -> Tensor:
    """Return the reward of each conversation, of shape (conversations,), in float32, with gradients."""
    return apply_head(trainee, states_of(trainee, conversations, precision))


def set_pad_token(model: PreTrainedModel, template: Template, conversations: Iterable[Tokens]) -> None:
    """Choose a pad token that ends no conversation, and set it in the model's configuration and the tokenizer.

    Transformers reads a classifier at the last token that is not a pad token. If the pad token also ended
    conversations, it would read another token than the trained one.
    """
    tokenizer = template.tokenizer
    ends = {tokens.ids[-1] for tokens in conversations}
    special = [tokenizer.pad_token_id, *tokenizer.all_special_ids]
    pad = next((token for token in special if token is not None and token not in ends), None)
    if pad is not None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad)
    # Without a pad token transformers rejects batches, and reads a single conversation at its end.
    model.config.get_text_config().pad_token_id = pad


def checkpoint_activations(name: str, model: Any) -> None:
    """Recompute activations in the backward pass. Raises `LocalError` if the architecture does not support it."""
    # The name in transformers 5.23; 5.0 has the other.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    try:
        enable()
    except ValueError:
        raise LocalError(
            f"The architecture of {name} does not support gradient checkpointing; leave out "
            "`gradient_checkpointing=True`."
        ) from None


def _trainable_head(name: str, model: PreTrainedModel) -> nn.Module:
    """Freeze all weights but those of the head, and return a module of these alone."""
    head = _network(model).head
    if head is None:
        raise LocalError(
            f"The head of {name} cannot be trained alone, since the model pools by itself; leave out "
            '`trainable="head"`.'
        )
    model.requires_grad_(requires_grad=False)
    # Accelerate changes how the module that it prepares computes: the head keeps its own precision inside a list.
    return nn.ModuleList([head.float().requires_grad_(requires_grad=True)])


def _network(model: PreTrainedModel) -> ReadableNetwork:
    head: nn.Module | None = getattr(model, "score", None)
    body = model if head is None else model.base_model
    network = ReadableNetwork(model, body, head, "", "training pads its batches")
    if head is None or not is_own_code(type(model)):
        return network
    with evaluating(model):
        same = reads_as_model(network, plain_conversations(model), head)
    return network if same else by_own_forward_pass(network)


def _add_adapters(model: PreTrainedModel, lora: LoraOptions) -> nn.Module:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise LocalError(f"LoRA needs an extra: {install_command('pluralbench-local', 'lora')}.") from None
    targets = lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules)
    settings = LoraConfig(
        task_type="SEQ_CLS", r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets
    )
    try:
        with warnings.catch_warnings():
            # peft 0.21 uses a name that transformers 5.23 deprecates.
            warnings.simplefilter("ignore", FutureWarning)
            whole: nn.Module = get_peft_model(model, settings)
    except ValueError as error:
        raise LocalError(f"LoRA cannot be applied to this model: {' '.join(str(error).split())[:300]}") from None
    for name, weights in whole.named_parameters():
        if weights.requires_grad or name.split(".")[2] in REWARD_HEADS:  # names begin with two wrappers of peft
            weights.data = weights.data.float()
    return whole


Rewards = Callable[[Data, Sequence[tuple[int, int]]], Tensor]
"""From data and (ranking, response) indices to the rewards, of shape (indices,), in float32, with gradients."""


def model_rewards(trainee: TrainableModel, accelerator: Accelerator) -> Rewards:
    """Return the rewards by a model all of whose weights may change: each call encodes its responses."""

    def rewards(data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        conversations = [data.tokens[ranking][response] for ranking, response in members]
        return rewards_of(trainee, conversations, accelerator.autocast)

    return rewards


def head_rewards(
    trainee: TrainableModel, template: Template, parts: Sequence[Data], token_budget: int | None = None
) -> Rewards:
    """Return the rewards by a head whose base does not change: each response is encoded once, here.

    Raises `LocalError` if one conversation does not fit into memory.
    """
    model = trainee.network.model
    with evaluating(model), silence_transformers():
        network = network_of(model, trainee.network.head)
        reader = LocalRewardModel("", CLASSIFIER, network, template, scoring=ScoringConfig(token_budget=token_budget))
        states = _encode(reader, parts)
    if not network.unpackable:
        without_packing(network, "training pads its batches")

    def rewards(data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        ids = [data.tokens[ranking][response].ids.tobytes() for ranking, response in members]
        return apply_head(trainee, torch.stack([states[conversation] for conversation in ids]))

    return rewards


def _encode(reader: LocalRewardModel, parts: Sequence[Data]) -> dict[bytes, Tensor]:
    """Return the last hidden state of each different conversation, computed in the packed batches of scoring."""
    tokenized = [Tokenized(conversations) for data in parts for conversations in data.tokens]
    ids = [[tokens.ids.tobytes() for tokens in group.conversations] for group in tokenized]
    states: dict[bytes, Tensor] = {}
    remaining: dict[int, list[int]] = {}
    for index, group in enumerate(ids):
        # Rankings may share responses.
        new = {conversation: place for place, conversation in enumerate(group) if conversation not in states}
        states |= dict.fromkeys(new, torch.empty(0))
        if new:
            remaining[index] = list(new.values())

    def compute(groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[Sequence[Tensor], int]:
        computed, rows, tokens = read(reader.network, groups)
        return list(last_states(computed, rows)), tokens

    work = work_of(reader, max(len(tokens.ids) for group in tokenized for tokens in group.conversations))
    names = [ranking.id for data in parts for ranking in data.rankings]
    with progress("encoding", len(states)) as meter:
        for index, computed in in_batches(compute, tokenized, remaining, work, names):
            for place, state in computed.items():
                states[ids[index][place]] = state
                meter.advance()
    return states


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode (no dropout) within this context."""
    training = model.training
    model.train(mode=False)
    try:
        yield
    finally:
        model.train(mode=training)
