"""A trained personalized reward model that scores like every other."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pluralbench_rewards import Group, ModelRecord, OnScored, Person, Scored, ScoringConfig, Work, tolerance_sample
from pluralbench_runs import progress

from pluralbench_local.config import PERSONAL_FILE, LocalModel
from pluralbench_local.errors import ConversationError, ModelError
from pluralbench_local.personal.backbones import load_backbone
from pluralbench_local.personal.contract import Backbone, BackboneRecord
from pluralbench_local.personal.embedding import EmbeddedCorpus, embed_plan, plan
from pluralbench_local.personal.saved import SavedPersonal, read_personal, rewards_of
from pluralbench_local.scoring import RunOptions, bound, unmeasured

AT_ONCE = 1024  # responses that are embedded before they are scored, to bound memory


@dataclass(frozen=True)
class Personal:
    """A personalized reward model: a small network on the vectors of its backbone.

    name: its folder. saved: network and options. described: from what it was loaded. options: how its backbone runs.
    """

    name: str
    saved: SavedPersonal
    backbone: Backbone
    described: LocalModel
    options: RunOptions
    kind = "personal"
    unmeasured = unmeasured

    def record(self) -> ModelRecord:
        """What it is: the content of its folder, and how its backbone was loaded."""
        shown = {key: value for key, value in self.backbone.shown().items() if key != "commit"}
        return self.described.record().model_copy(update=shown)

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Score the responses of every group; see `pluralbench_rewards.RewardModel.score`.

        Raises `ConversationError` for a group without context where the model was trained with a profile.
        """
        self._check(groups)
        known = known or {}
        new = [place for place in range(len(groups)) if place not in known]
        backbone = self.backbone.running(self.options)
        work = backbone.work()
        scored = Scored(
            scores=[list(known.get(place, ())) for place in range(len(groups))],
            cut=[0] * len(groups),
            work=work,
        )
        with progress("scoring", len(new)) as meter:
            for places in _parts(groups, new):
                corpus = self._embedded([groups[place] for place in places], backbone, work)
                rewards = rewards_of(self.saved, corpus)
                scored.dropped |= {places[place]: why for place, why in corpus.dropped.items()}
                for place, cut, values in zip(corpus.places, corpus.cut, rewards, strict=True):
                    scored.scores[places[place]], scored.cut[places[place]] = values, cut
                for place in places:
                    meter.advance()
                    if on_scored is not None and place not in scored.dropped:
                        on_scored(place, scored.scores[place])
        if self.options.measure_tolerance:
            scored.tolerance = self.tolerance(groups, scored)
        return scored

    def _check(self, groups: Sequence[Group]) -> None:
        bare = next((group for group in groups if not group.responses), None)
        if bare is not None:
            raise ConversationError(f"The prompt of id {bare.id} has no response to score.")
        told = self.saved.options.context_sources
        without = next((group for group in groups if "about" in told and not any(map(str.strip, group.context))), None)
        if without is not None:
            raise ConversationError(
                f"{self.name} was trained with a profile, and the prompt of id {without.id} comes without one; give "
                "`--profile raw`, or a model that was trained without a profile."
            )
        without = next((group for group in groups if "persona" in told and not _persona(group)), None)
        if without is not None:
            raise ConversationError(
                f"{self.name} was trained with personas, and the prompt of id {without.id} comes without one; give "
                "data with personas, or a model that was trained without them."
            )

    def _embedded(self, groups: Sequence[Group], backbone: Backbone, work: Work) -> EmbeddedCorpus:
        read = [self._as_trained(group) for group in groups]
        unknown = [[0] * len(group.responses) for group in groups]
        planned = plan(read, backbone, self.saved.options.profile_size)
        return embed_plan(planned, unknown, backbone, None, work, lambda: None)

    def _as_trained(self, group: Group) -> Group:
        """The group with what the model reads of the person, and nothing else."""
        told, shown, person = (
            self.saved.options.context_sources,
            self.saved.options.max_history,
            group.person or Person(),
        )
        return replace(
            group,
            context=group.context if "about" in told else (),
            person=Person(
                id=person.id,
                persona=person.persona if "persona" in told else (),
                earlier=person.earlier[-shown:] if shown else (),
            ),
        )

    def tolerance(self, groups: Sequence[Group], scored: Scored) -> float:
        """How far scores may lie from those of texts that are embedded one at a time; see `scoring.tolerance`."""
        differences, sizes = [0.0], [0.0]
        alone = self.backbone.running(replace(self.options, mode="exact", token_budget=1))
        for place in tolerance_sample(scored.scores):
            corpus = self._embedded([groups[place]], alone, alone.work())
            for reward, value in zip(rewards_of(self.saved, corpus)[0], scored.scores[place], strict=True):
                if math.isfinite(reward):
                    differences.append(reward - value)
                    sizes.append(reward)
        return bound(differences, sizes, self.backbone.precision)


def _persona(group: Group) -> bool:
    return group.person is not None and any(map(str.strip, group.person.persona))


def _parts(groups: Sequence[Group], places: Sequence[int]) -> Iterator[list[int]]:
    """Places of groups that have together as many responses as are embedded at once, or of one group that has more."""
    part: list[int] = []
    for place in places:
        if part and sum(len(groups[one].responses) for one in (*part, place)) > AT_ONCE:
            yield part
            part = []
        part.append(place)
    if part:
        yield part


def load_personal(model: LocalModel, scoring: ScoringConfig) -> Personal:
    """A personalized reward model from its folder, with its backbone from where it was. Raises `ModelError`."""
    folder = Path(model.name)
    saved = read_personal(folder)
    backbone = load_backbone(_backbone_of(model, folder, saved.backbone), scoring=scoring)
    check_backbone(folder, saved.backbone, backbone.record)
    return Personal(model.name, saved, backbone, model, RunOptions.of(scoring, model))


def check_backbone(folder: Path, trained: BackboneRecord, loaded: BackboneRecord) -> None:
    """Raise `ModelError` where a model of one backbone's vectors is given another's."""
    if trained.identity != loaded.identity:
        raise ModelError(
            f"{folder} was trained on the vectors of {trained}, and cannot read those of {loaded}; give it its own "
            "backbone, loaded as it was then."
        )


def _backbone_of(model: LocalModel, folder: Path, trained: BackboneRecord) -> LocalModel:
    """The backbone, described: in the folder that the record names, or there from the model's folder, or on the Hub."""
    place = next((place for place in (Path(trained.name), folder / trained.name) if place.is_dir()), None)
    if place is None and (trained.commit is None or Path(trained.name).is_absolute()):
        raise ModelError(
            f"The backbone of {folder} is not in {trained.name}; put it there, or write where it is as the `name` of "
            f"the `backbone` in {folder / PERSONAL_FILE}, as a path from {folder} or an absolute one."
        )
    return LocalModel(
        name=trained.name if place is None else str(place),
        revision=trained.commit if place is None else None,
        chat_template=model.chat_template,
        device=model.device,
        dtype=trained.dtype if model.dtype == "auto" and trained.dtype else model.dtype,
        trust_remote_code=model.trust_remote_code,
    )
