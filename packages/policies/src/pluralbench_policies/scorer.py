"""Score completions with a reward model, all of one prompt as one group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev
from typing import Any

from pluralbench_rewards import RewardModel

from pluralbench_policies.config import Task
from pluralbench_policies.errors import PolicyError

EQUAL_SCORES = "all completions got the same score, so there was nothing to learn"


@dataclass
class Scorer:
    """Scores completions with a reward model.

    Attributes:
        reward: The reward model.
        tasks: All tasks.
        divisor: Scores are divided by this.
        line: Values of the last call for the log: mean and standard deviation of the raw scores, the number of
            failures, and `alike` with a `warning` if all scores were equal.
    """

    reward: RewardModel
    tasks: Sequence[Task]
    divisor: float
    line: dict[str, Any] = field(default_factory=dict)

    def __call__(self, places: Sequence[int], completions: Sequence[str]) -> list[float]:
        """Score completions.

        Args:
            places: Index of each completion's task.
            completions: Texts of the completions.

        Returns:
            A reward for each completion; NaN if it has no finite score.

        Raises:
            PolicyError: No completion has a finite score.
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
            for number, score in zip(numbers, row, strict=False):  # a dropped group has no scores
                scores[number] = score if math.isfinite(score) else math.nan
        finite = [score for score in scores if not math.isnan(score)]
        if not finite:
            reason = next(iter([*scored.reasons, *scored.dropped.values()]), "")
            raise PolicyError(
                f"The reward model {self.reward.record().name} gave no finite score to any of {len(scores):,} "
                f"completions{f' ({reason})' if reason else ''}; check it on a few prompts first."
            )
        all_equal = len(finite) > 1 and min(finite) == max(finite)
        self.line = {
            "reward": fmean(finite),
            "reward_std": pstdev(finite),
            "failed": len(scores) - len(finite),
            "alike": all_equal,
            **({"warning": EQUAL_SCORES} if all_equal else {}),
        }
        return [score / self.divisor for score in scores]
