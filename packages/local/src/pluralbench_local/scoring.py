"""Score groups with a local reward model, and measure the tolerance of its scores."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

import torch
from pluralbench_rewards import (
    Cached,
    Group,
    ModelRecord,
    OnScored,
    RenderedConversation,
    Scored,
    ScoringConfig,
    Work,
    measured_tolerance,
)
from pluralbench_runs import digest
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from pluralbench_local.attention import mixes_experts
from pluralbench_local.batches import Compute, Finish, Read, ScoreTable, in_batches
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template, Tokenized, rendered_tokens, tokenize
from pluralbench_local.errors import LocalError
from pluralbench_local.labels import check_label, reward_of
from pluralbench_local.model_kinds import ModelKind
from pluralbench_local.models import quantization_settings
from pluralbench_local.network import (
    ReadableNetwork,
    max_positions,
    must_be_alone,
    read_padded,
    using_default_attention,
)
from pluralbench_local.packing import Tokens
from pluralbench_local.planning import default_budget
from pluralbench_local.rendering import date_settings

if TYPE_CHECKING:
    from pluralbench_local.personal.backbones import Decoder

UNLIMITED = 10**9  # tokenizers without a limit report a much larger number


@dataclass(frozen=True)
class LocalRewardModel:
    """A loaded reward model of one of `pluralbench_local.model_kinds.KINDS`.

    Attributes:
        name: Folder, or ORG/NAME on the Hub.
        kind: How its networks are read.
        network: The loaded network.
        template: How conversations become tokens.
        label: Which of several labels is the reward (see `reward_of`).
        reference: The network whose rewards are subtracted.
        scoring: How it scores.
        source: What it was loaded from; None if unknown.
        measures_tolerance: Whether scoring also measures how far scores of another mode may lie from these.
    """

    name: str
    kind: ModelKind
    network: ReadableNetwork
    template: Template
    label: str | None = None
    reference: ReadableNetwork | None = None
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    source: LocalModel | None = None
    measures_tolerance: bool = False

    @property
    def networks(self) -> list[ReadableNetwork]:
        """Networks that have to run."""
        return [self.network] if self.reference is None else [self.network, self.reference]

    def record(self) -> ModelRecord:
        """Return the record of its source, completed by what loading determined."""
        named = ModelRecord(name=self.name, kind=self.kind.name)
        record = named if self.source is None else self.source.record()
        fields = loaded_fields(self)
        loaded = "commit" if record.base is None else "base_commit"
        commit = fields.pop("commit") or getattr(record, loaded)
        settings = record.settings | self.kind.settings(self.network)
        settings |= quantization_settings(self.network.model.config) | fields["settings"]
        return record.model_copy(update=fields | {"kind": self.kind.name, loaded: commit, "settings": settings})

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """Compute the reward of each conversation, in order, and return the tokens that each network computed too."""
        conversations = [tokens for group in groups for tokens in group]
        rewards = []
        for network in self.networks:
            states, rows, computed = read(network, groups)
            numbers = self.kind.numbers(network, states, rows, conversations, self.scoring.mode)
            names = network.model.config.id2label or {}
            check_label(self.name, numbers.shape[1], self.label, names)
            rewards.append(reward_of(numbers, self.label, names))
        return (rewards[0] if self.reference is None else rewards[0] - rewards[1]).tolist(), computed

    def scores_of_steps(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[list[float]], int]:
        """Compute the scores of the steps of each conversation, in order; see `rewards`."""
        assert self.kind.steps is not None  # noqa: S101 - for mypy
        conversations = [tokens for group in groups for tokens in group]
        states, rows, computed = read(self.network, groups)
        scores = self.kind.steps(self.network, states, rows, conversations, self.scoring.mode)
        return [each.tolist() for each in scores], computed

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score the responses of every group; see `pluralbench_rewards.RewardModel.score`.

        A process reward model scores the steps of a group that has some, all in one forward pass of the whole answer.
        """
        if self._reads_steps(groups):
            scored = compute_scores(self, self.scores_of_steps, groups, cached, on_scored, lambda _, scores: scores[0])
            pairs = zip(groups, scored.tokens, strict=True)
            scored.tokens = [own * len(group.steps) for group, own in pairs]
        else:
            scored = compute_scores(self, self.rewards, groups, cached, on_scored)
        if self.measures_tolerance:
            scored.tolerance = measured_tolerance(self, groups, scored)
        return scored

    def score_rendered(self, conversations: Sequence[RenderedConversation]) -> Scored:
        """Score conversations that are rendered already, each by itself; see `pluralbench_rewards.ScoresRendered`.

        Raises:
            LocalError: If a conversation is empty, too long, or has unknown token ids; or if more than its end is read.
        """
        if self.template.whole_response or self.template.steps is not None:
            raise LocalError(f"{self.name} reads where the response begins, so it scores messages only.")
        limit = length_limit(self)
        tokenized = [Tokenized([rendered_tokens(one, self.template, limit)]) for one in conversations]
        work, scores = work_of(self, limit), dict[int, float]()
        remaining = {index: [0] for index in range(len(tokenized))}
        for index, values in in_batches(self.rewards, tokenized, remaining, work, [*map(str, remaining)]):
            scores[index] = values[0]
        tokens = [[len(one.conversations[0].ids)] for one in tokenized]
        return Scored([[scores[index]] for index in range(len(tokenized))], tokens, work=work)

    def max_tokens(self) -> int:
        """Return the maximum number of tokens of a conversation; see `length_limit`."""
        return length_limit(self)

    def endings(self) -> list[str]:
        """Return what follows a response in a text; see `pluralbench_rewards.ScoresRendered`."""
        ending = self.template.ending()
        return [ending, *(text for text in (ending.rstrip(), self.template.tokenizer.eos_token or "") if text)]

    def unmeasured(self) -> Self:
        """Return a copy that measures no tolerance when it scores."""
        return replace(self, measures_tolerance=False)

    def tolerance(self, groups: Sequence[Group], scored: Scored) -> float:
        """Measure how far scores of another mode, or of one conversation at a time, may lie from these.

        A conversation of each group is computed by itself under the model's default attention; of an answer in steps,
        all steps are, at the same cost. The tolerance is eight times the root mean square of the differences, and at
        least four units in the last place of the root mean square of the scores. It is an estimate: if rounding can
        send a token to another expert, a rare score may lie farther off.

        Args:
            groups: The groups, such as those of `pluralbench_rewards.tolerance_sample`.
            scored: Their scores.
        """
        if scored.work is None:
            return 0.0
        limit = scored.work.max_length
        differences, scores = [0.0], [0.0]
        for index, values in enumerate(scored.scores):
            for place, reward in self._computed_alone(groups[index], index, limit) if values else ():
                if math.isfinite(reward):
                    differences.append(reward - values[place])
                    scores.append(reward)
        tolerance = tolerance_from(differences, scores, self.kind.precision or self.network.dtype)
        if self._reads_steps(groups):  # probabilities near 0 and 1 differ so little that a mean says little of others
            tolerance = max(tolerance, 4 * max(map(abs, differences)))
        return tolerance

    def _computed_alone(self, group: Group, number: int, limit: int) -> list[tuple[int, float]]:
        """The response `number` (modulo their number) with its reward, or all steps with their scores."""
        [tokenized] = tokenize([group], self.template, limit, self.scoring.on_overflow)
        with torch.inference_mode():
            if self._reads_steps([group]):
                [scores], _ = self.scores_of_steps([tokenized.conversations], read_unpacked)
                return list(enumerate(scores))
            place = number % len(tokenized.conversations)
            [reward], _ = self.rewards([[tokenized.conversations[place]]], read_unpacked)
        return [(place, reward)]

    def _reads_steps(self, groups: Sequence[Group]) -> bool:
        if self.kind.steps is None:
            return False
        given = {bool(group.steps) for group in groups}
        if len(given) > 1:
            raise LocalError("Some prompts have the steps of one answer and others do not; score them apart.")
        return True in given


def compute_scores(
    model: LocalRewardModel,
    compute: Compute[Any],
    groups: Sequence[Group],
    cached: Cached,
    on_scored: OnScored,
    finish: Finish = None,
) -> Scored:
    """Compute values of the conversations of every group in batches.

    Args:
        model: What computes them.
        compute: Computes the value of each conversation.
        groups: The groups.
        cached: See `RewardModel.score`.
        on_scored: See `RewardModel.score`.
        finish: Makes the scores of a group from its index and the values. Default: the values are the scores.
    """
    limit = length_limit(model)
    table = ScoreTable(groups, model.template, limit, model.scoring.on_overflow, cached or {})
    work = work_of(model, limit)
    started = time.perf_counter()
    remaining = {index: list(duplicates) for index, duplicates in table.duplicates.items()}
    with table.recording(on_scored, finish) as record:
        ids = [group.id for group in groups]
        for index, values in in_batches(compute, table.tokenized, remaining, work, ids, table.blocks):
            record(index, values)
    work.seconds = time.perf_counter() - started
    return table.scored(work=work)


def score(
    model: Any,
    groups: Sequence[Group],
    *,
    cached: Mapping[int, list[float]] | None = None,
    on_scored: OnScored = None,
    **options: Any,
) -> Scored:
    """Score the responses of groups, otherwise than the model was loaded to score.

    Args:
        model: A loaded reward model.
        groups: Prompts with their responses.
        cached: Scores of groups that are not scored again, by index of the group.
        on_scored: Called with the scores of groups as they are scored, by index.
        **options: Fields of `ScoringConfig`, such as `mode="exact"`. Default: the model's.

    Raises:
        LocalError: If the chat template is missing or fails, or a conversation is too long; or if one conversation does
            not fit into memory.
    """
    scoring = ScoringConfig(**dict(model.scoring) | options)
    scored: Scored = replace(model, scoring=scoring).score(groups, cached=cached, on_scored=on_scored)
    return scored


def length_limit(model: "LocalRewardModel | Decoder") -> int:
    """Return the maximum number of tokens of a conversation: `max_length`, or the limit of the model.

    Raises:
        LocalError: If it exceeds the model's position embeddings.
    """
    configs = [network.model.config for network in model.networks]
    limit = model.scoring.max_length or token_limit(model.template.tokenizer, configs)
    positions = min(filter(None, map(max_positions, model.networks)), default=limit)
    if limit > positions:
        raise LocalError(
            f"{model.name} has only {positions:,} positions, and conversations may have {limit:,} tokens; lower "
            "`max_length=...`, and say by `on_overflow=...` what becomes of longer ones."
        )
    return limit


def work_of(model: "LocalRewardModel | Decoder", limit: int) -> Work:
    """Return how a model will compute, before anything is computed."""
    network = model.networks[0]
    unpackable = next((network.unpackable for network in model.networks if network.unpackable), "")
    strategy = "padded" if unpackable else model.scoring.mode
    budget = model.scoring.token_budget or default_budget(network)
    shares = unpackable or any(one.dtype == torch.float32 and mixes_experts(one.model) for one in model.networks)
    if any(map(must_be_alone, model.networks)) or (shares and model.scoring.mode == "exact"):
        budget = 1  # a conversation in each batch
    # Packed batches have their own attention; its name says so.
    attention = str(network.model.config._attn_implementation)  # noqa: SLF001 - it has no public name
    return Work(strategy, unpackable, budget, limit, attention)


def loaded_fields(model: "LocalRewardModel | Decoder") -> dict[str, Any]:
    """Return the fields of `ModelRecord` that are known only after loading."""
    network = model.networks[0]
    parameters = sum(weights.numel() for weights in network.model.parameters())
    return {
        "commit": getattr(network.model.config, "_commit_hash", None),
        "chat_template_digest": digest(str(model.template.tokenizer.chat_template)),
        "architecture": type(network.model).__name__,
        "parameters": None if quantization_settings(network.model.config) else parameters,
        "device": str(network.device),
        "dtype": str(network.dtype).removeprefix("torch."),
        "settings": date_settings(model.template.tokenizer),
    }


def token_limit(tokenizer: PreTrainedTokenizerBase, configs: Sequence[PretrainedConfig]) -> int:
    """Return the maximum number of tokens that a tokenizer and models of these configurations accept."""
    limits: list[Any] = [tokenizer.model_max_length]
    limits += [getattr(config.get_text_config(), "max_position_embeddings", 0) for config in configs]
    return min((int(limit) for limit in limits if limit and 0 < limit < UNLIMITED), default=UNLIMITED)


def tolerance_from(differences: Sequence[float], scores: Sequence[float], precision: torch.dtype) -> float:
    """Return the tolerance for a sample of scores.

    Args:
        differences: Difference of each score from the recomputed one.
        scores: The scores.
        precision: Precision that they were computed in.
    """
    size = math.sqrt(fmean(score * score for score in scores))
    spread = math.sqrt(fmean(difference * difference for difference in differences))
    return max(8 * spread, 4 * torch.finfo(precision).eps * size)


def read_unpacked(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]]) -> tuple[Tensor, list[list[int]], int]:
    """Read conversations under the network's default attention; see `read_padded`."""
    with using_default_attention(network):
        return read_padded(network, [tokens for group in groups for tokens in group])
