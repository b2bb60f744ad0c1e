"""The rewards of responses while their model is trained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from pluralbench_runs import progress
from torch import Tensor

from pluralbench_local.training_batches import Data
from pluralbench_local.training_model import TrainableModel, read_by_head, rewards_of, states_of

TOGETHER = 128  # responses that are sorted by length and encoded between two looks at the clock


class Rewards:
    """Rewards by the model as it is now. once: the base does not change, so each response is encoded once.

    What the head reads is then kept, in float32: as many numbers a response as the model is wide.
    """

    def __init__(self, trainee: TrainableModel, accelerator: Accelerator, *, once: bool = False) -> None:
        self._trainee, self._precision, self._once = trainee, accelerator.autocast, once
        self._states: dict[int, tuple[Data, dict[tuple[int, int], int], Tensor]] = {}

    def __call__(self, data: Data, members: Sequence[tuple[int, int]]) -> Tensor:
        """The reward of each member (ranking, response) of the data in float32, [members], with a gradient."""
        if not self._once:
            conversations = [data.tokens[ranking][response] for ranking, response in members]
            return rewards_of(self._trainee, conversations, self._precision)
        self.encode(data)
        _, rows, states = self._states[id(data)]
        return read_by_head(self._trainee, states[[rows[member] for member in members]])

    def encode(self, data: Data) -> None:
        """Encode what is encoded once, if it is not yet."""
        if self._once and id(data) not in self._states:
            self._states[id(data)] = (data, {member: row for row, member in enumerate(data.members)}, self._read(data))

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within this context the model computes as it does when it is used: without dropout."""
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
        # Pairs that share their responses share what is computed.
        unique = {tuple(conversation.ids): conversation for conversation in conversations}
        row = {ids: number for number, ids in enumerate(unique)}
        each, states = list(unique.values()), []
        with self.evaluating(), progress("encoding", len(each)) as meter:
            for start in range(0, len(each), TOGETHER):
                states.append(states_of(self._trainee, each[start : start + TOGETHER], self._precision))
                for _ in range(len(states[-1])):
                    meter.advance()
        return torch.cat(states).float()[[row[tuple(conversation.ids)] for conversation in conversations]]
