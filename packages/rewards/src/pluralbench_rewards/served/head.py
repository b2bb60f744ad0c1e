"""A classifier's head, for engines that give hidden states: read of the model's weights, and applied here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pluralbench_runs import one_line

from pluralbench_rewards.errors import RewardsError
from pluralbench_rewards.served.engine import ReplyError

WEIGHT, BIAS = "score.weight", "score.bias"
FILE = "model.safetensors"
INDEX = f"{FILE}.index.json"


@dataclass(frozen=True)
class Head:
    """The linear layer of a sequence classifier. weights: labels by width. bias: one a label."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def logits(self, states: Sequence[Sequence[float]]) -> list[list[float]]:
        """The raw logits of hidden states, a row each. Raises `ReplyError` for states of another width."""
        width = self.weights.shape[1]
        other = next((len(state) for state in states if len(state) != width), None)
        if other is not None:
            raise ReplyError(
                f"gave a hidden state of {other:,} numbers where the model's head takes {width:,}, so it serves "
                "another model"
            )
        if not states:
            return []
        return [[float(value) for value in row] for row in np.asarray(states) @ self.weights.T + self.bias]


def read_head(name: str | Path, revision: str | None = None) -> Head:
    """The head of a classifier in a folder or on the Hub; of its weights nothing else is read.

    Raises `RewardsError` without safetensors, and for a model whose head is not one linear layer `score`.
    """
    tensors = _tensors(str(name), revision)
    weights = tensors.get(WEIGHT)
    if weights is None or weights.ndim != 2:
        raise RewardsError(
            f"{name} holds no reward head of one linear layer ({WEIGHT}), which is what can be applied here to the "
            "hidden states of a server; serve it by vLLM or SGLang, or score it in this process."
        )
    return Head(weights, tensors.get(BIAS, np.zeros(len(weights))))


def _tensors(name: str, revision: str | None) -> dict[str, NDArray[np.float64]]:
    # Importing it teaches numpy the type bfloat16.
    import ml_dtypes  # noqa: F401, PLC0415 - only where a head is read
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - the same

    try:
        index = _file(name, INDEX, revision)
        if index is None:
            places = dict.fromkeys((WEIGHT, BIAS), FILE)
        else:
            places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        found: dict[str, NDArray[np.float64]] = {}
        for key in (WEIGHT, BIAS):
            path = _file(name, places[key], revision) if key in places else None
            if path is None:
                continue
            with safe_open(path, framework="numpy") as tensors:
                if key in tensors.keys():  # noqa: SIM118 - it is no mapping
                    found[key] = tensors.get_tensor(key).astype(np.float64)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise RewardsError(f"The reward head of {name} cannot be read: {one_line(error, 300)}.") from None
    return found


def _file(name: str, file: str, revision: str | None) -> Path | None:
    """A file of the model on this machine, fetched from the Hub if need be; None where the model has none."""
    if Path(name).is_dir():
        path = Path(name, file)
        return path if path.is_file() else None
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - folders need no Hub
    from huggingface_hub.errors import EntryNotFoundError  # noqa: PLC0415 - the same

    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except EntryNotFoundError:
        return None
