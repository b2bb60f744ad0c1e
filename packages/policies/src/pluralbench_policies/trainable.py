"""Check and load a model for training, sample from it, and compute its logits at the tokens of completions."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from jinja2 import TemplateError
from pluralbench_local import LocalError, LocalModel
from pluralbench_local.models import load_model, load_tokenizer, silence_transformers
from pluralbench_local.packing import to_device
from pluralbench_local.rendering import apply_chat_template
from pluralbench_local.training_job import check_base
from pluralbench_rewards import Message
from pluralbench_runs import install_command, one_line
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, GenerationConfig

from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.errors import PolicyError


@dataclass(frozen=True)
class Rows:
    """A batch of prompts (left-padded) and completions (right-padded).

    Attributes:
        ids: Token ids, shape (rows, prompt + completion tokens).
        mask: Attention mask of the same shape.
        tokens: True for tokens of a completion, shape (rows, completion tokens).
        lengths: Number of tokens of each completion, known without waiting for a GPU.
    """

    ids: Tensor
    mask: Tensor
    tokens: Tensor
    lengths: Sequence[int]

    @property
    def completions(self) -> Tensor:
        """Token ids of the completions, shape (rows, completion tokens)."""
        return self.ids[:, -self.tokens.shape[1] :]

    def part(self, chosen: slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.ids[chosen], self.mask[chosen], self.tokens[chosen], self.lengths[chosen])


def load_policy(source: LocalModel) -> Any:
    """Load a language model in float32 without dropout. Raises `LocalError`."""
    return _load(AutoModelForCausalLM, source)


def load_body(source: LocalModel) -> Any:
    """Load the same model without its output layer."""
    return _load(AutoModel, source)


def _load(kind: Any, source: LocalModel) -> Any:
    model = load_model(kind, source.model_copy(update={"dtype": "float32"}))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def end_ids(model: Any, tokenizer: Any) -> list[int]:
    """Return the ids of the tokens that end a completion, from the tokenizer and the generation configuration."""
    declared = model.generation_config.eos_token_id
    declared = [] if declared is None else [declared] if isinstance(declared, int) else list(declared)
    eos = tokenizer.eos_token_id
    ids = list(dict.fromkeys([*([] if eos is None else [eos]), *declared]))
    if not ids:
        raise PolicyError("The policy has no end-of-sequence token; add `eos_token_id` to its generation_config.json.")
    return ids


def prompt_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Tokenize a prompt with the chat template, including the generation prompt."""
    options = {"tokenize": True, "return_dict": True, "add_generation_prompt": True}
    return list(apply_chat_template(tokenizer, messages, **options)["input_ids"])


def make_rows(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], device: torch.device) -> Rows:
    """Pad the token ids of prompts and completions to a batch."""
    left, right = max(map(len, prompts)), max(map(len, completions))
    ids = torch.zeros(len(prompts), left + right, dtype=torch.long)  # padding is masked, so its id does not matter
    mask = torch.zeros_like(ids)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        begin, end = left - len(prompt), left + len(completion)
        ids[row, begin:end] = torch.tensor([*prompt, *completion])
        mask[row, begin:end] = 1
    tokens = mask[:, left:].bool()
    lengths = [*map(len, completions)]
    return Rows(to_device(ids, device), to_device(mask, device), to_device(tokens, device), lengths)


def places_of(mask: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Return the rows and the columns at which a mask is true, as often as `number`, so that no GPU searches first."""
    rows, columns = torch.nonzero_static(mask, size=number).unbind(1)
    return rows, columns


@torch.no_grad()
def sample(
    model: Any, prompts: Sequence[Sequence[int]], ends: Sequence[int], options: OptimizeConfig
) -> list[list[int]]:
    """Sample a completion for each prompt from the full distribution, with torch's random state.

    The token ids include the end token if there is one.
    """
    rows = make_rows(prompts, [[]] * len(prompts), model.device)
    make: Any = GenerationConfig  # untyped
    config = make(
        do_sample=True, temperature=options.temperature, top_k=0, top_p=1.0, max_new_tokens=options.max_tokens,
        disable_compile=True, eos_token_id=list(ends), pad_token_id=ends[0],
        bos_token_id=model.generation_config.bos_token_id,
    )  # fmt: skip
    with _generation_settings(model, config), silence_transformers(), autocast(model.device, options):
        drawn = model.generate(input_ids=rows.ids, attention_mask=rows.mask)[:, rows.ids.shape[1] :].tolist()
    completions = []
    for ids in drawn:
        end = next((place for place, token in enumerate(ids) if token in ends), len(ids) - 1)
        completions.append(ids[: end + 1])
    return completions


@contextmanager
def _generation_settings(model: Any, config: GenerationConfig) -> Iterator[None]:
    """Replace the model's generation configuration, whose settings such as top_k would otherwise be merged."""
    original, training = model.generation_config, model.training
    model.generation_config = config
    model.eval()
    try:
        yield
    finally:
        model.generation_config = original
        model.train(training)


def inputs(model: Any, rows: Rows) -> dict[str, Any]:
    """Make the model's inputs, with positions that start after the padding if the model accepts positions."""
    values: dict[str, Any] = {"input_ids": rows.ids, "attention_mask": rows.mask, "use_cache": False}
    if "position_ids" in inspect.signature(type(model).forward).parameters:
        values["position_ids"] = (rows.mask.cumsum(1) - 1).clamp(min=0)
    return values


def logits_of(model: Any, rows: Rows, options: OptimizeConfig) -> Tensor:
    """Compute the float32 logits of each token of the completions, shape (rows, completion tokens, vocabulary)."""
    with autocast(rows.ids.device, options):
        logits: Tensor = model(**inputs(model, rows), logits_to_keep=rows.tokens.shape[1] + 1).logits
    return logits[:, -rows.tokens.shape[1] - 1 : -1].float() / options.temperature


def autocast(device: torch.device, options: OptimizeConfig) -> torch.autocast:
    """Return a context that multiplies matrices in bfloat16 if the options ask for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=options.in_bfloat16(device.type))


@torch.no_grad()
def divergence(model: Any, start: Any, rows: Rows, options: OptimizeConfig) -> float:
    """Compute the mean KL divergence of the policy from the initial policy, in nats per token of the completions.

    It is the exact divergence of the distributions at each token, not an estimate from the sampled tokens.
    """
    totals = []
    for begin in range(0, len(rows.ids), options.part):
        part = rows.part(slice(begin, begin + options.part))
        tokens = places_of(part.tokens, sum(part.lengths))
        current, initial = (logits_of(each, part, options)[tokens].log_softmax(-1) for each in (model, start))
        totals.append((current.exp() * (current - initial)).sum())
    total: float = sum(torch.stack(totals).tolist())
    return total / sum(rows.lengths)


def check_libraries(what: str, needed: Iterable[str]) -> None:
    """Raise `PolicyError` if one of the libraries that a training imports is missing; `what` is the training."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise PolicyError(f"{what} needs {missing[0]}: {install_command('pluralbench-policies', 'optimize')}.")


def check_base_model(base: LocalModel, unused: Iterable[str], what: str) -> None:
    """Check the settings of a base model before a training, such as "Optimizing a policy".

    Raises:
        TrainingError: A field is set that has no meaning here.
        LocalError: The device is neither the CPU nor the first GPU.
    """
    check_base(base, unused, what)
    if base.device not in {"auto", "cpu", "cuda", "cuda:0"}:
        raise LocalError(
            f"{what} runs on the CPU or the first GPU, not on {base.device}; select another GPU with the environment "
            "variable CUDA_VISIBLE_DEVICES."
        )


def chat_tokenizer(source: LocalModel) -> Any:
    """Load the tokenizer of a chat model. Raises `PolicyError` without a chat template, and `LocalError`."""
    source.check_merged()
    tokenizer = load_tokenizer(source)
    if not tokenizer.chat_template:
        raise PolicyError(f"{source.name} has no chat template; set `chat_template=...`.")
    return tokenizer


@contextmanager
def template_errors(name: str) -> Iterator[None]:
    """Convert errors of the chat template of the model `name` to `PolicyError`."""
    try:
        yield
    except (TemplateError, TypeError, ValueError) as error:
        raise PolicyError(f"The chat template of {name} rejects a prompt: {one_line(error)}.") from None
