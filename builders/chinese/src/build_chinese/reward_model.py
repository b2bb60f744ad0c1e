"""The reward model that is trained on the human part and filters a judge's votes (section 4.2).

Rewards are recorded like any model output, so a build can be repeated without training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pluralbench_calls import Answer, Ledger, Replay, Request, ask
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_rewards import Group, RewardModel, ScoringConfig, model_digest
from pluralbench_rewards.cluster import load_checked, on_cluster
from pluralbench_runs import ClusterConfig, canonical_json, check_recipe, digest, file_digest, install_command

from build_chinese.errors import TrainingDataError
from build_chinese.rankings import Row, ranked_pairs
from build_chinese.recipe import RewardTable

if TYPE_CHECKING:
    from pluralbench_local import Ranking, TrainingConfig

KIND, PROVIDER = "reward", "pluralbench-rewards"  # keys of recorded rewards; never change them
REWARDS = pl.Schema(
    {"prompt": pl.String, "response": pl.String, "reward": pl.Float64, "cut": pl.Int64, "call": pl.String}
)
"""`reward` is null if the response alone is too long for the model. `cut`: tokens cut off the prompt to make it fit."""

# Recorded requests name training options in their own words, which never change, so that ledgers stay valid.
RECORDED_NAMES = {
    "center_rewards_coefficient": "regulariser",  # codespell:ignore regulariser
    "eval_steps": "measure_every",
    "gradient_accumulation_steps": "accumulation",
    "head_init": "new_head",
    "max_grad_norm": "clip",
    "save_steps": "checkpoint_every",
    "warmup_ratio": "warmup",
}

PAPER_DEFAULTS = {"head_init": "by-width"}
"""The paper's training options that differ from the package's defaults. They are not part of the recorded requests."""

MODEL = ("*.safetensors", "*.bin", "config.json")


@dataclass(frozen=True)
class TrainingRows:
    """Resolved rows to train a reward model on, and the (better, worse) ids of each row."""

    rows: Sequence[Row]
    pairs: Sequence[Sequence[tuple[str, str]]]

    @property
    def size(self) -> int:
        """Number of pairs."""
        return sum(map(len, self.pairs))


def with_ranked_pairs(rows: Sequence[Row]) -> TrainingRows:
    """Return training rows with all pairs of each row's `order`."""
    return TrainingRows(rows, list(map(ranked_pairs, rows)))


def messages_of(row: Row) -> list[dict[str, str]]:
    """Return a row's prompt as chat messages."""
    system = [{"role": "system", "content": row["sys_prompt"]}] if row.get("sys_prompt") else []
    return [*system, {"role": "user", "content": row["input"]}]


def rankings_of(training: TrainingRows) -> "list[Ranking]":
    """Convert training rows for `pluralbench_local.train`. Responses in no pair are left out."""
    from pluralbench_local import Ranking

    rankings = []
    for row, pairs in zip(training.rows, training.pairs, strict=True):
        in_pairs = {name for pair in pairs for name in pair}
        content = {response["id"]: response["content"] for response in row["responses"] if response["id"] in in_pairs}
        place = {name: position for position, name in enumerate(content)}
        rankings.append(
            Ranking(
                row["id"],
                messages_of(row),
                list(content.values()),
                [row["rank"][name] for name in content],
                [(place[better], place[worse]) for better, worse in pairs],
            )
        )
    return rankings


def with_base_digest(reward: RewardTable, *, replaying: bool = False) -> RewardTable:
    """Return the table with the digest of the base model's folder, which identifies recorded rewards.

    A digest in the table is kept. `replaying` accepts a folder that does not exist.

    Raises:
        SourceError: The folder does not exist or holds no model.
    """
    folder = Path(reward.base)
    if reward.digest is not None or (replaying and not folder.is_dir()):
        return reward
    if not folder.is_dir():
        raise SourceError(
            f"The base model's folder {reward.base} does not exist; download the model, for example with "
            "`hf download ORG/NAME --local-dir FOLDER`."
        )
    if not any(path for pattern in MODEL for path in folder.glob(pattern)):
        raise SourceError(f"{folder} is not a model: it has neither weights nor a configuration.")
    return reward.model_copy(update={"digest": model_digest(folder)})


def rewards(
    rows: Sequence[Row],
    human: TrainingRows,
    reward: RewardTable,
    ledger: Ledger,
    work: Path,
    cluster: ClusterConfig | None = None,
    *,
    replaying: bool,
) -> pl.DataFrame:
    """Score each response of `rows` (columns of `REWARDS`) with the model trained on the human part.

    The model is trained in `work` only if a reward is not recorded, and never when `replaying`. Without a cluster, this
    process scores.

    Raises:
        TrainingDataError: The human part is too small.
        BuildError: The extra `train` is not installed.
        UserError: An error of `pluralbench_rewards`.
    """
    check_size(human, reward)
    human_digest = digest(
        [
            [
                row["id"],
                messages_of(row),
                [[response["id"], response["content"]] for response in row["responses"]],
                row["rank"],
            ]
            for row in human.rows
        ]
    )
    places = [(row, response) for row in rows for response in row["responses"]]
    requests = [
        Request(
            KIND,
            PROVIDER,
            reward.display_name,
            {
                "base": reward.digest,
                "training": {RECORDED_NAMES.get(name, name): value for name, value in reward.training.items()},
                "human": human_digest,
                "messages": messages_of(row),
                "response": response["content"],
            },
            label=f"reward of {row['id']}: {response['id']}",
        )
        for row, response in places
    ]
    recorded = ledger.find({request.key for request in requests})
    missing = list({request.key: request for request in requests if request.key not in recorded}.values())
    if missing and not replaying:
        folder = train_base(human, reward, work / "reward-model")
        ledger.record(*_score_requests(missing, folder, cluster))
    answers = ask(requests, ledger, Replay(), label="rewards")
    values = [
        (row["id"], response["id"], float(answer.text), int(answer.finish_reason.removeprefix("cut ")), answer.key)
        if answer.outcome == "answer"
        else (row["id"], response["id"], None, 0, answer.key)
        for (row, response), answer in zip(places, answers, strict=True)
    ]
    return pl.DataFrame(values, schema=REWARDS, orient="row")


def check_size(human: TrainingRows, reward: RewardTable) -> None:
    """Raise `TrainingDataError` if the human part has fewer pairs than `reward.least_pairs`."""
    if human.size < reward.least_pairs:
        raise TrainingDataError(
            f"The human part has {human.size:,} pairs of {len(human.rows):,} prompts; training a reward model needs "
            f"{reward.least_pairs:,} (`reward.least_pairs`)."
        )


def train_base(training: TrainingRows, reward: RewardTable, folder: Path) -> Path:
    """Train the base model, or resume an interrupted training in `folder`; return the trained model's folder.

    Raises:
        UserError: See `training_options` and `check_base`; or an error of `pluralbench_local`.
    """
    options = training_options(reward)
    check_base(reward)
    from pluralbench_local import train

    return train(reward.base, rankings_of(training), folder, options=options, device=reward.device).folder


def check_base(reward: RewardTable) -> None:
    """Raise `SourceError` if the base model is missing or is not that of the table's digest."""
    if model_digest(reward.base) != reward.digest:
        raise SourceError(
            f"{reward.base} has no model, or not that of the recipe's `reward.digest` (another weight, configuration, "
            "tokenizer or chat template); use that model, or remove `digest`."
        )


def training_options(reward: RewardTable) -> "TrainingConfig":
    """Return the options under `reward.training`.

    Raises:
        BuildError: The extra `train` is not installed.
        RecipeError: An option is invalid.
    """
    if find_spec("pluralbench_local") is None:
        raise BuildError(f"Training a reward model needs an extra: {install_command('build-chinese', 'train')}.")
    from pluralbench_local import TrainingConfig

    return check_recipe(TrainingConfig, PAPER_DEFAULTS | reward.training, "[reward.training]")


def _score_requests(requests: Sequence[Request], folder: Path, cluster: ClusterConfig | None) -> list[Answer]:
    by_prompt: dict[bytes, list[Request]] = {}
    for request in requests:
        by_prompt.setdefault(canonical_json(request.body["messages"]), []).append(request)
    bodies: list[list[Any]] = [[request.body for request in group] for group in by_prompt.values()]
    groups = [
        Group(str(place), group[0]["messages"], [body["response"] for body in group])
        for place, group in enumerate(bodies)
    ]
    weights = f"{requests[0].model}, trained, {file_digest(next(folder.glob('*.safetensors')))[:16]}"
    return [
        Answer.to(request, "length", "", model=weights)
        if value is None
        else Answer.to(request, "answer", repr(value), model=weights, finish_reason=f"cut {cut}")
        for group, values in zip(by_prompt.values(), scores_of(folder, groups, cluster), strict=True)
        for request, (value, cut) in zip(group, values, strict=True)
    ]


def scores_of(
    folder: Path, groups: Sequence[Group], cluster: ClusterConfig | None = None
) -> list[list[tuple[float | None, int]]]:
    """Score groups with the model in `folder`; an overlong prompt loses its beginning.

    Returns:
        For each group and response the score (None if the response alone is too long) and the number of tokens cut off.
    """
    from pluralbench_local import LocalModel, load

    local_model, scoring = LocalModel(name=str(folder)), ScoringConfig(on_overflow="truncate-prompt")
    if cluster is None or cluster.address is None:
        model: RewardModel = load(local_model, scoring=scoring)
    else:
        record = local_model.record()
        model = on_cluster(cluster, partial(load_checked, local_model, scoring, record), record)
    scored = model.score(groups)
    scores: list[list[tuple[float | None, int]]] = [
        [(value, cut) for value in values] for values, cut in zip(scored.scores, scored.tokens_cut, strict=True)
    ]
    for place in scored.dropped:  # one response is too long; score the others one by one
        group = groups[place]
        single = [Group(f"{group.id}, {number}", group.prompt, [text]) for number, text in enumerate(group.responses)]
        rescored = model.score(single)
        scores[place] = [
            (next(iter(values), None), cut) for values, cut in zip(rescored.scores, rescored.tokens_cut, strict=True)
        ]
    return scores
