"""Train a personalized reward model of any method on vectors of a frozen backbone.

`_epoch` takes the pairs in the order of `order_of`; the network defines the loss. `pluralbench_local.training_job`
handles checkpoints and resuming.
"""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import torch
from pluralbench_runs import Json, Recipe, digest, recipe_values, rng_for
from torch import Tensor

from pluralbench_local.config import PERSONAL_FILE
from pluralbench_local.personal.corpus import (
    Corpus,
    check_disjoint_users,
    check_pairs,
    check_user_context,
    check_vectors,
    standardize,
    vector_statistics,
)
from pluralbench_local.personal.networks import Network, new_network
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.scoring import FORMAT, WEIGHTS_FILE, accuracy, rewards, save_weights
from pluralbench_local.personal.texts import BackboneRecord
from pluralbench_local.training_job import (
    Kind,
    Result,
    Trained,
    accelerator_of,
    restore,
    run_job,
    save_checkpoint,
    step_log,
)

ITEMS, HELD_OUT = "items", "held-out items"
PERSONAL = Kind(PERSONAL_FILE, "pluralbench-local", ("safetensors",), FORMAT)
TOO_LARGE = "A batch of pairs does not fit into memory; lower `batch_size=...` or `hidden_size=...`."
CLIP = 1.0  # largest norm of a gradient

Pair = tuple[int, int, int]
"""Indices of an item, its better and its worse response."""


class PersonalSettings(Recipe):
    """Everything that the weights depend on. Resumed training must match it."""

    verb: Literal["train-personal"] = "train-personal"
    backbone: BackboneRecord
    data: str
    held_out: str | None = None
    options: PersonalConfig


@dataclass
class BestWeights:
    """The weights of the first epoch with the highest held-out accuracy; without held-out items, of the last epoch."""

    epoch: int = 0
    accuracy: float | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    def see(self, epoch: int, accuracy: float | None, network: Network) -> None:
        """Take an epoch's weights if they are better."""
        if self.accuracy is None or accuracy is None or accuracy > self.accuracy:
            self.epoch, self.accuracy, self.weights = epoch, accuracy, deepcopy(network.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        vars(self).update(state)


def train_personal(
    corpus: Corpus,
    out: Path | str,
    *,
    options: PersonalConfig,
    backbone: BackboneRecord,
    held_out: Corpus | None = None,
    origin: Mapping[str, Json] | None = None,
    fresh: bool = False,
) -> Trained:
    """Train a personalized reward model on the CPU.

    Vectors are standardized by the `vector_statistics` of `corpus`, which are saved with the model: some dimensions of
    a language model's hidden states are many times larger than the others. Gradients are clipped at norm 1. The
    original methods do neither.

    The same call resumes interrupted training; with the same number of threads it ends with the same weights.

    Args:
        corpus: Items to train on.
        out: The folder of the trained model.
        options: The method, and how to train it.
        backbone: The backbone of the vectors.
        held_out: Items of other users. The model gets the weights of the epoch with the highest accuracy on them, so
            that this accuracy is slightly too high to report. Default: it gets those of the last epoch.
        origin: Where the items come from, for `personal.json`.
        fresh: Whether to start over.

    Raises:
        TrainingError: If there is nothing to learn, or a user has both training items and held-out items.
        LocalError: If the vectors cannot be used, or an item has no user context that the method reads.
        OutputError: If `out` was made with other settings.
    """
    for part, what in ((corpus, ITEMS), (held_out, HELD_OUT)):
        if part is not None:
            check_pairs(part, what)
            check_vectors(part, backbone, what)
            check_user_context(part, options)
    if held_out is not None:
        check_disjoint_users(corpus, held_out)
    settings = PersonalSettings(
        backbone=backbone,
        data=_digest(corpus),
        held_out=None if held_out is None else _digest(held_out),
        options=options.filled(),
    )

    def learn(work: Path) -> Result:
        mean, deviation = vector_statistics(corpus)
        network = new_network(corpus.width, options)
        held_out_corpus = None if held_out is None else standardize(held_out, mean, deviation)
        best = _run(network, standardize(corpus, mean, deviation), held_out_corpus, options, work)
        network.load_state_dict(best.weights)
        values = recipe_values(settings)
        facts = {
            "method": options.method,
            "options": values["options"],
            "backbone": values["backbone"],
            "origin": None if origin is None else dict(origin),
            "data": {"digest": settings.data, **_counts(corpus)},
            "held_out": None if held_out is None else {"digest": settings.held_out, **_counts(held_out)},
            "steps": _steps(corpus, options),
            "epoch": best.epoch,
            "held_out_accuracy": best.accuracy,
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
        }
        return Result(lambda folder: save_weights(network, mean, deviation, folder / WEIGHTS_FILE), facts)

    return run_job(PERSONAL, out, settings, learn, too_large=TOO_LARGE, fresh=fresh)


def order_of(pairs: Sequence[Pair], persons: Sequence[str], seed: int, epoch: int) -> list[Pair]:
    """Return the pairs in the order of an epoch.

    The n pairs of a user come in a random order, one in each n-th of the epoch, so that a step has pairs of many users.
    """
    by_user = defaultdict(list)
    for pair in pairs:
        by_user[persons[pair[0]]].append(pair)
    positions = []
    for user, user_pairs in by_user.items():
        rng = rng_for(seed, "order", epoch, user)
        rng.shuffle(user_pairs)
        positions += [((number + rng.random()) / len(user_pairs), pair) for number, pair in enumerate(user_pairs)]
    return [pair for _, pair in sorted(positions)]


def _run(network: Network, corpus: Corpus, held_out: Corpus | None, options: PersonalConfig, work: Path) -> BestWeights:
    """Take all epochs after the checkpoint in `work`, on standardized corpora."""
    from transformers import get_cosine_schedule_with_warmup

    chosen = options.chosen
    pairs = corpus.pairs()
    steps = _steps(corpus, options)
    optimizer: Any = torch.optim.AdamW(
        network.parameter_groups(), lr=chosen.learning_rate, weight_decay=chosen.weight_decay, fused=True
    )
    schedule: Any = get_cosine_schedule_with_warmup(optimizer, math.floor(chosen.warmup_ratio * steps), steps)
    best = BestWeights()
    accelerator = accelerator_of(torch.device("cpu"))
    # Registers them for checkpoints. What it returns does the same, but looks for other optimizers at each step.
    accelerator.prepare(network, optimizer, schedule)
    accelerator.register_for_checkpointing(best)
    done = restore(accelerator, work)
    what, of = f"training {options.method}", chosen.epochs
    with step_log(work, what, done, of, unit="epoch") as log:
        for epoch in range(done + 1, of + 1):
            started = time.perf_counter()
            order = order_of(pairs, corpus.persons, options.seed, epoch)
            line: dict[str, Any] = _epoch(network, corpus, order, options, epoch, (optimizer, schedule))
            line["held_out_accuracy"] = (
                None if held_out is None else accuracy(held_out, rewards(network, held_out, options))
            )
            best.see(epoch, line["held_out_accuracy"], network)
            log(line | {"seconds": time.perf_counter() - started})
            save_checkpoint(accelerator, work, epoch)
    return best


def _steps(corpus: Corpus, options: PersonalConfig) -> int:
    return math.ceil(len(corpus.pairs()) / options.chosen.batch_size) * options.chosen.epochs


def _epoch(
    network: Network,
    corpus: Corpus,
    order: Sequence[Pair],
    options: PersonalConfig,
    epoch: int,
    optimizer_and_schedule: tuple[Any, Any],
) -> dict[str, float]:
    """Take an epoch's steps, and return the mean loss and the mean norm of the gradient.

    The number of earlier pairs is drawn for each step, so that the model works with any number; which ones the model
    reads is drawn for each item.
    """
    optimizer, schedule = optimizer_and_schedule
    chosen = options.chosen
    rng = rng_for(options.seed, "epoch", epoch)
    network.train()
    parameters = list(network.parameters())
    total, norms, starts = 0.0, 0.0, range(0, len(order), chosen.batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.getrandbits(63))
        for number, start in enumerate(starts):
            batch = order[start : start + chosen.batch_size]
            items = [item for item, _, _ in batch]
            limit = rng.randint(0, options.max_history)
            earlier = [rng.sample(pairs, min(limit, len(pairs))) for pairs in (corpus.earlier[item] for item in items)]
            points = corpus.points(items, [responses for _, *responses in batch], earlier, options)
            loss = network.loss(points, (epoch - 1 + number / len(starts)) / chosen.epochs)
            loss.backward()  # type: ignore[no-untyped-call]
            norms += torch.nn.utils.clip_grad_norm_(parameters, CLIP).item()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item() * len(batch)
    return {"loss": total / len(order), "gradient_norm": norms / len(starts)}


def _counts(corpus: Corpus) -> dict[str, int]:
    return {
        "items": len(corpus.ids),
        "pairs": len(corpus.pairs()),
        "persons": len(set(corpus.persons)),
        "earlier_pairs": sum(map(len, corpus.earlier)),
    }


def _digest(corpus: Corpus) -> str:
    """Of the vectors' bytes, and of the rows of each item."""
    items = [
        [list(part) if isinstance(part, Sequence) and not isinstance(part, str) else part for part in item]
        for item in zip(
            corpus.ids,
            corpus.persons,
            corpus.query,
            corpus.responses,
            corpus.rank,
            corpus.about,
            corpus.persona,
            [[list(pair) for pair in pairs] for pairs in corpus.earlier],
            strict=True,
        )
    ]
    return digest([sha256(corpus.vectors.numpy().tobytes()).hexdigest(), digest(items)])
