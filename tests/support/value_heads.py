"""Tiny models with value heads, saved as the programs of each family save them, and the rewards that they publish."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from reward_models import change_config, save_language_model
from safetensors.torch import load_file, save_file
from torch import Tensor

WIDTH = 64
LAYERS = 2  # run the code of more
Weights = dict[str, Tensor]
Published = Callable[[Tensor, Tensor, Weights, dict[str, Any]], Tensor]
"""Rewards from the hidden states of a padded batch, its mask, the tensors of the head, and the configuration."""


def at_last(values: Tensor, mask: Tensor) -> Tensor:
    """The values of the last token that the mask has."""
    ends = [int(row.nonzero()[-1]) for row in mask]
    return torch.stack([values[row, end] for row, end in enumerate(ends)])


def linear(prefix: str) -> Published:
    """A linear head at the last token (DeepSpeed-Chat's padding is not in the mask)."""

    def rewards(states: Tensor, mask: Tensor, weights: Weights, config: dict[str, Any]) -> Tensor:
        del config
        bias = weights.get(f"{prefix}.bias", torch.zeros(1))
        return (at_last(states, mask) @ weights[f"{prefix}.weight"].T + bias)[:, 0].float()

    return rewards


def two_layers(prefix: str) -> Published:
    """Two layers with ReLU between them."""

    def rewards(states: Tensor, mask: Tensor, weights: Weights, config: dict[str, Any]) -> Tensor:
        del config
        inner = at_last(states, mask) @ weights[f"{prefix}.0.weight"].T + weights[f"{prefix}.0.bias"]
        outer = inner.clamp(min=0) @ weights[f"{prefix}.2.weight"].T + weights[f"{prefix}.2.bias"]
        return outer[:, 0].float()

    return rewards


def beaver(states: Tensor, mask: Tensor, weights: Weights, config: dict[str, Any]) -> Tensor:
    """Normalized rewards; the opposite of costs, which are only scaled."""
    plain = linear("score_head")(states, mask, weights, config)
    deviation = weights["normalizer.var"].float().sqrt() + 1e-8
    if config["score_type"] == "cost":
        return -(plain / deviation)
    return (plain - weights["normalizer.mean"].float()) / deviation


def quantiles(states: Tensor, mask: Tensor, weights: Weights, config: dict[str, Any]) -> Tensor:
    """The mean of the quantiles of the only objective."""
    shape = (-1, config["num_objectives"], config["num_quantiles"])
    return (at_last(states, mask) @ weights["regression_layer.weight"].T).float().reshape(shape).mean(2)[:, 0]


@dataclass(frozen=True)
class SavedHead:
    """How a family saves and reads a value head.

    Attributes:
        shapes: Shapes of the tensors of the head.
        published: Its way of reading.
        config: Keys of the configuration.
        body: What the names of the body's tensors begin with in place of the library's "model.", or before it.
        file: File of the weights.
        head_file: File of the head, if it has one of its own.
        ends: The token that is read last: the template's, "eos" or "cls" after the text, or none that pads.
    """

    shapes: dict[str, tuple[int, ...]]
    published: Published
    config: dict[str, Any] = field(default_factory=dict)
    body: str = "model."
    file: str = "model.safetensors"
    head_file: str = ""
    ends: str = "template"


SUMMARY = {"v_head.summary.weight": (1, WIDTH), "v_head.summary.bias": (1,)}
NORMALIZER = {"normalizer.mean": (1,), "normalizer.var": (1,)}


def mlp(prefix: str, inner: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a head of two layers."""
    first = {f"{prefix}.0.weight": (inner, WIDTH), f"{prefix}.0.bias": (inner,)}
    return first | {f"{prefix}.2.weight": (1, inner), f"{prefix}.2.bias": (1,)}


def one(prefix: str) -> dict[str, tuple[int, ...]]:
    """Shape of a linear head without bias."""
    return {f"{prefix}.weight": (1, WIDTH)}


SAVED = {
    "trl": SavedHead(SUMMARY, linear("v_head.summary")),
    "trl-zero3": SavedHead(SUMMARY, linear("v_head.summary"), body="pretrained_model.model."),
    "llama-factory": SavedHead(SUMMARY, linear("v_head.summary"), head_file="value_head.safetensors"),
    "llama-factory-bin": SavedHead(SUMMARY, linear("v_head.summary"), head_file="value_head.bin"),
    "grm-mlp": SavedHead(mlp("v_head.summary", 24), two_layers("v_head.summary"), {"vhead_layer_type": "mlp"}),
    "ultrarm": SavedHead(one("regression_head"), linear("regression_head")),
    "eurus": SavedHead(
        one("regression_head"),
        linear("regression_head"),
        {"auto_map": {"AutoModel": "modeling_eurus_rm.EurusRewardModel"}},
    ),
    "starling-7b": SavedHead(one("v_head"), linear("v_head"), {"pad_token_id": 5}, file="starling.pt", ends="unpadded"),
    "athene": SavedHead(
        one("v_head"),
        linear("v_head"),
        {"architectures": ["CustomAutoModelForSequenceClassification"]},
        ends="cls",
    ),
    "starling-34b": SavedHead(one("v_head"), linear("v_head"), body="transformer.", ends="unpadded"),
    "deepspeed-chat": SavedHead(
        one("v_head"),
        linear("v_head"),
        {"pad_token_id": 1},
        body="rwtransformer.",
        file="pytorch_model.bin",
        ends="unpadded",
    ),
    "beaver-reward": SavedHead(
        one("score_head") | {"score_head.bias": (1,)} | NORMALIZER,
        beaver,
        {"do_normalize": True, "score_type": "reward", "bias": True},
    ),
    "beaver-cost": SavedHead(one("score_head") | NORMALIZER, beaver, {"do_normalize": True, "score_type": "cost"}),
    "align-anything": SavedHead(one("score_head"), linear("score_head")),
    "openrlhf": SavedHead(
        one("score"), linear("score"), {"value_head_prefix": "score", "mean": 0.5, "std": 2.0}, ends="eos"
    ),
    "openrlhf-unnamed": SavedHead(one("score"), linear("score"), {"normalize_reward": False}, ends="eos"),
    "openrlhf-older": SavedHead(one("value_head"), linear("value_head"), ends="eos"),
    "qrm-linear": SavedHead(
        {"regression_layer.weight": (5, WIDTH)}, quantiles, {"num_quantiles": 5, "num_objectives": 1}, ends="unpadded"
    ),
    "inf-orm": SavedHead(mlp("score", WIDTH), two_layers("score"), ends="unpadded"),
}
"""By a name: heads as their programs save them; `test_value_heads` names the sources."""


def save_value_head(
    folder: Path, family: str, architecture: str = "llama", *, dtype: str = "float32", tokenizer: Any = None
) -> str:
    """Save a language model with a value head of a family of `SAVED`; the folder as text."""
    saved, kind = SAVED[family], getattr(torch, dtype)
    save_language_model(folder, architecture, tokenizer=tokenizer, num_hidden_layers=LAYERS)
    change_config(str(folder), **({"dtype": dtype} | saved.config))
    body = {
        saved.body + name.removeprefix("model.") if name.startswith("model.") else name: tensor.to(kind)
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    (folder / "model.safetensors").unlink()
    head = {name: value.to(kind) for name, value in head_of(family).items()}
    for file, tensors in {saved.file: body, saved.head_file or saved.file: head}.items():
        content = body | head if not saved.head_file else tensors
        if file.endswith(".safetensors"):
            save_file(content, folder / file, metadata={"format": "pt"})
        else:
            torch.save(content, folder / file)
    return str(folder)


def head_of(family: str) -> Weights:
    """The tensors of a family's head, always the same."""
    draw = torch.Generator().manual_seed(3)
    drawn = {name: 0.3 * torch.randn(shape, generator=draw) for name, shape in SAVED[family].shapes.items()}
    return {name: value.abs() + 2 if name.endswith(".var") else value for name, value in drawn.items()}


def ids_to_read(family: str, tokenizer: Any, config: dict[str, Any], messages: Sequence[dict[str, str]]) -> list[int]:
    """The token ids of a conversation up to the one that the family reads."""
    text = tokenizer.apply_chat_template(list(messages), tokenize=False)
    if SAVED[family].ends == "eos":
        # OpenRLHF: newlines go, eos comes after a space, and the last id becomes eos whatever it was.
        while text.endswith("\n"):
            text = text[:-1]
        if not text.endswith(tokenizer.eos_token):
            text += " " + tokenizer.eos_token
    ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    if SAVED[family].ends == "eos":
        ids[-1] = tokenizer.eos_token_id
    if SAVED[family].ends == "cls":
        ids.append(tokenizer.cls_token_id)
    while SAVED[family].ends == "unpadded" and ids[-1] == config["pad_token_id"]:
        ids.pop()
    return ids


def published_rewards(
    family: str, body: Any, config: dict[str, Any], rows: Sequence[list[int]], *, dtype: str, side: str, pad: int
) -> list[float]:
    """Rewards by the published way of reading, in a padded batch."""
    longest = max(map(len, rows))
    batch = torch.full((len(rows), longest), pad)
    mask = torch.zeros_like(batch)
    for row, ids in enumerate(rows):
        place = slice(longest - len(ids), longest) if side == "left" else slice(0, len(ids))
        batch[row, place], mask[row, place] = torch.tensor(ids), 1
    weights = {name: value.to(getattr(torch, dtype)) for name, value in head_of(family).items()}
    with torch.inference_mode():
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        output = body(input_ids=batch, attention_mask=mask, position_ids=positions, output_hidden_states=True)
        return SAVED[family].published(output.hidden_states[-1], mask, weights, config).tolist()
