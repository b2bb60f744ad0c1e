"""How many prototypes PAL needs, by what it gets right of users it was not trained on."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pluralbench_local.personal.contract import BackboneRecord
from pluralbench_local.personal.items import check_apart
from pluralbench_local.personal.options import PersonalOptions
from pluralbench_local.personal.points import Corpus
from pluralbench_local.personal.saved import accuracies, read_personal, rewards_of
from pluralbench_local.personal.training import train_personal


@dataclass(frozen=True)
class Prototypes:
    """The number of prototypes that is enough, and what each number tried gets right.

    accuracy: the mean over held-out users of their own, by number of prototypes. error: its standard error.
    """

    enough: int
    accuracy: dict[int, float]
    error: dict[int, float]


def choose_prototypes(
    corpus: Corpus,
    held_out: Corpus,
    out: Path | str,
    *,
    options: PersonalOptions,
    backbone: BackboneRecord,
    most: int = 5,
) -> Prototypes:
    """Train PAL with 1 to `most` prototypes, into `out`/1 and so on, and choose by the rule of one standard error.

    Enough is the smallest number whose accuracy on held-out users is at least the best one's less the standard error of
    the best one, over users (Breiman et al. 1984, section 3.4.3). More prototypes than that fit other users not
    measurably better. Each training goes on where it was interrupted, and raises what `train_personal` does.
    """
    check_apart(corpus, held_out)
    accuracy, error = {}, {}
    for number in range(1, most + 1):
        tried = options.model_copy(update={"prototypes": number})
        folder = train_personal(corpus, Path(out) / str(number), options=tried, backbone=backbone).folder
        own = defaultdict(list)
        for person, right in accuracies(held_out, rewards_of(read_personal(folder), held_out)):
            own[person].append(right)
        users = np.array([np.mean(several) for several in own.values()])
        accuracy[number], error[number] = float(users.mean()), float(users.std(ddof=1) / len(users) ** 0.5)
    best = max(accuracy, key=lambda number: accuracy[number])
    least = accuracy[best] - error[best]
    return Prototypes(next(number for number in accuracy if accuracy[number] >= least), accuracy, error)
