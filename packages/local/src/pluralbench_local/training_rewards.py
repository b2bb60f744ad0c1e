"""The rewards of responses while their model is trained: by the whole model, or by its head over stored states."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from pluralbench_runs import progress
from torch import Tensor, nn

from pluralbench_local.batches import Read, in_batches
from pluralbench_local.classifiers import Classifier
from pluralbench_local.conversations import Template, Tokenized
from pluralbench_local.models import silence_transformers
from pluralbench_local.network import network_of, without_packing
from pluralbench_local.packing import Tokens
from pluralbench_local.scoring import RunOptions, work_of
from pluralbench_local.training_batches import Data
from pluralbench_local.training_model import TrainableModel, apply_head, rewards_of
from pluralbench_local.transfer import to_device

Rewards = Callable[[Data, Sequence[tuple[int, int]]], Tensor]
"""From data and (ranking, response) indices to the rewards, of shape (indices,), in float32, with gradients."""


def model_rewards(trainee: TrainableModel, accelerator: Accelerator) -> Rewards:
    """Return the rewards by a model all of whose weights may change: each call encodes its responses.

    Args:
        trainee: The model.
        accelerator: Sets the precision of forward passes.
    """

    def rewards(data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        conversations = [data.tokens[ranking][response] for ranking, response in members]
        return rewards_of(trainee, conversations, accelerator.autocast)

    return rewards


def head_rewards(
    trainee: TrainableModel, template: Template, parts: Sequence[Data], token_budget: int | None = None
) -> Rewards:
    """Return the rewards by a head whose base does not change: each response is encoded once, here.

    Args:
        trainee: The model.
        template: How conversations became tokens.
        parts: The data.
        token_budget: Maximum number of tokens of a forward pass. None: that of scoring.

    Raises:
        LocalError: If one conversation does not fit into memory.
    """
    model = trainee.network.model
    with evaluating(model), silence_transformers():
        network = network_of(model, trainee.network.head)
        states = _encode(Classifier("", network, template, options=RunOptions(token_budget=token_budget)), parts)
    if not network.unpackable:
        without_packing(network, "training pads its batches")

    def rewards(data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        ids = [data.tokens[ranking][response].ids.tobytes() for ranking, response in members]
        return apply_head(trainee, torch.stack([states[conversation] for conversation in ids]))

    return rewards


def _encode(reader: Classifier, parts: Sequence[Data]) -> dict[bytes, Tensor]:
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
        return list(computed[to_device([indices[-1] for indices in rows], computed.device)]), tokens

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
