"""Training a personalized reward model on vectors of a frozen backbone: one trainer for all methods.

A step is a page: `_epoch` takes the pairs in the order of `order_of`, the network says what its loss is. While it runs,
`OUT.work` holds a checkpoint and the log; the same call goes on from the last whole epoch and ends in the same weights.
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
from pluralbench_local.personal.contract import BackboneRecord
from pluralbench_local.personal.items import (
    check_disjoint_users,
    check_pairs,
    check_user_context,
    check_vectors,
    shown_points,
    standardize,
    standards,
)
from pluralbench_local.personal.networks import Network, new_network
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Corpus
from pluralbench_local.personal.saved import FORMAT, WEIGHTS_FILE, accuracy, rewards, save_weights
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
TOO_LARGE = "A batch of pairs does not fit into memory; lower batch_size or hidden."
CLIP = 1.0  # the largest norm of a gradient

Pair = tuple[int, int, int]
"""An item, and the places of its better and its worse response."""


class PersonalSettings(Recipe):
    """All that the weights depend on; training goes on only under the same. data, held_out: digests of the items."""

    verb: Literal["train-personal"] = "train-personal"
    backbone: BackboneRecord
    data: str
    held_out: str | None = None
    options: PersonalConfig


@dataclass
class Best:
    """The weights of the epoch with the highest held-out accuracy, the first of several; of the last without any."""

    epoch: int = 0
    accuracy: float | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    def see(self, epoch: int, accuracy: float | None, network: Network) -> None:
        """Take an epoch's weights, if they are better."""
        if self.accuracy is None or accuracy is None or accuracy > self.accuracy:
            self.epoch, self.accuracy, self.weights = epoch, accuracy, deepcopy(network.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """From a checkpoint."""
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
    """Train a personalized reward model on the pairs of `corpus` into the folder `out`, on the CPU.

    backbone: what made the vectors. held_out: items of other users; the weights of the epoch that is right on most of
    their pairs are kept, so that accuracy is a little too high to report. Without them those of the last epoch are.
    origin: where the items come from, for `personal.json`. fresh: start over.

    Vectors are standardised by `standards` of `corpus`, which the model keeps: hidden states of a language model have
    some dimensions many times larger than the others. Gradients are clipped at norm 1.
    The originals do neither.

    Training that was interrupted goes on with the same call, and with as many threads ends in the same weights.

    Raises `TrainingError` where nothing can be learned or a user is also among the held-out ones, `ModelError` for
    vectors that cannot be used and for items that do not tell what the method reads of the person, and `OutputError`
    where `out` was made by other settings.
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
        mean, deviation = standards(corpus)
        network = new_network(corpus.width, options)
        judged = None if held_out is None else standardize(held_out, mean, deviation)
        best = _run(network, standardize(corpus, mean, deviation), judged, options, work)
        network.load_state_dict(best.weights)
        asked = recipe_values(settings)
        facts = {
            "method": options.method,
            "options": asked["options"],
            "backbone": asked["backbone"],
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
    """The pairs in the order of an epoch: each person's spread over it, so that a step has pairs of many persons.

    Drawn by seed, epoch and person: a person's n pairs come in a random order, one in each n-th part of the epoch.
    """
    own = defaultdict(list)
    for pair in pairs:
        own[persons[pair[0]]].append(pair)
    placed = []
    for person, several in own.items():
        draw = rng_for(seed, "order", epoch, person)
        draw.shuffle(several)
        placed += [((place + draw.random()) / len(several), pair) for place, pair in enumerate(several)]
    return [pair for _, pair in sorted(placed)]


def _run(network: Network, corpus: Corpus, judged: Corpus | None, options: PersonalConfig, work: Path) -> Best:
    """Take all epochs that the checkpoint in `work` does not have. Corpora are standardised."""
    from transformers import get_cosine_schedule_with_warmup  # noqa: PLC0415 - imports peft, where that is installed

    chosen = options.chosen
    pairs = corpus.pairs()
    steps = _steps(corpus, options)
    optimizer: Any = torch.optim.AdamW(
        network.parameter_groups(), lr=chosen.learning_rate, weight_decay=chosen.weight_decay, fused=True
    )
    schedule: Any = get_cosine_schedule_with_warmup(optimizer, math.floor(chosen.warmup_ratio * steps), steps)
    best = Best()
    accelerator = accelerator_of(torch.device("cpu"))
    accelerator.prepare(network)  # for its checkpoints; what it returns is the same module
    optimizer, schedule = accelerator.prepare(optimizer, schedule)
    accelerator.register_for_checkpointing(best)
    done = restore(accelerator, work)
    what, of = f"training {options.method}", chosen.epochs
    with step_log(work, what, done, of, unit="epoch") as log:
        for epoch in range(done + 1, of + 1):
            started = time.perf_counter()
            order = order_of(pairs, corpus.persons, options.seed, epoch)
            line: dict[str, Any] = _epoch(network, corpus, order, options, epoch, (optimizer, schedule))
            line["held_out_accuracy"] = None if judged is None else accuracy(judged, rewards(network, judged, options))
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
    way: tuple[Any, Any],
) -> dict[str, float]:
    """Take an epoch's steps; the mean loss and the mean norm of the gradient. way: optimizer and schedule.

    How many of their persons' earlier pairs the items are shown is drawn for each step, so that the model works with
    any number; which ones they are is drawn for each item.
    """
    optimizer, schedule = way
    chosen = options.chosen
    draw = rng_for(options.seed, "epoch", epoch)
    network.train()
    total, norms, starts = 0.0, 0.0, range(0, len(order), chosen.batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw.getrandbits(63))
        for number, start in enumerate(starts):
            several = order[start : start + chosen.batch_size]
            items = [item for item, _, _ in several]
            most = draw.randint(0, options.max_history)
            own = [corpus.earlier[item] for item in items]
            shown = [draw.sample(earlier, min(most, len(earlier))) for earlier in own]
            points = shown_points(corpus, items, [places for _, *places in several], shown, options)
            loss = network.loss(points, (epoch - 1 + number / len(starts)) / chosen.epochs)
            loss.backward()  # type: ignore[no-untyped-call]
            norms += torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP).item()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item() * len(several)
    return {"loss": total / len(order), "gradient_norm": norms / len(starts)}


def _counts(corpus: Corpus) -> dict[str, int]:
    return {
        "items": len(corpus.ids),
        "pairs": len(corpus.pairs()),
        "persons": len(set(corpus.persons)),
        "earlier_pairs": sum(map(len, corpus.earlier)),
    }


def _digest(corpus: Corpus) -> str:
    """Of the vectors' bytes, and of which item has which."""
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
