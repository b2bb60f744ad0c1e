"""Score completions with a reward model, all of one prompt as one group; the log of steps and its curves."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from pluralbench_local import LocalModel
from pluralbench_local.training_job import read_log, step_log
from pluralbench_rewards import RewardModel

from pluralbench_policies.config import OptimizeConfig, Task
from pluralbench_policies.errors import PolicyError

EQUAL_SCORES = "all completions got the same score, so there was nothing to learn"


class Optimization(NamedTuple):
    """What the steps of an optimization need. `model`, the policy to train, was loaded from `source`.

    A step is given by the indices of its tasks; `prompts` are token ids by task. `work` is the folder of the checkpoint
    and the log.
    """

    source: LocalModel
    model: Any
    tokenizer: Any
    scorer: "Scorer"
    steps: Sequence[Sequence[int]]
    prompts: Sequence[Sequence[int]]
    options: OptimizeConfig
    work: Path


@dataclass
class Scorer:
    """Scores completions with a reward model.

    `line` has the values of the last call for the log: mean and standard deviation of the raw scores, the number of
    failures, and `alike` with a `warning` if all scores were equal.
    """

    reward: RewardModel
    tasks: Sequence[Task]
    divisor: float
    line: dict[str, Any] = field(default_factory=dict)

    def __call__(self, places: Sequence[int], completions: Sequence[str]) -> list[float]:
        """Score completions, each of the task at its place; NaN has no finite score.

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


CURVES_FILE = "curves.png"
CURVES = {
    "reward": "reward, mean",
    "length": "completion, tokens",
    "kl": "KL from initial policy,\nnats per token",
    "entropy": "entropy, nats per token",
}


def step_lines(work: Path, done: int, of: int) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """Open the log of the steps (`step_log`); the context gives a function that writes a step's line."""
    return step_log(
        work, "optimizing", done, of, note=lambda line: f"reward {line['reward']:.3f}, {line['length']:.0f} tokens"
    )


def lengths(completions: Sequence[Sequence[int]], ends: Sequence[int]) -> dict[str, float]:
    """Compute the mean number of tokens of completions, and the share that ended with an end token."""
    return {
        "length": sum(map(len, completions)) / len(completions),
        "ended": sum(ids[-1] in ends for ids in completions) / len(completions),
    }


def draw_curves(folder: Path) -> None:
    """Draw reward, length, KL divergence and entropy by step from the log in `folder` into its `curves.png`."""
    from matplotlib.figure import Figure

    lines = read_log(folder)
    figure = Figure(figsize=(8, 5))
    figure.subplots_adjust(left=0.1, right=0.98, bottom=0.1, top=0.97, wspace=0.3, hspace=0.12)
    for axes, (name, label) in zip(figure.subplots(2, 2, sharex=True).flat, CURVES.items(), strict=True):
        points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else "") if points else None
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("step")
    figure.savefig(folder / CURVES_FILE, dpi=120)


def warnings_of(work: Path) -> dict[str, Any]:
    """Collect the warnings of a log, and the number of completions without a score."""
    lines = read_log(work)
    equal, failed = sum(line["alike"] for line in lines), sum(line["failed"] for line in lines)
    warnings = [f"In {equal:,} of {len(lines):,} steps {EQUAL_SCORES}."] if equal else []
    if failed:
        warnings.append(f"{failed:,} completions got no finite score and were ignored.")
    return {"failed_scores": failed, "warnings": warnings}
