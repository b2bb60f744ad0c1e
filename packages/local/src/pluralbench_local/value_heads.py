"""Value heads: layers beside the body of a language model that read its last hidden states as rewards.

A family of them is an entry of `FAMILIES`: the names of its tensors, and the token that is read.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM, PretrainedConfig

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_model, silence_transformers
from pluralbench_local.network import ReadableNetwork, network_of
from pluralbench_local.weights import HEAD_FILES, ModelFiles, Shapes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

HEADS = ("v_head.summary", "v_head", "value_head", "regression_head", "regression_layer", "score_head", "score")
"""Prefixes of the names of heads."""
ATHENE = {"AtheneForSequenceClassification", "CustomAutoModelForSequenceClassification"}
LAST = "last token"
EPSILON = 1e-8


class RewardHead(nn.Sequential):
    """A head built from its tensors; its result has float32."""

    def __init__(self, layers: list[nn.Module], out_features: int) -> None:
        super().__init__(*layers)
        self.out_features = out_features

    def forward(self, states: Tensor) -> Tensor:
        """Return the rewards of hidden states, which are cast to the head's dtype."""
        weight = next(self.parameters())
        values = states.to(weight.dtype)
        for layer in self:
            values = layer(values)
        return values.float()


class Normalized(nn.Module):
    """Shift and scale rewards in float32."""

    def __init__(self, shift: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    def forward(self, values: Tensor) -> Tensor:
        """Return (values - shift) / scale."""
        shift, scale = self.get_buffer("shift"), self.get_buffer("scale")
        return (values.float() - shift) / scale


class QuantileMeans(nn.Module):
    """Means over the quantiles of each attribute."""

    def __init__(self, quantiles: int) -> None:
        super().__init__()
        self.quantiles = quantiles

    def forward(self, values: Tensor) -> Tensor:
        """Return the mean of each attribute, in float32."""
        return values.float().reshape(*values.shape[:-1], -1, self.quantiles).mean(-1)


@dataclass(frozen=True)
class HeadFamily:
    """Value heads of one origin.

    Attributes:
        name: Whose they are.
        head: Prefix of the names of the head's tensors.
        recognize: Whether a model with such a head is of this family, by its configuration and tensors.
        head_key: Key of the configuration with another prefix.
        bodies: Prefixes of the names of the body's tensors, besides those of transformers.
        reads: The token that is read, in words.
        ends_with_eos: Whether a conversation is ended by the tokenizer's eos, without newlines before it.
        ends_with_cls: Whether the tokenizer's cls token is appended to a conversation.
        skips_padding: Whether padding tokens at the end of a conversation are not read.
        finish: Layers after the head's own, by the number of its outputs, the configuration and all small tensors.
        facts: Further facts for records, from the configuration.
    """

    name: str
    head: str
    recognize: Callable[[Mapping[str, Any], Shapes], bool] = lambda config, shapes: True
    head_key: str = ""
    bodies: tuple[str, ...] = ()
    reads: str = LAST
    ends_with_eos: bool = False
    ends_with_cls: bool = False
    skips_padding: bool = False
    finish: Callable[[int, Mapping[str, Any], Mapping[str, Tensor]], tuple[list[nn.Module], int]] = (
        lambda outputs, config, tensors: ([], outputs)
    )
    facts: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda config: {}

    def prefix(self, config: Mapping[str, Any]) -> str:
        """Return the prefix of the head's tensors."""
        return str(config.get(self.head_key) or self.head)

    def recognizes(self, files: ModelFiles) -> bool:
        """Return whether a model is of this family."""
        config = files.config.to_dict()
        has_head = bool(_layers(self.prefix(config), files.shapes))
        return has_head and self.recognize(config, files.shapes)

    def settings(self, config: PretrainedConfig) -> dict[str, Any]:
        """Return what a run records of the head and of its reading."""
        values = config.to_dict()
        return {"head": f"{self.prefix(values)} ({self.name})", "reads": self.reads} | self.facts(values)


def _beaver(outputs: int, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[list[nn.Module], int]:
    """Normalization, and the opposite sign of a cost (safe-rlhf `score_model/__init__.py` and `normalizer.py`)."""
    kind = config.get("score_type", "reward")
    if kind not in {"reward", "cost", "critic"}:
        raise LocalError(f"config.json sets `score_type` to {kind!r}; give reward, cost or critic.")
    sign = -1.0 if kind == "cost" else 1.0
    mean = _statistic("mean", config, tensors, torch.zeros(outputs))
    deviation = _statistic("var", config, tensors, torch.ones(outputs)).sqrt() + EPSILON
    if not config.get("do_normalize") or kind == "critic":
        return ([Normalized(torch.zeros(1), torch.tensor([sign]))] if sign < 0 else []), outputs
    return [Normalized(mean if kind == "reward" else torch.zeros(outputs), sign * deviation)], outputs


def _statistic(name: str, config: Mapping[str, Any], tensors: Mapping[str, Tensor], default: Tensor) -> Tensor:
    """A statistic of rewards: that of the files, else of the configuration."""
    saved = tensors.get(f"normalizer.{name}")
    given = config.get(name)
    value = saved.float() if saved is not None else default if given is None else torch.tensor(given).float()
    if value.shape not in {(), (1,), default.shape}:
        raise LocalError(
            f"The normalizer has a `{name}` of {len(value)} numbers for {len(default)} rewards; correct it."
        )
    return value.expand_as(default).clone()


def _beaver_facts(config: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"normalized": bool(config.get("do_normalize"))}
    return facts | ({"sign": "minus the cost"} if config.get("score_type") == "cost" else {})


def _quantiles(outputs: int, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[list[nn.Module], int]:
    del tensors
    number = config["num_quantiles"]
    if not isinstance(number, int) or number < 1 or outputs % number:
        raise LocalError(
            f"The head regression_layer has {outputs} rows, no multiple of `num_quantiles` ({number!r:.40}) in "
            "config.json; correct it."
        )
    return [QuantileMeans(number)], outputs // number


def _openrlhf_facts(config: Mapping[str, Any]) -> dict[str, Any]:
    """Whether to normalize is an argument of OpenRLHF's programs, false by default; the files do not tell."""
    given = [f"{name} {config[name]}" for name in ("mean", "std") if config.get(name) is not None]
    return {"normalization": f"none (config.json has {' and '.join(given)})"} if given else {}


OPENRLHF = HeadFamily(
    "OpenRLHF",
    "value_head",
    lambda config, shapes: "prompt_head.weight" not in shapes,
    head_key="value_head_prefix",
    reads="eos, which ends each conversation",
    ends_with_eos=True,
    facts=_openrlhf_facts,
)
FAMILIES = (
    HeadFamily(
        "DeepSpeed-Chat",
        "v_head",
        lambda config, shapes: any(name.startswith("rwtransformer.") for name in shapes),
        bodies=("rwtransformer.",),
        reads="last token that is not the padding token",
        skips_padding=True,
    ),
    HeadFamily("TRL, LLaMA-Factory or GRM", "v_head.summary", bodies=("pretrained_model.",)),
    HeadFamily(
        "Athene",
        "v_head",
        # Starling-RM-34B is of the same origin, and its body is `transformer`.
        lambda config, shapes: (
            not ATHENE.isdisjoint(config.get("architectures") or ())
            and not any(name.startswith("transformer.") for name in shapes)
        ),
        reads="cls, which is appended to each conversation",
        ends_with_cls=True,
    ),
    HeadFamily(
        "Starling",
        "v_head",
        lambda config, shapes: "InternLM2ForRewardModel" not in (config.get("architectures") or ()),
        bodies=("transformer.",),
        reads="last token that is not the padding token",
        skips_padding=True,
    ),
    HeadFamily("UltraRM or Eurus", "regression_head"),
    HeadFamily("Beaver or align-anything", "score_head", finish=_beaver, facts=_beaver_facts),
    OPENRLHF,
    # Saved before its end, a training has not yet named its prefix, whose default is that of sequence classifiers.
    replace(
        OPENRLHF,
        head="score",
        head_key="",
        recognize=lambda config, shapes: (
            "score.weight" in shapes
            and ("normalize_reward" in config or "RewardModel" in (config.get("architectures") or ()))
        ),
    ),
    HeadFamily(
        "QRM",
        "regression_layer",
        lambda config, shapes: "num_quantiles" in config and not any(name.startswith("gating") for name in shapes),
        reads="last token that is not the padding token",
        skips_padding=True,
        finish=_quantiles,
    ),
    HeadFamily(
        "INF-ORM",
        "score",
        # Process reward models of Qwen have such a head, too; it reads the end of each step.
        lambda config, shapes: (
            "score.0.weight" in shapes
            and not any("ProcessReward" in architecture for architecture in config.get("architectures") or ())
        ),
        reads="last token that is not the padding token",
        skips_padding=True,
    ),
)
"""The first family that recognizes a model is its own.

Sources: TRL `modeling_value_head.py`; LLaMA-Factory `valuehead.py`; GRM `grm_utils.py`; DeepSpeed-Chat
`reward_model.py`; OpenRLHF `model.py` and `reward_dataset.py`; the card of Nexusflow/Athene-RM-8B; and reward-bench's
`starling.py`, `openbmb.py`, `beaver.py`, `qrm.py` and `inform.py`.
"""


def load_value_head(family: HeadFamily, files: ModelFiles) -> ReadableNetwork:
    """Load a body with transformers, and build its head.

    Raises `LocalError` if a tensor of the head has another shape, there is another head, the body cannot be loaded, or
    an adapter's base has such a head.
    """
    source = files.source
    prefix = family.prefix(files.config.to_dict())
    others = [name for name in HEADS if name != prefix and _layers(name, files.shapes)]
    if others:
        raise LocalError(
            f"{source.name} has two reward heads, {_layers(prefix, files.shapes)[0]} and "
            f"{_layers(others[0], files.shapes)[0]}; remove one from its files of weights."
        )
    inside = [
        name
        for file, shapes in files.by_file.items()
        if file not in HEAD_FILES and not Path(file).is_absolute()
        for name in _layers(prefix, shapes)
    ]
    if inside and (adapter := source.adapter()) is not None:
        raise LocalError(
            f"The base {adapter.base} of the adapter {source.name} has a value head among its weights ({inside[0]}), "
            "and adapters are merged into language models and classifiers only; merge it into its base (PEFT's "
            "`merge_and_unload`), save the result with the head and the tokenizer, and give that."
        )
    if files.config.model_type in CONFIG_MAPPING:  # the body is of transformers, whatever code comes with the model
        source = source.model_copy(update={"trust_remote_code": False})
    head, width = _head(family, prefix, files)
    body = _body(source, family, files)
    check_width(source.name, prefix, width, body)
    with silence_transformers():
        network = network_of(body, head, body)
    body.reward_head = head.to(network.device).eval()
    return network


def check_width(name: str, head: str, width: int, body: "PreTrainedModel") -> None:
    """Raise `LocalError` if a head does not read as many numbers as its body has."""
    config = body.config.get_text_config()
    expected = getattr(config, "word_embed_proj_dim", config.hidden_size)  # OPT projects its hidden states
    if width != expected:
        raise LocalError(
            f"The head {head} of {name} reads {width:,} numbers, but its body has hidden states of {expected:,}; it "
            "belongs to another model."
        )


def heads_of(shapes: Shapes) -> list[str]:
    """Return the names of the weights of all reward heads among tensors."""
    return [name for prefix in HEADS for name in _layers(prefix, shapes)]


def _layers(prefix: str, shapes: Shapes) -> list[str]:
    """Names of the weights of a head in their order: one layer, or those of an MLP."""
    if f"{prefix}.weight" in shapes:
        return [f"{prefix}.weight"]
    numbered = re.compile(rf"{re.escape(prefix)}\.(\d+)\.weight")
    found = [(int(match[1]), name) for name in shapes if (match := numbered.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _head(family: HeadFamily, prefix: str, files: ModelFiles) -> tuple[RewardHead, int]:
    """Also the width of the hidden states that it reads."""
    name, names = files.source.name, _layers(prefix, files.shapes)
    small = {"normalizer.mean", "normalizer.var"}
    tensors = files.tensors({*names, *map(_bias, names), *small})
    shapes = [tuple(tensors[one].shape) for one in names]
    chained = all(len(shape) == 2 for shape in shapes) and all(a[0] == b[1] for a, b in pairwise(shapes))
    if not chained:
        raise LocalError(
            f"The layers of the head {prefix} of {name} have shapes that do not follow one another ({shapes})."
        )
    for one, tensor in tensors.items():
        expected = next((shape[:1] for layer, shape in zip(names, shapes, strict=True) if one == _bias(layer)), None)
        if one in small:
            continue
        if not tensor.is_floating_point() or not tensor.numel() or expected not in {None, tuple(tensor.shape)}:
            raise LocalError(
                f"The tensor {one} of {name} has the shape {tuple(tensor.shape)} and the type {tensor.dtype}, with "
                "which no reward is computed; save the head again."
            )
    layers: list[nn.Module] = []
    for one in names:
        bias = tensors.get(_bias(one))
        outputs, inputs = tensors[one].shape
        layer = nn.Linear(inputs, outputs, bias=bias is not None, dtype=tensors[one].dtype)
        layer.weight.data = tensors[one]
        if bias is not None:
            layer.bias.data = bias.to(tensors[one].dtype)
        layers += [nn.ReLU(), layer] if layers else [layer]
    if files.source.dtype != "auto":
        layers = [layer.to(getattr(torch, files.source.dtype)) for layer in layers]
    finish, outputs = family.finish(shapes[-1][0], files.config.to_dict(), tensors)
    return RewardHead([*layers, *finish], outputs), shapes[0][1]


def _bias(weight: str) -> str:
    return f"{weight.removesuffix('weight')}bias"


def _body(source: LocalModel, family: HeadFamily, files: ModelFiles) -> "PreTrainedModel":
    """Load a body whose tensors or file may have names of their own."""
    if source.adapter() is not None:  # trained on the language model, whose tensors' names it has
        body: Any = load_model(AutoModelForCausalLM, source).base_model
        return cast("PreTrainedModel", body)
    found = [body for body in family.bodies if any(name.startswith(body) for name in files.shapes)]
    plain = any(name.startswith("model.") for name in files.shapes)  # Starling has its body twice, also by these names
    options = {"key_mapping": {f"^{re.escape(body)}": "" for body in found}} if found and not plain else {}
    auto: Any = AutoModel  # untyped
    if (tensors := files.by_another_name()) is not None:
        with torch.device("meta"):
            network: Any = type(auto.from_config(files.config))
        auto = SimpleNamespace(
            __name__=network.__name__,
            from_config=auto.from_config,
            from_pretrained=lambda name, **given: network.from_pretrained(
                None, config=files.config, state_dict=tensors, **given
            ),
        )
    return load_model(auto, source, **options)
