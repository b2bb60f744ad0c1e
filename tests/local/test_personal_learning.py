"""Each method learns what it is there for, on synthetic users for whom the best possible accuracy is known.

Accuracies are over 2,000 held-out pairs of 200 users that no model was trained on, so that the standard error of one is
0.011 at most, and that of a difference of two 0.016. Margins are at least three of these.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from personal_corpora import learned, showing
from pluralbench_local.personal.corpus import shuffle_profiles, standardize
from pluralbench_local.personal.networks import VPL, new_network
from pluralbench_local.personal.options import METHODS, Method, PersonalConfig
from pluralbench_local.personal.scoring import accuracy, batches_of, rewards_of
from printed_tables import LEARNED
from simulated_users import Simulated, simulated

pytestmark = pytest.mark.learning

Record = Callable[[str, object], None]

GAIN = 0.2  # of a possible 0.33: well above what half of it would be
GAIN_OF_PAIRS = 0.15  # of a possible 0.26 with two earlier pairs, and 0.28 with eight
NONE = 0.05  # three standard errors of a difference
SETTINGS: dict[Method, dict[str, Any]] = {
    "bt": {"hidden_size": 64},
    "gpo": {"hidden_size": 32, "num_layers": 2, "learning_rate": 6e-3, "epochs": 2},
    "vpl": {"hidden_size": 64, "latent_size": 16},
    "pal": {"hidden_size": 32},
    "synthesizeme": {"hidden_size": 64},
}


def options(method: Method, **given: Any) -> PersonalConfig:
    """Small networks, and rates for few pairs."""
    values = {"method": method, "learning_rate": 3e-3, "batch_size": 64, "epochs": 3, **SETTINGS[method], **given}
    return PersonalConfig.model_validate(values)


@cache
def worlds(told: float = 6.0) -> "tuple[Simulated, Simulated]":
    """Users to train on, and others with the same tastes."""
    return simulated(200, 12, width=8, told=told, seed=1), simulated(200, 10, width=8, told=told, seed=2)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "synthesizeme"])  # which is bt here
def test_a_profile_helps_and_another_persons_does_not(method: Method, tmp_path: Path, record_property: Record) -> None:
    train, test = worlds()

    def right(name: str, corpus: Any, judged: Any, *, profile: bool = True) -> float:
        saved = learned(tmp_path / name, corpus, options(method, profile=profile))
        return accuracy(judged, rewards_of(saved, judged))

    with_profile = right("with", train.corpus, test.corpus)
    without = right("without", train.corpus, test.corpus, profile=False)
    mixed = right("mixed", shuffle_profiles(train.corpus), shuffle_profiles(test.corpus))
    for name, found, wanted, best in (
        ("with profile", with_profile, f"without + {GAIN}", test.best_shown(10)),
        ("without", without, "", test.best_untold),
        ("with others' profiles", mixed, f"without ± {NONE}", test.best_untold),
    ):
        record_property(LEARNED, [f"{method}: {name}", f"{found:.3f}", wanted, f"{best:.3f}"])
    assert with_profile > without + GAIN
    assert mixed < without + NONE
    assert max(with_profile, without, mixed) <= test.best_shown(10) + NONE


def test_gpo_improves_with_earlier_pairs(tmp_path: Path, record_property: Record) -> None:
    train = simulated(400, 12, width=8, told=0.0, seed=1)
    test = simulated(200, 10, width=8, told=0.0, seed=2)
    saved = learned(tmp_path / "gpo", train.corpus, options("gpo", epochs=5, learning_rate=7e-3))
    found = {pairs: accuracy(test.corpus, rewards_of(saved, showing(test.corpus, pairs))) for pairs in (0, 2, 8)}
    for pairs, right in found.items():
        wanted = f"with none + {GAIN_OF_PAIRS}" if pairs else ""
        row = [f"gpo: {pairs} earlier pairs", f"{right:.3f}", wanted, f"{test.best_shown(pairs):.3f}"]
        record_property(LEARNED, row)
        assert right <= test.best_shown(pairs) + NONE
    assert min(found[2], found[8]) > found[0] + GAIN_OF_PAIRS


def test_vpl_tells_groups_apart_by_earlier_pairs_alone(tmp_path: Path, record_property: Record) -> None:
    train, test = worlds(told=0.0)
    saved = learned(tmp_path / "vpl", train.corpus, options("vpl", epochs=6))
    corpus = standardize(test.corpus, saved.mean, saved.deviation)
    last = slice(9, None, 10)  # of each user's ten items, the one with the most earlier pairs

    @torch.no_grad()
    def latents(network: VPL) -> Any:
        [(_, points), *more] = [(items, network.latent(points)) for items, points in batches_of(corpus, saved.options)]
        return torch.cat([points, *(latent for _, latent in more)]).numpy()[last]

    assert isinstance(saved.network, VPL)
    untrained = new_network(corpus.width, saved.options)
    assert isinstance(untrained, VPL)
    groups = np.array(test.group)[last]
    before, after = silhouette(latents(untrained.eval()), groups), silhouette(latents(saved.network), groups)
    known = float((test.decided[:, :9].sum(dim=1).argmax(dim=1).numpy() == groups).mean())
    record_property(LEARNED, ["vpl: silhouette of the latent", f"{after:.3f}", "0.5", "1.000"])
    record_property(LEARNED, ["vpl: the same, untrained", f"{before:.3f}", "below 0.2", ""])
    # By the silhouette's usual reading, above 0.5 there are clear groups, and below 0.25 none to speak of.
    assert known > 0.95  # so that the pairs do tell the group
    assert after > 0.5
    assert before < 0.2


def silhouette(vectors: Any, groups: Any) -> float:
    """The mean over all vectors of (b - a) / max(a, b): mean distance a to its own group, and b to the nearest other.

    vectors: [items, dimensions]; groups: [items]. Rousseeuw 1987.
    """
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    widths = []
    for place, group in enumerate(groups):
        own = groups == group
        inner = distances[place][own].sum() / (own.sum() - 1)
        outer = min(distances[place][groups == other].mean() for other in set(groups.tolist()) - {group})
        widths.append((outer - inner) / max(inner, outer))
    return float(np.mean(widths))
