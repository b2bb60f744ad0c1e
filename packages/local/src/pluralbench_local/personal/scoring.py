"""Score with a trained personalized reward model, as with any other."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from pluralbench_rewards import (
    MISSING_CONTEXT,
    Cached,
    Group,
    ModelRecord,
    OnScored,
    Person,
    Scored,
    ScoringConfig,
    Work,
    measured_tolerance,
)
from pluralbench_runs import one_line, open_file, progress, read_small
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from pluralbench_local.config import PERSONAL_FILE, LocalModel
from pluralbench_local.conversations import check_responses
from pluralbench_local.errors import LocalError
from pluralbench_local.personal.backbones import Backbone, load_backbone
from pluralbench_local.personal.corpus import (
    Corpus,
    Points,
    check_user_context,
    check_vectors,
    latest_pairs,
    standardize,
)
from pluralbench_local.personal.embedding import EmbeddedCorpus, embed_plan, plan_embedding
from pluralbench_local.personal.networks import Network, new_network
from pluralbench_local.personal.options import ContextSource, PersonalConfig
from pluralbench_local.personal.texts import BackboneRecord
from pluralbench_local.scoring import tolerance_from

WEIGHTS_FILE = "model.safetensors"
FORMAT = 2
BATCH_SIZE = 256  # items
MEAN, DEVIATION = "standard.mean", "standard.deviation"


@dataclass(frozen=True)
class SavedPersonal:
    """A personalized reward model read from its folder.

    Vectors are standardized by `mean` and `deviation`, each of shape (2, width).
    """

    options: PersonalConfig
    backbone: BackboneRecord
    network: Network
    mean: Tensor
    deviation: Tensor
    record: dict[str, Any]


def read_personal(folder: Path | str) -> SavedPersonal:
    """Read the model that `train_personal` saved. Raises `LocalError` for none, or one of another version."""
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
            yield items, corpus.points(items, [range(size)] * len(items), earlier, options)


def pair_outcomes(corpus: Corpus, rewards: Sequence[Sequence[float]]) -> list[tuple[str, bool]]:
    """Return the user of each pair, and whether its better response has the strictly higher reward; a tie is wrong."""
    return [
        (corpus.persons[item], rewards[item][better] > rewards[item][worse]) for item, better, worse in corpus.pairs()
    ]


def accuracy(corpus: Corpus, rewards: Sequence[Sequence[float]]) -> float:
    """Return the share of pairs that are right (`pair_outcomes`)."""
    right = [right for _, right in pair_outcomes(corpus, rewards)]
    return sum(right) / len(right)


FIXES: dict[ContextSource, tuple[str, str]] = {
    "about": ("a profile", 'set `profile="raw"`, or use a model without a profile'),
    "persona": ("personas", "use data with personas, or a model without them"),
}
PART_RESPONSES = 1024  # responses that are embedded at a time, to bound memory


@dataclass(frozen=True)
class Personal:
    """A personalized reward model: a small network on the vectors of its backbone."""

    name: str
    saved: SavedPersonal
    backbone: Backbone
    source: LocalModel
    scoring: ScoringConfig
    measures_tolerance: bool = False
    kind = "personal"

    def record(self) -> ModelRecord:
        """Return the record of the model, completed by what loading its backbone determined."""
        fields = {key: value for key, value in self.backbone.loaded_fields().items() if key != "commit"}
        record = self.source.record()
        return record.model_copy(update=fields | {"settings": record.settings | fields.get("settings", {})})

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score the responses of every group; see `pluralbench_rewards.RewardModel.score`.

        Raises:
            LocalError: If a group has no user context and the model was trained with a profile, or a
                conversation is too long; unless the options drop such groups.
        """
        lacking = self._without_context(groups)
        cached = cached or {}
        new = [index for index in range(len(groups)) if index not in cached and index not in lacking]
        backbone = replace(self.backbone, scoring=self.scoring)
        work = backbone.work()
        scored = Scored(
            scores=[list(cached.get(index, ())) for index in range(len(groups))],
            tokens_cut=[0] * len(groups),
            dropped=lacking,
            work=work,
        )
        with progress("scoring", len(groups), done=len(groups) - len(new)) as meter:
            for part in _split(groups, new):
                corpus = self._embed([groups[index] for index in part], backbone, work)
                rewards = rewards_of(self.saved, corpus)
                scored.dropped |= {part[place]: why for place, why in corpus.dropped.items()}
                for place, cut, values in zip(corpus.places, corpus.cut, rewards, strict=True):
                    scored.scores[part[place]], scored.tokens_cut[part[place]] = values, cut
                meter.advance(items=len(part))
                if on_scored is not None:
                    on_scored({index: scored.scores[index] for index in part if index not in scored.dropped})
        if self.measures_tolerance:
            scored.tolerance = measured_tolerance(self, groups, scored)
        return scored

    def unmeasured(self) -> Self:
        """Return a copy that measures no tolerance when it scores."""
        return replace(self, measures_tolerance=False)

    def _without_context(self, groups: Sequence[Group]) -> dict[int, str]:
        """Return the reasons of the groups that have no user context of a kind that the model reads, to drop them."""
        check_responses(groups)
        found: dict[int, str] = {}
        for source in self.saved.options.context_sources:
            lacking = [index for index, group in enumerate(groups) if not _has(source, group)]
            what, fix = FIXES[source]
            if lacking and self.scoring.on_missing_context == "error":
                if len(lacking) < len(groups):
                    share = f"{len(lacking):,} of {len(groups):,}"
                    fix = f'leave out the prompts without one ({share}) with `on_missing_context="drop"`'
                first = groups[lacking[0]].id
                raise LocalError(f"{self.name} was trained with {what}, and the prompt {first} has none; {fix}.")
            found |= dict.fromkeys(lacking, MISSING_CONTEXT)
        return found

    def _embed(self, groups: Sequence[Group], backbone: Backbone, work: Work) -> EmbeddedCorpus:
        visible = [self._visible_to_model(group) for group in groups]
        no_ranks = [[0] * len(group.responses) for group in groups]
        planned = plan_embedding(visible, backbone, self.saved.options.profile_size)
        return embed_plan(planned, no_ranks, backbone, None, work, lambda: None)

    def _visible_to_model(self, group: Group) -> Group:
        """With only what the model reads of the user."""
        options, person = self.saved.options, group.person or Person()
        return replace(
            group,
            context=group.context if "about" in options.context_sources else (),
            person=Person(
                id=person.id,
                persona=person.persona if "persona" in options.context_sources else (),
                earlier=person.earlier[-options.max_history :] if options.max_history else (),
            ),
        )

    def tolerance(self, groups: Sequence[Group], scored: Scored) -> float:
        """Measure how far scores may lie from those of texts embedded one at a time; see `scoring.tolerance`."""
        differences, scores = [0.0], [0.0]
        alone = self.scoring.model_copy(update={"mode": "exact", "token_budget": 1})
        backbone = replace(self.backbone, scoring=alone)
        for group, values in zip(groups, scored.scores, strict=True):
            if not values:
                continue
            corpus = self._embed([group], backbone, backbone.work())
            for reward, value in zip(rewards_of(self.saved, corpus)[0], values, strict=True):
                if math.isfinite(reward):
                    differences.append(reward - value)
                    scores.append(reward)
        return tolerance_from(differences, scores, self.backbone.precision)


def _has(source: ContextSource, group: Group) -> bool:
    blocks = group.context if source == "about" else group.person.persona if group.person else ()
    return any(map(str.strip, blocks))


def _split(groups: Sequence[Group], indices: Sequence[int]) -> Iterator[list[int]]:
    """Into parts of at most `PART_RESPONSES` responses, or of one group."""
    part: list[int] = []
    size = 0
    for index in indices:
        own = len(groups[index].responses)
        if part and size + own > PART_RESPONSES:
            yield part
            part, size = [], 0
        part.append(index)
        size += own
    if part:
        yield part


def load_personal(model: LocalModel, scoring: ScoringConfig) -> Personal:
    """Load a personalized reward model from its folder, and its backbone from the recorded place.

    Raises `LocalError` also if the backbone is another one.
    """
    folder = Path(model.name)
    saved = read_personal(folder)
    backbone = load_backbone(_find_backbone(model, folder, saved.backbone), scoring=scoring)
    check_backbone(folder, saved.backbone, backbone.record)
    return Personal(model.name, saved, backbone, model, scoring)


def check_backbone(folder: Path, trained: BackboneRecord, loaded: BackboneRecord) -> None:
    """Raise `LocalError` if a model is used with another backbone than it was trained on."""
    if trained.identity != loaded.identity:
        raise LocalError(
            f"{folder} was trained on the vectors of {trained}, and cannot read those of {loaded}; load the same "
            "backbone in the same precision."
        )


def _find_backbone(model: LocalModel, folder: Path, trained: BackboneRecord) -> LocalModel:
    """The backbone in the recorded folder, absolute or relative to the model's folder, or on the Hub."""
    path = next((path for path in (Path(trained.name), folder / trained.name) if path.is_dir()), None)
    if path is None and (trained.commit is None or Path(trained.name).is_absolute()):
        raise LocalError(
            f"The backbone of {folder} is not in {trained.name}; put it there, or set `backbone.name` in "
            f"{folder / PERSONAL_FILE} to its path (absolute, or relative to {folder})."
        )
    return LocalModel(
        name=trained.name if path is None else str(path),
        revision=trained.commit if path is None else None,
        chat_template=model.chat_template,
        date=model.date,
        device=model.device,
        dtype=trained.dtype if model.dtype == "auto" and trained.dtype else model.dtype,
        trust_remote_code=model.trust_remote_code,
    )
