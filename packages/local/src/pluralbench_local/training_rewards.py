"""The rewards of responses while their model is trained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from pluralbench_runs import progress
from torch import Tensor

from pluralbench_local.training_batches import Data
from pluralbench_local.training_model import TrainableModel, apply_head, rewards_of, states_of

CHUNK = 128  # responses that are sorted by length and encoded between two updates of the progress bar


class Rewards:
    """Rewards by the current weights of a model in training.

    Args:
        trainee: The model.
        accelerator: Sets the precision of forward passes.
        once: Whether to encode each response only once, since only the head is trained. Hidden states are then cached
            in float32.
    """

    def __init__(self, trainee: TrainableModel, accelerator: Accelerator, *, once: bool = False) -> None:
        self._trainee, self._precision, self._once = trainee, accelerator.autocast, once
        self._states: dict[int, tuple[Data, dict[tuple[int, int], int], Tensor]] = {}

    def __call__(self, data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        """Return the reward of each (ranking, response), of shape (members,), in float32, with gradients."""
        if not self._once:
            conversations = [data.tokens[ranking][response] for ranking, response in members]
            return rewards_of(self._trainee, conversations, self._precision)
        self.encode(data)
        _, rows, states = self._states[id(data)]
        return apply_head(self._trainee, states[[rows[member] for member in members]])

    def encode(self, data: Data) -> None:
        """Encode all responses, if they are encoded only once and are not cached yet."""
        if self._once and id(data) not in self._states:
            self._states[id(data)] = (data, {member: row for row, member in enumerate(data.members)}, self._read(data))

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put the model into evaluation mode (no dropout) within this context."""
        model = self._trainee.network.model
        training = model.training
        model.train(mode=False)
        try:
            yield
        finally:
            model.train(mode=training)

    @torch.no_grad()
    def _read(self, data: Data) -> Tensor:
        conversations = [data.tokens[ranking][response] for ranking, response in data.members]
        # Rankings may share responses: encode each conversation once.
        by_ids = {tuple(conversation.ids): conversation for conversation in conversations}
        row = {ids: number for number, ids in enumerate(by_ids)}
        unique, states = list(by_ids.values()), []
        with self.evaluating(), progress("encoding", len(unique)) as meter:
            for start in range(0, len(unique), CHUNK):
                states.append(states_of(self._trainee, unique[start : start + CHUNK], self._precision))
                for _ in range(len(states[-1])):
                    meter.advance()
        return torch.cat(states).float()[[row[tuple(conversation.ids)] for conversation in conversations]]
