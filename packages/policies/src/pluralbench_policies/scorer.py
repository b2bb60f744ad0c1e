"""Rewards of completions: all those of one prompt are scored as one group, and what failed is no reward."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev
from typing import Any

from pluralbench_rewards import RewardModel

from pluralbench_policies.config import Task
from pluralbench_policies.errors import PolicyError

ALIKE = "the reward model scored all completions alike, so there was nothing to learn"


@dataclass
class Scorer:
    """Scores completions with a reward model. divisor: scores are divided by it.

    line: what the last call gave, for the log: mean and standard deviation of the scores as the reward model gave them,
    how many failed, and `alike` with a `warning` where all were the same.
    """

    reward: RewardModel
    tasks: Sequence[Task]
    divisor: float
    line: dict[str, Any] = field(default_factory=dict)

    def __call__(self, places: Sequence[int], completions: Sequence[str]) -> list[float]:
        """The reward of each completion of the task at that place; NaN for one that was not scored.

        Raises `PolicyError` where none was.
        """
        members: dict[int, list[int]] = {}
        for number, place in enumerate(places):
            members.setdefault(place, []).append(number)
        groups = [
            replace(self.tasks[place].group, responses=[completions[number] for number in numbers])
            for place, numbers in members.items()
        ]
        scored = self.reward.score(groups)
        scores = [math.nan] * len(places)
        for numbers, row in zip(members.values(), scored.scores, strict=True):
            for number, score in zip(numbers, row, strict=False):  # a group that was dropped has no scores
                scores[number] = score if math.isfinite(score) else math.nan
        found = [score for score in scores if not math.isnan(score)]
        if not found:
            reason = next(iter([*scored.reasons, *scored.dropped.values()]), "")
            raise PolicyError(
                f"The reward model {self.reward.record().name} gave none of {len(scores):,} completions a finite "
                f"score{f' ({reason})' if reason else ''}; nothing can be learned from that."
            )
        alike = len(found) > 1 and min(found) == max(found)
        self.line = {
            "reward": fmean(found),
            "reward_std": pstdev(found),
            "failed": len(scores) - len(found),
            "alike": alike,
            **({"warning": ALIKE} if alike else {}),
        }
        return [score / self.divisor for score in scores]
