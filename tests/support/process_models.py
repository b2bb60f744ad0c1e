"""Tiny process reward models of each published form, and the scores of steps as these publish them."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pluralbench_rewards import Group
from reward_models import (
    change_config,
    load_plainly,
    make_config,
    make_tokenizer,
    save_language_model,
    user,
)
from safetensors.torch import load_file, save_file
from some_words import WORDS
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForTokenClassification,
    PreTrainedTokenizerFast,
)

WIDTH = 64
Messages = list[dict[str, str]]
Scores = Callable[[Path, Any, Messages, Sequence[str], str], list[float]]
"""Scores of steps from the folder, the tokenizer, the prompt, the steps and a dtype; no code of the product."""


def tokenizer_of_steps() -> Any:
    """A tokenizer with the step token of Qwen and the step mark of Math-Shepherd as tokens."""
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<extra_0>"]})
    tokenizer.add_tokens(["ки"])
    return tokenizer


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """The token ids of a text by itself."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def answers_in_steps(seed: int, number: int = 5, between: str = "\n\n") -> list[Group]:
    """Prompts with answers of one to four steps, some of which begin alike, in several scripts."""
    draw = random.Random(seed)

    def step() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 8)))

    groups = []
    for place in range(number):
        first = [step() for _ in range(2)]
        answers = [[*first, *(step() for _ in range(place % 3))], first, [step()]]
        groups.append(Group(f"q{place}", user(step()), [between.join(answer) for answer in answers]))
    return groups


def _states(folder: Path, ids: Sequence[int], dtype: str) -> Tensor:
    """Hidden states of one conversation by the whole language model."""
    body = load_plainly(AutoModelForCausalLM, str(folder), dtype)
    with torch.inference_mode():
        output = body(input_ids=torch.tensor([list(ids)]), output_hidden_states=True)
    states: Tensor = output.hidden_states[-1][0]
    return states


def _head(folder: Path, dtype: str) -> dict[str, Tensor]:
    saved = load_file(folder / "model.safetensors")
    return {name: value.to(getattr(torch, dtype)) for name, value in saved.items() if "score" in name or "head" in name}


def qwen(folder: Path, tokenizer: Any, messages: Messages, steps: Sequence[str], dtype: str) -> list[float]:
    """The card of Qwen2.5-Math-PRM: one string, steps joined and ended by the token, softmax at its id."""
    turns = [*messages, {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    ids = plain_ids(tokenizer, text)
    weights = _head(folder, dtype)
    inner = (_states(folder, ids, dtype) @ weights["score.0.weight"].T + weights["score.0.bias"]).clamp(min=0)
    logits = inner @ weights["score.2.weight"].T + weights["score.2.bias"]
    mark = tokenizer.convert_tokens_to_ids("<extra_0>")
    return [float(value) for value in logits[torch.tensor(ids) == mark].float().softmax(-1)[:, 1]]


def skywork(folder: Path, tokenizer: Any, messages: Messages, steps: Sequence[str], dtype: str) -> list[float]:
    """skywork-o1-prm-inference `io_utils.py` (prepare_input) and `prm_model.py`: sigmoid of the value at newlines."""
    ids = plain_ids(tokenizer, tokenizer.bos_token + messages[-1]["content"] + "\n")
    flags = [0] * len(ids)
    for step in steps:
        own = [*plain_ids(tokenizer, step), plain_ids(tokenizer, "\n")[-1]]
        ids += own
        flags += [0] * (len(own) - 1) + [1]
    weights = _head(folder, dtype)
    values = _states(folder, ids, dtype) @ weights["v_head.summary.weight"].T + weights["v_head.summary.bias"]
    return [float(value.float().sigmoid()) for value, flag in zip(values[:, 0], flags, strict=True) if flag]


def math_shepherd(folder: Path, tokenizer: Any, messages: Messages, steps: Sequence[str], dtype: str) -> list[float]:
    """The card of math-shepherd-mistral-7b-prm: one text, softmax of two tokens where the id of the mark is."""
    text = messages[-1]["content"] + " " + "\n".join(f"{step} ки" for step in steps)
    ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    mark = tokenizer("ки", add_special_tokens=False)["input_ids"][-1]
    tokens = [tokenizer(token, add_special_tokens=False)["input_ids"][-1] for token in "+-"]
    model = load_plainly(AutoModelForCausalLM, str(folder), dtype)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0][:, tokens].float()
    return [float(value) for value in logits.softmax(-1)[torch.tensor(ids) == mark][:, 0]]


def rlhflow(folder: Path, tokenizer: Any, messages: Messages, steps: Sequence[str], dtype: str) -> list[float]:
    """RLHF-Reward-Modeling `prm_evaluate.py`: a forward pass for each step, read before the reply.

    The published index -3 is that before "+" and the end of a turn of Llama 3; here a turn ends with a newline too.
    """
    tokens = [tokenizer(token, add_special_tokens=False)["input_ids"][-1] for token in "+-"]
    model = load_plainly(AutoModelForCausalLM, str(folder), dtype)
    turns, scores = list(messages), []
    for number, step in enumerate(steps):
        if number == 0:
            turns = [*turns[:-1], {"role": "user", "content": turns[-1]["content"] + " " + step}]
        else:
            turns.append({"role": "user", "content": step})
        turns.append({"role": "assistant", "content": "+"})
        ids = tokenizer.apply_chat_template(turns, tokenize=True, return_dict=True)["input_ids"]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -4, tokens]
        scores.append(float(logits.float().softmax(-1)[0]))
    return scores


def trl(folder: Path, tokenizer: Any, messages: Messages, steps: Sequence[str], dtype: str) -> list[float]:
    """TRL `prm_trainer.py` (tokenize_row): lists of tokens joined, label 1 at the last token of the separator."""
    ids = [tokenizer.bos_token_id, *plain_ids(tokenizer, messages[-1]["content"])]
    places = []
    for step in steps:
        ids += [*plain_ids(tokenizer, step), *plain_ids(tokenizer, "\n")]
        places.append(len(ids) - 1)
    model = load_plainly(AutoModelForTokenClassification, str(folder), dtype)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, places].float()
    return [float(value) for value in logits.softmax(-1)[:, 1]]


@dataclass(frozen=True)
class SavedProcessModel:
    """A published form.

    Attributes:
        scores: Its way of reading.
        head: Shapes of the tensors of its head, beside a language model.
        config: Keys of the configuration.
        options: Fields of `LocalModel` that the files do not tell.
        between: Text between steps.
        classifier: Architecture of a token classifier.
    """

    scores: Scores
    head: dict[str, tuple[int, ...]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    between: str = "\n\n"
    classifier: str = ""


MLP = {"score.0.weight": (WIDTH, WIDTH), "score.0.bias": (WIDTH,), "score.2.weight": (2, WIDTH), "score.2.bias": (2,)}
VALUE = {"v_head.summary.weight": (1, WIDTH), "v_head.summary.bias": (1,)}
TRL_WAY = {"process_reward": "trl-prm", "aggregation": "mean"}
PROCESS_MODELS = {
    "qwen": SavedProcessModel(
        qwen, MLP, {"architectures": ["Qwen2ForProcessRewardModel"], "pad_token_id": 7}, {"aggregation": "product"}
    ),
    "skywork": SavedProcessModel(
        skywork, VALUE, {"architectures": ["Qwen2ForPrmModel"]}, {"aggregation": "mean"}, between="\n"
    ),
    "math-shepherd": SavedProcessModel(math_shepherd, options={"process_reward": "math-shepherd"}, between="\n"),
    "rlhflow": SavedProcessModel(rlhflow, options={"process_reward": "rlhflow-prm"}),
    "trl": SavedProcessModel(trl, options=TRL_WAY, classifier="llama"),
    "trl-encoder": SavedProcessModel(trl, options=TRL_WAY, classifier="bert"),
    "trl-modernbert": SavedProcessModel(trl, options=TRL_WAY, classifier="modernbert"),
}
"""By a name: models as their programs save them."""
REWARDS: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "mean": lambda scores: sum(scores) / len(scores),
    "last": lambda scores: scores[-1],
    "product": lambda scores: float(torch.tensor(scores, dtype=torch.float64).prod()),
}


def save_process_model(folder: Path, name: str, *, dtype: str = "float32", scale: float = 0.3) -> str:
    """Save a model of `PROCESS_MODELS`; the folder as text."""
    saved, tokenizer = PROCESS_MODELS[name], tokenizer_of_steps()
    kind = getattr(torch, dtype)
    size: dict[str, Any] = {"vocab_size": len(tokenizer), "num_hidden_layers": 2}
    if saved.classifier:
        torch.manual_seed(5)
        auto: Any = AutoModelForTokenClassification
        model: Any = auto.from_config(make_config(saved.classifier, num_labels=2, **size))
        head: Any = model.score if hasattr(model, "score") else model.classifier
        torch.nn.init.normal_(head.weight, std=0.1)
        model.to(kind).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return str(folder)
    save_language_model(folder, tokenizer=tokenizer, **size)
    change_config(str(folder), **({"dtype": dtype} | saved.config))
    draw = torch.Generator().manual_seed(3)
    drawn = {part: scale * torch.randn(shape, generator=draw) for part, shape in saved.head.items()}
    body = load_file(folder / "model.safetensors")
    tensors = {part: value.to(kind) for part, value in (body | drawn).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def published_steps(folder: str, name: str, group: Group, dtype: str) -> list[list[float]]:
    """Scores of the steps of each answer by the published way, one conversation at a time."""
    saved, tokenizer = PROCESS_MODELS[name], PreTrainedTokenizerFast.from_pretrained(folder)
    assert json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))["dtype"] == dtype
    messages = [dict(message) for message in group.prompt]
    return [
        saved.scores(Path(folder), tokenizer, messages, response.split(saved.between), dtype)
        for response in group.responses
    ]
