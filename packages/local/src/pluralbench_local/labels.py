"""Labels: how several logits make one reward."""

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from pluralbench_runs import plural
from torch import Tensor

from pluralbench_local.errors import LocalError

RULE = re.compile(r"^(logit|softmax|sigmoid):(-?\d+)$")

Names = Mapping[Any, str]
"""Name of each logit by its number, as `id2label` of a configuration."""


def check_label(name: str, logits: int, label: str | None, names: Names = MappingProxyType({})) -> None:
    """Check the label of a classifier against the number and the names (`id2label`) of its logits.

    Raises:
        LocalError: If a head of several logits has no label, or the label does not fit the head.
    """
    if label is None:
        if logits > 1:
            raise LocalError(
                f"The head of {name} has {logits} logits; choose the reward with `label=...`: logit:K, or softmax:K "
                f"for its probability (K from 0 to {logits - 1}, or -1 for the last), mean, or weights by name or "
                f"number ({_listed(names, logits)}), such as 0:0.65,1:-0.4."
            )
        return
    match = RULE.match(label)
    if match is not None and -logits <= int(match[2]) < logits:
        return
    if match is not None or not _weights(label, logits, names):
        raise LocalError(
            f"The label {label!r} does not fit the head of {name}, which has {plural(logits, 'logit')} "
            f"({_listed(names, logits)}); give logit:K, softmax:K, mean, or weights by name or number, such as "
            "0:0.65,1:-0.4, as `label=...`."
        )


def reward_of(logits: Tensor, label: str | None, names: Names = MappingProxyType({})) -> Tensor:
    """Return the reward of each row of logits, as `label` makes it (see `check_label`)."""
    match = RULE.match(label or "logit:0")
    if match is None:
        weights = _weights(label or "", logits.shape[1], names)
        return torch.stack([logits[:, number] * weight for number, weight in weights.items()]).sum(0)
    values = {"logit": lambda: logits, "softmax": lambda: logits.softmax(-1), "sigmoid": logits.sigmoid}[match[1]]()
    return values[:, int(match[2])]


def _weights(label: str, logits: int, names: Names) -> dict[int, float]:
    """Weights of the logits by number; empty if the label does not fit them."""
    if label == "mean":
        return dict.fromkeys(range(logits), 1 / logits)
    numbers = {name: number for number, name in names.items()} | {str(number): number for number in range(logits)}
    weights: dict[int, float] = {}
    for part in label.split(","):
        name, _, weight = part.rpartition(":")
        number = numbers.get(name.strip())
        try:
            value = float(weight)
        except ValueError:
            return {}
        if number is None or number in weights or not 0 <= number < logits or not math.isfinite(value):
            return {}
        weights[number] = value
    return weights


def _listed(names: Names, logits: int) -> str:
    return ", ".join(str(names.get(number, number)) for number in range(logits))
