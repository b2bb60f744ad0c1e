"""Rewards that are read from the logits of a language model's next token: the published ways. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

TokenScore = Literal["logit", "log_odds", "probability"]
TokenPosition = Literal["reply", "end"]
TokenRewardName = Literal["nemotron", "yes-no", "a-b", "qwen3-reranker"]


@dataclass(frozen=True)
class TokenReward:
    """How a reward is read from the logits of the token after a conversation.

    Attributes:
        positive: The token that speaks for the response: its text, or "id:N".
        negative: The token that speaks against it; None if there is none.
        score: logit: of the positive token; log_odds: its logit minus that of the negative one; probability: softmax of
            the two.
        position: reply: the first token of a further reply, which the chat template opens; end: after the response.
        question: Message of the user after the response; empty for none.
        prefill: Text that begins the further reply, before the token.
        chat_template: Chat template (Jinja), unless the user gives one.
        needs_question: Whether the model was trained to answer a question about the response, which the user must give.
        ends_turn: Whether the token before must be a special one, as at the end of a turn.
    """

    positive: str
    negative: str | None = None
    score: TokenScore = "logit"
    position: TokenPosition = "reply"
    question: str = ""
    prefill: str = ""
    chat_template: str | None = None
    needs_question: bool = False
    ends_turn: bool = False


# The form of Qwen3-Reranker (README.md of QwenLM/Qwen3-Embedding, "Transformers Usage"): a system message, the three
# parts of the user's, and an empty thinking block. The sentences are ours. Its query is here the conversation, and its
# document the response.
_QWEN3_RERANKER = """\
<|im_start|>system
Say with "yes" or "no" whether the Document fulfills the Instruct for the Query.<|im_end|>
<|im_start|>user
<Instruct>: Find the best answer to the request
<Query>: {% for message in messages[:-1] %}{% if messages | length > 2 %}{{ message['role'] }}: {% endif %}\
{{ message['content'] }}
{% endfor %}<Document>: {{ messages[-1]['content'] }}<|im_end|>
<|im_start|>assistant
<think>

</think>

{{ "" }}"""

TOKEN_REWARDS: Mapping[TokenRewardName, TokenReward] = MappingProxyType(
    {
        # Llama-3.1-Nemotron-70B-Reward-HF and Llama-3.3-Nemotron-70B-Reward (their cards): row 0 of `lm_head` is the
        # reward head, read at the end of the assistant's turn.
        "nemotron": TokenReward("id:0", position="end", ends_turn=True),
        # Verifiers (arXiv 2408.15240, section 3.2), and Llama-3.3-Nemotron-70B-Reward-Principle, whose card subtracts
        # the logits.
        "yes-no": TokenReward("Yes", "No", "log_odds", needs_question=True),
        # RLHFlow/pair-preference-model-LLaMA3-8B (RLHFlow's eval_reward_bench_pm.py): softmax over the two letters.
        "a-b": TokenReward("A", "B", "probability", needs_question=True),
        "qwen3-reranker": TokenReward("yes", "no", "probability", chat_template=_QWEN3_RERANKER),
    }
)
"""Published ways to read a reward by name. A new one is an entry here."""

_PARTS = {
    "positive_token": "positive",
    "negative_token": "negative",
    "token_score": "score",
    "token_position": "position",
    "question": "question",
    "prefill": "prefill",
}
TOKEN_FIELDS = ("token_reward", *_PARTS)
"""Fields of `LocalModel` that only a model of the kind "token" has."""
TOKEN_LABELS: Mapping[TokenScore, str] = {"logit": "logit:0", "log_odds": "0:1,1:-1", "probability": "softmax:0"}
"""Labels of a classifier whose logits are those of the positive and the negative token."""


def token_reward(fields: Mapping[str, Any]) -> TokenReward:
    """Return how a reward is read.

    Args:
        fields: Fields of `LocalModel` that are given, such as a published way and what changes it.
    """
    changed = {part: fields[name] for name, part in _PARTS.items() if name in fields}
    if "token_reward" in fields:
        return replace(TOKEN_REWARDS[fields["token_reward"]], **changed)
    default: TokenScore = "logit" if changed.get("negative") is None else "log_odds"
    return TokenReward(**{"score": default} | changed)


def check_token_reward(fields: Mapping[str, Any]) -> None:
    """Raise `ValueError` if the fields of a model of the kind "token" do not say how its reward is read."""
    if not {"token_reward", "positive_token"} & fields.keys():
        raise ValueError(
            '`kind="token"` needs the token of the reward; give `token_reward=...` '
            f"({', '.join(TOKEN_REWARDS)}) or `positive_token=...`"
        )
    if "label" in fields:
        raise ValueError('`label=...` is for classifiers; with `kind="token"` set `token_score=...`')
    reading = token_reward(fields)
    if (reading.negative is None) != (reading.score == "logit"):
        raise ValueError(
            f'`token_score="{reading.score}"` '
            + ("has no use for" if reading.negative else "needs")
            + " a negative token; change `negative_token=...` or `token_score=...`"
        )
    if reading.position == "end" and (reading.prefill or reading.question):
        name = "prefill" if reading.prefill else "question"
        raise ValueError(f'`{name}=...` needs a reply; set `token_position="reply"`, or leave it out')
    if reading.needs_question and not reading.question and "chat_template" not in fields:
        raise ValueError(
            f'`token_reward="{fields["token_reward"]}"` reads the answer to a question about the response; give the '
            "model's own as `question=...`, or in a file as `chat_template=...`"
        )
