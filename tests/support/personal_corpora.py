"""Synthetic users for tests of personalized reward models, and models trained on them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pluralbench_local.personal.corpus import Corpus
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.scoring import SavedPersonal, read_personal
from pluralbench_local.personal.texts import BackboneRecord
from pluralbench_local.personal.training import train_personal
from simulated_users import simulated

WIDTH = 8
BACKBONE = BackboneRecord(name="simulated", width=WIDTH)
TRAIN = simulated(6, 4, width=WIDTH, seed=1).corpus
TEST = simulated(4, 3, width=WIDTH, seed=2).corpus
SMALL: dict[str, Any] = {
    "hidden_size": 8,
    "num_layers": 1,
    "latent_size": 4,
    "epochs": 2,
    "batch_size": 8,
    "learning_rate": 0.01,
}


def small(method: str, **given: Any) -> PersonalConfig:
    """Options of a network that trains in no time."""
    return PersonalConfig.model_validate({"method": method, **SMALL, **given})


def learned(folder: Path, corpus: Corpus, options: PersonalConfig) -> SavedPersonal:
    """A model trained on the corpus."""
    backbone = BackboneRecord(name="simulated", width=corpus.width)
    return read_personal(train_personal(corpus, folder, options=options, backbone=backbone).folder)


def only(corpus: Corpus, items: Sequence[int]) -> Corpus:
    """The corpus with these items alone."""
    names = ("ids", "persons", "query", "responses", "rank", "about", "persona", "earlier")
    parts: dict[str, Any] = {name: [getattr(corpus, name)[item] for item in items] for name in names}
    return replace(corpus, **parts)


def showing(corpus: Corpus, pairs: int) -> Corpus:
    """The corpus with at most the latest so many earlier pairs of each item."""
    return replace(corpus, earlier=[list(earlier)[max(0, len(earlier) - pairs) :] for earlier in corpus.earlier])
