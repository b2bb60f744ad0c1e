"""Process rewards: where the steps of an answer are marked, what is read there, and how steps make a reward.

Imports no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

StepForm = Literal["token", "text", "turn"]
Aggregation = Literal["min", "product", "mean", "last"]
ProcessRewardName = Literal["qwen-prm", "skywork-prm", "math-shepherd", "rlhflow-prm", "trl-prm"]


@dataclass(frozen=True)
class StepReading:
    """How the steps of an answer are marked and read.

    Attributes:
        mark: What marks the end of a step: a token, a text, or the model's reply to the step.
        form: token: the tokens of the mark come after those of the step, and each is tokenized apart; text: the mark is
            written into the text, which is tokenized as a whole; turn: each step is a message of the user, and the mark
            is the reply to it. Read are the last token of a mark, or the token before a reply.
        split: Text between the steps of an answer; empty for blank lines.
        whole: Whether a step is all that is between two separators, spaces and empty parts included. Default: steps are
            stripped, and what is empty is none.
        label: What a reward head's logits say of a step: logit:K, softmax:K or sigmoid:K.
        positive: Of a language model the token that speaks for a step; the score is its softmax with `negative`.
        negative: The token against it.
        aggregation: How the scores of the steps make the reward; None if its publication names no way.
        chat_template: Chat template (Jinja) of a model whose training had none, unless the user gives one.
        architectures: Architectures in configurations by which it is recognized.
    """

    mark: str
    form: StepForm = "token"
    split: str = ""
    whole: bool = False
    label: str | None = None
    positive: str | None = None
    negative: str | None = None
    aggregation: Aggregation | None = None
    chat_template: str | None = None
    architectures: tuple[str, ...] = ()


def _plain(before_answer: str) -> str:
    """A template that writes messages without roles, in Jinja; what comes before the answer is a Jinja literal."""
    return (
        "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
        f"{{{{ '\\n' if loop.revindex > 2 else {before_answer} if not loop.last else '' }}}}{{% endfor %}}"
    )


PROCESS_REWARDS: Mapping[ProcessRewardName, StepReading] = MappingProxyType(
    {
        # Qwen2.5-Math-PRM-7B and -72B (their cards): probability of label 1 at a token after each paragraph.
        "qwen-prm": StepReading("<extra_0>", label="softmax:1", architectures=("Qwen2ForProcessRewardModel",)),
        # Skywork-o1-Open-PRM (skywork-o1-prm-inference, `io_utils.py`): sigmoid of the value at each newline.
        "skywork-prm": StepReading(
            "\n",
            split="\n",
            whole=True,
            label="sigmoid:0",
            chat_template=_plain(r"'\n'"),
            architectures=("Qwen2ForPrmModel",),
        ),
        # math-shepherd-mistral-7b-prm (its card). The least score is the reward (arXiv 2312.08935, section 3.4).
        "math-shepherd": StepReading(
            " ки",
            form="text",
            split="\n",
            positive="+",
            negative="-",
            aggregation="min",
            chat_template=_plain("' '"),
        ),
        # RLHFlow's Llama3.1-8B-PRM-*-Data (RLHF-Reward-Modeling, math-rm/prm_evaluate.py): the mean is the reward.
        "rlhflow-prm": StepReading("+", form="turn", positive="+", negative="-", aggregation="mean"),
        # TRL's PRMTrainer (experimental/prm/prm_trainer.py) and Axolotl's stepwise_supervised, by their defaults.
        "trl-prm": StepReading("\n", label="softmax:1", chat_template=_plain("''")),
    }
)
"""Published ways to read process rewards by name. A new one is an entry here."""

_PARTS = {"step_mark": "mark", "step_form": "form", "step_split": "split", "aggregation": "aggregation"}
_SHARED_PARTS = {"label": "label", "positive_token": "positive", "negative_token": "negative"}
STEP_FIELDS = ("process_reward", *_PARTS)
"""Fields of `LocalModel` that only a model of the kind "process" has."""


def step_reading(fields: Mapping[str, Any], known: ProcessRewardName | None = None) -> StepReading | None:
    """Return how the steps of an answer are read: the published way that is given or `known`, with what changes it.

    None if there is neither such a way nor a mark.
    """
    changed = {part: fields[name] for name, part in (_PARTS | _SHARED_PARTS).items() if name in fields}
    if "positive" in changed:
        changed["label"] = None
    if changed.get("label") is not None:
        changed |= {"positive": None, "negative": None}
    name: ProcessRewardName | None = fields.get("process_reward", known)
    if name is not None:
        return replace(PROCESS_REWARDS[name], **changed)
    return StepReading(**changed) if "mark" in changed else None


def check_step_fields(fields: Mapping[str, Any]) -> None:
    """Raise `ValueError` if the fields of a model of the kind "process" contradict one another."""
    tokens = {"positive_token", "negative_token"} & fields.keys()
    if len(tokens) == 1:
        raise ValueError("`positive_token` and `negative_token` require each other; set both, or neither")
    if tokens and "label" in fields:
        raise ValueError("`label=...` is for a reward head; leave it out, or the tokens")
    if "" in (fields.get("step_mark"), fields.get("step_split")):
        raise ValueError("`step_mark` and `step_split` cannot be empty; leave them out")
