"""Prompts of judges that come from a file: messages, how a verdict is read from the reply, and sampling."""

from pluralbench_rewards.prompts.files import load_prompt, shipped_prompts
from pluralbench_rewards.prompts.prompt import JudgePrompt
from pluralbench_rewards.prompts.reading import PairReading, read_list, read_pair, read_score

__all__ = [
    "JudgePrompt",
    "PairReading",
    "load_prompt",
    "read_list",
    "read_pair",
    "read_score",
    "shipped_prompts",
]
