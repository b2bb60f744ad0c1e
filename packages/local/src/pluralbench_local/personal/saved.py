"""Trained personalized reward models: read and save them, and compute their rewards."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pluralbench_runs import one_line, open_file, read_small
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from pluralbench_local.config import PERSONAL_FILE
from pluralbench_local.errors import LocalError
from pluralbench_local.personal.contract import BackboneRecord
from pluralbench_local.personal.items import check_user_context, check_vectors, latest_pairs, make_points, standardize
from pluralbench_local.personal.networks import Network, new_network
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Corpus, Points

WEIGHTS_FILE = "model.safetensors"
FORMAT = 2
BATCH_SIZE = 256  # items
MEAN, DEVIATION = "standard.mean", "standard.deviation"


@dataclass(frozen=True)
class SavedPersonal:
    """A personalized reward model read from its folder.

    Attributes:
        options: How it was trained.
        backbone: The backbone of its vectors.
        network: Its network.
        mean: Mean by which vectors are standardized, of shape (2, width).
        deviation: Standard deviation by which vectors are standardized, of shape (2, width).
        record: Contents of `personal.json`.
    """

    options: PersonalConfig
    backbone: BackboneRecord
    network: Network
    mean: Tensor
    deviation: Tensor
    record: dict[str, Any]


def read_personal(folder: Path | str) -> SavedPersonal:
    """Read the model that `train_personal` saved to `folder`.

    Raises:
        LocalError: If there is none, or this version cannot read it.
    """
    folder = Path(folder)
    try:
        record = json.loads(read_small(folder / PERSONAL_FILE))
        if record["format"] != FORMAT:
            raise LocalError(
                f"{folder / PERSONAL_FILE} has the format {one_line(record['format'], 20)}, and this version reads "
                f"{FORMAT}; train the model again."
            )
        options = PersonalConfig.model_validate(record["options"])
        backbone = BackboneRecord.model_validate(record["backbone"])
        with open_file(folder / WEIGHTS_FILE) as file:
            weights = load(file.read())
        mean, deviation = weights.pop(MEAN), weights.pop(DEVIATION)
        with torch.device("meta"):  # takes no memory, whatever sizes the file names; the weights have theirs
            network = new_network(backbone.width, options)
        network.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    except FileNotFoundError as error:
        raise LocalError(
            f"{folder} has no personalized reward model: there is no {Path(error.filename or WEIGHTS_FILE).name}; give "
            "the folder of one."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, SafetensorError, ValidationError) as error:
        raise LocalError(
            f"The personalized reward model of {folder} cannot be read ({one_line(error)}); train it again."
        ) from None
    return SavedPersonal(options, backbone, network.eval(), mean, deviation, record)


def save_weights(network: Network, mean: Tensor, deviation: Tensor, path: Path) -> None:
    """Write the weights and the statistics that `read_personal` reads."""
    save_file({**network.state_dict(), MEAN: mean, DEVIATION: deviation}, path)


def rewards_of(saved: SavedPersonal, corpus: Corpus) -> list[list[float]]:
    """Return the reward of each response, by item. Only rewards of the same item can be compared.

    Raises:
        LocalError: If vectors have another width than the backbone's or are not finite, or an item has no user context
            and the model has a profile.
    """
    check_vectors(corpus, saved.backbone, "items")
    check_user_context(corpus, saved.options)
    return rewards(saved.network, standardize(corpus, saved.mean, saved.deviation), saved.options)


@torch.no_grad()
def rewards(network: Network, corpus: Corpus, options: PersonalConfig) -> list[list[float]]:
    """Return the reward of each response, by item, of a standardized corpus."""
    network.eval()
    rewards_by_item: list[list[float]] = [[] for _ in corpus.ids]
    for items, points in batches_of(corpus, options):
        for item, values in zip(items, network(points).tolist(), strict=True):
            rewards_by_item[item] = values
    return rewards_by_item


def batches_of(corpus: Corpus, options: PersonalConfig) -> Iterator[tuple[Sequence[int], Points]]:
    """Yield batches of items with the same number of responses, of a standardized corpus, with the items' indices."""
    by_size = defaultdict(list)
    for item, responses in enumerate(corpus.responses):
        by_size[len(responses)].append(item)
    by_size.pop(0, None)
    for size, members in by_size.items():
        for start in range(0, len(members), BATCH_SIZE):
            items = members[start : start + BATCH_SIZE]
            earlier = [latest_pairs(corpus.earlier[item], options.max_history) for item in items]
            yield items, make_points(corpus, items, [range(size)] * len(items), earlier, options)


def pair_outcomes(corpus: Corpus, rewards: Sequence[Sequence[float]]) -> list[tuple[str, bool]]:
    """Return the user of each pair, and whether its better response has the strictly higher reward; a tie is wrong."""
    return [
        (corpus.persons[item], rewards[item][better] > rewards[item][worse]) for item, better, worse in corpus.pairs()
    ]


def accuracy(corpus: Corpus, rewards: Sequence[Sequence[float]]) -> float:
    """Return the share of pairs that are right (`pair_outcomes`)."""
    right = [right for _, right in pair_outcomes(corpus, rewards)]
    return sum(right) / len(right)
