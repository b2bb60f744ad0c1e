"""One side of a correlation: models with scores, and, from per-item results, these scores for items drawn anew."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pluralbench_measures.bootstrap import Array

from pluralbench.downstream.curves import levels, outcomes_at
from pluralbench.downstream.records import read_curves
from pluralbench.errors import RunError
from pluralbench.results.runs import Downstream, policy_number


@dataclass(frozen=True)
class Side:
    """Models and their scores, higher being better.

    source: where they are from. measure: what the scores are. names: of the models, each once. scores: [models].
    resampled: the scores as they are on the items that all models share (row 0), and for these items drawn anew, the
    same ones for all models: [1 + resamples, models]; None where there are no per-item results.
    warnings: what a reader has to know, a sentence each.
    """

    source: str
    measure: str
    names: Sequence[str]
    scores: Array
    resampled: Array | None = None
    warnings: Sequence[str] = field(default=())

    def of(self, names: Sequence[str]) -> "Side":
        """The same side with these models only, in this order."""
        known = {name: place for place, name in enumerate(self.names)}
        places = [known[name] for name in names]
        resampled = None if self.resampled is None else self.resampled[:, places]
        return Side(self.source, self.measure, list(names), self.scores[places], resampled, self.warnings)


def side_of_downstream(found: Downstream, *, seed: int = 0) -> Side:
    """What best-of-n made of each reward model: the outcome at the largest k. Raises `RunError` where nobody judged."""
    last, names = found.result.sampling.sizes[-1], list(found.result.rewards)
    if found.result.outcome is None:
        raise RunError(f"{found.path} has no outcome, since nobody judged it; make it again with a judge.")
    values = {name: policy_number(found, "outcome", model=name, k=last).value for name in names}
    for name, value in values.items():
        if value is None:
            raise RunError(f"{found.path} has no outcome for the reward model {name}.")
    drawn = outcomes_at(read_curves(found), names, last, by_config=_by_config(found), seed=seed)
    measure = f"outcome of best of {last}, judged by {found.result.outcome.judge.name}"
    return Side(str(found.path), measure, names, np.array(list(values.values()), dtype=np.float64), _whole(drawn))


def side_of_optimized(several: Sequence[Downstream], source: str, *, seed: int = 0) -> Side:
    """What became of a policy under each reward model: the outcome of the optimised one.

    Raises `RunError` where two are of one reward model, where nobody judged, and where they were judged otherwise.
    """
    names: list[str] = []
    judged: list[dict[str, str]] = []
    for found in several:
        [name] = found.result.rewards
        if name in names:
            other = several[names.index(name)].path
            raise RunError(f"{other} and {found.path} are both of the reward model {name}; keep one of them.")
        outcome = found.result.outcome
        if outcome is None or policy_number(found, "outcome").value is None:
            raise RunError(f"{found.path} has no outcome, since nobody judged it; make it again with a judge.")
        names.append(name)
        judged.append({"benchmark": found.config.benchmark.title, "judge": outcome.judge.name})
        judged[-1]["measure"] = found.config.outcome.measure
    for found, own in zip(several, judged, strict=True):
        for key, ours in judged[0].items():
            if ours != own[key]:
                raise RunError(
                    f"{several[0].path} and {found.path} cannot be compared: their {key} is {ours} and {own[key]}; "
                    "make one of them again."
                )
    scores = np.array([policy_number(found, "outcome").value for found in several], dtype=np.float64)
    tables = [read_curves(found) for found in several]
    prompts = [set(found.frame("candidates").select("config", "id").iter_rows()) for found in several]
    shared = all(own == prompts[0] for own in prompts)
    drawn = levels(tables, by_config=_by_config(several[0]), seed=seed) if shared else None
    measure = f"outcome of the optimised policy, judged by {judged[0]['judge']}"
    warnings = () if shared else (f"{source}: the policies answered other prompts, so the noise of these is unknown.",)
    return Side(source, measure, names, scores, None if drawn is None else _whole(drawn), warnings)


def _by_config(found: Downstream) -> bool:
    return found.config.benchmark.description.overall != "items"


def _whole(drawn: Array) -> Array | None:
    """The resamples in which every model has a score; None where there are too few of them."""
    whole = drawn[np.isfinite(drawn).all(1)]
    return whole if len(whole) > 1 else None
