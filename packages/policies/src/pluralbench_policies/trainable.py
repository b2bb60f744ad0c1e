"""A policy whose weights change: loaded to be trained, sampled from, and read at the tokens of its completions."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from pluralbench_local import LocalModel, ModelError
from pluralbench_local.models import load_weights, silence_transformers
from pluralbench_rewards import Message
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, GenerationConfig

from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.errors import PolicyError


@dataclass(frozen=True)
class Rows:
    """Prompts and completions as one batch: prompts padded on their left, completions on their right.

    ids, mask: [rows, prompt + completion tokens]. tokens: [rows, completion tokens], true for those of a completion.
    """

    ids: Tensor
    mask: Tensor
    tokens: Tensor

    @property
    def completions(self) -> Tensor:
        """Ids of the completions, [rows, completion tokens]."""
        return self.ids[:, -self.tokens.shape[1] :]

    def part(self, chosen: slice | Tensor) -> "Rows":
        """Some of the rows."""
        return Rows(self.ids[chosen], self.mask[chosen], self.tokens[chosen])


def load_policy(source: LocalModel, device: torch.device) -> Any:
    """The language model in float32, whatever it was saved in, without dropout. Raises `ModelError`."""
    model = _load(AutoModelForCausalLM, source, device)
    if model.get_output_embeddings() is None:
        raise ModelError(f"{source.name} is no language model that can be sampled from.")
    return model


def load_body(source: LocalModel, device: torch.device) -> Any:
    """The same without what reads its last hidden states."""
    return _load(AutoModel, source, device)


def _load(kind: Any, source: LocalModel, device: torch.device) -> Any:
    model, info = load_weights(kind, source, dtype=torch.float32)
    missing = sorted(info["missing_keys"])
    if missing:
        raise ModelError(f"{source.name} holds no weights for {', '.join(missing[:3])}; give a language model.")
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.to(device)


def end_ids(model: Any, tokenizer: Any) -> list[int]:
    """The ids that end a completion: the tokenizer's, and those that the model declares."""
    declared = model.generation_config.eos_token_id
    declared = [] if declared is None else [declared] if isinstance(declared, int) else list(declared)
    own = tokenizer.eos_token_id
    found = list(dict.fromkeys([*([] if own is None else [own]), *declared]))
    if not found:
        raise PolicyError("The policy's tokenizer has no end-of-sequence token, so no completion would ever end.")
    return found


def prompt_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of a prompt with what begins an answer."""
    options = {"tokenize": True, "return_dict": True, "add_generation_prompt": True}
    return list(tokenizer.apply_chat_template([dict(message) for message in messages], **options)["input_ids"])


def laid_out(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], device: torch.device) -> Rows:
    """Prompts and their completions, token ids, as a batch."""
    left, right = max(map(len, prompts)), max(map(len, completions))
    ids = torch.zeros(len(prompts), left + right, dtype=torch.long)  # the mask says which count
    mask = torch.zeros_like(ids)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        begin, end = left - len(prompt), left + len(completion)
        ids[row, begin:end] = torch.tensor([*prompt, *completion])
        mask[row, begin:end] = 1
    return Rows(ids.to(device), mask.to(device), mask[:, left:].bool().to(device))


@torch.no_grad()
def sample(
    model: Any, prompts: Sequence[Sequence[int]], ends: Sequence[int], options: OptimizeConfig
) -> list[list[int]]:
    """A completion of each prompt as token ids, with the end token where it ended.

    Drawn from the model's whole distribution at the temperature, by torch's random state.
    """
    rows = laid_out(prompts, [[]] * len(prompts), model.device)
    make: Any = GenerationConfig  # untyped
    config = make(
        do_sample=True, temperature=options.temperature, top_k=0, top_p=1.0, max_new_tokens=options.max_tokens,
        disable_compile=True, eos_token_id=list(ends), pad_token_id=ends[0],
        bos_token_id=model.generation_config.bos_token_id,
    )  # fmt: skip
    with _generating(model, config), silence_transformers(), autocast(model.device, options):
        drawn = model.generate(input_ids=rows.ids, attention_mask=rows.mask)[:, rows.ids.shape[1] :].tolist()
    completions = []
    for ids in drawn:
        end = next((place for place, token in enumerate(ids) if token in ends), len(ids) - 1)
        completions.append(ids[: end + 1])
    return completions


@contextmanager
def _generating(model: Any, config: GenerationConfig) -> Iterator[None]:
    """The model generates by `config` alone: what it declares itself, such as a top_k, would be mixed in."""
    own, training = model.generation_config, model.training
    model.generation_config = config
    model.eval()
    try:
        yield
    finally:
        model.generation_config = own
        model.train(training)


def inputs(model: Any, rows: Rows) -> dict[str, Any]:
    """What the model reads, with positions that begin after the padding where it takes them."""
    given: dict[str, Any] = {"input_ids": rows.ids, "attention_mask": rows.mask, "use_cache": False}
    if "position_ids" in inspect.signature(type(model).forward).parameters:
        given["position_ids"] = (rows.mask.cumsum(1) - 1).clamp(min=0)
    return given


def logits_of(model: Any, rows: Rows, options: OptimizeConfig) -> Tensor:
    """The logits by which each token of the completions was drawn, [rows, completion tokens, vocabulary], float32."""
    with autocast(rows.ids.device, options):
        logits: Tensor = model(**inputs(model, rows), logits_to_keep=rows.tokens.shape[1] + 1).logits
    return logits[:, -rows.tokens.shape[1] - 1 : -1].float() / options.temperature


def autocast(device: torch.device, options: OptimizeConfig) -> torch.autocast:
    """Within this context, matrices are multiplied in bfloat16 where the options say so."""
    return torch.autocast(device.type, torch.bfloat16, enabled=options.in_bfloat16(device.type))


@torch.no_grad()
def divergence(model: Any, start: Any, rows: Rows, options: OptimizeConfig) -> float:
    """Kullback-Leibler divergence of the policy from its start, nats a token: the mean over the completions' tokens.

    Of the whole distributions at each token, and not of the drawn tokens alone.
    """
    total = 0.0
    for begin in range(0, len(rows.ids), options.part):
        some = rows.part(slice(begin, begin + options.part))
        ours, theirs = (logits_of(each, some, options)[some.tokens].log_softmax(-1) for each in (model, start))
        total += float((ours.exp() * (ours - theirs)).sum())
    return total / int(rows.tokens.sum())
