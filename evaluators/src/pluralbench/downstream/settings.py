"""What binds a directory of `best-of-n` or `optimize`."""

from typing import ClassVar

from pluralbench_calls.chat import ChatModel
from pluralbench_rewards import Scoring
from pluralbench_runs import Recipe

from pluralbench.descriptions import Outcome, Sampling
from pluralbench.evaluation.settings import DataSettings, PromptSettings


class DownstreamSettings(Recipe):
    """What the numbers of both verbs depend on: whose prompts are answered, how, and how the answers are judged.

    judge: None where words are counted, or nobody judges. prompts_digest, system_digest: of what judge and policy are
    told.
    """

    operational: ClassVar[frozenset[str]] = frozenset({"scoring.token_budget", "scoring.compile"})

    data: DataSettings
    prompt: PromptSettings
    sampling: Sampling
    scoring: Scoring
    outcome: Outcome
    judge: ChatModel | None = None
    prompts_digest: str | None = None
    system_digest: str
    seed: int
