"""A trained personalized reward model: read from its folder, and what it thinks of responses."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pluralbench_runs import one_line, open_file
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from pluralbench_local.config import PERSONAL_FILE
from pluralbench_local.errors import ModelError
from pluralbench_local.personal.contract import BackboneRecord
from pluralbench_local.personal.items import check_user_context, check_vectors, latest, shown_points, standardize
from pluralbench_local.personal.networks import Network, new_network
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Corpus, Points

WEIGHTS_FILE = "model.safetensors"
FORMAT = 2
BATCH = 256  # items
MEAN, DEVIATION = "standard.mean", "standard.deviation"


@dataclass(frozen=True)
class SavedPersonal:
    """A personalized reward model. mean, deviation: [2, width], by which vectors are standardised before it reads them.

    backbone: what made the vectors that it was trained on. record: what `personal.json` holds.
    """

    options: PersonalConfig
    backbone: BackboneRecord
    network: Network
    mean: Tensor
    deviation: Tensor
    record: dict[str, Any]


def read_personal(folder: Path | str) -> SavedPersonal:
    """The model that `train_personal` left in `folder`.

    Raises `ModelError` where there is none, or none that this version reads.
    """
    folder = Path(folder)
    try:
        with open_file(folder / PERSONAL_FILE) as file:
            record = json.loads(file.read())
        if record["format"] != FORMAT:
            raise ModelError(
                f"{folder / PERSONAL_FILE} is of format {one_line(record['format'], 20)}, and this version reads "
                f"{FORMAT}; train the model again."
            )
        options = PersonalConfig.model_validate(record["options"])
        backbone = BackboneRecord.model_validate(record["backbone"])
        with open_file(folder / WEIGHTS_FILE) as file:
            weights = load(file.read())
        mean, deviation = weights.pop(MEAN), weights.pop(DEVIATION)
        network = new_network(backbone.width, options)
        network.load_state_dict(weights)
    except FileNotFoundError as error:
        raise ModelError(
            f"{folder} holds no personalized reward model: there is no {Path(error.filename or WEIGHTS_FILE).name}; "
            "give the folder of one."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, SafetensorError, ValidationError) as error:
        raise ModelError(
            f"The personalized reward model of {folder} cannot be read ({one_line(error)}); train it again."
        ) from None
    return SavedPersonal(options, backbone, network.eval(), mean, deviation, record)


def save_weights(network: Network, mean: Tensor, deviation: Tensor, path: Path) -> None:
    """Write what `read_personal` reads beside the record."""
    save_file({**network.state_dict(), MEAN: mean, DEVIATION: deviation}, path)


def rewards_of(saved: SavedPersonal, corpus: Corpus) -> list[list[float]]:
    """The reward of each response of each item; higher is better, and only those of an item compare.

    A model without a profile reads nothing of the person. Raises `ModelError` for vectors that are not of the width of
    its backbone, or not finite, and where a model with a profile is told nothing of a person.
    """
    check_vectors(corpus, saved.backbone, "items")
    check_user_context(corpus, saved.options)
    return rewards(saved.network, standardize(corpus, saved.mean, saved.deviation), saved.options)


@torch.no_grad()
def rewards(network: Network, corpus: Corpus, options: PersonalConfig) -> list[list[float]]:
    """The reward of each response of each item. corpus: standardised."""
    network.eval()
    found: list[list[float]] = [[] for _ in corpus.ids]
    for items, points in batches_of(corpus, options):
        for item, own in zip(items, network(points).tolist(), strict=True):
            found[item] = own
    return found


def batches_of(corpus: Corpus, options: PersonalConfig) -> Iterator[tuple[Sequence[int], Points]]:
    """All items in batches of those with as many responses, and which they are. corpus: standardised."""
    alike = defaultdict(list)
    for item, responses in enumerate(corpus.responses):
        alike[len(responses)].append(item)
    alike.pop(0, None)
    for many, members in alike.items():
        for start in range(0, len(members), BATCH):
            items = members[start : start + BATCH]
            earlier = [latest(corpus.earlier[item], options.max_history) for item in items]
            yield items, shown_points(corpus, items, [range(many)] * len(items), earlier, options)


def accuracies(corpus: Corpus, rewarded: Sequence[Sequence[float]]) -> list[tuple[str, bool]]:
    """Of each pair, whose it is, and whether its better response has the strictly higher reward; a tie is wrong."""
    return [
        (corpus.persons[item], rewarded[item][better] > rewarded[item][worse]) for item, better, worse in corpus.pairs()
    ]


def accuracy(corpus: Corpus, rewarded: Sequence[Sequence[float]]) -> float:
    """Share of the pairs that are right (`accuracies`)."""
    right = [right for _, right in accuracies(corpus, rewarded)]
    return sum(right) / len(right)
