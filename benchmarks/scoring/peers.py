"""Score like published evaluation scripts, with transformers only."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from scoring.protocol import Conversations, Outcome, Score, Settings

BATCH = 8
MAX_LENGTH = 8192
T = TypeVar("T")


def personalized_loop(settings: Settings) -> Score:
    """Score like the pointwise evaluation of Personalized RewardBench.

    The chat template is rendered to text and tokenized with right padding and truncation at 8,192, in batches of 8 in
    the order of the file. The model gets ids and attention mask; the score is the raw logit.
    """
    tokenizer = AutoTokenizer.from_pretrained(Path(settings.folder, "classifier"))
    model = _load(AutoModelForSequenceClassification.from_pretrained, "classifier", settings)

    @torch.no_grad()
    def score(groups: list[Conversations]) -> Outcome:
        texts = [text for group in groups for text in rendered(tokenizer, group)]
        scores: list[float] = []
        computed = 0
        for batch in _batches(texts):
            inputs = tokenizer(batch, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            inputs = inputs.to(settings.device)
            logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
            scores += logits[:, 0].float().tolist()
            computed += inputs["input_ids"].numel()
        return Outcome(by_group(scores, groups), computed)

    return score


def one_at_a_time(settings: Settings) -> Score:
    """Score one conversation per forward pass, without padding and mask: the reference for scores."""
    tokenizer = AutoTokenizer.from_pretrained(Path(settings.folder, "classifier"))
    model = _load(AutoModelForSequenceClassification.from_pretrained, "classifier", settings)

    @torch.no_grad()
    def score(groups: list[Conversations]) -> Outcome:
        scores: list[float] = []
        computed = 0
        for text in (text for group in groups for text in rendered(tokenizer, group)):
            ids = tokenizer(text, return_tensors="pt")["input_ids"].to(settings.device)
            scores.append(model(input_ids=ids).logits[0, 0].item())
            computed += ids.numel()
        return Outcome(by_group(scores, groups), computed)

    return score


def full_logits(settings: Settings) -> Score:
    """Compute implicit rewards like preference trainers.

    Batches of 8 in the order of the file, padded on the right. The logits of the whole vocabulary at every position
    pass a log-softmax in the model's precision, as in reward-bench, and those of the response's tokens are summed. The
    reward is policy minus reference.
    """
    tokenizer = AutoTokenizer.from_pretrained(Path(settings.folder, "policy"))
    models = [_load(AutoModelForCausalLM.from_pretrained, name, settings) for name in ("policy", "reference")]

    @torch.no_grad()
    def score(groups: list[Conversations]) -> Outcome:
        texts = [text for group in groups for text in rendered(tokenizer, group)]
        prompts = [len(tokenizer(prompted(tokenizer, group))["input_ids"]) for group in groups for _ in group.responses]
        scores: list[float] = []
        computed = 0
        for batch, starts in zip(_batches(texts), _batches(prompts), strict=True):
            inputs = tokenizer(batch, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            inputs = inputs.to(settings.device)
            positions = torch.arange(inputs["input_ids"].shape[1], device=settings.device)
            starting = torch.tensor(starts, device=settings.device)
            mask = inputs["attention_mask"].bool() & (positions >= starting[:, None])
            policy, reference = (_response_log_probability(model, inputs, mask) for model in models)
            scores += (policy - reference).tolist()
            computed += inputs["input_ids"].numel()
        return Outcome(by_group(scores, groups), computed)

    return score


def rendered(tokenizer: Any, group: Conversations) -> list[str]:
    """Render the group's conversations with the chat template."""
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": group.prompt}, {"role": "assistant", "content": response}], tokenize=False
        )
        for response in group.responses
    ]


def prompted(tokenizer: Any, group: Conversations) -> str:
    """Render the group's prompt with the chat template, up to the start of a response."""
    text: str = tokenizer.apply_chat_template(
        [{"role": "user", "content": group.prompt}], tokenize=False, add_generation_prompt=True
    )
    return text


def by_group(scores: list[float], groups: list[Conversations]) -> list[list[float]]:
    """Group scores in the order of the file."""
    remaining = iter(scores)
    return [[next(remaining) for _ in group.responses] for group in groups]


def _response_log_probability(model: Any, inputs: Any, mask: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
    gathered: torch.Tensor = logits[:, :-1].log_softmax(-1).gather(2, inputs["input_ids"][:, 1:, None])[..., 0]
    return (gathered.float() * mask[:, 1:]).sum(-1)


def _load(build: Callable[..., Any], name: str, settings: Settings) -> Any:
    model = build(Path(settings.folder, name), dtype=getattr(torch, settings.dtype))
    return model.to(settings.device).eval()


def _batches(items: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
