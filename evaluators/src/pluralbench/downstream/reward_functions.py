"""`as_reward_function`: a reward model as the reward function of a trainer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pluralbench_policies.reward_functions import FORMATS, RewardFormat, RewardFunction
from pluralbench_rewards import ScoringConfig

from pluralbench.config import ExactScoringConfig
from pluralbench.downstream.rollout import default_model_name, scoring_config
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import Scorable, reward_loader


def as_reward_function(
    model: Scorable,
    format: RewardFormat = "trl",  # noqa: A002 - also the word of the trainers
    *,
    scoring: ScoringConfig | None = None,
    ending: str = "",
) -> Callable[..., Any]:
    """Return a reward model as the reward function of a trainer.

    Each response is scored by itself, so a reward does not depend on the rest of a batch. The model is loaded at the
    first call. The function can be pickled if the model can. Its `__name__` is the name of the model, as TRL logs it.

    Args:
        model: Reward model, as `pluralbench.score` takes it: a name or directory, a configuration, a Python function, a
            `Judge`, or another `RewardModel`.
        format: The trainer. "trl" (GRPO, RLOO): prompts and completions are texts or messages. "verl": the prompt, a
            text or messages, is `prompt` in `extra_info`. "openrlhf": a label that is a JSON object with `prompt` says
            what the model reads; see [Reward a policy](../how-to/reward-policy.md).
        scoring: How a model in this process runs. Default: `ExactScoringConfig()`; with the mode "fast" a reward may
            differ by rounding with the rest of a batch.
        ending: OpenRLHF only: text at the end of a query that is not of the response, such as "<|im_end|>". Default:
            that of the model's chat template, or its EOS token.

    Returns:
        A function with the trainer's arguments and result. A completion without a reward is None for TRL, which ignores
        it; for verl and OpenRLHF, which cannot, it is a `UserError`.

    Raises:
        UserError: The model or `format` is not known. At the first call: the model cannot be loaded, or only compares
            two responses.
    """
    if format not in FORMATS:
        raise EvaluationError(f"{format!r} is not a format of reward functions; choose one of {', '.join(FORMATS)}.")
    scoring = scoring or scoring_config(model, ExactScoringConfig())
    load = reward_loader(model, scoring, "a reward function")
    return RewardFunction(load, format, Path(default_model_name(model)).name, ending)
